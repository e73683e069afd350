"""OpenAI Responses."""

from __future__ import annotations

import json
from typing import Any

from ..answers import Dialect, sse
from ..script import CREATED, Turn, in_pieces
from .openai_chat import failure


def rounds(body: Any) -> int:
    """Groups of tool outputs that follow one another, or the turn that a conversation kept by the provider had."""
    if body.get("previous_response_id"):
        return int(body["previous_response_id"].removeprefix("resp_"))
    items = body["input"] if isinstance(body["input"], list) else []
    kinds = [item.get("type") == "function_call_output" for item in items]
    return sum(now and not before for before, now in zip([False, *kinds], kinds, strict=False))


def _items(turn: Turn) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if turn.thinking:
        summary = [{"type": "summary_text", "text": turn.thinking}]
        items.append(
            {"id": f"rs_{turn.id}", "type": "reasoning", "summary": summary, "encrypted_content": None}
        )
    if turn.text:
        part = {"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "id": f"msg_{turn.id}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for tool in turn.tools:
        items.append(
            {
                "id": f"fc_{tool.id}",
                "type": "function_call",
                "status": "completed",
                "call_id": tool.id,
                "name": tool.name,
                "arguments": json.dumps(tool.args),
            }
        )
    return items


def whole(turn: Turn, body: Any) -> Any:
    cut = turn.stop == "length"
    return {
        "id": f"resp_{turn.id}",
        "object": "response",
        "created_at": CREATED,
        "model": body["model"],
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "output": _items(turn),
        "parallel_tool_calls": True,
        "previous_response_id": body.get("previous_response_id"),
        "temperature": 1.0,
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "usage": _usage(turn),
    }


def _usage(turn: Turn) -> dict[str, Any] | None:
    if turn.usage is None:
        return None
    count = turn.usage
    return {
        "input_tokens": count.input + count.cache_read,
        "input_tokens_details": {"cached_tokens": count.cache_read, "cache_write_tokens": count.cache_write},
        "output_tokens": count.output,
        "output_tokens_details": {"reasoning_tokens": count.reasoning},
        "total_tokens": count.input + count.cache_read + count.output,
    }


def events(turn: Turn, body: Any) -> list[dict[str, Any]]:
    """The events of a stream, numbered."""
    final = whole(turn, body)
    begun = {**final, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    stream_events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(final["output"]):
        stream_events += _item_events(index, item)
    stream_events.append({"type": f"response.{final['status']}", "response": final})
    return [{"type": event["type"], "sequence_number": n, **event} for n, event in enumerate(stream_events)]


def _item_events(index: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    at = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        started = {**item, "content": [], "status": "in_progress"}
        (part,) = item["content"]
        inner = _text_events({**at, "content_index": 0}, part)
    elif item["type"] == "function_call":
        started = {**item, "arguments": "", "status": "in_progress"}
        arguments = item["arguments"]
        kind = "response.function_call_arguments"
        inner = [{"type": f"{kind}.delta", **at, "delta": piece} for piece in in_pieces(arguments)]
        inner.append({"type": f"{kind}.done", **at, "name": item["name"], "arguments": arguments})
    else:
        started = {**item, "summary": []}
        inner = _summary_events({**at, "summary_index": 0}, item["summary"][0])
    return [
        {"type": "response.output_item.added", "output_index": index, "item": started},
        *inner,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _text_events(at: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    text, kind = part["text"], "response.output_text"
    return [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": f"{kind}.delta", **at, "delta": piece, "logprobs": []} for piece in in_pieces(text)),
        {"type": f"{kind}.done", **at, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
    ]


def _summary_events(at: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    kind = "response.reasoning_summary"
    return [
        {"type": f"{kind}_part.added", **at, "part": {**part, "text": ""}},
        *({"type": f"{kind}_text.delta", **at, "delta": piece} for piece in in_pieces(part["text"])),
        {"type": f"{kind}_text.done", **at, "text": part["text"]},
        {"type": f"{kind}_part.done", **at, "part": part},
    ]


def stream(turn: Turn, body: Any) -> list[bytes]:
    return [sse(event, event["type"]) for event in events(turn, body)]


BROKEN = {
    "type": "error",
    "code": "server_error",
    "message": "scripted failure in the stream",
    "param": None,
    "sequence_number": 9,
}
RESPONSES = Dialect(
    rounds,
    whole,
    stream,
    failure,
    broken=sse(BROKEN, "error"),
    garbage=b'event: response.output_text.delta\ndata: {"type": "response.outp\n\n',
    headers={"x-request-id": "req_0001", "openai-processing-ms": "12"},
)
