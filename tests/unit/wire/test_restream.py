"""An answer written as a stream is the same answer when the stream is put together again."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.wire import reading
from reenact.wire.streams import assemble, stream_kind, stream_of, stream_type
from support.examples import up_to
from support.provider.dialects import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    ollama,
    openai_chat,
    openai_responses,
)
from support.provider.scenario import Scenario
from support.provider.script import turn
from support.streams import STREAMS

URLS = {
    "anthropic": "https://h/v1/messages",
    "anthropic in bedrock": "https://h/model/m/invoke-with-response-stream",
    "openai": "https://h/v1/chat/completions",
    "openai-responses": "https://h/v1/responses",
    "gemini": "https://h/v1beta/models/m:streamGenerateContent?alt=sse",
    "gemini array": "https://h/v1beta/models/m:streamGenerateContent",
    "bedrock": "https://h/model/m/converse-stream",
    "ollama": "https://h/api/chat",
    "cohere": "https://h/v2/chat",
}
DIALECTS = {
    "anthropic": anthropic.MESSAGES,
    "anthropic in bedrock": anthropic.MESSAGES,
    "openai": openai_chat.CHAT,
    "openai-responses": openai_responses.RESPONSES,
    "gemini": gemini.GENERATE,
    "gemini array": gemini.GENERATE,
    "bedrock": bedrock.CONVERSE,
    "ollama": ollama.CHAT,
    "cohere": cohere.CHAT,
}
SCENARIOS = ["text", "thinking,tools-1", "parallel-3", "unicode", "length", "cached", "long-900"]


def streamed(body: Any, name: str) -> Any:
    """Write an answer as a stream and put it together again; what is given must stay as it is."""
    provider, url = name.partition(" ")[0], URLS[name]
    before = copy.deepcopy(body)
    pieces = stream_of(body, provider, url)
    assert body == before
    found = assemble(b"".join(pieces), provider, stream_type(provider, url))
    assert (found.complete, found.error, found.problems, found.aborted) == (True, None, [], [])
    return found.body


@pytest.mark.parametrize("name", STREAMS)
def test_an_answer_written_by_hand_comes_back(name):
    name = {"chat": "openai", "responses": "openai-responses"}.get(name, name)
    body = STREAMS[{"openai": "chat", "openai-responses": "responses"}.get(name, name)].body
    assert streamed(body, name) == body


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_answer_of_the_scripted_provider_comes_back(name, scenario):
    request = {"model": "m", "messages": []}
    body = DIALECTS[name].whole(turn(Scenario.parse(scenario), 0), request)
    assert streamed(body, name) == body


@pytest.mark.parametrize("name", URLS)
def test_the_content_type_is_one_that_says_how_it_is_streamed(name):
    provider, url = name.partition(" ")[0], URLS[name]
    kind = stream_kind(provider, url, stream_type(provider, url), {"stream": True})
    assert kind == {
        "anthropic in bedrock": "eventstream", "bedrock": "eventstream", "ollama": "ndjson",
        "gemini array": "json",
    }.get(name, "sse")  # fmt: skip


def test_an_answer_of_no_known_shape_has_no_stream():
    with pytest.raises(ValueError, match="no stream is known"):
        stream_of({"hello": "world"}, None, None)


TEXTS = st.text(max_size=120)
WORDS = st.text(min_size=1, max_size=120)
NAMES = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ARGS = st.dictionaries(NAMES, PLAIN, max_size=3)
COUNTS = st.integers(0, 10**6)
ANSWER_PARTS = st.lists(
    st.tuples(st.just("text"), WORDS)
    | st.tuples(st.just("thinking"), WORDS)
    | st.tuples(st.just("tool"), NAMES, ARGS),
    max_size=5,
)


def _anthropic(answer_parts: list[Any], stop: str, counts: list[int]) -> Any:
    blocks: list[Any] = []
    for number, (kind, *what) in enumerate(answer_parts):
        if kind == "text":
            blocks.append({"type": "text", "text": what[0], "citations": [{"cited_text": what[0]}]})
        elif kind == "thinking":
            blocks.append({"type": "thinking", "thinking": what[0], "signature": "s" * number})
        else:
            blocks.append({"type": "tool_use", "id": f"t{number}", "name": what[0], "input": what[1]})
    usage = {"input_tokens": counts[0], "output_tokens": counts[1], "cache_read_input_tokens": counts[2]}
    return {
        "id": "m", "type": "message", "role": "assistant", "model": "c", "content": blocks,
        "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def _openai(answer_parts: list[Any], stop: str, counts: list[int]) -> Any:
    texts = "".join(what[0] for kind, *what in answer_parts if kind == "text")
    message: dict[str, Any] = {"role": "assistant", "content": texts or None, "refusal": None}
    thoughts = "".join(what[0] for kind, *what in answer_parts if kind == "thinking")
    if thoughts:
        message["reasoning_content"] = thoughts
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": what[0], "arguments": json.dumps(what[1])}}
        for n, (kind, *what) in enumerate(answer_parts)
        if kind == "tool"
    ]
    if calls:
        message["tool_calls"] = calls
    choices = [
        {"index": index, "message": copy.deepcopy(message), "finish_reason": stop, "logprobs": None}
        for index in range(2)
    ]
    usage = {"prompt_tokens": counts[0], "completion_tokens": counts[1]}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "g", "choices": choices, "usage": usage,
    }  # fmt: skip


def _responses(answer_parts: list[Any], stop: str, counts: list[int]) -> Any:
    output: list[Any] = []
    for n, (kind, *what) in enumerate(answer_parts):
        if kind == "text":
            part = {"type": "output_text", "text": what[0], "annotations": [], "logprobs": []}
            parts = [part, {"type": "refusal", "refusal": what[0]}]
            item = {"type": "message", "id": f"m{n}", "role": "assistant", "status": "completed"}
            output.append({**item, "content": parts})
        elif kind == "thinking":
            part = {"type": "summary_text", "text": what[0]}
            output.append(
                {"type": "reasoning", "id": f"r{n}", "summary": [part, part], "encrypted_content": "e"}
            )
        else:
            call = {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": what[0]}
            output.append({**call, "arguments": json.dumps(what[1]), "status": "completed"})
    usage = {"input_tokens": counts[0], "output_tokens": counts[1], "total_tokens": counts[2]}
    return {"id": "r", "object": "response", "status": "completed", "output": output, "usage": usage}


def _gemini(answer_parts: list[Any], stop: str, counts: list[int]) -> Any:
    parts: list[Any] = []
    for kind, *what in answer_parts:
        if kind == "tool":
            parts.append({"functionCall": {"name": what[0], "args": what[1]}, "thoughtSignature": "s"})
        else:  # signed, for neighbouring texts are one text in a stream
            thought = {"thought": True} if kind == "thinking" else {}
            parts.append({"text": what[0], **thought, "thoughtSignature": "s"})
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": stop, "index": 0}
    usage = {"promptTokenCount": counts[0], "candidatesTokenCount": counts[1]}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "g", "responseId": "r"}


def _bedrock(answer_parts: list[Any], stop: str, counts: list[int]) -> Any:
    content: list[Any] = []
    for n, (kind, *what) in enumerate(answer_parts):
        if kind == "text":
            content.append({"text": what[0]})
        elif kind == "thinking":
            content.append({"reasoningContent": {"reasoningText": {"text": what[0], "signature": "s"}}})
        else:
            content.append({"toolUse": {"toolUseId": f"t{n}", "name": what[0], "input": what[1]}})
    usage = {"inputTokens": counts[0], "outputTokens": counts[1], "totalTokens": counts[2]}
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 1},
    }  # fmt: skip


def _ollama(answer_parts: list[Any], stop: str, counts: list[int]) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for kind, *what in answer_parts:
        if kind == "text":
            message["content"] += what[0]
        elif kind == "thinking":
            message["thinking"] = message.get("thinking", "") + what[0]
        else:
            call = {"function": {"name": what[0], "arguments": what[1]}}
            message["tool_calls"] = [*message.get("tool_calls", []), call]
    ending = {"done": True, "done_reason": stop, "prompt_eval_count": counts[0], "eval_count": counts[1]}
    return {"model": "l", "created_at": "2026-01-02T03:04:05Z", "message": message, **ending}


MADE = {
    "anthropic": (_anthropic, "end_turn"),
    "anthropic in bedrock": (_anthropic, "tool_use"),
    "openai": (_openai, "stop"),
    "openai-responses": (_responses, ""),
    "gemini": (_gemini, "STOP"),
    "gemini array": (_gemini, "STOP"),
    "bedrock": (_bedrock, "end_turn"),
    "ollama": (_ollama, "stop"),
}


@pytest.mark.parametrize("name", MADE)
@settings(up_to(400), deadline=None)
@given(answer_parts=ANSWER_PARTS, counts=st.lists(COUNTS, min_size=3, max_size=3))
def test_any_answer_comes_back(name, answer_parts, counts):
    make, stop = MADE[name]
    body = make(answer_parts, stop, counts)
    found = streamed(body, name)
    assert found == body
    assert reading.tool_uses(found) == reading.tool_uses(body)
