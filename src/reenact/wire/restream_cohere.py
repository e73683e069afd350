"""An answer of Cohere's v2 chat as the events of its stream: message-start … message-end.

One of the dialects behind restream.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .values import mapping, mappings, pieces_of

_LISTS = ("content", "tool_calls", "citations")


def events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events, each with its type."""
    message = mapping(body.get("message"))
    lists: dict[str, Any] = {key: [] for key in _LISTS if type(message.get(key)) is list}
    begun = {**message, **lists, **({"tool_plan": ""} if "tool_plan" in message else {})}
    yield {"type": "message-start", "id": body.get("id"), "delta": {"message": begun}}
    for piece in pieces_of(message.get("tool_plan")):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": piece}}}
    for index, block in enumerate(mappings(message.get("content"))):
        texts = [key for key in ("text", "thinking") if type(block.get(key)) is str]
        said = [{key: piece} for key in texts for piece in pieces_of(block[key])]
        yield from _list("content", index, {**block, **dict.fromkeys(texts, "")}, said)
    for index, call in enumerate(mappings(message.get("tool_calls"))):
        function = mapping(call.get("function"))
        given = [{"function": {"arguments": piece}} for piece in pieces_of(function.get("arguments"))]
        empty = {**call, "function": {**function, "arguments": ""}}
        yield from _list("tool_calls", index, empty, given)
    for index, citation in enumerate(mappings(message.get("citations"))):
        yield from _list("citations", index, citation, [])
    ended = {key: value for key, value in body.items() if key not in ("id", "message")}
    yield {"type": "message-end", "id": body.get("id"), "delta": ended}


def _list(key: str, index: int, started: Any, added: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    name = {"content": "content", "tool_calls": "tool-call", "citations": "citation"}[key]
    yield {"type": f"{name}-start", "index": index, "delta": {"message": {key: started}}}
    for piece in added:
        yield {"type": f"{name}-delta", "index": index, "delta": {"message": {key: piece}}}
    yield {"type": f"{name}-end", "index": index}
