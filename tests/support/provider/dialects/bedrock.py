"""Bedrock: Converse, its binary event stream, and InvokeModel with a body of the model's own."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

from ..answers import Dialect, compact
from ..script import SIGNATURE, Turn, in_pieces
from . import anthropic

STOPS = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens"}
ERRORS = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
STRING = 7


def frame(payload: Any, **headers: str) -> bytes:
    """One message of the event stream, with its two checksums."""
    head = b"".join(_header(name.replace("_", "-"), value) for name, value in headers.items())
    body = compact(payload)
    prelude = struct.pack(">II", 16 + len(head) + len(body), len(head))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + body
    return message + struct.pack(">I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    key, text = f":{name}".encode(), value.encode()
    return struct.pack(">B", len(key)) + key + struct.pack(">BH", STRING, len(text)) + text


def _event(kind: str, payload: Any) -> bytes:
    return frame(payload, event_type=kind, content_type="application/json", message_type="event")


def rounds(body: Any) -> int:
    return sum(any("toolResult" in block for block in each["content"]) for each in body["messages"])


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.thinking:
        thought = {"reasoningText": {"text": turn.thinking, "signature": SIGNATURE}}
        blocks.append({"reasoningContent": thought})
    if turn.text:
        blocks.append({"text": turn.text})
    for tool in turn.tools:
        blocks.append({"toolUse": {"toolUseId": tool.id, "name": tool.name, "input": tool.args}})
    return blocks


def _usage(turn: Turn) -> dict[str, int]:
    assert turn.usage is not None
    count = turn.usage
    usage = {"inputTokens": count.input, "outputTokens": count.output}
    if count.cache_read:
        usage |= {"cacheReadInputTokens": count.cache_read, "cacheWriteInputTokens": count.cache_write}
    return {**usage, "totalTokens": count.input + count.output + count.cache_read + count.cache_write}


def whole(turn: Turn, body: Any) -> Any:
    answer = {
        "output": {"message": {"role": "assistant", "content": _blocks(turn)}},
        "stopReason": STOPS[turn.stop],
        "metrics": {"latencyMs": 12},
    }
    return answer if turn.usage is None else {**answer, "usage": _usage(turn)}


def stream(turn: Turn, body: Any) -> list[bytes]:
    events = [_event("messageStart", {"role": "assistant"})]
    for index, block in enumerate(_blocks(turn)):
        at = {"contentBlockIndex": index}
        if "toolUse" in block:
            started = {key: block["toolUse"][key] for key in ("toolUseId", "name")}
            events.append(_event("contentBlockStart", {"start": {"toolUse": started}, **at}))
        events += [_event("contentBlockDelta", {"delta": delta, **at}) for delta in _deltas(block)]
        events.append(_event("contentBlockStop", at))
    events.append(_event("messageStop", {"stopReason": STOPS[turn.stop]}))
    if turn.usage is not None:
        events.append(_event("metadata", {"usage": _usage(turn), "metrics": {"latencyMs": 12}}))
    return events


def _deltas(block: dict[str, Any]) -> list[dict[str, Any]]:
    if "text" in block:
        return [{"text": piece} for piece in in_pieces(block["text"])]
    if "toolUse" in block:
        return [{"toolUse": {"input": piece}} for piece in in_pieces(json.dumps(block["toolUse"]["input"]))]
    thought = block["reasoningContent"]["reasoningText"]
    texts = [{"reasoningContent": {"text": piece}} for piece in in_pieces(thought["text"])]
    return [*texts, {"reasoningContent": {"signature": thought["signature"]}}]


def failure(status: int) -> tuple[Any, dict[str, str]]:
    kind = ERRORS.get(status, "InternalServerException")
    return {"message": f"scripted {kind}"}, {"x-amzn-errortype": kind, "x-amzn-requestid": "req_error"}


def _damaged() -> bytes:
    """A frame whose checksum is wrong."""
    return _event("contentBlockStop", {"contentBlockIndex": 0})[:-1] + b"\0"


CONVERSE = Dialect(
    rounds,
    whole,
    stream,
    failure,
    broken=frame(
        {"message": "scripted failure in the stream"},
        exception_type="throttlingException",
        content_type="application/json",
        message_type="exception",
    ),
    garbage=_damaged(),
    stream_type="application/vnd.amazon.eventstream",
    headers={"x-amzn-requestid": "req_0001"},
)


def _invoked_stream(turn: Turn, body: Any) -> list[bytes]:
    events = anthropic.events(turn, body)
    return [_event("chunk", {"bytes": base64.b64encode(compact(event)).decode()}) for event in events]


INVOKE = Dialect(
    anthropic.rounds,
    anthropic.whole,
    _invoked_stream,
    failure,
    broken=CONVERSE.broken,
    garbage=CONVERSE.garbage,
    stream_type=CONVERSE.stream_type,
    headers={**CONVERSE.headers, "x-amzn-bedrock-input-token-count": "25"},
)
