"""An answer of Anthropic Messages as the events of its stream: message_start … message_stop.

One of the dialects behind restream.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .values import mapping, mappings, pieces_of, string

_AT_THE_END = ("stop_reason", "stop_sequence", "stop_details", "container")
"""What the model's last event tells of a message."""
_COUNTED_AGAIN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "server_tool_use")


def events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events, each with its type."""
    usage = mapping(body.get("usage"))
    ended = {key: body[key] for key in _AT_THE_END if body.get(key) is not None}
    begun = {**body, **dict.fromkeys(ended), "content": [], "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": {"type": "message", "role": "assistant", **begun}}
    for index, block in enumerate(mappings(body.get("content"))):
        started, deltas = _block(block)
        yield {"type": "content_block_start", "index": index, "content_block": started}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    counts = {key: usage[key] for key in _COUNTED_AGAIN if usage.get(key) is not None}
    counts["output_tokens"] = usage.get("output_tokens") or 0
    delta = {"stop_reason": None, "stop_sequence": None, **ended}
    yield {"type": "message_delta", "delta": delta, "usage": counts}
    yield {"type": "message_stop"}


def _block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it begins, and what is added to it; one that comes whole gets nothing."""
    kind = string(block.get("type")) or ""
    if kind == "text":
        deltas = _texts("text", block)
        cited = mappings(block.get("citations"))
        started = {**block, "text": "", **({"citations": []} if cited else {})}
        return started, deltas + [{"type": "citations_delta", "citation": each} for each in cited]
    if kind == "thinking":
        signed = string(block.get("signature"))
        deltas = _texts("thinking", block)
        started = {**block, "thinking": "", **({"signature": ""} if signed else {})}
        return started, deltas + ([{"type": "signature_delta", "signature": signed}] if signed else [])
    if kind.endswith("tool_use"):
        given = block.get("input")
        spelled = pieces_of(json.dumps(given)) if given not in (None, {}) else []
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *spelled]]
        return {**block, "input": {}}, deltas
    return block, []


def _texts(kind: str, block: dict[str, Any]) -> list[dict[str, Any]]:
    text = string(block.get(kind)) or ""
    return [{"type": f"{kind}_delta", kind: piece} for piece in pieces_of(text)]
