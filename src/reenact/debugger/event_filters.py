"""Which events match: by type, by equal fields, by a function or an expression."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .. import schema
from ..errors import UsageError
from ..tracefile.events.event import Event
from .expressions import Expr, field, truth

Where = Callable[[Event], Any] | str | None

_LACKS = (AttributeError, TypeError, LookupError, ValueError)
"""What a function raises that takes a missing field for granted."""


class Filter:
    """Decides event by event; a function that fails on an event does not match it."""

    def __init__(
        self,
        where: Where = None,
        event_type: str | Iterable[str] | None = None,
        equal: Mapping[str, Any] | None = None,
    ) -> None:
        self._where = _function(where)
        self._types = types_of(event_type)
        self._equal = dict(equal or {})
        self._looked_at = self._failed = 0
        self._why: Exception | None = None

    def __call__(self, event: Event) -> bool:
        if self._types is not None and not self._is_type(event):
            return False
        if any(field(event, name) != value for name, value in self._equal.items()):
            return False
        return self._where is None or self._holds(event, self._where)

    def over(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events that match; raises UsageError if the function failed on every one it saw."""
        found = False
        for event in events:
            if self(event):
                found = True
                yield event
        if not found and self._failed and self._failed == self._looked_at:
            kind = type(self._why).__name__
            raise UsageError(
                f"the where function failed on all {self._looked_at:,} events ({kind}: {self._why})",
                hint="a field that an event does not have is None",
            ) from self._why

    def _is_type(self, event: Event) -> bool:
        assert self._types is not None
        names = {event.kind, event.event_type}
        if event.kind == schema.TOOL_CALL:  # a finished one is both its beginning and its end
            names.add(schema.TOOL_CALLED)
        return any(name in names or _fits(names, name) for name in self._types)

    def _holds(self, event: Event, where: Callable[[Event], Any]) -> bool:
        self._looked_at += 1
        try:
            return truth(where(event))
        except _LACKS as why:
            self._failed += 1
            self._why = why
            return False


def _fits(names: set[str], pattern: str) -> bool:
    return "*" in pattern and any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _function(where: Where) -> Callable[[Event], Any] | None:
    if isinstance(where, str):
        return Expr(where)
    if where is not None and not callable(where):
        raise UsageError(f"where is a function or an expression, not {type(where).__name__}")
    return where


def types_of(event_type: object) -> tuple[str, ...] | None:
    """Return the wanted event types as a tuple; None for all."""
    if event_type is None:
        return None
    one = isinstance(event_type, str) or not isinstance(event_type, Iterable)
    types = [event_type] if one else list(event_type)  # type: ignore[call-overload]
    names = tuple(name for name in types if isinstance(name, str))
    if len(names) != len(types):
        raise UsageError("event_type is a name such as 'tool.result', or several of them")
    return names
