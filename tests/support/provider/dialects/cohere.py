"""Cohere v2 chat."""

from __future__ import annotations

import json
from typing import Any

from ..answers import Dialect, sse
from ..script import Turn, in_pieces

STOPS = {"end": "COMPLETE", "tools": "TOOL_CALL", "length": "MAX_TOKENS"}


def rounds(body: Any) -> int:
    """Assistant messages whose tools were answered."""
    return sum(bool(message.get("tool_calls")) for message in body["messages"])


def _calls(turn: Turn) -> list[dict[str, Any]]:
    return [
        {
            "id": tool.id,
            "type": "function",
            "function": {"name": tool.name, "arguments": json.dumps(tool.args)},
        }
        for tool in turn.tools
    ]


def _usage(turn: Turn) -> dict[str, Any]:
    assert turn.usage is not None
    counts = {"input_tokens": turn.usage.input, "output_tokens": turn.usage.output}
    return {"billed_units": counts, "tokens": counts, "cached_tokens": turn.usage.cache_read}


def whole(turn: Turn, body: Any) -> Any:
    message: dict[str, Any] = {"role": "assistant"}
    if turn.tools:
        message |= {"tool_plan": turn.text, "tool_calls": _calls(turn)}
    else:
        thought = [{"type": "thinking", "thinking": turn.thinking}] if turn.thinking else []
        message["content"] = [*thought, *([{"type": "text", "text": turn.text}] if turn.text else [])]
    answer = {"id": f"chat-{turn.id}", "finish_reason": STOPS[turn.stop], "message": message}
    return answer if turn.usage is None else {**answer, "usage": _usage(turn)}


def stream(turn: Turn, body: Any) -> list[bytes]:
    begun = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    events: list[dict[str, Any]] = [
        {"type": "message-start", "id": f"chat-{turn.id}", "delta": {"message": begun}},
        *(_tool_events(turn) if turn.tools else _text_events(turn)),
    ]
    delta: dict[str, Any] = {"finish_reason": STOPS[turn.stop]}
    if turn.usage is not None:
        delta["usage"] = _usage(turn)
    events.append({"type": "message-end", "id": f"chat-{turn.id}", "delta": delta})
    return [*(sse(event, event["type"]) for event in events), b"data: [DONE]\n\n"]


def _text_events(turn: Turn) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    contents = [("thinking", turn.thinking), ("text", turn.text)]
    for index, (kind, text) in enumerate(each for each in contents if each[1]):
        pieces = [("content-start", {"type": kind, kind: ""})]
        pieces += [("content-delta", {kind: piece}) for piece in in_pieces(text)]
        events += [
            {"type": name, "index": index, "delta": {"message": {"content": content}}}
            for name, content in pieces
        ]
        events.append({"type": "content-end", "index": index})
    return events


def _tool_events(turn: Turn) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": piece}}} for piece in turn.pieces()
    ]
    for index, call in enumerate(_calls(turn)):
        begun = {**call, "function": {**call["function"], "arguments": ""}}
        pieces: list[tuple[str, dict[str, Any]]] = [("tool-call-start", begun)]
        pieces += [
            ("tool-call-delta", {"function": {"arguments": piece}})
            for piece in in_pieces(call["function"]["arguments"])
        ]
        events += [
            {"type": name, "index": index, "delta": {"message": {"tool_calls": content}}}
            for name, content in pieces
        ]
        events.append({"type": "tool-call-end", "index": index})
    return events


def failure(status: int) -> tuple[Any, dict[str, str]]:
    return {"id": "error-0001", "message": f"scripted failure {status}"}, {}


CHAT = Dialect(
    rounds,
    whole,
    stream,
    failure,
    broken=sse({"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "scripted failure"}}),
    garbage=b'event: content-delta\ndata: {"type": "content-del\n\n',
)
