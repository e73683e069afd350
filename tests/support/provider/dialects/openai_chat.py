"""OpenAI Chat Completions, which Mistral and many gateways speak too."""

from __future__ import annotations

import json
from typing import Any

from ..answers import Dialect, sse
from ..script import CREATED, Turn, in_pieces

STOPS = {"end": "stop", "tools": "tool_calls", "length": "length"}
ERRORS = {400: "invalid_request_error", 401: "invalid_request_error", 429: "requests"}
CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def rounds(body: Any) -> int:
    """Assistant messages whose tools were answered."""
    return sum(bool(message.get("tool_calls")) for message in body["messages"])


def usage(turn: Turn) -> dict[str, Any] | None:
    if turn.usage is None:
        return None
    count = turn.usage
    return {
        "prompt_tokens": count.input + count.cache_read,
        "completion_tokens": count.output,
        "total_tokens": count.input + count.cache_read + count.output,
        "prompt_tokens_details": {"cached_tokens": count.cache_read},
        "completion_tokens_details": {"reasoning_tokens": count.reasoning},
    }


def whole(turn: Turn, body: Any) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.thinking:
        message["reasoning_content"] = turn.thinking
    if turn.tools:
        message["tool_calls"] = [
            {"id": tool.id, "type": "function", "function": _function(tool.name, json.dumps(tool.args))}
            for tool in turn.tools
        ]
    choice = {"index": 0, "message": message, "finish_reason": STOPS[turn.stop], "logprobs": None}
    answer = {**_envelope(turn, body, "chat.completion"), "choices": [choice]}
    return answer if turn.usage is None else {**answer, "usage": usage(turn)}


def _function(name: str, arguments: str) -> dict[str, str]:
    return {"name": name, "arguments": arguments}


def _envelope(turn: Turn, body: Any, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{turn.id}",
        "object": kind,
        "created": CREATED,
        "model": body["model"],
        "system_fingerprint": "fp_scripted",
    }


def stream(turn: Turn, body: Any) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in in_pieces(turn.thinking)]
    deltas += [{"content": piece} for piece in turn.pieces()]
    for index, tool in enumerate(turn.tools):
        first = {"index": index, "id": tool.id, "type": "function", "function": _function(tool.name, "")}
        deltas.append({"tool_calls": [first]})
        for piece in in_pieces(json.dumps(tool.args)):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    envelope = _envelope(turn, body, "chat.completion.chunk")
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": STOPS[turn.stop]})
    chunks = [sse({**envelope, "choices": [choice]}) for choice in choices]
    if turn.usage is not None and (body.get("stream_options") or {}).get("include_usage"):
        chunks.append(sse({**envelope, "choices": [], "usage": usage(turn)}))
    return [*chunks, b"data: [DONE]\n\n"]


def failure(status: int) -> tuple[Any, dict[str, str]]:
    error = {
        "message": f"scripted failure {status}",
        "type": ERRORS.get(status, "server_error"),
        "param": None,
        "code": CODES.get(status),
    }
    return {"error": error}, {"x-request-id": "req_error"}


CHAT = Dialect(
    rounds,
    whole,
    stream,
    failure,
    broken=sse(
        {"error": {"message": "scripted failure in the stream", "type": "server_error", "code": None}}
    ),
    garbage=b'data: {"id": "chatcmpl-0001", "choi\n\n',
    headers={"x-request-id": "req_0001", "x-ratelimit-remaining-requests": "49"},
)
