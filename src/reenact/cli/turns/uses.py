"""Tools: what an answer asked for, which of it was called, and results that compare equal."""

from __future__ import annotations

import json
from typing import Any

from ...tracefile.calls import Turn
from ...tracefile.event import Event
from ...wire import shapes
from ...wire.values import string
from ..text import arguments, plain
from .pieces import opened

Use = tuple[str | None, str, object]
"""Id, name and arguments."""

_WIDE = 2000


def uncalled(end: Event, turn: Turn) -> list[Use]:
    """Return the tools an answer asked for of which no call was recorded."""
    fields = end._raw()
    body = fields.get("body")
    if type(body) is not dict:
        return []
    uses = shapes.tool_uses(opened(end, body), string(fields.get("provider")))
    ids = [string(call.event._raw().get("tool_id")) for call in turn.tools]
    names = [call.tool for call, given in zip(turn.tools, ids, strict=True) if given is None]
    left = []
    for use in uses:
        if use[0] is not None and use[0] in ids:
            continue
        if use[1] in names:  # whoever recorded the call did not know the id
            names.remove(use[1])
        else:
            left.append(use)
    return left


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
