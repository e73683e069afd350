"""Single rules: stop reasons, odd usage, errors, requests, texts."""

from __future__ import annotations

import pytest

from reenact.wire import reading


def chat(finish_reason, message=None, **choice):
    return {"choices": [{"finish_reason": finish_reason, "message": message or {"content": "hi"}, **choice}]}


def response(*output, status="completed", **fields):
    return {"object": "response", "status": status, "output": list(output), **fields}


def candidate(reason, *parts):
    return {"candidates": [{"finishReason": reason, "content": {"role": "model", "parts": list(parts)}}]}


def anthropic(reason):
    return {"type": "message", "role": "assistant", "content": [], "stop_reason": reason}


def item(kind, **fields):
    return {"type": kind, "call_id": "c1", **fields}


REFUSED = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (anthropic("end_turn"), "end_turn"),
        (anthropic("max_tokens"), "max_tokens"),
        (anthropic("stop_sequence"), "stop_sequence"),
        (anthropic("pause_turn"), "pause"),
        (anthropic("refusal"), "refusal"),
        (anthropic("model_context_window_exceeded"), "model_context_window_exceeded"),
        (anthropic(None), None),
        (chat("stop"), "end_turn"),
        (chat("length"), "max_tokens"),
        (chat("content_filter"), "content_filter"),
        (chat("function_call"), "tool_use"),
        (chat("error"), "error"),
        (chat("stop", {"tool_calls": [{"id": "1"}]}), "tool_use"),
        (chat("stop", {"refusal": "No."}), "refusal"),
        (chat("stop", stop_reason="###"), "stop_sequence"),
        (chat("something_new"), "something_new"),
        (chat(None), None),
        (response(), "end_turn"),
        (response(REFUSED), "refusal"),
        (response(item("local_shell_call", action={})), "tool_use"),
        (response(item("shell_call", action={}), item("shell_call_output", output=[])), "end_turn"),
        (response({"type": "tool_search_call", "call_id": None, "execution": "server"}), "end_turn"),
        (response({"type": "mcp_approval_request", "name": "f"}), "pause"),
        (response(status="failed", error={"code": "server_error", "message": "x"}), "error"),
        (response(status="incomplete", incomplete_details={"reason": "max_output_tokens"}), "max_tokens"),
        (response(status="incomplete", incomplete_details={"reason": "content_filter"}), "content_filter"),
        (response(status="incomplete", incomplete_details=None), "incomplete"),
        (response(status="cancelled"), "cancelled"),
        (candidate("STOP", {"text": "hi"}), "end_turn"),
        (candidate("MAX_TOKENS"), "max_tokens"),
        (candidate("SAFETY"), "content_filter"),
        (candidate("MALFORMED_FUNCTION_CALL"), "error"),
        (candidate("OTHER"), "OTHER"),
        ({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}, "content_filter"),
        ({"output": {"message": {}}, "stopReason": "guardrail_intervened"}, "content_filter"),
        ({"output": {"message": {}}, "stopReason": "malformed_tool_use"}, "error"),
        ({"message": {"content": "hi"}, "done": True, "done_reason": "stop"}, "end_turn"),
        ({"message": {"content": "hi"}, "done": True, "done_reason": "length"}, "max_tokens"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, None),
    ],
)
def test_stop_reasons_are_neutral_or_the_providers_own_word(body, reason):
    assert reading.stop_reason(body) == reason


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        # DeepSeek says it twice, older versions only in their own words.
        ({"prompt_tokens": 339, "completion_tokens": 92, "prompt_cache_hit_tokens": 320, "prompt_cache_miss_tokens": 19},
         {"input": 19, "output": 92, "cache_read": 320}),
        # xAI leaves reasoning out of the completion; the total gives it away.
        ({"prompt_tokens": 100, "completion_tokens": 300, "total_tokens": 450, "completion_tokens_details": {"reasoning_tokens": 50}},
         {"input": 100, "output": 350, "reasoning": 50}),
        # Gemini behind this shape does so too, and does not even say how much reasoning there was.
        ({"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}, {"input": 35, "output": 74}),
        # LiteLLM in front of Anthropic.
        ({"prompt_tokens": 90, "completion_tokens": 5, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 30},
         {"input": 10, "output": 5, "cache_read": 50, "cache_write": 30}),
        # OpenRouter adds money, which is not usage.
        ({"prompt_tokens": 9, "completion_tokens": 5, "cost": 0.01, "is_byok": False, "prompt_tokens_details": None},
         {"input": 9, "output": 5}),
        # More cached than there was prompt: never below zero.
        ({"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10}},
         {"input": 0, "output": 5, "cache_read": 10}),
        ({"promptTokenCount": 11, "totalTokenCount": 11}, {"input": 11, "output": 0}),
        ({"promptTokenCount": 11, "thoughtsTokenCount": 4}, {"input": 11, "output": 4, "reasoning": 4}),
        ({"input_tokens": 12.0, "output_tokens": None, "cache_read_input_tokens": "7"}, {"input": 12}),
        ({"input_tokens": True, "output_tokens": -1}, None),
        ({"input": 5, "output": 6, "cache_read": 1, "other": 3}, {"input": 5, "output": 6, "cache_read": 1}),
        ({"tokens": 12}, None),
        (None, None),
    ],
)  # fmt: skip
def test_usage_of_every_spelling(raw, usage):
    assert reading.usage_from_raw(raw) == usage


def test_an_answer_that_only_counts_tokens_has_spent_none():
    assert reading.usage({"input_tokens": 622}) is None
    assert reading.usage({"inputTokens": 622}) is None


@pytest.mark.parametrize(
    ("body", "provider", "error"),
    [
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}, "request_id": "r"},
            "anthropic",
            ("overloaded_error", "busy"),
        ),
        (
            {
                "error": {
                    "message": "slow down",
                    "type": "tokens",
                    "param": None,
                    "code": "rate_limit_exceeded",
                }
            },
            "openai",
            ("tokens", "slow down"),
        ),
        ({"error": {"message": "no money", "code": 402}}, "openai", ("http_402", "no money")),
        (
            {"object": "error", "message": "no", "type": "BadRequestError", "code": 400},
            "openai",
            ("BadRequestError", "no"),
        ),
        (
            {"choices": [{"error": {"code": 502, "message": "upstream"}, "message": {}}]},
            "openai",
            ("http_502", "upstream"),
        ),
        (
            response(status="failed", error={"code": "server_error", "message": "x"}),
            "openai-responses",
            ("server_error", "x"),
        ),
        (
            {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}},
            "gemini",
            ("RESOURCE_EXHAUSTED", "quota"),
        ),
        (
            [{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}],
            "gemini",
            ("RESOURCE_EXHAUSTED", "quota"),
        ),
        (
            {"message": "The provided model identifier is invalid."},
            "bedrock",
            (None, "The provided model identifier is invalid."),
        ),
        (
            {"__type": "com.amazon.coral#ThrottlingException", "message": "slow"},
            "bedrock",
            ("ThrottlingException", "slow"),
        ),
        (
            {"Error": {"Code": "ThrottlingException", "Message": "slow"}, "ResponseMetadata": {}},
            "bedrock",
            ("ThrottlingException", "slow"),
        ),
        ({"error": "model not found"}, "ollama", (None, "model not found")),
    ],
)
def test_error_bodies_are_recognised_and_read(body, provider, error):
    assert reading.provider_of_response(body) == provider
    assert reading.error_of(body) == error
    assert reading.text(body) == ": ".join(filter(None, error))
    assert reading.usage(body) is None


def test_a_good_answer_is_no_error():
    assert reading.error_of(response(error=None)) is None
    assert reading.error_of(chat("stop")) is None


USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("body", "provider"),
    [
        ({"model": "m", "max_tokens": 9, "system": "You plan trips.", "messages": [USER]}, "anthropic"),
        (
            {"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "x"}], "messages": [USER]},
            "anthropic",
        ),
        ({"model": "m", "messages": [USER], "tools": [{"name": "f", "input_schema": {}}]}, "anthropic"),
        (
            {
                "model": "m",
                "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}],
            },
            "anthropic",
        ),
        ({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [USER]}, "anthropic"),
        ({"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [USER]}, "anthropic"),
        ({"model": "m", "messages": [{"role": "system", "content": "x"}, USER]}, "openai"),
        (
            {"model": "m", "messages": [USER], "tools": [{"type": "function", "function": {"name": "f"}}]},
            "openai",
        ),
        ({"model": "m", "messages": [USER], "max_completion_tokens": 9}, "openai"),
        ({"model": "m", "messages": [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]}, "openai"),
        ({"model": "gpt-5.1", "messages": [USER]}, "openai"),
        ({"model": "anthropic/claude-sonnet-4-5", "messages": [USER], "max_tokens": 9}, None),
        ({"model": "llama", "messages": [USER]}, None),
        ({"model": "m", "input": "hi"}, "openai-responses"),
        ({"model": "m", "input": [USER], "instructions": "x"}, "openai-responses"),
        ({"model": "text-embedding-3-small", "input": "hi"}, None),
        ({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, "gemini"),
        ({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, "bedrock"),
        ({"messages": [USER], "inferenceConfig": {"maxTokens": 5}}, "bedrock"),
        (
            {
                "model": "qwen3",
                "messages": [{"role": "system", "content": "x"}],
                "options": {"num_predict": 5},
            },
            "ollama",
        ),
        ({"model": "qwen3", "messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, "ollama"),
        (
            {
                "model": "qwen3",
                "messages": [
                    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
                ],
            },
            "ollama",
        ),
        ({}, None),
        ([], None),
    ],
)
def test_requests_are_recognised_by_marks_and_left_open_without_any(body, provider):
    assert reading.provider_of_request(body) == provider


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://api.anthropic.com/v1/messages?beta=true", "anthropic"),
        ("https://gateway.example/anthropic/v1/messages", "anthropic"),
        ("https://router.example/v3/openai/chat/completions", "openai"),
        ("https://x.openai.azure.com/openai/v1/responses", "openai-responses"),
        ("https://host/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "gemini"),
        ("https://host/model/us.amazon.nova-micro-v1%3A0/converse-stream", "bedrock"),
        ("http://localhost:11434/api/chat", "ollama"),
        ("https://host/v1/other", None),
    ],
)
def test_the_path_of_the_url_decides_before_the_shape(url, provider):
    assert reading.provider_of_request({"model": "llama", "messages": [USER]}, url) == provider


def test_the_conversation_is_the_first_of_the_three_lists():
    assert reading.conversation_key({"messages": [], "input": []}) == "messages"
    assert reading.conversation_key({"messages": "x", "input": []}) == "input"
    assert reading.conversation_key({"input": "text"}) is None
    assert reading.conversation_key({"contents": []}) == "contents"
    assert reading.conversation_key(None) is None


@pytest.mark.parametrize(
    "arguments, args",
    [
        ("", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": ', '{"a": '),
        ("NaN", "NaN"),
        (None, None),
        ({"a": 1}, {"a": 1}),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments_that_cannot_be_decoded_stay_strings(arguments, args):
    body = chat(
        "tool_calls", {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}]}
    )
    assert [use[:3] for use in reading.tool_uses(body)] == [("c", "f", args)]


def result(kind, **fields):
    return {"type": kind, **fields}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ({}, ""),
        ([], ""),
        # A request reads as its newest message.
        ({"messages": [{"role": "system", "content": "s"}, USER, {"role": "assistant", "content": "a"}, {"role": "user", "content": "newest"}]}, "newest"),
        ({"input": "Plan Lisbon", "model": "m"}, "Plan Lisbon"),
        ({"prompt": "Plan Lisbon", "model": "m"}, "Plan Lisbon"),
        ({"contents": [{"role": "user", "parts": [{"text": "a"}, {"inlineData": {"data": "aGk="}}]}]}, "a\n[inlineData]"),
        # Results of parallel tools stand side by side and are all new.
        ({"messages": [USER, {"role": "tool", "tool_call_id": "1", "content": "4"}, {"role": "tool", "tool_call_id": "2", "content": "5"}]}, "4\n5"),
        ({"input": [USER, item("function_call_output", output="4"), item("function_call_output", output="5")]}, "4\n5"),
        ({"messages": [{"role": "user", "content": [result("tool_result", tool_use_id="1", content="4"), result("tool_result", tool_use_id="2", content=[{"type": "text", "text": "5"}, {"type": "image", "source": {"data": "aGk="}}])]}]}, "4\n5\n[image]"),
        # One message, or only its content.
        ({"role": "assistant", "content": [{"type": "text", "text": "a"}]}, "a"),
        ({"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}, "one\ntwo"),
        ({"role": "model", "parts": [{"text": "a"}]}, "a"),
        ([{"type": "text", "text": "a "}, {"type": "text", "text": "b"}], "a b"),
        ([{"text": "a"}, {"toolResult": {"toolUseId": "1", "content": [{"json": {"n": 1}}]}}], 'a\n{"json": {"n": 1}}'),
        ([{"functionResponse": {"name": "f", "response": {"n": 1}}}], '{"n": 1}'),
        # Reasoning only when nothing was said.
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, "hm"),
        ({"role": "assistant", "content": None, "reasoning": "hm"}, "hm"),
        # What the recorder put in place of a long or withheld string.
        ({"role": "user", "content": {"$blob": "sha256:77", "bytes": 9000, "head": "Hotel Lisboa"}}, "Hotel Lisboa…"),
        ({"role": "user", "content": {"$hash": "blake2b:77", "bytes": 9}}, "[withheld]"),
        # Anything else is at least shown.
        ({"rooms": 3}, '{"rooms": 3}'),
    ],
)  # fmt: skip
def test_text_is_what_a_person_would_read(body, text):
    assert reading.text(body) == text
