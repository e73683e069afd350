"""An answer of OpenAI Responses as the events of its stream, numbered, with the whole response last.

One of the dialects behind restream.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .values import mappings, pieces_of, string

_TERMINAL = ("completed", "incomplete", "failed", "cancelled")
_PARTS = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "reasoning_text": ("response.reasoning_text", "text"),
    "summary_text": ("response.reasoning_summary_text", "text"),
}
"""Parts of an item that come in pieces: the events' name, and the field."""
_GIVEN = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
}
_ADDED = {
    "content": ("content_index", "response.content_part"),
    "summary": ("summary_index", "response.reasoning_summary_part"),
}


def events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events, each with type and number."""
    for number, event in enumerate(_events(body)):
        yield {"type": event["type"], "sequence_number": number, **event}


def _events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    unsaid = {"usage": None, "incomplete_details": None, "error": None}
    begun = {**body, "status": "in_progress", "output": [], **unsaid}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(mappings(body.get("output"))):
        at = {"item_id": item.get("id"), "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": _started(item)}
        for inner in _within(item):
            yield {"type": inner["type"], **at, **inner}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    status = string(body.get("status"))
    yield {"type": f"response.{status if status in _TERMINAL else 'completed'}", "response": body}


def _started(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is before anything is said in it."""
    started = dict(item)
    kind = string(item.get("type")) or ""
    if "status" in item:
        started["status"] = "in_progress"
    if kind in _GIVEN:
        started[_GIVEN[kind][1]] = ""
    if kind in ("message", "reasoning"):
        started |= {key: [] for key in _ADDED if type(item.get(key)) is list}
    return started


def _within(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = string(item.get("type")) or ""
    if kind in _GIVEN:
        name, field = _GIVEN[kind]
        yield from _text(name, field, item.get(field), {"name": item["name"]} if "name" in item else {})
    if kind in ("message", "reasoning"):
        for key, (index_name, added) in _ADDED.items():
            for number, part in enumerate(mappings(item.get(key))):
                for event in _part(part, added):
                    yield {"type": event["type"], index_name: number, **event}


def _part(part: dict[str, Any], added: str) -> Iterator[dict[str, Any]]:
    name, field = _PARTS.get(string(part.get("type")) or "", ("", ""))
    noted = mappings(part.get("annotations"))
    empty = {**part, field: "", **({"annotations": []} if noted else {})} if name else part
    yield {"type": f"{added}.added", "part": empty}
    if name:
        told: dict[str, Any] = {"logprobs": []} if name == "response.output_text" else {}
        yield from _text(name, field, part.get(field), told, told)
    for number, each in enumerate(noted):
        kind = "response.output_text.annotation.added"
        yield {"type": kind, "annotation_index": number, "annotation": each}
    yield {"type": f"{added}.done", "part": part}


def _text(
    name: str, field: str, text: object, at_end: dict[str, Any], with_each: dict[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    for piece in pieces_of(text):
        yield {"type": f"{name}.delta", "delta": piece, **(with_each or {})}
    yield {"type": f"{name}.done", field: text, **at_end}
