"""Uploads cut short: a recorded call may have been cancelled before its whole body was sent.

How much was sent by then depends on the machine, so it does not count in matching. Pure.
"""

from __future__ import annotations

from typing import Any

from .normal_form import exact

_PLACEHOLDER = "<redacted:"


def is_beginning(cut: dict[str, Any], whole: dict[str, Any]) -> bool:
    """True if a body cut short may be the beginning of another one.

    Both have the form of ``sent`` in an event (docs/format.md). Binary data is compared by size only.
    """
    if not cut:
        return True  # nothing was sent
    if cut.get("type") != whole.get("type"):
        return False
    if type(cut.get("parts")) is not list:
        return _is_text_beginning(cut, whole, "body")
    begun, parts = cut["parts"], whole.get("parts")
    if type(parts) is not list or len(begun) > len(parts):
        return False
    if not begun:
        return True
    *finished, last = zip(begun, parts, strict=False)
    return all(_same(one, other) for one, other in finished) and _is_part_beginning(*last)


def _is_part_beginning(cut: Any, whole: Any) -> bool:
    if type(cut) is not dict or type(whole) is not dict:
        return False
    names = ("name", "filename", "type")
    same_head = [cut.get(name) for name in names] == [whole.get(name) for name in names]
    return same_head and _is_text_beginning(cut, whole, "value")


def _is_text_beginning(cut: dict[str, Any], whole: dict[str, Any], key: str) -> bool:
    begun, text = cut.get(key), whole.get(key)
    if type(begun) is not str or type(text) is not str:
        return _size(cut) <= _size(whole)
    return _PLACEHOLDER in begun + text or text.startswith(begun)  # half a secret is not recognised as one


def _size(sent: dict[str, Any]) -> int:
    size = sent.get("bytes")
    return size if type(size) is int else 0


def _same(one: Any, other: Any) -> bool:
    """True if two parts are equal except for the numbers of their secrets."""
    if type(one) is not dict or type(other) is not dict:
        return False
    is_text = "value" in one and "value" in other
    sizes = {"bytes": None} if is_text else {}
    return bool(exact({**one, **sizes}, []) == exact({**other, **sizes}, []))
