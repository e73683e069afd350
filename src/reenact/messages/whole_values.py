"""Stored values -> values that can be sent: long texts put back, and what is not there named.

Stricter than ``Event.body``, which shows a stand-in for what is missing: a provider would take that for
content.
"""

from __future__ import annotations

import binascii
from typing import Any

from .. import lines
from ..tracefile.event import Event
from ..tracefile.stored_values import fresh

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_MAX_DEPTH = 200
_REASONS = {
    "$gap": "it builds on a line that is lost",
    "$blob": "a long text of it is not beside the file",
    "$hash": "its content was withheld",
    "$none": "its content was withheld",
    "$cut": "it was cut when it was recorded",
    "$repr": "it holds an object that is no JSON",
}


class Whole:
    """Restores the values of one event; ``missing`` says why the last one is not whole, None if it is."""

    def __init__(self, event: Event) -> None:
        self._blob = event.stored_in.blobs.text
        self._ours = event.is_ours
        self.missing: str | None = None

    def __call__(self, value: Any) -> Any:
        self.missing = None
        return self._of(value, 0) if self._ours else fresh(value)

    def _of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is dict:
            if depth > _MAX_DEPTH:
                return self._lost("it is nested too deeply")
            mark = next(filter(lines.is_mark, value), None)
            if mark is not None:
                return self._mark(mark, value)
            return {lines.unescape_key(key): self._of(item, depth + 1) for key, item in value.items()}
        if kind is list:
            if depth > _MAX_DEPTH:
                return self._lost("it is nested too deeply")
            return [self._of(item, depth + 1) for item in value]
        return value

    def _mark(self, mark: str, value: dict[str, Any]) -> Any:
        if mark == "$blob" and "form" not in value:
            text = self._blob(value["$blob"])
            if text is not None:
                return text
        elif mark == "$float" and str(value["$float"]) in _FLOATS:
            return _FLOATS[str(value["$float"])]
        elif mark == "$bytes":
            coded = value["$bytes"]
            if type(coded) is dict and "$blob" in coded:  # they are many
                mark, coded = "$blob", self._blob(coded["$blob"])
            try:
                return binascii.a2b_base64(coded)
            except (ValueError, TypeError):
                pass
        return self._lost(_REASONS.get(mark, f"it holds a mark {mark} that is not known here"))

    def _lost(self, why: str) -> None:
        self.missing = self.missing or why


def placeholders(value: Any) -> int:
    """Return how many texts in a value hold a placeholder for a secret."""
    if isinstance(value, str):
        return int("<redacted:" in value)
    if isinstance(value, dict):
        return sum(map(placeholders, value.values()))
    return sum(map(placeholders, value)) if isinstance(value, list) else 0
