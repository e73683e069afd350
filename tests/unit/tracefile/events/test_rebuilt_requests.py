"""Requests of usual conversations are rebuilt as they were sent; a changed byte is noticed."""

from __future__ import annotations

import copy
import random

import pytest

from reenact import Recording, Tap
from support.examples import long

MARKER = {"type": "ephemeral"}


def anthropic(turn):
    blocks = [{"type": "text", "text": f'answer {turn} {{"$x": 1, "role":"q"}} "stop_reason":'}]
    return {"id": "m", "role": "assistant", "content": blocks, "stop_reason": "end", "usage": {"out": 1}}


def openai(turn):
    message = {"role": "assistant", "content": f"été {turn} ,\n", "refusal": None}
    return {"id": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def sent_back(body):
    if "choices" in body:
        return {k: v for k, v in body["choices"][0]["message"].items() if v is not None}
    return {"role": body["role"], "content": body["content"]}


def user(turn):
    return {
        "role": "user",
        "content": [{"type": "text", "text": f'question {turn} \ud800 $HOME, "content":'}],
    }


def run(path, turns, answer, *, marker=False, edit=False, both=False):
    """Record a conversation as agents lead them; return what was sent."""
    sent, conversations = [], [[user("a")], [user("b")]]
    with Tap(path, redact=False) as tap:
        for turn in range(turns):
            messages = conversations[turn % 3 == 2 if both else 0]
            if marker:
                for message in messages:
                    if type(message["content"]) is list:
                        message["content"][-1].pop("cache_control", None)
                messages[-1]["content"][-1]["cache_control"] = MARKER
            if edit and turn % 7 == 6:
                messages[len(messages) // 3]["content"] = [{"type": "text", "text": f"cleared {turn}"}]
            body = {"model": "m", "tools": [{"n": 1}], "messages": messages, "temperature": turn // 10}
            call = tap.record_model_request(body)
            sent.append(copy.deepcopy(body))
            got = answer(turn)
            tap.record_model_response(got, call=call)
            messages += [sent_back(got), user(turn)]
    return sent


@pytest.mark.parametrize("answer", [anthropic, long(openai)])
@pytest.mark.parametrize(
    "how", [{}, {"marker": True}, {"edit": True, "both": True}, {"marker": True, "edit": True}]
)
def test_every_request_of_usual_conversations_is_rebuilt(tmp_path, answer, how):
    path = tmp_path / "run.jsonl"
    sent = run(path, 40, answer, **how)
    recording = Recording.load(path)
    requests = [event for event in recording.events if event.kind == "model.request"]
    for event, body in zip(requests, sent, strict=True):
        assert recording.context_at(event) == body["messages"]
        again = Recording.load(path)
        assert again.at_step(event.step).payload["body"] == body
        assert again.findings == []


def test_a_changed_byte_is_a_finding(tmp_path):
    path = tmp_path / "run.jsonl"
    sent = run(path, 12, anthropic, marker=True)
    data = path.read_bytes()
    places = [at for at in range(len(data)) if data.startswith(b"question", at)]
    for at in random.Random(1).sample(places[:-4], 6):
        path.write_bytes(data[:at] + b"Q" + data[at + 1 :])
        recording = Recording.load(path)
        event = [event for event in recording.events if event.kind == "model.request"][-1]
        messages = recording.context_at(event)
        assert sum(a != b for a, b in zip(messages, sent[-1]["messages"], strict=True)) == 1
        assert [finding.code for finding in recording.findings][:1] == ["chain"]


def many_conversations(path, each=4, turns=5):
    """Record one conversation after another; now and then one has other parameters. Return what was sent."""
    sent, params = [], {"model": "m", "system": "be brief", "tools": [{"n": 1}], "temperature": 0.5}
    with Tap(path, redact=False) as tap:
        for number in range(each * 4):
            if number % each == each - 1:
                params = {**params, "system": f"be brief {number}"}
            own = {key: value for key, value in params.items() if number % 5 != 4 or key != "tools"}
            messages = [user("of all"), user(number)] if number % 3 else [user(number)]
            for turn in range(turns):
                body = {**own, "messages": messages}
                call = tap.record_model_request(body)
                sent.append(copy.deepcopy(body))
                tap.record_model_response(anthropic(turn), call=call)
                messages += [sent_back(anthropic(turn)), user(turn)]
    return sent


def test_requests_of_one_conversation_after_another_are_rebuilt_each_on_its_own(tmp_path):
    sent = many_conversations(tmp_path / "t.jsonl")
    for number, body in enumerate(sent):
        recording = Recording.load(tmp_path / "t.jsonl")  # nothing is built yet
        assert [e for e in recording.events if e.kind == "model.request"][number].body == body
        assert recording.findings == []


def test_requests_of_earlier_conversations_are_not_parsed_whole(tmp_path):
    sent = many_conversations(tmp_path / "t.jsonl", each=10)
    calls = [call.id for call in Recording.load(tmp_path / "t.jsonl").calls()]
    recording = Recording.load(tmp_path / "t.jsonl")
    shelf = recording.shelf
    assert recording.request_of(calls[-1]).body == sent[-1]
    parsed = [at for at, call in enumerate(calls) if shelf.holds(shelf.request_place(call))]
    assert parsed[-5:] == list(range(len(sent) - 5, len(sent)))
    assert len(parsed) < len(sent) / 4
