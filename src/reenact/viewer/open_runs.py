"""The runs that the viewer shows, kept open: which there are, their rows, and how they grow.

A recording is read by one thread at a time; each open run has its lock.
"""

from __future__ import annotations

import hashlib
import operator
import os
import re
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from threading import Lock
from typing import NamedTuple

from .. import schema
from ..debugger.search import TextSearch
from ..debugger.stepper import Stepper
from ..errors import NoSuchRun
from ..recording.derived_events import Place
from ..recording.event_addresses import failure_of
from ..recording.listing import Kept, RunRow, head_and_tail, list_runs
from ..recording.recording import Recording
from ..tracefile.events.event import Event, is_error
from ..tracefile.events.event_text import address

_SLICE = 0.2
"""Seconds that one request may spend on looking through a run; the next one continues."""

_MOST_OPEN = 8
_MOST_FILTERS = 8


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


class Listed:
    """The places of the events that are listed, found little by little in a large run."""

    def __init__(self, recording: Recording, shown: Shown) -> None:
        self._recording = recording
        self._shown = shown
        self._search = TextSearch(shown.text, is_fixed=True, flags=re.IGNORECASE) if shown.text else None
        self._found: list[Place] = []
        self._walk: Iterator[Place] | None = self._all()
        self.seen = 0
        """Events that were looked at."""
        self._is_plain = not shown and not recording.is_small
        """True if a row is an event: in a large run derived tools stand in the card of their carrier."""

    def __len__(self) -> int:
        return self._recording.count() if self._is_plain else len(self._found)

    def __getitem__(self, rows: slice) -> Sequence[Place]:
        if self._is_plain:
            return [(index, 0) for index in range(self._recording.count())[rows]]
        return self._found[rows]

    @property
    def is_done(self) -> bool:
        return self._walk is None or self._is_plain

    def look(self, seconds: float) -> None:
        """Look for more, at most so long."""
        if self.is_done:
            return
        assert self._walk is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            some = list(islice(self._walk, 64))
            self._found += [place for place in some if self._holds(self._recording.entries[place])]
            if len(some) < 64:
                self._walk, self.seen = None, self._recording.count()
                return
            self.seen = some[-1][0]

    def row_of(self, place: Place) -> int:
        """Return the row of an entry, else of the next one that is listed."""
        if self._is_plain:
            return min(place[0], max(0, len(self) - 1))
        return min(bisect_left(self._found, place), max(0, len(self._found) - 1))

    def _all(self) -> Iterator[Place]:
        recording = self._recording
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


class OpenRun:
    """One run with a cursor; whoever uses it holds ``lock``."""

    def __init__(self, path: str, run: str | None) -> None:
        self.lock = Lock()
        self._run = run
        self._path = path
        self.stepper = Stepper(self._load)
        self._lists: dict[Shown, Listed] = {}
        self.version = 0
        """Counts how often the file was read again."""

    def _load(self) -> Recording:
        recording = Recording.load(self._path, self._run)
        self._run = self._run or recording.run_id
        return recording

    @property
    def recording(self) -> Recording:
        return self.stepper.recording

    def refresh(self) -> bool:
        """Read the file again if it has changed; True if that was done."""
        before = self.recording
        self.stepper.refresh()
        if self.recording is before:
            return False
        self._lists.clear()
        self.version += 1
        return True

    def listed(self, shown: Shown) -> Listed:
        """Return the list of some events, a little longer than before if it is not complete."""
        found = self._lists.get(shown)
        if found is None:
            while len(self._lists) >= _MOST_FILTERS:
                del self._lists[next(iter(self._lists))]
            found = self._lists[shown] = Listed(self.recording, shown)
        found.look(_SLICE)
        return found

    def address(self, place: Place) -> str:
        """Return the address of an entry."""
        return address(self.recording.entries[place], self.recording.first_writer)

    @property
    def opens_at(self) -> str:
        """The address to open at: the failure, else the first event; "" if there is no event."""
        failure = failure_of(self.recording)
        if failure is not None and failure.index is not None:
            return address(failure, self.recording.first_writer)
        return self.address((0, 0)) if self.recording.count() else ""


class Runs:
    """The runs of one place, a folder or a file, and those that are open."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._lock = Lock()
        self._listing = Lock()
        self._rows: list[RunRow] = []
        self._good_until = 0.0
        self._kept: Kept = {}
        self._keys: dict[tuple[str, str | None], str] = {}
        self._known: dict[str, tuple[str, str | None]] = {}
        self._open: dict[str, OpenRun] = {}

    def rows(self) -> list[RunRow]:
        """Return the runs there are now, the newest first; the same list as long as none has changed.

        Files that did not change are not read again. Looking for changes takes a while in a folder of very
        many runs, so a list is used for five times as long as it took.
        """
        with self._listing:
            begin = time.monotonic()
            if begin < self._good_until:
                return self._rows
            is_folder = os.path.isdir(self.place)
            rows = list_runs(self.place, self._kept) if is_folder else head_and_tail(self.place)
            for row in rows:
                if (row.path, row.id) not in self._keys:
                    self._keys[row.path, row.id] = key = _key_of(row)
                    self._known[key] = row.path, row.id
            rows.reverse()
            if len(rows) != len(self._rows) or not all(map(operator.is_, rows, self._rows)):
                self._rows = rows
            now = time.monotonic()
            self._good_until = now + 5 * (now - begin)
            return self._rows

    def key_of(self, row: RunRow) -> str:
        """Return what names a run in an address of the viewer; it says nothing about where the file is."""
        return self._keys[row.path, row.id]

    def open(self, key: str) -> OpenRun:
        """Return an open run by its key; only runs of this place have one."""
        if key not in self._known:
            self.rows()
        if key not in self._known:
            raise NoSuchRun(
                "no run is at this address", asked=key, hint="the list of runs has those there are"
            )
        with self._lock:
            found = self._open.get(key)
            if found is None:
                found = OpenRun(*self._known[key])
                while len(self._open) >= _MOST_OPEN:
                    del self._open[next(iter(self._open))]
                self._open[key] = found
            return found

    def signature(self) -> tuple[object, ...]:
        """Return what changes when a run is added, grows or ends."""
        return tuple([(row.path, row.id, row.size, row.ended, row.status) for row in self.rows()])


def _key_of(row: RunRow) -> str:
    return hashlib.blake2b(f"{os.path.abspath(row.path)}\0{row.id}".encode(), digest_size=8).hexdigest()
