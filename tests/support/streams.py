"""Streams written by hand for the tests: one of each dialect, with the answer it amounts to."""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple
from zlib import crc32


def compact(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()


def sse(*events: Any, done: bool = False, named: bool = False, end: bytes = b"\n") -> bytes:
    """Server-sent events, with ``event:`` lines if ``named``."""
    pieces = []
    for event in events:
        if named:
            pieces.append(b"event: " + event["type"].encode() + end)
        pieces.append(b"data: " + compact(event) + end + end)
    return b"".join(pieces) + (b"data: [DONE]" + end + end if done else b"")


def ndjson(*events: Any) -> bytes:
    return b"".join(compact(event) + b"\n" for event in events)


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One frame of Amazon's event stream."""
    packed = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
        for name, value in headers.items()
    )
    prelude = (16 + len(packed) + len(payload)).to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    message = prelude + crc32(prelude).to_bytes(4, "big") + packed + payload
    return message + crc32(message).to_bytes(4, "big")


def frames(*events: dict[str, Any]) -> bytes:
    """Frames as Bedrock sends them, with padding."""
    pieces = []
    for event in events:
        for name, payload in event.items():
            headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
            pieces.append(frame(headers, compact({**payload, "p": "abcdefgh"})))
    return b"".join(pieces)


def exception(name: str, message: str) -> bytes:
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, compact({"message": message}))


def chunk_frames(*events: Any) -> bytes:
    """The events of a model inside InvokeModelWithResponseStream."""
    return frames(*({"chunk": {"bytes": base64.b64encode(compact(event)).decode()}} for event in events))


TEXTS = ("text", "thinking", "content", "response", "refusal", "reasoning_content", "tool_plan", "arguments")


def texts(value: Any, place: str = "") -> dict[str, str]:
    """Every text the model wrote in an answer, by where it stands."""
    if isinstance(value, list):
        return {
            at: text
            for number, item in enumerate(value)
            for at, text in texts(item, f"{place}/{number}").items()
        }
    if not isinstance(value, dict):
        return {}
    found = {f"{place}/{key}": text for key in TEXTS if isinstance(text := value.get(key), str)}
    for key, inner in value.items():
        found |= texts(inner, f"{place}/{key}")
    return found


class Stream(NamedTuple):
    provider: str
    data: bytes
    body: dict[str, Any]
    """The answer as the provider gives it without streaming."""


ANTHROPIC_USAGE = {"input_tokens": 25, "cache_read_input_tokens": 7, "output_tokens": 40}
ANTHROPIC_EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 25, "cache_read_input_tokens": 7, "output_tokens": 1},
        },
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": ", 2."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Grüße, "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "world 🌍"}},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "citations_delta", "citation": {"url": "u"}},
    },
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '{"q":"a'},
    },
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": ' b","n":2}'},
    },
    {"type": "content_block_stop", "index": 2},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
    },
    {"type": "content_block_stop", "index": 3},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 40},
    },
    {"type": "message_stop"},
]
ANTHROPIC_BODY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [
        {"type": "thinking", "thinking": "Hm, 2.", "signature": "c2ln"},
        {"type": "text", "text": "Grüße, world 🌍", "citations": [{"url": "u"}]},
        {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "a b", "n": 2}},
        {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": ANTHROPIC_USAGE,
}


def chat_chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of Chat Completions; without a delta it has no choices."""
    choices = (
        [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    )
    known = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "gpt-x"}
    return {**known, "choices": choices, **more}


CHAT_USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def call_piece(index: int | None, id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    piece: dict[str, Any] = {"function": function}
    if id:
        piece |= {"id": id, "type": "function"}
    return piece if index is None else {"index": index, **piece}


def call(id: str | None, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


CHAT_EVENTS = [
    chat_chunk({"role": "assistant", "content": "", "refusal": None}, obfuscation="aaa"),
    chat_chunk({"content": "Grüße"}),
    chat_chunk({"content": " 🌍"}),
    chat_chunk({"tool_calls": [call_piece(0, "call_a", "search", "")]}),
    chat_chunk({"tool_calls": [call_piece(0, None, None, '{"q":')]}),
    chat_chunk({"tool_calls": [call_piece(1, "call_b", "now", "")]}),
    chat_chunk({"tool_calls": [call_piece(0, None, None, '"a"}'), call_piece(1, None, None, "{}")]}),
    chat_chunk({}, "tool_calls"),
    chat_chunk(usage=CHAT_USAGE),
]
CHAT_BODY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 5,
    "model": "gpt-x",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Grüße 🌍",
                "refusal": None,
                "tool_calls": [call("call_a", "search", '{"q":"a"}'), call("call_b", "now", "{}")],
            },
            "logprobs": None,
            "finish_reason": "tool_calls",
        }
    ],
    "usage": CHAT_USAGE,
}

RESPONSE = {"id": "resp_1", "object": "response", "model": "gpt-x", "error": None}
RESPONSES_OUTPUT: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Think."}]},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Grüße 🌍", "annotations": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_a",
        "name": "search",
        "arguments": '{"q":"a"}',
        "status": "completed",
    },
]
RESPONSES_BODY = {
    **RESPONSE,
    "status": "completed",
    "output": RESPONSES_OUTPUT,
    "usage": {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 13,
    },
}


def response_event(kind: str, index: int | None = None, **fields: Any) -> dict[str, Any]:
    where = {} if index is None else {"output_index": index, "item_id": f"item_{index}"}
    return {"type": f"response.{kind}", **where, **fields}


RESPONSES_EVENTS = [
    response_event("created", response={**RESPONSE, "status": "in_progress", "output": [], "usage": None}),
    response_event(
        "in_progress", response={**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    ),
    response_event("output_item.added", 0, item={"type": "reasoning", "id": "rs_1", "summary": []}),
    response_event(
        "reasoning_summary_part.added", 0, summary_index=0, part={"type": "summary_text", "text": ""}
    ),
    response_event("reasoning_summary_text.delta", 0, summary_index=0, delta="Thi"),
    response_event("reasoning_summary_text.delta", 0, summary_index=0, delta="nk."),
    response_event("output_item.done", 0, item=RESPONSES_OUTPUT[0]),
    response_event(
        "output_item.added",
        1,
        item={"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []},
    ),
    response_event(
        "content_part.added", 1, content_index=0, part={"type": "output_text", "text": "", "annotations": []}
    ),
    response_event("output_text.delta", 1, content_index=0, delta="Grüße"),
    response_event("output_text.delta", 1, content_index=0, delta=" 🌍"),
    response_event("output_text.done", 1, content_index=0, text="Grüße 🌍"),
    response_event("output_item.done", 1, item=RESPONSES_OUTPUT[1]),
    response_event(
        "output_item.added", 2, item={**RESPONSES_OUTPUT[2], "arguments": "", "status": "in_progress"}
    ),
    response_event("function_call_arguments.delta", 2, delta='{"q"'),
    response_event("function_call_arguments.delta", 2, delta=':"a"}'),
    response_event("output_item.done", 2, item=RESPONSES_OUTPUT[2]),
    response_event("completed", response=RESPONSES_BODY),
]


def gemini_piece(parts: list[dict[str, Any]], finish: str | None = None, **usage: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    counts = {"promptTokenCount": 9, **usage}
    return {
        "candidates": [candidate],
        "usageMetadata": counts,
        "modelVersion": "gemini-x",
        "responseId": "r1",
    }


GEMINI_EVENTS = [
    gemini_piece([{"text": "Hm", "thought": True}], totalTokenCount=11),
    gemini_piece([{"text": ", 2.", "thought": True}], totalTokenCount=12),
    gemini_piece([{"text": "Grüße"}], totalTokenCount=13),
    gemini_piece([{"text": " 🌍"}], totalTokenCount=14),
    gemini_piece([{"functionCall": {"name": "search", "args": {"q": "a"}}, "thoughtSignature": "s"}]),
    gemini_piece([{"text": ""}], "STOP", candidatesTokenCount=4, thoughtsTokenCount=2, totalTokenCount=15),
]
GEMINI_BODY = {
    "candidates": [
        {
            "content": {
                "parts": [
                    {"text": "Hm, 2.", "thought": True},
                    {"text": "Grüße 🌍"},
                    {"functionCall": {"name": "search", "args": {"q": "a"}}, "thoughtSignature": "s"},
                ],
                "role": "model",
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 9,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 2,
        "totalTokenCount": 15,
    },
    "modelVersion": "gemini-x",
    "responseId": "r1",
}


def block_delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}


BEDROCK_EVENTS: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    block_delta(0, reasoningContent={"text": "Hm"}),
    block_delta(0, reasoningContent={"text": ", 2."}),
    block_delta(0, reasoningContent={"signature": "c2ln"}),
    {"contentBlockStop": {"contentBlockIndex": 0}},
    block_delta(1, text="Grüße"),
    block_delta(1, text=" 🌍"),
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {
        "contentBlockStart": {
            "contentBlockIndex": 2,
            "start": {"toolUse": {"toolUseId": "t1", "name": "search"}},
        }
    },
    block_delta(2, toolUse={"input": '{"q":'}),
    block_delta(2, toolUse={"input": '"a"}'}),
    {"contentBlockStop": {"contentBlockIndex": 2}},
    {"messageStop": {"stopReason": "tool_use"}},
    {
        "metadata": {
            "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
            "metrics": {"latencyMs": 5},
        }
    },
]
BEDROCK_BODY = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm, 2.", "signature": "c2ln"}}},
                {"text": "Grüße 🌍"},
                {"toolUse": {"toolUseId": "t1", "name": "search", "input": {"q": "a"}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {"inputTokens": 9, "outputTokens": 4, "totalTokens": 13},
    "metrics": {"latencyMs": 5},
}


def ollama_line(**fields: Any) -> dict[str, Any]:
    return {"model": "llama", "created_at": "2026-01-01T00:00:00Z", "done": False, **fields}


OLLAMA_END = {
    "created_at": "2026-01-01T00:00:01Z",
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 9,
    "eval_count": 4,
}
OLLAMA_CALL = {"function": {"name": "search", "arguments": {"q": "a"}}}
OLLAMA_EVENTS = [
    ollama_line(message={"role": "assistant", "content": "", "thinking": "Hm"}),
    ollama_line(message={"role": "assistant", "content": "", "thinking": ", 2."}),
    ollama_line(message={"role": "assistant", "content": "Grüße"}),
    ollama_line(message={"role": "assistant", "content": " 🌍"}),
    ollama_line(message={"role": "assistant", "content": "", "tool_calls": [OLLAMA_CALL]}),
    ollama_line(message={"role": "assistant", "content": ""}, **OLLAMA_END),
]
OLLAMA_BODY = {
    "model": "llama",
    **OLLAMA_END,
    "message": {
        "role": "assistant",
        "content": "Grüße 🌍",
        "thinking": "Hm, 2.",
        "tool_calls": [OLLAMA_CALL],
    },
}


def cohere(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    where = {} if index is None else {"index": index}
    return {"type": kind, **where, "delta": {"message": message}}


COHERE_USAGE = {"tokens": {"input_tokens": 9, "output_tokens": 4}}
COHERE_EVENTS = [
    {"id": "c1", **cohere("message-start", role="assistant", content=[], tool_plan="", tool_calls=[])},
    cohere("tool-plan-delta", tool_plan="I will "),
    cohere("tool-plan-delta", tool_plan="search."),
    cohere("content-start", 0, content={"type": "text", "text": ""}),
    cohere("content-delta", 0, content={"text": "Grüße"}),
    cohere("content-delta", 0, content={"text": " 🌍"}),
    {"type": "content-end", "index": 0},
    cohere("tool-call-start", 0, tool_calls=call("t1", "search", "")),
    cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"q":'}}),
    cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '"a"}'}}),
    {"type": "tool-call-end", "index": 0},
    {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": COHERE_USAGE}},
]
COHERE_BODY = {
    "id": "c1",
    "message": {
        "role": "assistant",
        "tool_plan": "I will search.",
        "content": [{"type": "text", "text": "Grüße 🌍"}],
        "tool_calls": [call("t1", "search", '{"q":"a"}')],
    },
    "finish_reason": "TOOL_CALL",
    "usage": COHERE_USAGE,
}

STREAMS = {
    "anthropic": Stream("anthropic", sse(*ANTHROPIC_EVENTS, named=True), ANTHROPIC_BODY),
    "anthropic in bedrock": Stream("bedrock", chunk_frames(*ANTHROPIC_EVENTS), ANTHROPIC_BODY),
    "chat": Stream("openai", sse(*CHAT_EVENTS, done=True), CHAT_BODY),
    "responses": Stream("openai-responses", sse(*RESPONSES_EVENTS, named=True), RESPONSES_BODY),
    "gemini": Stream("gemini", sse(*GEMINI_EVENTS, end=b"\r\n"), GEMINI_BODY),
    "gemini array": Stream("gemini", json.dumps(GEMINI_EVENTS, indent=1).encode(), GEMINI_BODY),
    "bedrock": Stream("bedrock", frames(*BEDROCK_EVENTS), BEDROCK_BODY),
    "ollama": Stream("ollama", ndjson(*OLLAMA_EVENTS), OLLAMA_BODY),
    "cohere": Stream("cohere", sse(*COHERE_EVENTS, named=True), COHERE_BODY),
}
