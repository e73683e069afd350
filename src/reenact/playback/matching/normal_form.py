"""The normal form of a request's body: a skeleton without generated ids, and the ids in order.

Two bodies are the same request if their skeletons are equal and their ids pair alike.
"""

from __future__ import annotations

import json
import re
from typing import Any

from . import equality_rules

ID = "<id>"
_MAX_DEPTH = 200
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def skeleton(value: Any, names: list[str], *, key: str | None = None, top: bool = False) -> Any:
    """Return the normal form of the value at ``key`` of a request; its ids are added to ``names``."""
    return _walk(value, names, key, top, 0)


def exact(value: Any, names: list[str]) -> Any:
    """Return the normal form of tool arguments: everything counts except the numbers of secrets."""
    return _opaque(value, names, 0)


def without_addresses(args: Any, depth: int = 0) -> Any:
    """Return arguments without the memory addresses in the ``repr`` of objects."""
    if type(args) not in (list, dict) or depth > _MAX_DEPTH:
        return args
    if type(args) is list:
        return [without_addresses(item, depth + 1) for item in args]
    text = args.get("$repr")
    if type(text) is str:
        return {**args, "$repr": _ADDRESS.sub("", text)}
    return {key: without_addresses(item, depth + 1) for key, item in args.items()}


def pairing(names: list[str]) -> str:
    """Return ids as numbers, in the order of their first appearance."""
    known: dict[str, int] = {}
    return ",".join([str(known.setdefault(name, len(known))) for name in names])


def _walk(value: Any, names: list[str], key: str | None, top: bool, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value, names)
    if kind is dict:
        return _object(value, names, top, depth + 1) if depth < _MAX_DEPTH else {}
    if kind is list:
        items = [
            _walk(item, names, None, False, depth + 1)
            for item in value
            if depth < _MAX_DEPTH and not _dropped(item)
        ]
        if len(items) == 1 and key in ("content", "system") and _is_text_part(items[0]):
            return items[0]["text"]
        return items
    return int(value) if kind is float and value.is_integer() else value


def _object(value: dict[str, Any], names: list[str], top: bool, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # In the order of their names: where an id first appears must not depend on the order of keys.
    for key in sorted(value, key=str):
        item = value[key]
        if (
            key in equality_rules.DROPPED
            or (top and key in equality_rules.DROPPED_AT_TOP)
            or equality_rules.is_default(key, item)
        ):
            continue
        if key in equality_rules.IDS and type(item) is str:
            names.append(item)
            found[key] = ID
        elif key in equality_rules.OPAQUE or (key == "input" and type(item) is dict and not top):
            found[key] = _opaque(_decoded(item) if key in equality_rules.JSON_TEXTS else item, names, depth)
        elif key in equality_rules.DROPPED_WITHIN and type(item) is dict:
            kept = {
                name: each for name, each in item.items() if name not in equality_rules.DROPPED_WITHIN[key]
            }
            if kept:
                found[key] = _opaque(kept, names, depth)
        else:
            found[key] = _walk(item, names, key, False, depth)
    return found


def _opaque(value: Any, names: list[str], depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value, names)
    if kind is dict and depth < _MAX_DEPTH:
        return {key: _opaque(value[key], names, depth + 1) for key in sorted(value, key=str)}
    if kind in (list, tuple) and depth < _MAX_DEPTH:
        return [_opaque(item, names, depth + 1) for item in value]
    return value


def _text(value: str, names: list[str]) -> str:
    if "<redacted:" not in value:
        return value
    names += [found[0] for found in equality_rules.PLACEHOLDER.finditer(value)]
    return equality_rules.PLACEHOLDER.sub(r"<redacted:\1>", value)


def _decoded(value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _dropped(item: Any) -> bool:
    """True for an element that only marks a position in the provider's cache."""
    return type(item) is dict and len(item) > 0 and equality_rules.DROPPED.issuperset(item)


def _is_text_part(item: Any) -> bool:
    return (
        type(item) is dict
        and item.keys() <= {"type", "text"}
        and type(item.get("text")) is str
        and item.get("type", "text") in equality_rules.TEXT_PARTS
    )
