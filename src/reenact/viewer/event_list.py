"""Which events of a run are listed, found little by little in a large one, and in which rows they stand."""

from __future__ import annotations

import heapq
import re
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from .. import schema
from ..debugger.search import TextSearch
from ..recording.derived_events import Place
from ..recording.recording import Recording
from ..tracefile.events.event import Event, is_error


class Shown(NamedTuple):
    """Which events of a run are listed."""

    sort: str = ""
    """``errors``, ``tools``, ``model`` or "" for all."""
    lane: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return any(self)


_SORTS = {
    "tools": frozenset((schema.TOOL_CALLED, schema.TOOL_RESULT)),
    "model": frozenset((schema.MODEL_REQUEST, schema.MODEL_RESPONSE, schema.LLM_CALL)),
}


class Rows:
    """The rows of all events with the derived tools between them."""

    def __init__(self, recording: Recording, derived: Sequence[Place]) -> None:
        self._recording = recording
        self._derived = derived

    is_done = True
    seen = 0

    def __len__(self) -> int:
        return self._recording.count() + len(self._derived)

    def __getitem__(self, rows: slice) -> list[Place]:
        first, stop, _ = rows.indices(len(self))
        index = bisect_left(range(self._recording.count()), first, key=lambda at: self.row_of((at, 0)))
        at = bisect_left(self._derived, (index, 0))
        while at and self.row_of(self._derived[at - 1]) >= first:
            at -= 1
        found: list[Place] = []
        while len(found) < stop - first:
            if at < len(self._derived) and self._derived[at] < (index, 0):
                found.append(self._derived[at])
                at += 1
            else:
                found.append((index, 0))
                index += 1
        return found

    def row_of(self, place: Place) -> int:
        """Return the row of an event or a derived tool."""
        return place[0] + (place[1] > 0) + bisect_left(self._derived, place)


class Matches:
    """The events that fit a filter or a search, in the order they stand."""

    def __init__(self, recording: Recording, shown: Shown, derived: Sequence[Place] | None) -> None:
        """``derived`` are the places of derived tools, where they are known; None: they are looked for."""
        self._recording = recording
        self._shown = shown
        self._search = TextSearch(shown.text, is_fixed=True, flags=re.IGNORECASE) if shown.text else None
        self._found: list[Place] = []
        self._walk: Iterator[Place] | None = self._all(derived)
        self.seen = 0
        """Events that were looked at."""

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, rows: slice) -> Sequence[Place]:
        return self._found[rows]

    @property
    def is_done(self) -> bool:
        return self._walk is None

    def look(self, seconds: float) -> None:
        """Look for more, at most so long."""
        until = time.monotonic() + seconds
        while self._walk is not None and time.monotonic() < until:
            some = list(islice(self._walk, 64))
            self._found += [place for place in some if self._holds(self._recording.entries[place])]
            if len(some) < 64:
                self._walk, self.seen = None, self._recording.count()
            else:
                self.seen = some[-1][0]

    def row_of(self, place: Place) -> int:
        """Return the row of an entry, else of the next one that is listed."""
        return min(bisect_left(self._found, place), max(0, len(self._found) - 1))

    def _all(self, derived: Sequence[Place] | None) -> Iterator[Place]:
        recording = self._recording
        if derived is not None:
            return heapq.merge(((index, 0) for index in range(recording.count())), derived)
        if not recording.count():
            return iter(())
        return recording.entries.walk((0, -(1 << 30)), derived=recording.is_small)

    def _holds(self, event: Event) -> bool:
        shown = self._shown
        if shown.sort == "errors" and not is_error(event):
            return False
        if shown.sort in _SORTS and event.event_type not in _SORTS[shown.sort]:
            return False
        if shown.lane:
            where = self._recording.index.nearby(event.index or 0)
            if where is None or where[1] != shown.lane:
                return False
        return self._search is None or self._search(event)
