"""Edits and what belongs to the provider: signed thinking, and conversations that it keeps."""

from __future__ import annotations

import copy
import json

import pytest

from reenact.errors import UsageError
from reenact.playback.edits.cut_request import CutRequest
from reenact.playback.edits.edits import Edits
from reenact.wire.pairing import consistent
from reenact.wire.reading import model_of
from support.edited import DIALECTS, at_cut, edited, request

ALL = pytest.mark.parametrize("name", DIALECTS)
GO = "Go by train."


@ALL
def test_on_another_model_the_recorded_ones_thinking_goes_and_its_own_stays(name):
    cut = at_cut(name)
    for turns in (2, 4):
        found = Edits.parse(sets=["model=b"]).request(request(name, turns), cut.url, cut)
        text = json.dumps(found.body)
        assert text.count("s-call_") + text.count("sealed-") == (
            0 if name in ("openai", "ollama") else turns - 2
        )
        assert bool(found.notes) == (name not in ("openai", "ollama"))
        messages = found.body[DIALECTS[name].key]
        assert consistent(messages, name).length == len(messages)
    same = Edits.parse(sets=[f"model={model_of(cut.body, cut.url)}"])
    assert same.request(request(name, 2), cut.url, cut).body == request(name, 2)


def test_items_that_lose_their_reasoning_lose_their_names():
    found = edited(Edits.parse(sets=["model=b"]), request("openai-responses", 3), at_cut("openai-responses"))
    kinds = [(each.get("type"), each.get("id")) for each in found["input"]]
    assert kinds == [
        (None, None),
        ("function_call", None), ("function_call_output", None),
        ("function_call", None), ("function_call_output", None),
        ("reasoning", "rs_call_2"), ("function_call", "fc_call_2"), ("function_call_output", None),
    ]  # fmt: skip


def test_a_conversation_that_the_provider_keeps_is_only_added_to():
    out = [{"type": "function_call_output", "call_id": "c", "output": "ok"}]
    body = {"model": "m", "instructions": "You plan.", "input": out, "previous_response_id": "resp_1"}
    cut = CutRequest(copy.deepcopy(body), DIALECTS["openai-responses"].url)
    with pytest.raises(UsageError, match="the provider stores this conversation"):
        Edits.parse(drop=[1])._changes(cut)
    edits = Edits.parse(inject_user=GO, tool_result="not ok", sets=["system=New."])
    found = edited(edits, body, cut)
    assert found["input"] == [{**out[0], "output": "not ok"}, {"role": "user", "content": GO}]
    later = {**body, "previous_response_id": "resp_live"}  # what was said before is kept with that
    assert edited(edits, later, cut) == {**later, "instructions": "New."}


def test_settings_hold_where_nothing_distinguishes_agents():
    cut = CutRequest({"model": "m", "input": "Hi"}, DIALECTS["openai-responses"].url)
    later = {"model": "m", "input": "And then?", "previous_response_id": "resp_live"}
    assert edited(Edits.parse(sets=["model=b"]), later, cut) == {**later, "model": "b"}
    alone = {"model": "m", "input": "Something else"}
    assert edited(Edits.parse(sets=["model=b"]), alone, cut) == {**alone, "model": "b"}
    for other in ({**alone, "instructions": "You review."}, {**alone, "model": "large"}):
        found = Edits.parse(sets=["model=b"]).request(other, cut.url, cut)
        assert found.body == other and "kept its settings" in found.notes[0]
