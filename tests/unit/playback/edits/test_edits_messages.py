"""``--inject-user``, ``--drop``, ``--tool-result`` at a model call: at the cut and in all that follows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.errors import UsageError
from reenact.playback.edits.cut_request import CutRequest
from reenact.playback.edits.edits import Edits
from reenact.wire.messages import tool_results
from reenact.wire.pairing import consistent
from support.edited import DIALECTS, at_cut, conversation, edited, request

ALL = pytest.mark.parametrize("name", DIALECTS)
GO = "Go by train."


def live(name: str, turns: int, *more: Any) -> dict[str, Any]:
    """A request after the cut at turn 2: what came since was made by the live model."""
    body = request(name, turns)
    key = DIALECTS[name].key
    return {**body, key: [*body[key], *more]}


def is_sound(name: str, body: dict[str, Any]) -> bool:
    messages = conversation(body)
    return consistent(messages, name).length == len(messages)


@ALL
def test_a_user_speaks_at_the_cut_and_is_heard_in_every_later_request(name):
    cut, edits = at_cut(name), Edits.parse(inject_user=GO)
    at = edited(edits, request(name, 2), cut)
    count = len(conversation(at))
    assert json.dumps(conversation(at)[-1]).count(GO) == 1
    assert is_sound(name, at)
    for turns in (3, 4):
        later = edited(edits, request(name, turns), cut)
        assert conversation(later)[:count] == conversation(at)
        own = conversation(request(name, 2))
        assert conversation(later)[count:] == conversation(request(name, turns))[len(own) :]
        assert {**later, DIALECTS[name].key: 0} == {**request(name, turns), DIALECTS[name].key: 0}
        assert is_sound(name, later)


SPOKEN = {
    "anthropic": [{"role": "user", "content": "Plan Lisbon"}, {"role": "user", "content": GO}],
    "openai": [{"role": "user", "content": "Plan Lisbon"}, {"role": "user", "content": GO}],
    "openai-responses": [{"role": "user", "content": "Plan Lisbon"}, {"role": "user", "content": GO}],
    "gemini": [{"role": "user", "parts": [{"text": "Plan Lisbon"}]}, {"role": "user", "parts": [{"text": GO}]}],
    "bedrock": [{"role": "user", "content": [{"text": "Plan Lisbon"}, {"text": GO}]}],  # roles must alternate
    "ollama": [{"role": "user", "content": "Plan Lisbon"}, {"role": "user", "content": GO}],
}  # fmt: skip


@ALL
def test_the_first_request_can_be_spoken_into(name):
    found = edited(Edits.parse(inject_user=GO), request(name, 0), at_cut(name, 0))
    assert conversation(found)[len(DIALECTS[name].before) :] == SPOKEN[name]


def test_after_results_anthropic_wants_the_text_in_the_same_message():
    found = edited(Edits.parse(inject_user=GO), request("anthropic", 1), at_cut("anthropic", 1))
    result = {"type": "tool_result", "tool_use_id": "call_0", "content": "found 0"}
    assert conversation(found)[-1] == {"role": "user", "content": [result, {"type": "text", "text": GO}]}


def test_a_bare_input_becomes_a_list():
    body = {"model": "gpt-a", "input": "Plan Lisbon", "instructions": "You plan."}
    cut = CutRequest(body, DIALECTS["openai-responses"].url)
    later = {
        **body,
        "input": [{"role": "user", "content": "Plan Lisbon"}, {"role": "assistant", "content": "Ok"}],
    }
    assert edited(Edits.parse(inject_user=GO), body, cut)["input"] == SPOKEN["openai-responses"]
    items = edited(Edits.parse(inject_user=GO), later, cut)["input"]
    assert [each["content"] for each in items] == ["Plan Lisbon", GO, "Ok"]
    assert edited(Edits.parse(sets=["input=Plan Porto"]), later, cut)["input"][0]["content"] == "Plan Porto"


@ALL
def test_ids_and_cache_marks_of_the_day_make_no_difference(name):
    body = request(name, 3, ids="toolu")
    if name == "anthropic":
        conversation(body)[2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    found = edited(Edits.parse(inject_user=GO), body, at_cut(name))
    assert json.dumps(found).count(GO) == 1
    assert json.dumps(found).count("cache_control") == json.dumps(body).count("cache_control")


@ALL
def test_after_a_compaction_the_place_is_gone_and_that_is_reported(name):
    spelled = DIALECTS[name]
    compacted = [
        *spelled.before,
        spelled.user("Plan Lisbon"),
        *spelled.assistant("So far: hotels."),
        spelled.user("Go on"),
    ]
    body = {**request(name, 0), spelled.key: compacted}
    found = Edits.parse(inject_user=GO).request(body, spelled.url, at_cut(name))
    assert found.body == body
    assert "is not in this request any more" in found.notes[0]


@ALL
def test_old_messages_may_be_gone_while_the_place_is_there(name):
    """A sliding window keeps the task and the newest turns."""
    spelled = DIALECTS[name]
    body, first = request(name, 3), len(spelled.before) + 1
    width = len(spelled.use("x", "x")) + 1
    body[spelled.key] = [*body[spelled.key][:first], *body[spelled.key][first + width :]]
    found = conversation(edited(Edits.parse(inject_user=GO), body, at_cut(name)))
    [place] = [at for at, each in enumerate(found) if GO in json.dumps(each)]
    assert "found 1" in json.dumps(found[place - 1 : place + 1])


@ALL
def test_a_message_is_dropped_with_its_partner(name):
    cut, width = at_cut(name), len(DIALECTS[name].use("x", "x"))
    first = len(DIALECTS[name].before) + 2
    numbers = list(range(first, first + width + 1))
    for turns in (2, 4):
        body = request(name, turns)
        found = edited(Edits.parse(drop=numbers), body, cut)
        assert "found 0" not in json.dumps(found) and "hotel 0" not in json.dumps(found)
        assert "found 1" in json.dumps(found)
        assert is_sound(name, found)
        kept = [each for number, each in enumerate(conversation(body), 1) if number not in numbers]
        # What the recorded model thought behind the change goes, what the live one thought stays.
        signed = json.dumps(found).count("s-call_") + json.dumps(found).count("sealed-")
        assert signed == (0 if name in ("openai", "ollama") else turns - 2)
        if name in ("openai", "ollama"):
            assert conversation(found) == kept


@ALL
def test_a_message_alone_is_refused_and_its_partner_named(name):
    cut, width = at_cut(name), len(DIALECTS[name].use("x", "x"))
    use = len(DIALECTS[name].before) + 1 + width
    with pytest.raises(UsageError, match=f"search in message {use + 1} without its partner") as raised:
        Edits.parse(drop=[use])._changes(cut)
    assert raised.value.hint == f"drop both: --drop {use} --drop {use + 1}"
    with pytest.raises(UsageError, match=f"the call of search in message {use} without"):
        Edits.parse(drop=[use + 1])._changes(cut)


@pytest.mark.parametrize("number", [0, 6, -6, 99])
def test_a_number_outside_is_refused(number):
    with pytest.raises(UsageError, match="has 5 messages"):
        Edits.parse(drop=[number])._changes(at_cut("anthropic"))


def talked(name: str) -> CutRequest:
    spelled = DIALECTS[name]
    messages = [
        spelled.user("Plan"),
        *spelled.assistant("Where?"),
        spelled.user("Lisbon"),
        *spelled.assistant("When?"),
    ]
    return CutRequest({**spelled.rest, spelled.key: [*messages, spelled.user("Now")]}, spelled.url)


def test_bedrock_lets_nobody_speak_twice():
    with pytest.raises(UsageError, match="message 4, the model's"):
        Edits.parse(drop=[3])._changes(talked("bedrock"))
    Edits.parse(drop=[3])._changes(talked("anthropic"))
    found = Edits.parse(drop=[2, 4]).request(talked("bedrock").body, talked("bedrock").url, talked("bedrock"))
    assert conversation(found.body) == [
        {"role": "user", "content": [{"text": "Plan"}, {"text": "Lisbon"}, {"text": "Now"}]}
    ]


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "gemini"])
def test_a_conversation_neither_begins_nor_ends_with_the_model(name):
    for numbers in ([1], [-1, -2, -3]):
        with pytest.raises(UsageError, match=r"message 2, the model's, where \w+ needs a user message"):
            Edits.parse(drop=numbers)._changes(talked(name))
    with pytest.raises(UsageError, match="leaves no message"):
        Edits.parse(drop=[1, 2, 3, 4, 5])._changes(at_cut(name))


def test_negative_numbers_count_from_the_end_and_bedrock_keeps_alternating():
    found = edited(Edits.parse(drop=[-1, -2], inject_user=GO), request("bedrock", 2), at_cut("bedrock"))
    assert [each["role"] for each in conversation(found)] == ["user", "assistant", "user"]
    assert conversation(found)[-1]["content"][-1] == {"text": GO}
    assert "found 1" not in json.dumps(found)


@ALL
@pytest.mark.parametrize("text", ["nothing found", '{"hotels": []}', ""])
def test_the_one_new_result_is_replaced_in_every_later_request(name, text):
    cut, edits = at_cut(name), Edits.parse(tool_result=text)
    for turns in (2, 4):
        body = request(name, turns)
        found = edited(edits, body, cut)
        [value] = [
            result.value for before, now in zip(conversation(body), conversation(found), strict=True)
            for result in tool_results(now) if before != now
        ]  # fmt: skip
        expected = {"hotels": []} if name == "gemini" and text[:1] == "{" else {"result": text} if name == "gemini" else [{"text": text}] if name == "bedrock" else text  # fmt: skip
        assert value == expected
        assert is_sound(name, found)
        assert json.dumps(found).count("found 1") == 0
        assert json.dumps(found).count("found 0") == 1


def test_a_failed_result_is_no_failure_any_more_and_lists_stay_lists():
    body = request("anthropic", 1)
    parts = [{"type": "text", "text": "boom"}]
    conversation(body)[-1]["content"][0] |= {
        "is_error": True,
        "content": parts,
        "cache_control": {"type": "x"},
    }
    found = edited(Edits.parse(tool_result="fine"), body, CutRequest(body, DIALECTS["anthropic"].url))
    assert conversation(found)[-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_0", "content": [{"type": "text", "text": "fine"}],
         "cache_control": {"type": "x"}}
    ]  # fmt: skip


def test_of_several_results_one_must_be_named():
    body = request("openai", 0)
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": f"t{n}", "arguments": "{}"}} for n in (1, 2)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"r{n}"} for n in (1, 2)]
    body["messages"] += [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    cut = CutRequest(body, DIALECTS["openai"].url)
    with pytest.raises(UsageError, match="2 results at the cut: t1 c1, t2 c2"):
        Edits.parse(tool_result="x")._changes(cut)
    with pytest.raises(UsageError, match="none of the results is from t3"):
        Edits.parse(tool_result="x", tool="t3")._changes(cut)
    for tool in ("c2", "t2"):
        found = edited(Edits.parse(tool_result="x", tool=tool), body, cut)
        assert [each["content"] for each in found["messages"][-2:]] == ["r1", "x"]


def test_a_request_that_brings_no_result_has_none_to_replace():
    with pytest.raises(UsageError, match="carries no new tool result"):
        Edits.parse(tool_result="x")._changes(at_cut("gemini", 0))


def test_a_part_of_a_message_is_set_by_its_path():
    cut = at_cut("openai")
    found = edited(Edits.parse(sets=["messages.1.content=Plan Porto"]), request("openai", 4), cut)
    assert found["messages"][1]["content"] == "Plan Porto"
    assert found["messages"][2:] == request("openai", 4)["messages"][2:]
    for text in ("messages=[]", "messages.1=x", "messages.9.content=x"):
        with pytest.raises(UsageError):
            Edits.parse(sets=[text])._changes(cut)
    with pytest.raises(UsageError, match="both dropped and changed"):
        Edits.parse(sets=["messages.1.content=x"], drop=[2])._changes(cut)
