"""Stored values <-> what the agent had: blobs put back, ``$float`` restored, ``$$`` keys unescaped.

Pure apart from the blob lookup it is given. Returns fresh objects, never parts of its argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lines

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_MAX_DEPTH = 200
"""Well below where the interpreter would refuse; capture cuts long before."""


def restore(value: Any, blob: Callable[[object], str | None], depth: int = 0) -> Any:
    """Return a fresh copy with our own marks resolved where they can be."""
    kind = type(value)
    if kind is dict:
        if depth > _MAX_DEPTH:
            return {"$cut": "depth"}
        result = {}
        for key, item in value.items():
            kind = type(item)
            if kind is dict or kind is list:
                item = restore(item, blob, depth + 1)
            if key[:1] == "$":
                if lines.is_mark(key) and (found := _mark(value, blob)) is not None:
                    return found
                key = lines.unescape_key(key)
            result[key] = item
        return result
    if kind is list:
        if depth > _MAX_DEPTH:
            return [{"$cut": "depth"}]
        return [
            restore(item, blob, depth + 1) if type(item) is dict or type(item) is list else item
            for item in value
        ]
    return value


def _mark(value: dict[str, Any], blob: Callable[[object], str | None]) -> Any:
    if "$blob" in value and "form" not in value:
        return blob(value["$blob"])
    if "$float" in value and len(value) == 1:
        return _FLOATS.get(value["$float"]) if type(value["$float"]) is str else None
    return None


def fresh(value: Any, depth: int = 0) -> Any:
    """Return a fresh copy of a value in which nothing is ours."""
    if type(value) is dict:
        return {"$cut": "depth"} if depth > _MAX_DEPTH else {k: fresh(v, depth + 1) for k, v in value.items()}
    if type(value) is list:
        return [{"$cut": "depth"}] if depth > _MAX_DEPTH else [fresh(item, depth + 1) for item in value]
    return value


def point(value: Any, pointer: object) -> Any:
    """Return what a JSON pointer leads to; LookupError if nothing."""
    for key in _keys(pointer):
        value = value[_index(value, key)]
    return value


def drop_at(value: Any, pointer: object) -> None:
    """Remove what a JSON pointer leads to; LookupError if nothing."""
    *way, last = _keys(pointer)
    for key in way:
        value = value[_index(value, key)]
    del value[_index(value, last)]


def set_at(value: Any, pointer: object, new: Any) -> None:
    """Put ``new`` where a JSON pointer leads; LookupError if there is no such place."""
    *way, last = _keys(pointer)
    for key in way:
        value = value[_index(value, key)]
    if type(value) is list and last == "-":
        value.append(new)
    else:
        value[last if type(value) is dict else _index(value, last)] = new


def change(value: Any, reference: dict[str, Any]) -> None:
    """Make the small changes that a reference carries, in place."""
    for pointer in reference.get("drop") or ():
        drop_at(value, pointer)
    for pointer, new in (reference.get("set") or {}).items():
        set_at(value, pointer, new)


def _keys(pointer: object) -> list[str]:
    if type(pointer) is not str or (pointer and pointer[0] != "/"):
        raise LookupError(pointer)
    if not pointer:
        return []
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer[1:].split("/")]


def _index(value: Any, key: str) -> Any:
    if type(value) is dict:
        return key
    if type(value) is list and key.isascii() and key.isdigit() and len(key) < 10:
        return int(key)
    raise LookupError(key)
