"""Watches: an expression, and the events at which its value changes.

An event that lacks what is watched changes nothing. So the places of change are the same whichever way
one comes from, and going back over one and forward again ends at the same event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..tracefile.event import Event
from .expr import Expr

Progress = Callable[[int, int], None]
"""Told how many of how many events were looked at."""


class Change(NamedTuple):
    """An event at which a value is not what it was before."""

    at: int
    """Its index."""
    old: Any
    new: Any


class Watch:
    """An expression that is watched."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.expr = Expr(text)
        self.text = self.expr.text
        self.enabled = True
        self.hits = 0

    def after(self, events: Sequence[Event], index: int, progress: Progress) -> Change | None:
        """Return the first change after an event."""
        return change_after(events, self.expr, index, progress)

    def before(self, events: Sequence[Event], index: int, progress: Progress) -> Change | None:
        """Return the last change before an event."""
        return change_before(events, self.expr, index, progress)


def change_after(events: Sequence[Event], expr: Expr, index: int, progress: Progress) -> Change | None:
    """Return the first event after ``index`` at which the value changes."""
    old, known = None, False
    for at in range(index + 1, len(events)):
        progress(at, len(events))
        new = expr(events[at])
        if new is None:
            continue
        if not known:
            old, known = _value_at(events, expr, index, progress), True
        if new != old:
            return Change(at, old, new)
        old = new
    return None


def change_before(events: Sequence[Event], expr: Expr, index: int, progress: Progress) -> Change | None:
    """Return the last event before ``index`` at which the value changes."""
    later: tuple[int, Any] | None = None
    for at in range(index - 1, -1, -1):
        progress(index - at, len(events))
        value = expr(events[at])
        if value is None:
            continue
        if later is not None and later[1] != value:
            return Change(later[0], value, later[1])
        later = at, value
    return None if later is None else Change(later[0], None, later[1])


def _value_at(events: Sequence[Event], expr: Expr, index: int, progress: Progress) -> Any:
    for at in range(index, -1, -1):
        progress(index - at, len(events))
        value = expr(events[at])
        if value is not None:
            return value
    return None
