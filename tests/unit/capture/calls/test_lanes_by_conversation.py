"""Whose conversation a request goes on with, where beginnings are alike, prompts change and streams stay unread."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from reenact import Debugger, Tap
from reenact.capture.calls.lanes import MAX_LANES, Lanes
from support.provider import Provider

PLAN = 'PLAN [[["lookup", {"question": "high?"}]], [["lookup", {"question": "far?"}]]]'
SYSTEM = {"role": "system", "content": PLAN}


class Chat:
    """A client whose calls are recorded, and the lanes they were recorded in."""

    def __init__(self, provider: Provider, path: Path) -> None:
        self.url = provider.url("plan", "/v1/chat/completions")
        self.path = path
        self.tap = Tap(str(path))
        self.http = self.tap.wrap(httpx.Client())

    def ask(self, *messages: Any) -> dict[str, Any]:
        answer = self.http.post(self.url, json={"model": "m", "messages": messages})
        return dict(answer.raise_for_status().json()["choices"][0]["message"])

    def lanes(self) -> list[str]:
        self.http.close()
        self.tap.close()
        return [call.lane for call in Debugger.load(self.path).calls("model")]


@pytest.fixture
def chat(provider: Provider, tmp_path: Path) -> Chat:
    return Chat(provider, tmp_path / "run.jsonl")


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def results(message: dict[str, Any]) -> list[dict[str, str]]:
    return [
        {"role": "tool", "tool_call_id": use["id"], "content": "very"}
        for use in message.get("tool_calls", ())
    ]


def test_conversations_with_one_prompt_and_other_questions_are_distinguished(chat: Chat) -> None:
    talks = [[SYSTEM, user(f"room {number}")] for number in range(3)]
    for _ in range(2):
        for talk in talks:
            printed = chat.ask(*talk)
            talk += [printed, *results(printed)]
    assert chat.lanes() == ["main", "lane-2", "lane-3"] * 2


def test_an_agent_that_takes_over_with_a_prompt_of_its_own_stays_in_the_lane(chat: Chat) -> None:
    printed = chat.ask(SYSTEM, user("a room"))
    other = {"role": "system", "content": PLAN.replace("high?", "deep?")}
    chat.ask(other, user("a room"), printed, *results(printed))
    assert chat.lanes() == ["main", "main"]


OBSERVED = {"role": "user", "content": "Observation:\nvery\n\nNow answer."}
LAST = {"role": "system", "content": PLAN.replace("high?", "deep?")}


def test_a_last_call_under_another_prompt_with_results_as_text_stays_in_the_lane(chat: Chat) -> None:
    """As smolagents makes it when an agent has run out of steps."""
    printed = chat.ask(SYSTEM, user("a room"))
    chat.ask(LAST, user("a room"), user(str(printed)), OBSERVED)
    assert chat.lanes() == ["main", "main"]


def test_under_another_prompt_a_request_without_results_or_with_another_question_is_another_agent(
    chat: Chat,
) -> None:
    printed = chat.ask(SYSTEM, user("a room"))
    chat.ask(LAST, user("a room"), user(str(printed)))
    chat.ask(LAST, user("another room"), user(str(printed)), OBSERVED)
    assert chat.lanes() == ["main", "lane-2", "lane-3"]


def test_a_request_that_answers_an_unread_stream_goes_on_with_it(chat: Chat) -> None:
    body = {"model": "m", "messages": [SYSTEM, user("a room")], "stream": True}
    with chat.http.stream("POST", chat.url, json=body) as stream:
        pieces = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: {"))
        message = next(
            each["choices"][0]["delta"] for each in pieces if "tool_calls" in each["choices"][0]["delta"]
        )
        use = {**message["tool_calls"][0], "function": {"name": "lookup", "arguments": "{}"}}
        printed = {"role": "assistant", "content": None, "tool_calls": [use]}
        chat.ask(*body["messages"], printed, *results(printed))
    assert chat.lanes() == ["main", "main"]


def test_the_same_request_twice_at_once_is_two_agents(chat: Chat) -> None:
    printed = chat.ask(SYSTEM, user("a room"))
    body = {"model": "m", "messages": [SYSTEM, user("a room"), printed, *results(printed)], "stream": True}
    with chat.http.stream("POST", chat.url, json=body), chat.http.stream("POST", chat.url, json=body):
        pass
    assert chat.lanes() == ["main", "main", "lane-2"]


def test_a_whole_stream_that_nobody_closes_is_recorded_before_the_next_request(chat: Chat) -> None:
    ask = {"model": "m", "messages": [SYSTEM, user("a room")], "stream": True}
    stream = chat.http.send(chat.http.build_request("POST", chat.url, json=ask), stream=True)
    pieces = stream.iter_bytes()
    read = b""
    while b"[DONE]" not in read:
        read += next(pieces)
    chat.ask(SYSTEM, user("another room"))
    kinds = [json.loads(line)["kind"] for line in chat.path.read_text().splitlines()]
    assert kinds[1:] == ["model.request", "model.response"] * 2
    assert Debugger.load(chat.path).calls("model")[0].end.ended == "complete"
    stream.close()
    assert chat.lanes() == ["main", "lane-2"]


def test_a_whole_stream_that_nobody_closes_is_recorded_before_the_tool_it_asks_for(chat: Chat) -> None:
    ask = {"model": "m", "messages": [SYSTEM, user("a room")], "stream": True}
    stream = chat.http.send(chat.http.build_request("POST", chat.url, json=ask), stream=True)
    pieces = stream.iter_bytes()
    read = b""
    while b"[DONE]" not in read:
        read += next(pieces)
    done = chat.tap.record_tool_call("lookup", {"question": "high?"})
    chat.tap.record_tool_result("lookup", "very", call=done)
    stream.close()
    chat.tap.close()
    model, tool = Debugger.load(chat.path).calls()
    assert (tool.parent, tool.derived) == (model.id, False)


def test_a_message_that_another_dialect_has_sent_before_is_written_again(chat: Chat) -> None:
    """A reference names a request and a place in its list; in the other dialect that list has another name."""
    place = chat.url.replace("/chat/completions", "/responses")
    chat.http.post(place, json={"model": "m", "instructions": PLAN, "input": [user("a room")]})
    printed = chat.ask(SYSTEM, user("no room"))
    chat.ask(SYSTEM, user("no room"), printed, *results(printed))
    body = [{**SYSTEM, "content": PLAN + "!"}, user("a room")]
    chat.ask(*body)
    chat.lanes()
    assert Debugger.load(chat.path).calls("model")[-1].begin.body["messages"] == body


def test_another_attempt_goes_to_the_same_address(chat: Chat) -> None:
    question = {"model": "m", "messages": [user("hi")]}
    for url in (chat.url.replace("plan", "status-500"),) * 2 + (chat.url,):
        chat.http.post(url, json=question)
    chat.lanes()
    requests = [call.begin for call in Debugger.load(chat.path).calls("model")]
    assert [request.attempt for request in requests if request] == [None, 2, None]


def test_more_agents_at_once_than_lanes_are_kept_are_still_distinguished() -> None:
    lanes = Lanes("run")
    taken = [lanes.begin(f"call-{number}", None, number, None)[0] for number in range(2 * MAX_LANES)]
    assert taken[0] == "main" and len(set(taken)) == len(taken)
    for number in range(len(taken)):
        lanes.end(f"call-{number}", failed=False)
    assert lanes.begin("later", None, "later", None)[0] in taken
