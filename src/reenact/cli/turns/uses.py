"""Tools as text: the call, what it gave, and results that compare equal."""

from __future__ import annotations

import json
from typing import Any

from ...wire.json_values import as_json, words
from ..text import arguments, plain

_WIDE = 2000


def call_text(name: str | None, args: object) -> str:
    """Return a tool with its arguments, like a call."""
    return f"{plain(name or '?', 60)}({arguments(args, _WIDE)})"


def canonical(text: str) -> str:
    """Return a result so that what a tool gave and what the model was told are equal if they say the same."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
    return value.strip() if type(value) is str else json.dumps(value, sort_keys=True)


def result_text(value: Any) -> str:
    """Return what a tool gave as the model was told it: the words of its parts, else JSON."""
    parts = value if type(value) is list else None
    if parts and all(type(part) is dict and words(part.get("text")) for part in parts):
        return "\n".join(words(part.get("text")) for part in parts)
    return value if type(value) is str else as_json(value)
