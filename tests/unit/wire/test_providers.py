"""Every provider file has all the names of ``Provider``, and they agree with each other.

A new provider is one file, one row in ``PROVIDERS``, and one row in ``ANSWERS``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reenact.capture.redact import redactor as redaction
from reenact.wire import equality_rules, messages, pairing, providers, reading
from reenact.wire.convert import conversation_of
from reenact.wire.neutral import Outcome, ToolResult, ToolUse
from reenact.wire.providers import BY_NAME, PROVIDERS, TARGETS, Provider, Target
from reenact.wire.streams import assemble, stream_of

ARGS = {"city": "Lisbon"}
CALL = {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}
ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use",
        "content": [
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": ARGS},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 5},
    },
    "openai": {
        "id": "c", "object": "chat.completion", "model": "gpt",
        "choices": [{
            "index": 0, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL]},
        }],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5},
    },
    "openai-responses": {
        "id": "r", "object": "response", "status": "completed",
        "output": [
            {"id": "i", "type": "message", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
            {"id": "f", "type": "function_call", "call_id": "t1", "name": "weather", "status": "completed",
             "arguments": '{"city": "Lisbon"}'},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 5},
    },
    "gemini": {
        "candidates": [{
            "index": 0, "finishReason": "STOP",
            "content": {"role": "model", "parts": [
                {"text": "Let me look."},
                {"functionCall": {"id": "t1", "name": "weather", "args": ARGS}},
            ]},
        }],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5},
    },
    "bedrock": {
        "output": {"message": {"role": "assistant", "content": [
            {"text": "Let me look."},
            {"toolUse": {"toolUseId": "t1", "name": "weather", "input": ARGS}},
        ]}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 3, "outputTokens": 5},
    },
    "ollama": {
        "model": "llama", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "Let me look.", "tool_calls": [
            {"id": "t1", "function": {"name": "weather", "arguments": ARGS}},
        ]},
        "prompt_eval_count": 3, "eval_count": 5,
    },
    "cohere": {
        "id": "c", "finish_reason": "TOOL_CALL",
        "message": {
            "role": "assistant", "content": [{"type": "text", "text": "Let me look."}], "tool_calls": [CALL],
        },
        "usage": {"tokens": {"input_tokens": 3, "output_tokens": 5}},
    },
}  # fmt: skip
each_provider = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.NAME)


def names_of(protocol: type) -> set[str]:
    return {*protocol.__annotations__, *(name for name in vars(protocol) if not name.startswith("_"))}


@each_provider
def test_it_has_all_names_of_a_provider(provider: Provider) -> None:
    assert {name for name in names_of(Provider) if not hasattr(provider, name)} == set()


@pytest.mark.parametrize("name", TARGETS)
def test_what_requests_are_converted_to_has_all_names_of_a_target(name: str) -> None:
    assert {each for each in names_of(Target) if not hasattr(TARGETS[name], each)} == set()
    assert TARGETS[name] is BY_NAME[name]


def test_every_file_is_a_row_and_has_an_example() -> None:
    files = {path.stem for path in Path(providers.__file__).parent.glob("*.py")} - {"__init__"}
    assert {provider.__name__.rpartition(".")[2] for provider in PROVIDERS} == files  # type: ignore[attr-defined]
    assert set(ANSWERS) == set(BY_NAME)


@each_provider
def test_it_alone_recognises_its_answer(provider: Provider) -> None:
    body = ANSWERS[provider.NAME]
    assert [each.NAME for each in PROVIDERS if each.is_response(body)] == [provider.NAME]
    assert reading.provider_of_response(body) == provider.NAME


@each_provider
def test_it_reads_usage_text_and_stop_reason(provider: Provider) -> None:
    found = reading.Reading(ANSWERS[provider.NAME])
    assert found.usage() == {"input": 3, "output": 5}
    assert found.stop_reason() == "tool_use"
    assert found.error() is None
    assert reading.text(ANSWERS[provider.NAME]) == 'Let me look.\nweather({"city": "Lisbon"})'


@each_provider
def test_a_stream_of_its_answer_comes_to_the_answer(provider: Provider) -> None:
    body = ANSWERS[provider.NAME]
    found = assemble(b"".join(stream_of(body, None, None)), None)
    assert found.complete and not found.problems
    assert reading.tool_uses(found.body) == reading.tool_uses(body)
    assert reading.text(found.body) == reading.text(body)
    assert reading.usage(found.body) == reading.usage(body)


@each_provider
@pytest.mark.parametrize(
    "outcome", [Outcome("21 degrees"), Outcome("no such city", failed=True)], ids=["ok", "failed"]
)
def test_uses_and_results_are_found_where_they_are_put(provider: Provider, outcome: Outcome) -> None:
    printed = [message for _, message in provider.answers(ANSWERS[provider.NAME])]
    uses = [use for message in printed for use in pairing.uses(message)]
    assert [use[:3] for use in uses] == [("t1", "weather", ARGS)]
    made = provider.result_messages([(uses[0], outcome)])
    assert made is not None
    [result] = [result for message in made for result in messages.tool_results(message)]
    assert result.id == "t1"
    assert outcome.value in str(result.value)
    assert messages.MAY_HAVE_FAILED.search(json.dumps(made).encode()) or not result.failed
    paired = pairing.pairs([*printed, *made])
    assert [(pair.name, pair.result) for pair in paired] == [("weather", len(printed))]


@each_provider
def test_its_messages_are_read_into_the_neutral_model(provider: Provider) -> None:
    printed: list[Any] = [message for _, message in provider.answers(ANSWERS[provider.NAME])]
    made = provider.result_messages(
        [(use, Outcome("21 degrees")) for message in printed for use in pairing.uses(message)]
    )
    found = conversation_of([*printed, *(made or [])], [], {}, provider.NAME)
    assert [message.role for message in found.messages] == ["assistant", "user"]
    [use] = [part for part in found.messages[0].parts if isinstance(part, ToolUse)]
    assert (use.id, use.name, use.args) == ("t1", "weather", ARGS)
    [result] = [part for part in found.messages[1].parts if isinstance(part, ToolResult)]
    assert (result.id, [part[0] for part in result.parts]) == ("t1", ["21 degrees"])
    assert not found.lost


@each_provider
def test_its_ids_are_known_where_requests_are_compared_and_cleaned(provider: Provider) -> None:
    assert equality_rules.IDS.issuperset(provider.ID_KEYS)
    assert redaction._ID_KEYS.issuperset(provider.ID_KEYS)


@each_provider
def test_a_text_becomes_an_answer_a_message_and_a_result(provider: Provider) -> None:
    answer = provider.text_answer("Hello", {}, "a-model", None)
    assert reading.provider_of_answer(answer, provider.NAME) == provider.NAME
    assert (reading.text(answer), reading.stop_reason(answer)) == ("Hello", "end_turn")
    assert (messages.role_of(provider.user_message("Hi")), reading.text(provider.user_message("Hi"))) == (
        "user",
        "Hi",
    )
    [use] = reading.tool_uses(ANSWERS[provider.NAME])
    made = provider.result_messages([(use, Outcome("21 degrees", failed=True))])
    assert made is not None
    [result] = messages.tool_results(messages.with_result(made[0], 0, "22 degrees"))
    assert (result.id, result.failed) == ("t1", False)
    assert "22 degrees" in str(result.value)


@each_provider
def test_options_are_read_from_where_they_are_put(provider: Provider) -> None:
    for name in ("max_tokens", "temperature", "top_p"):
        *outer, key = providers.option_place(provider, name)
        body: dict[str, Any] = {key: 1}
        for each in outer:
            body = {each: body}
        assert conversation_of([], [], body, provider.NAME).options == {name: 1}
