"""Anthropic Messages, token counting and message batches."""

from __future__ import annotations

import json
from typing import Any

from ..answers import Answer, Ask, Dialect, compact, json_answer, sse, whole_answer
from ..script import SIGNATURE, Turn, in_pieces

STOPS = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens"}
ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def rounds(body: Any) -> int:
    """Messages that answer tool uses; a thread kept by the provider says only after which turn it goes on."""
    before = (body.get("thread") or {}).get("previous_message_id")
    if before:
        return int(before.removeprefix("msg_"))
    return sum(
        isinstance(message["content"], list)
        and any(block.get("type") == "tool_result" for block in message["content"])
        for message in body["messages"]
    )


def blocks(turn: Turn) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    if turn.thinking:
        content.append({"type": "thinking", "thinking": turn.thinking, "signature": SIGNATURE})
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    for tool in turn.tools:
        content.append({"type": "tool_use", "id": f"toolu_{tool.id}", "name": tool.name, "input": tool.args})
    return content


def usage(turn: Turn) -> dict[str, Any]:
    if turn.usage is None:
        return {}
    counts = {"input_tokens": turn.usage.input, "output_tokens": turn.usage.output}
    if turn.usage.cache_read:
        counts["cache_read_input_tokens"] = turn.usage.cache_read
        counts["cache_creation_input_tokens"] = turn.usage.cache_write
    return counts


def whole(turn: Turn, body: Any) -> Any:
    message = {
        "id": f"msg_{turn.id}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "claude-scripted"),
        "content": blocks(turn),
        "stop_reason": STOPS[turn.stop],
        "stop_sequence": None,
    }
    return message if turn.usage is None else {**message, "usage": usage(turn)}


def events(turn: Turn, body: Any) -> list[dict[str, Any]]:
    """The events of a stream, each with its type."""
    begun = {**whole(turn, body), "content": [], "stop_reason": None}
    if turn.usage is not None:
        begun["usage"] = {**usage(turn), "output_tokens": 1}
    stream_events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(blocks(turn)):
        stream_events += _block_events(index, block)
        if index == 0:
            stream_events.insert(2, {"type": "ping"})
    ended = {"type": "message_delta", "delta": {"stop_reason": STOPS[turn.stop], "stop_sequence": None}}
    stream_events.append(
        ended if turn.usage is None else {**ended, "usage": {"output_tokens": turn.usage.output}}
    )
    return [*stream_events, {"type": "message_stop"}]


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "thinking":
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in in_pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] == "text":
        start = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in in_pieces(block["text"])]
    else:
        start = {**block, "input": {}}
        pieces = in_pieces(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces]]
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def stream(turn: Turn, body: Any) -> list[bytes]:
    return [sse(event, event["type"]) for event in events(turn, body)]


def failure(status: int) -> tuple[Any, dict[str, str]]:
    kind = ERRORS.get(status, "api_error")
    error = {"type": kind, "message": f"scripted {kind}"}
    return {"type": "error", "error": error, "request_id": "req_error"}, {"request-id": "req_error"}


MESSAGES = Dialect(
    rounds,
    whole,
    stream,
    failure,
    broken=sse({"type": "error", "error": {"type": "overloaded_error", "message": "scripted"}}, "error"),
    garbage=b'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n',
    headers={"request-id": "req_0001", "anthropic-ratelimit-requests-remaining": "49"},
)


def count_tokens(ask: Ask) -> Answer:
    return json_answer({"input_tokens": len(ask.body) // 4})


def batches(ask: Ask) -> Answer:
    """Create one, look at it, read its results: it is over at once."""
    if ask.path.endswith("/results"):
        result = {
            "custom_id": "first",
            "result": {"type": "succeeded", "message": whole(Turn("0001", "Done."), {})},
        }
        result["result"]["message"]["usage"] = {"input_tokens": 3, "output_tokens": 2}
        return whole_answer(compact(result) + b"\n", "application/x-jsonl")
    made = "2026-01-02T03:04:05Z"
    batch = {
        "id": "msgbatch_0001",
        "type": "message_batch",
        "processing_status": "ended",
        "request_counts": {"processing": 0, "succeeded": 1, "errored": 0, "canceled": 0, "expired": 0},
        "created_at": made,
        "ended_at": made,
        "expires_at": made,
        "archived_at": None,
        "cancel_initiated_at": None,
        "results_url": f"{ask.base}/v1/messages/batches/msgbatch_0001/results",
    }
    return json_answer(batch)
