"""Careful reading of decoded JSON: every helper takes any value and never raises.

What is missing or of an unexpected type becomes None or empty.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from typing import Any

from ..lines import MAX_NESTING

_MAX_DEPTH = MAX_NESTING


def mapping(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list; empty if it is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def some_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a few messages from both ends: enough to tell a shape, however long the conversation."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return []
    return mappings(messages if len(messages) <= 8 else messages[:4] + messages[-4:])


def string(value: object) -> str | None:
    """Return the value if it is a string that says something."""
    return value if isinstance(value, str) and value else None


def parsed_arguments(arguments: object) -> object:
    """Return a tool's arguments as data; a string that is not JSON stays as it is."""
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}  # how several servers write a call without arguments
    try:
        return json.loads(arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return arguments


def _no_constant(name: str) -> object:
    raise ValueError(name)


def as_json(value: object) -> str:
    """Return JSON to be read by people: spaces, no escapes; never raises."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "…"


def as_text(value: object) -> str:
    """Return a tool's result as the text an agent would send: a string as it is, else JSON."""
    return value if isinstance(value, str) else as_json(value)


def canonical(value: Any) -> str:
    """Return JSON text that does not depend on the order of keys; any value gives some text."""
    try:
        return _sorted.encode(value)
    except (TypeError, ValueError, RecursionError):  # keys that are not text, cycles, bottomless nesting
        return json.dumps(_tamed(value, 0), sort_keys=True, separators=(",", ":"))


def _odd(value: object) -> object:
    """Return what stands for a value that JSON does not have."""
    if isinstance(value, bytes | bytearray):
        return {"$bytes": b2a_base64(value, newline=False).decode("ascii"), "bytes": len(value)}
    if isinstance(value, set | frozenset):
        return sorted(map(canonical, value))
    return {"$repr": repr(value)[:4000], "type": type(value).__name__}


_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_odd)


def _tamed(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return "<deeper>"
    if isinstance(value, dict):
        return {str(key): _tamed(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_tamed(item, depth + 1) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else _odd(value)


def call_text(name: object, args: object) -> str:
    """Return a tool use as ``name({"key": "value"})``."""
    args = parsed_arguments(args)
    shown = args if isinstance(args, str) else "" if args is None or args == {} else as_json(args)
    return f"{string(name) or 'tool'}({shown})"


def plain_text(value: object) -> str:
    """Return what a person would read of a string or of a list of text parts.

    Our own stand-ins are read too: of a long string moved to a blob the head is known.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text_of_item, value)))
    return _text_of_item(value)


def _text_of_item(item: object) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        for key in ("text", "stdout", "stderr", "title"):
            if string(item.get(key)):
                return str(item[key])
        if "$blob" in item or "$cut" in item:
            return (string(item.get("head")) or "") + "…"
        if "$hash" in item or "$none" in item:
            return "[withheld]"
        if string(item.get("type")):
            return f"[{item['type']}]"  # an image, a document: nothing to read
    return as_json(item)


def text_pieces(text: object, size: int = 40) -> list[str]:
    """Return a text as a stream would hand it out; nothing for other values."""
    return [text[at : at + size] for at in range(0, len(text), size)] if isinstance(text, str) else []
