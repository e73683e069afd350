"""``--set``: the same words change every dialect's requests, the one at the cut and all that follow."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from reenact.errors import UsageError
from reenact.playback.edits.cut_request import CutRequest, system_of, tools_of
from reenact.playback.edits.edits import Edits, needs_signature
from reenact.wire.reading import model_of
from support.edited import DIALECTS, SYSTEM, another, at_cut, conversation, edited, request

NEW = "You plan trips to the sea."
ALL = pytest.mark.parametrize("name", DIALECTS)


def setting(*texts: str, **others: Any) -> Edits:
    return Edits.parse(sets=texts, **others)


@ALL
def test_a_system_prompt_stays_in_force(name):
    cut = at_cut(name)
    for turns in (2, 3, 5):
        body = request(name, turns)
        found = edited(setting(f"system={NEW}"), body, cut)
        assert system_of(found) == NEW
        assert json.loads(json.dumps(found).replace(NEW, SYSTEM)) == body  # nothing else changed


@ALL
def test_a_text_is_appended_once(name):
    cut = at_cut(name)
    for turns in (2, 3):
        found = edited(setting("system+= Be brief."), request(name, turns), cut)
        assert system_of(found) == f"{SYSTEM} Be brief."


@ALL
def test_what_is_appended_may_be_what_the_prompt_ends_with(name):
    assert system_of(edited(setting("system+=trips."), request(name, 2), at_cut(name))) == f"{SYSTEM}trips."


@ALL
@pytest.mark.parametrize("value", ["null", ""])
def test_a_system_prompt_is_taken_away(name, value):
    found = edited(setting(f"system={value}"), request(name, 2), at_cut(name))
    assert system_of(found) == ""
    assert SYSTEM not in json.dumps(found)


@ALL
def test_a_system_prompt_is_put_where_there_was_none(name):
    def without(turns: int) -> dict[str, Any]:
        return edited(setting("system=null"), request(name, turns), at_cut(name))

    cut = CutRequest(without(2), DIALECTS[name].url)
    for turns in (2, 3):
        found = edited(setting(f"system={NEW}"), without(turns), cut)
        assert system_of(found) == NEW


def test_anthropic_blocks_stay_blocks_with_the_cache_mark_of_the_last():
    mark = {"type": "ephemeral"}
    blocks = [
        {"type": "text", "text": "You plan."},
        {"type": "text", "text": "Trips.", "cache_control": mark},
    ]
    body = {**request("anthropic", 1), "system": blocks}
    cut = CutRequest(body, DIALECTS["anthropic"].url)
    found = edited(setting(f"system={NEW}"), body, cut)
    assert found["system"] == [{"type": "text", "text": NEW, "cache_control": mark}]
    found = edited(setting("system+= Be brief."), body, cut)
    assert found["system"] == [blocks[0], {**blocks[1], "text": "Trips. Be brief."}]
    text_blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert edited(setting(f"system={json.dumps(text_blocks)}"), body, cut)["system"] == text_blocks


def test_the_cache_point_of_bedrock_stays():
    found = edited(setting(f"system={NEW}"), request("bedrock", 1), at_cut("bedrock", 1))
    assert found["system"] == [{"text": NEW}, {"cachePoint": {"type": "default"}}]


def test_a_developer_message_keeps_its_role_and_a_second_one_goes():
    first = [{"role": "developer", "content": "One."}, {"role": "system", "content": "Two."}]
    body = {"model": "gpt-a", "messages": [*first, {"role": "user", "content": "Hi"}]}
    cut = CutRequest(body, DIALECTS["openai"].url)
    found = edited(setting(f"system={NEW}"), body, cut)
    assert found["messages"] == [{"role": "developer", "content": NEW}, {"role": "user", "content": "Hi"}]
    found = edited(setting("system+= Three."), body, cut)
    assert [each["content"] for each in found["messages"]] == ["One.", "Two. Three.", "Hi"]


def test_responses_keep_their_prompt_where_it_was():
    items = [{"role": "developer", "content": [{"type": "input_text", "text": SYSTEM}]}, {"role": "user", "content": "Hi"}]  # fmt: skip
    body = {"model": "gpt-a", "input": items}
    found = edited(setting(f"system={NEW}"), body, CutRequest(body, DIALECTS["openai-responses"].url))
    assert "instructions" not in found
    assert found["input"][0] == {"role": "developer", "content": [{"type": "input_text", "text": NEW}]}


@ALL
def test_a_model_stays_in_force_wherever_it_is_named(name):
    cut = at_cut(name)
    edits = setting("model=other/b:1")
    for turns in (2, 4):
        found = edits.request(request(name, turns), cut.url, cut)
        assert model_of(found.body, found.url) == "other/b:1"
        assert found.url.endswith(cut.url.rpartition("h/")[2].rpartition("/")[2][-6:])
        if "model" in request(name, 2):
            assert found.url == cut.url


@pytest.mark.parametrize(
    ("url", "there"),
    [
        ("https://h/v1beta/models/gemini-a:streamGenerateContent?alt=sse",
         "https://h/v1beta/models/gemini-b:streamGenerateContent?alt=sse"),
        ("https://h/v1/projects/p/publishers/google/models/gemini-a:generateContent",
         "https://h/v1/projects/p/publishers/google/models/gemini-b:generateContent"),
        ("https://h/model/us.anthropic.claude%3A0/converse-stream", "https://h/model/gemini-b/converse-stream"),
        ("https://h/openai/deployments/mine/chat/completions?api-version=1",
         "https://h/openai/deployments/gemini-b/chat/completions?api-version=1"),
    ],
)  # fmt: skip
def test_a_model_in_the_url(url, there):
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    assert setting("model=gemini-b").request(body, url, CutRequest(body, url)).url == there


@ALL
def test_tools_are_replaced_and_taken_away(name):
    cut, body = at_cut(name), request(name, 3)
    text = json.dumps(body["toolConfig"]["tools"] if name == "bedrock" else body["tools"])
    found = edited(setting("tools=" + text.replace("search", "seek")), body, cut)
    assert tools_of(found) == ("seek",)
    assert conversation(found) == conversation(body)
    assert tools_of(edited(setting("tools=null"), {**body, "tool_choice": "auto"}, cut)) == ()


def test_a_choice_of_tools_goes_with_the_tools():
    body = {**request("openai", 1), "tool_choice": "auto", "parallel_tool_calls": False}
    found = edited(setting("tools=[]"), body, CutRequest(body, DIALECTS["openai"].url))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(found)


WHERE = {
    "anthropic": ("temperature", "max_tokens"),
    "openai": ("temperature", "max_tokens"),
    "openai-responses": ("temperature", "max_output_tokens"),
    "gemini": ("generationConfig.temperature", "generationConfig.maxOutputTokens"),
    "bedrock": ("inferenceConfig.temperature", "inferenceConfig.maxTokens"),
    "ollama": ("options.temperature", "options.num_predict"),
}


@ALL
def test_parameters_go_by_one_name(name):
    found = edited(setting("temperature=0", "max_tokens=7"), request(name, 2), at_cut(name))
    for path, value in zip(WHERE[name], (0, 7), strict=True):
        place: Any = found
        for step in path.split("."):
            place = place[step]
        assert place == value
    expected = copy.deepcopy(request(name, 2))
    assert {key: found[key] for key in expected if key not in str(WHERE[name])} == {
        key: expected[key] for key in expected if key not in str(WHERE[name])
    }


def test_the_newer_name_of_a_limit_is_used_where_the_agent_uses_it():
    body = {**request("openai", 1), "max_completion_tokens": 50}
    found = edited(setting("max_tokens=7"), body, CutRequest(body, DIALECTS["openai"].url))
    assert (found["max_completion_tokens"], "max_tokens" in found) == (7, False)


@pytest.mark.parametrize("path", ["tools.0.description", "/tools/0/description", "tools.-1.description"])
def test_a_place_by_its_path(path):
    body = request("anthropic", 2)
    found = edited(setting(f"{path}=better"), body, at_cut("anthropic"))
    assert found["tools"][0]["description"] == "better"
    found["tools"][0]["description"] = "d"
    assert found == body


def test_null_takes_away_and_a_new_name_at_the_top_is_allowed():
    found = edited(setting("temperature=null", "top_k=5", "metadata={}"), request("anthropic", 2), at_cut("anthropic"))  # fmt: skip
    assert "temperature" not in found
    assert (found["top_k"], found["metadata"]) == (5, {})


@pytest.mark.parametrize("path", ["tools.0.descripton", "tools.1.description", "thinking.budget", "model.x"])
def test_a_deeper_place_must_be_there(path):
    cut = at_cut("anthropic")
    with pytest.raises(UsageError, match="there is no") as raised:
        setting(f"{path}=1")._with_settings(cut.body, cut.url, cut, None)
    assert raised.value.hint
    found = setting(f"{path}=1").request(request("anthropic", 2), cut.url, cut)
    assert found.body == request("anthropic", 2)
    assert f"--set {path}" in found.notes[0]


@ALL
def test_another_agent_is_left_alone(name):
    edits = setting(f"system={NEW}", "model=b", "tools=null", inject_user="Go!", drop=[2])
    found = edits.request(another(name), DIALECTS[name].url, at_cut(name))
    assert (found.body, found.url) == (another(name), DIALECTS[name].url)
    assert ["kept its settings" in note for note in found.notes] == [True]


@ALL
def test_the_same_agent_at_another_task_is_the_same_agent(name):
    body = request(name, 1, question="Plan Porto")
    found = edited(setting(f"system={NEW}"), body, at_cut(name))
    assert system_of(found) == NEW
    assert edited(Edits.parse(inject_user="Go!"), body, at_cut(name)) == body  # but not the same conversation


@ALL
def test_a_clock_in_the_prompt_or_a_tool_that_comes_later_does_not_hide_the_agent(name):
    later = json.loads(json.dumps(request(name, 3)).replace(SYSTEM, "You plan trips. It is 10:35."))
    cut_body = json.loads(json.dumps(request(name, 2)).replace(SYSTEM, "You plan trips. It is 9:07."))
    cut = CutRequest(cut_body, DIALECTS[name].url)
    assert system_of(edited(setting(f"system={NEW}"), later, cut)) == NEW
    more = json.loads(
        json.dumps(request(name, 3)).replace('"search", "description"', '"seek", "description"')
    )
    assert system_of(edited(setting(f"system={NEW}"), more, at_cut(name))) == NEW


@ALL
def test_the_agent_that_takes_over_keeps_its_own_prompt_and_gets_the_conversation(name):
    """A hand-over carries the conversation on under another prompt with other tools."""
    text = json.dumps(request(name, 3)).replace(SYSTEM, "You book trips.")
    taken_over = json.loads(text.replace('"search", "description"', '"book", "description"'))
    found = edited(setting(f"system={NEW}", inject_user="By train!"), taken_over, at_cut(name))
    assert system_of(found) == "You book trips."
    assert json.dumps(found).count("By train!") == 1


def test_once_is_for_the_request_at_the_cut_alone():
    cut = at_cut("anthropic")
    edits = setting(f"system={NEW}", inject_user="Go!", once=True)
    assert system_of(edited(edits, request("anthropic", 2), cut)) == NEW
    assert edits.request(request("anthropic", 3), cut.url, cut).body == request("anthropic", 3)


def test_a_stream_and_a_plain_call_are_of_one_agent_and_embeddings_are_not():
    cut = at_cut("gemini")
    streamed = "https://h/v1beta/models/gemini-a:streamGenerateContent?alt=sse"
    assert system_of(edited(setting(f"system={NEW}"), request("gemini", 3), cut, streamed)) == NEW
    other = "https://h/v1beta/models/gemini-a:countTokens"
    assert setting("system=x").request(request("gemini", 3), other, cut).body == request("gemini", 3)


@pytest.mark.parametrize("text", ["system", "=x", "+=x"])
def test_a_setting_needs_a_name_and_a_value(text):
    with pytest.raises(UsageError, match="NAME=VALUE"):
        setting(text)


def test_files_are_read_and_a_missing_one_is_named(tmp_path):
    (tmp_path / "p.txt").write_text("From a file.\n", "utf-8")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe")
    assert setting(f"system=@{tmp_path}/p.txt").sets[0].value == "From a file.\n"
    assert Edits.parse(inject_user="@@alice").inject_user == "@alice"
    with pytest.raises(UsageError, match="cannot be read") as raised:
        Edits.parse(response=f"@{tmp_path}/none.json")
    assert "@@" in raised.value.hint
    with pytest.raises(UsageError, match="not UTF-8"):
        Edits.parse(tool_result=f"@{tmp_path}/b.txt")


def test_signed_requests_are_known_by_their_header():
    assert needs_signature({"Authorization": "AWS4-HMAC-SHA256 Credential=…"})
    assert not needs_signature([("authorization", "Bearer x"), ("x-api-key", "y")])
