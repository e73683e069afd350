"""Small bodies of every provider, each with what the neutral functions must say of it."""

from __future__ import annotations

import pytest

from reenact.wire import reading

ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [
        {"type": "thinking", "thinking": "They want a hotel.", "signature": "c2ln"},
        {"type": "text", "text": "Looking "},
        {"type": "text", "text": "for hotels."},
        {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"city": "Lisbon"}},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "weather"}},
    ],
    "stop_reason": "tool_use",
    "usage": {
        "input_tokens": 52,
        "output_tokens": 31,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 9},
    },
}
OPENAI = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-5.1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "One moment.",
                "reasoning_content": "Need a search.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "search", "arguments": '{"city": "Lisbon"}'},
                    },
                    {"id": "call_2", "type": "custom", "custom": {"name": "sql", "input": "42"}},
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 30,
        "total_tokens": 130,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 12},
    },
}
RESPONSES = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-5.1",
    "error": None,
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Need a search."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One moment."}]},
        {"type": "function_call", "call_id": "call_1", "name": "search", "arguments": '{"city":"Lisbon"}'},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "sql", "input": "42"},
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 130,
    },
}
GEMINI = {
    "candidates": [
        {
            "index": 0,
            "finishReason": "STOP",
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Need a search.", "thought": True},
                    {"text": "One moment."},
                    {
                        "functionCall": {"name": "search", "args": {"city": "Lisbon"}},
                        "thoughtSignature": "c2ln",
                    },
                ],
            },
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "toolUsePromptTokenCount": 7,
        "candidatesTokenCount": 18,
        "thoughtsTokenCount": 12,
        "totalTokenCount": 137,
    },
    "modelVersion": "gemini-3-pro",
}
BEDROCK = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Need a search.", "signature": "c2ln"}}},
                {"text": "One moment."},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "search", "input": {"city": "Lisbon"}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {
        "inputTokens": 40,
        "outputTokens": 30,
        "totalTokens": 130,
        "cacheReadInputTokens": 60,
        "cacheWriteInputTokens": 0,
    },
    "metrics": {"latencyMs": 800},
}
OLLAMA = {
    "model": "qwen3:8b",
    "message": {
        "role": "assistant",
        "content": "One moment.",
        "thinking": "Need a search.",
        "tool_calls": [{"function": {"name": "search", "arguments": {"city": "Lisbon"}}}],
    },
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 100,
    "eval_count": 30,
    "total_duration": 900_000_000,
}
ANSWERS = {
    "anthropic": ANTHROPIC,
    "openai": OPENAI,
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
    "ollama": OLLAMA,
}
each_provider = pytest.mark.parametrize("name", sorted(ANSWERS))


@each_provider
def test_an_answer_is_recognised_by_its_shape(name):
    assert reading.provider_of_response(ANSWERS[name]) == name


@each_provider
@pytest.mark.parametrize("label", [None, "right", "openai", "someone-else"])
def test_a_name_that_does_not_fit_changes_nothing(name, label):
    body, provider = ANSWERS[name], name if label == "right" else label
    assert reading.stop_reason(body, provider) == "tool_use"
    assert reading.usage(body, provider) == reading.usage(body)
    assert ("search", {"city": "Lisbon"}) in [use[1:3] for use in reading.tool_uses(body, provider)]


def test_usage_is_uncached_input_and_output_with_reasoning_for_everyone():
    assert {name: reading.usage(body) for name, body in ANSWERS.items()} == {
        "anthropic": {"input": 52, "output": 31, "cache_read": 1000, "cache_write": 20, "reasoning": 9},
        "openai": {"input": 30, "output": 30, "cache_read": 60, "cache_write": 10, "reasoning": 12},
        "openai-responses": {"input": 40, "output": 30, "cache_read": 60, "reasoning": 12},
        "gemini": {"input": 47, "output": 30, "cache_read": 60, "reasoning": 12},
        "bedrock": {"input": 40, "output": 30, "cache_read": 60, "cache_write": 0},
        "ollama": {"input": 100, "output": 30},
    }


@each_provider
def test_a_usage_object_alone_says_the_same_as_the_whole_body(name):
    body = ANSWERS[name]
    raw = body.get("usage") or body.get("usageMetadata") or body
    assert reading.usage_from_raw(raw) == reading.usage(body)


@each_provider
def test_usage_within_an_unknown_body_is_still_found(name):
    raw = ANSWERS[name].get("usage") or ANSWERS[name].get("usageMetadata") or ANSWERS[name]
    assert reading.usage({"something": 1, "usage": raw}) == reading.usage(ANSWERS[name])


def test_text_leaves_reasoning_out_and_shows_tool_uses_as_calls():
    call = 'search({"city": "Lisbon"})'
    assert {name: reading.text(body) for name, body in ANSWERS.items()} == {
        "anthropic": f'Looking for hotels.\n{call}\nweb_search({{"query": "weather"}})',
        "openai": f"One moment.\n{call}\nsql(42)",
        "openai-responses": f"One moment.\n{call}\nsql(42)",
        "gemini": f"One moment.\n{call}",
        "bedrock": f"One moment.\n{call}",
        "ollama": f"One moment.\n{call}",
    }


def test_tool_uses_have_the_providers_ids_and_decoded_arguments():
    lisbon = {"city": "Lisbon"}
    assert {name: [use[:3] for use in reading.tool_uses(body)] for name, body in ANSWERS.items()} == {
        "anthropic": [("toolu_1", "search", lisbon)],
        "openai": [("call_1", "search", lisbon), ("call_2", "sql", "42")],
        "openai-responses": [("call_1", "search", lisbon), ("call_2", "sql", "42")],
        "gemini": [(None, "search", lisbon)],
        "bedrock": [("tooluse_1", "search", lisbon)],
        "ollama": [(None, "search", lisbon)],
    }


def test_answers_point_at_what_the_agent_appends():
    assert {name: [pointer for pointer, _ in reading.answers(body)] for name, body in ANSWERS.items()} == {
        "anthropic": [""],
        "openai": ["/choices/0/message"],
        "openai-responses": ["/output/0", "/output/1", "/output/2", "/output/3"],
        "gemini": ["/candidates/0/content"],
        "bedrock": ["/output/message"],
        "ollama": ["/message"],
    }


@each_provider
def test_every_pointer_leads_to_the_object_beside_it(name):
    for pointer, answer in reading.answers(ANSWERS[name]):
        found = ANSWERS[name]
        for step in pointer.split("/")[1:]:
            found = found[int(step)] if isinstance(found, list) else found[step]
        assert found is answer


def test_models_are_read_from_the_body_or_the_url():
    assert [reading.model_of(body) for body in ANSWERS.values()] == [
        "claude-sonnet-4-6", "gpt-5.1", "gpt-5.1", "gemini-3-pro", None, "qwen3:8b",
    ]  # fmt: skip
    assert (
        reading.model_of({}, "https://host/v1beta/models/gemini-3-pro:generateContent?alt=sse")
        == "gemini-3-pro"
    )
    assert (
        reading.model_of({}, "https://host/model/us.amazon.nova-micro-v1%3A0/converse")
        == "us.amazon.nova-micro-v1:0"
    )


def test_gemini_in_the_spelling_of_googles_own_sdk_is_understood():
    body = {
        "candidates": [
            {
                "finish_reason": "MAX_TOKENS",
                "content": {"parts": [{"function_call": {"name": "f", "args": None}}]},
            }
        ],
        "usage_metadata": {"prompt_token_count": 5, "thoughts_token_count": 2, "total_token_count": 7},
        "model_version": "gemini-3-pro",
    }
    assert reading.provider_of_response(body) == "gemini"
    assert reading.usage(body) == {"input": 5, "output": 2, "reasoning": 2}
    assert reading.stop_reason(body) == "max_tokens"
    assert [use[:3] for use in reading.tool_uses(body)] == [(None, "f", {})]
    assert reading.model_of(body) == "gemini-3-pro"
