"""StepSession: a cursor over the events of a run, both ways; looking never moves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import ReenactError
from ..recording.recording import Recording
from ..tracefile.events.event import Event
from .event_filters import Filter, Where
from .expressions import as_text
from .search import regex


class StepSession:
    """Steps through a recording. What is not possible moves nothing and returns None, with a ``message``."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._events: Sequence[Event] = recording.events
        self._next = 0
        self._current: int | None = None
        self.message: str | None = None
        """Why the last call returned None; None if it returned an event."""

    @property
    def position(self) -> int:
        """The index of the event that ``next()`` returns."""
        return self._next

    @property
    def current(self) -> Event | None:
        """The event returned last; None at the start, past either end and after a jump."""
        return None if self._current is None else self._events[self._current]

    def __len__(self) -> int:
        return len(self._events)

    def next(self) -> Event | None:
        """Return the next event and move behind it; None at the end."""
        return self._to(self._next)

    def back(self) -> Event | None:
        """Return the event before the one returned last; None at the beginning."""
        return self._to(self._next - (1 if self._current is None else 2))

    def jump(self, to: int | str | Event) -> Event | None:
        """Make ``next()`` return the event with this index (-1: the last), at this address, or this event.

        Returns that event without moving behind it. An index outside the run goes to the nearer end.
        """
        index = self._index(to)
        if index is None:
            return None
        self._next, self._current = min(max(index, 0), len(self)), None
        return self.peek()

    def peek(self, ahead: int = 1) -> Event | None:
        """Return the event that ``next()`` would return, or one further on or (below 1) back; stays here."""
        index = self._next + ahead - 1
        self.message = None if 0 <= index < len(self) else "there is no event there"
        return self._events[index] if self.message is None else None

    def find(
        self,
        what: Callable[[Event], Any] | str | None = None,
        *,
        event_type: str | Iterable[str] | None = None,
        back: bool = False,
        **equal: Any,
    ) -> Event | None:
        """Return the next (or previous) event that matches, and move behind it; None moves nothing.

        ``what`` is a function, or text: a regular expression searched for in the whole event.
        """
        try:
            wanted = Filter(_in_text(what) if isinstance(what, str) else what, event_type, equal)
            here = self._next - (1 if self._current is None else 2)
            indices = range(here, -1, -1) if back else range(self._next, len(self))
            found = next(wanted.over(self._events[index] for index in indices), None)
        except ReenactError as why:
            self.message = str(why)
            return None
        if found is None or found.index is None:
            self.message = "no event before this one matches" if back else "no further event matches"
            return None
        return self._to(found.index)

    def _to(self, index: int) -> Event | None:
        if 0 <= index < len(self):
            self._next, self._current, self.message = index + 1, index, None
            return self._events[index]
        self._next, self._current = (0 if index < 0 else len(self)), None
        self.message = "beginning of the trace" if index < 0 else "end of the trace"
        return None

    def _index(self, to: object) -> int | None:
        if isinstance(to, Event):
            to = to.index
        if isinstance(to, str) and to.isascii() and to.strip().removeprefix("-").isdecimal():
            to = int(to[:20])
        elif isinstance(to, str):
            try:
                to = self._recording.event(to).index
            except ReenactError as why:
                self.message = str(why)
                return None
        if type(to) is not int:
            self.message = f"{to!r} is not an index, address or event"
            return None
        return to + len(self) if to < 0 else to

    def __repr__(self) -> str:
        return f"<StepSession at {self._next} of {len(self)}>"


def _in_text(pattern: str) -> Where:
    found = regex(pattern)
    return lambda event: found.search(event.summary()) or found.search(as_text(event.payload))
