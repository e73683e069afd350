from __future__ import annotations

import json
import time

import pytest

from reenact import Recording
from reenact.tracefile.events import rebuilt_requests as references
from support.written import Pen, chain_link, chain_of, store_blob


def load(tmp_path, *lines):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines))
    return Recording.load(path)


def user(text):
    return {"role": "user", "content": text}


def codes(run):
    return [finding.code for finding in run.findings]


class Talk:
    """A conversation written as deltas, as a recorder would."""

    def __init__(self):
        self.pen = Pen()
        self.lines = [self.pen("run.start", v="1.0")]
        self.messages = []
        self.calls = 0
        self.sent = []
        self.chain = bytes(8)

    def turn(self, text):
        call, base = f"{self.calls:016x}", f"{self.calls - 1:016x}"
        if self.calls == 0:
            self.messages = new = [user(text)]
            fields = {"body": {"model": "m", "messages": [user(text)]}}
        else:
            kept = len(self.messages)
            answer = {"role": "assistant", "content": f"answer {self.calls - 1}"}
            self.messages = [*self.messages, answer, user(text)]
            new = self.messages[kept:]
            written = [{"$answer": base, "at": "/message", "keys": ["role", "content"]}, user(text)]
            fields = {"base": base, "keep": {"model": True, "messages": kept}, "body": {"messages": written}}
        for message in new:
            self.chain = chain_link(self.chain, message)
        self.sent.append({"model": "m", "messages": list(self.messages)})
        self.lines.append(
            self.pen("model.request", call=call, n=len(self.messages), chain=self.chain.hex(), **fields)
        )
        answer = {"id": "x", "message": {"role": "assistant", "content": f"answer {self.calls}", "extra": 1}}
        self.lines.append(self.pen("model.response", call=call, error=None, body=answer))
        self.calls += 1


def test_a_thousand_turns_are_rebuilt_without_recursion(tmp_path):
    talk = Talk()
    for i in range(1000):
        talk.turn(f"question {i}")
    run = load(tmp_path, *talk.lines)
    assert run.events[-2].payload["body"] == talk.sent[-1]
    assert run.events[0].payload["body"] == talk.sent[0]
    assert len(run.context_at(run.events[999])) == 999
    assert codes(run) == []


def test_every_request_is_rebuilt_also_out_of_order(tmp_path):
    talk = Talk()
    for i in range(30):
        talk.turn(f"question {i}")
    run = load(tmp_path, *talk.lines)
    requests = [event for event in run.events if event.kind == "model.request"]
    order = [3, 29, 0, 17, 4, 28, 5, 5, 12]
    assert [requests[i].payload["body"] for i in order] == [talk.sent[i] for i in order]
    assert codes(run) == []


def test_a_payload_may_be_changed_without_changing_the_next(tmp_path):
    talk = Talk()
    talk.turn("a"), talk.turn("b")
    run = load(tmp_path, *talk.lines)
    run.events[2].payload["body"]["messages"].clear()
    run.events[2].payload["body"]["messages"][0]["content"] = "changed"
    assert run.events[2].payload["body"] == talk.sent[1]


def test_same_drop_and_set_are_followed(tmp_path):
    pen = Pen()
    marked = {
        "role": "user",
        "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
    }
    plain = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    moved = {
        "role": "user",
        "content": [{"type": "text", "text": "ho", "cache_control": {"type": "ephemeral"}}],
    }
    second = [plain, user("x"), moved]
    run = load(
        tmp_path,
        pen("run.start", v="1.0"),
        pen("model.request", call="a", n=2, chain=chain_of([marked, user("x")]), body={"messages": [marked, user("x")]}),
        pen(
            "model.request", call="b", base="a", keep={}, n=3, chain=chain_of(second),
            body={
                "messages": [
                    {"$same": ["a", 0], "drop": ["/content/0/cache_control"]},
                    {"$same": ["a", 1]},
                    {"$same": ["a", 0], "set": {"/content/0/text": "ho"}},
                ]
            },
        ),
        pen("model.request", call="c", base="b", keep={"messages": 1}, n=2, chain=chain_of([plain, plain]), body={"messages": [{"$same": ["b", 0]}]}),
        pen("model.request", call="d", base="c", keep={"messages": True}, n=2, chain=chain_of([plain, plain]), body={}),
    )  # fmt: skip
    assert run.events[1].payload["body"]["messages"] == second
    assert run.events[2].payload["body"]["messages"] == [plain, plain]
    assert run.events[3].payload["body"]["messages"] == [plain, plain]
    assert codes(run) == []


def test_keys_in_neither_keep_nor_body_are_absent(tmp_path):
    pen = Pen()
    run = load(
        tmp_path,
        pen("run.start", v="1.0"),
        pen("model.request", call="a", body={"model": "m", "tools": [1, 2], "messages": [user("a")]}),
        pen("model.request", call="b", base="a", keep={"messages": 1, "tools": 1}, body={"temperature": 0}),
    )
    assert run.events[1].payload["body"] == {"messages": [user("a")], "tools": [1], "temperature": 0}


def test_blobs_stand_as_references_in_the_chain_and_as_texts_in_the_payload(tmp_path):
    pen = Pen()
    stored = {
        "role": "user",
        "content": store_blob(tmp_path / "t.jsonl", "long " * 1000),
        "$$key": {"$float": "nan"},
    }
    run = load(
        tmp_path, pen("run.start", v="1.0"),
        pen("model.request", call="a", n=1, chain=chain_of([stored]), body={"messages": [stored]}),
    )  # fmt: skip
    message = run.events[0].payload["body"]["messages"][0]
    assert message["content"] == "long " * 1000
    assert str(message["$key"]) == "nan"
    assert codes(run) == []


def test_a_lost_base_leaves_gaps_and_a_finding(tmp_path):
    talk = Talk()
    for i in range(3):
        talk.turn(f"q{i}")
    del talk.lines[1]
    run = load(tmp_path, *talk.lines)
    messages = run.event("6").payload["body"]["messages"]
    assert messages[0] == {"$gap": 1}
    assert messages[1:] == talk.sent[2]["messages"][1:]
    assert run.event("6").payload["body"]["model"] == {"$gap": 1}
    assert "base-lost" in codes(run)


def test_a_lost_answer_leaves_a_gap_and_a_finding(tmp_path):
    talk = Talk()
    talk.turn("a"), talk.turn("b")
    del talk.lines[2]
    run = load(tmp_path, *talk.lines)
    assert run.event("4").payload["body"]["messages"] == [user("a"), {"$gap": 1}, user("b")]
    assert {"reference-lost", "chain"} <= set(codes(run))


def test_a_changed_message_is_found_by_its_chain(tmp_path):
    talk = Talk()
    talk.turn("a"), talk.turn("b")
    talk.lines[3] = talk.lines[3].replace(b'"content":"b"', b'"content":"c"')
    run = load(tmp_path, *talk.lines)
    _ = run.events[2].payload
    assert codes(run) == ["chain"]


HOSTILE = {
    "own base": {"base": "a", "keep": {"messages": 1}, "body": {"messages": []}},
    "base a number": {"base": 7, "keep": {"messages": 1}, "body": {"messages": []}},
    "keep a list": {"base": "z", "keep": [1], "body": {"messages": []}},
    "negative keep": {"base": "z", "keep": {"messages": -3, "model": "x"}, "body": {"messages": []}},
    "huge keep": {"base": "z", "keep": {"messages": 10**12}, "body": {"messages": []}},
    "negative position": {"body": {"messages": [{"$same": ["z", -1]}]}},
    "position a text": {"body": {"messages": [{"$same": ["z", "0"]}]}},
    "same a text": {"body": {"messages": [{"$same": "z"}]}},
    "own element": {"body": {"messages": [{"$same": ["a", 0]}]}},
    "answer an object": {"body": {"messages": [{"$answer": {}}]}},
    "pointer into nothing": {"body": {"messages": [{"$answer": "z", "at": "/x/~1/0"}]}},
    "pointer a number": {"body": {"messages": [{"$answer": "z", "at": 3}]}},
    "keys a number": {"body": {"messages": [{"$answer": "z", "keys": 3}]}},
    "drop nonsense": {"body": {"messages": [{"$same": ["z", 0], "drop": 3}]}},
    "set nonsense": {"body": {"messages": [{"$same": ["z", 0], "set": [1]}]}},
    "set nowhere": {"body": {"messages": [{"$same": ["z", 0], "set": {"/a/b/c": 1}}]}},
    "body a text": {"base": "z", "body": "text"},
    "chain a number": {"chain": 3, "n": "x", "body": {"messages": []}},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_requests_give_something_and_never_raise(tmp_path, what):
    pen = Pen()
    run = load(
        tmp_path, pen("run.start", v="1.0"),
        pen("model.request", call="z", body={"model": "m", "messages": [user("z")]}),
        pen("model.response", call="z", error=None, body=["x"]),
        pen("model.request", call="a", **HOSTILE[what]),
    )  # fmt: skip
    event = run.events[2]
    json.dumps(event.payload)
    assert event.summary()
    run.context_at(event)


def test_bases_in_a_circle_end_with_a_finding(tmp_path):
    pen = Pen()
    keep = {"messages": 1}
    run = load(
        tmp_path, pen("run.start", v="1.0"),
        pen("model.request", call="a", base="b", keep=keep, body={"messages": []}),
        pen("model.request", call="b", base="a", keep=keep, body={"messages": [{"$same": ["a", 0]}]}),
    )  # fmt: skip
    assert run.events[1].payload["body"]["messages"][0] == {"$gap": 1}
    assert set(codes(run)) == {"cycle", "reference-lost"}


def test_a_bomb_of_repeated_references_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(references, "MAX_BYTES", 1 << 20)
    pen = Pen()
    run = load(
        tmp_path, pen("run.start", v="1.0"),
        pen("model.request", call="a", body={"messages": [user("x" * 100_000)]}),
        pen("model.request", call="b", body={"messages": [{"$same": ["a", 0]}] * 10_000}),
    )  # fmt: skip
    messages = run.events[1].payload["body"]["messages"]
    assert messages.count({"$gap": 1}) > 9_900
    assert "reference-lost" in codes(run)


@pytest.mark.parametrize("back, change", [(1, {}), (9, {}), (9, {"set": {"/role": "x"}})])
def test_requests_that_only_refer_to_each_other_are_read_in_bounded_time(tmp_path, back, change):
    pen = Pen()
    lines = [
        pen("run.start", v="1.0"),
        pen("model.request", call="c0", body={"messages": [user(str(i)) for i in range(500)]}),
    ]
    for number in range(1, 40):
        target = f"c{max(0, number - back)}"
        same = [{"$same": [target, i], **change} for i in range(500)]
        lines.append(pen("model.request", call=f"c{number}", body={"messages": same}))
    run = load(tmp_path, *lines)
    begin = time.process_time()
    last = [run.context_at(event)[499] for event in run.events][-1]
    assert time.process_time() - begin < 5  # it was a minute
    assert last == {**user("499"), **({"role": "x"} if change else {})}
    assert codes(run) == []
