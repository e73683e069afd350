"""The delta rebuilds the exact request, whatever the agent does to its message list in between."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reenact import Recording, Tap
from support.examples import up_to

MARKER = {"type": "ephemeral"}

leaves = st.one_of(
    st.text(max_size=12),
    st.booleans(),
    st.none(),
    st.sampled_from([0, 1, 1.0, 0.0, -0.0, True, False, 2**70, "$x", "\ud800", " "]),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), values),
        st.tuples(st.just("answer"), values),
        st.tuples(st.just("answer_openai"), values),
        st.tuples(st.just("mark"), st.integers(0, 3)),
        st.tuples(st.just("edit"), st.tuples(st.integers(0, 20), values)),
        st.tuples(st.just("retype"), st.integers(0, 20)),
        st.tuples(st.just("compact"), st.tuples(st.integers(0, 6), st.integers(1, 8))),
        st.tuples(st.just("drop"), st.tuples(st.integers(0, 6), st.integers(1, 4))),
        st.tuples(st.just("shuffle"), st.integers(0, 5)),
        st.tuples(st.just("swap"), st.integers(0, 1)),
        st.tuples(
            st.just("params"), st.tuples(st.sampled_from(["system", "tools", "temperature", "$k"]), values)
        ),
        st.tuples(st.just("long"), st.integers(60_000, 70_000)),
    ),
    max_size=25,
)


def exact(value: Any) -> str:
    """JSON with 1, 1.0 and True told apart; the order of keys is not part of a value."""
    return json.dumps(value, sort_keys=True)


class Agent:
    """Two conversations; a request is sent after every step and its exact body remembered."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self.conversations: list[list[Any]] = [
            [{"role": "user", "content": "go"}],
            [{"role": "user", "content": "go"}],
        ]
        self.at = 0
        self.params: dict[str, Any] = {"model": "m", "max_tokens": 10}
        self.sent: list[tuple[str, str]] = []

    @property
    def messages(self) -> list[Any]:
        return self.conversations[self.at]

    def do(self, what: str, value: Any) -> None:
        getattr(self, "do_" + what)(value)
        body = {**self.params, "messages": self.messages}
        call = self.tap.record_model_request(body, lane=f"lane{self.at}" if len(self.sent) % 3 else "main")
        self.sent.append((call, exact(copy.deepcopy(body))))

    def do_say(self, value: Any) -> None:
        self.messages.append({"role": "user", "content": [{"type": "text", "text": value}]})

    def do_answer(self, value: Any) -> None:
        body = {
            "id": "msg",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "t", "v": value}],
            "usage": {},
        }
        self.tap.record_model_response(body)
        self.messages.append({"role": body["role"], "content": body["content"]})

    def do_answer_openai(self, value: Any) -> None:
        message = {"role": "assistant", "content": "hm", "extra": value, "refusal": None}
        self.tap.record_model_response(
            {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}
        )
        self.messages.append({key: item for key, item in message.items() if item is not None})

    def do_mark(self, back: int) -> None:
        for message in self.messages:
            for block in message["content"] if isinstance(message.get("content"), list) else []:
                block.pop("cache_control", None)
        for message in self.messages[-1 - back :]:
            if isinstance(message.get("content"), list):
                message["content"][-1]["cache_control"] = dict(MARKER)
                break

    def do_edit(self, where_what: tuple[int, Any]) -> None:
        where, what = where_what
        self.messages[where % len(self.messages)]["edited"] = what

    def do_retype(self, where: int) -> None:
        message = self.messages[where % len(self.messages)]
        message["flag"] = {bool: 1, int: 1.0, float: True}.get(type(message.get("flag")), True)

    def do_compact(self, span: tuple[int, int]) -> None:
        start, length = span
        self.messages[start : start + length] = [{"role": "user", "content": "summary"}]

    def do_drop(self, span: tuple[int, int]) -> None:
        """Leave messages out, so that all later ones move by as many places."""
        start, length = span
        del self.messages[start : start + length]
        if not self.messages:
            self.do_say("again")

    def do_shuffle(self, by: int) -> None:
        at = by % len(self.messages)
        self.messages[:] = self.messages[at:] + self.messages[:at]

    def do_swap(self, _: int) -> None:
        self.at = 1 - self.at

    def do_params(self, pair: tuple[str, Any]) -> None:
        self.params[pair[0]] = pair[1]

    def do_long(self, size: int) -> None:
        self.messages.append({"role": "user", "content": [{"type": "text", "text": "é" * size}]})


@settings(up_to(120), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(steps)
def test_every_request_is_rebuilt_exactly_and_proved_by_its_chain(story: list[tuple[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        with Tap(path, redact=False) as tap:
            agent = Agent(tap)
            for what, value in story:
                agent.do(what, value)
        recording = Recording.load(str(path))
        rebuilt = {
            event.call: exact(event.payload["body"])
            for event in recording.events
            if event.kind == "model.request"
        }
        assert rebuilt == dict(agent.sent)
        assert recording.findings == []


def test_a_thousand_turns_stay_linear(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    messages: list[Any] = []
    distinct = 0
    with Tap(path) as tap:
        for turn in range(1000):
            messages.append({"role": "user", "content": [{"type": "text", "text": f"question {turn} " * 20}]})
            call = tap.record_model_request({"model": "m", "max_tokens": 5, "messages": messages})
            body = {
                "role": "assistant",
                "type": "message",
                "content": [{"type": "text", "text": f"answer {turn} " * 20}],
            }
            tap.record_model_response(body, call=call)
            messages.append({"role": "assistant", "content": body["content"]})
    distinct = sum(len(json.dumps(message)) for message in messages)
    assert path.stat().st_size < 2.5 * distinct  # envelopes included; in full it would be 500 times


def test_sdk_objects_among_the_messages_stay_linear_too(tmp_path: Path) -> None:
    class Message:  # as pydantic models do it: not equal to any dict
        def __init__(self, content: str) -> None:
            self.content = content

        def model_dump(self) -> dict[str, Any]:
            return {"role": "assistant", "content": self.content}

    path = tmp_path / "run.jsonl"
    messages: list[Any] = []
    with Tap(path) as tap:
        for turn in range(100):
            messages += [{"role": "user", "content": "q" * 100}, Message(f"{turn} " + "a" * 100)]
            tap.record_model_request({"model": "m", "messages": messages})
    assert path.stat().st_size < 100 * 1_000
    last = Recording.load(str(path)).events[-1]
    assert last.payload["body"]["messages"][-1] == {"role": "assistant", "content": "99 " + "a" * 100}
