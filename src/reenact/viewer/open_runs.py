"""The runs that the viewer shows, kept open: which there are, what is known of each, and how they grow.

A recording is read by one thread at a time; each open run has its lock. A very large run is opened by its two
ends; then each request that asks for it does a little of what is left: ``OpenRun.work``.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
import time
from collections.abc import Generator
from threading import Lock

from ..debugger.run_findings import run_findings
from ..debugger.stepper import Stepper
from ..debugger.turn_table import TurnTable
from ..errors import NoSuchRun
from ..money.ledger import Ledger
from ..recording.derived_events import Place
from ..recording.event_addresses import failure_of
from ..recording.listing import Kept, RunRow, head_and_tail, list_runs
from ..recording.recording import Recording
from ..tracefile.columns import Offsets, counting, uncounted
from ..tracefile.events.event_text import address
from .event_list import Matches, Rows, Shown

_SLICE = 0.2
"""Seconds that one request may spend on looking through a run; the next one continues."""

_MOST_OPEN = 8
_MOST_FILTERS = 8


class OpenRun:
    """One run with a cursor; whoever uses it holds ``lock``."""

    def __init__(self, path: str, run: str | None) -> None:
        self.lock = Lock()
        self._run = run
        self._path = path
        self._index: Generator[float, None, dict[str, Offsets]] | None = None
        self._counted: dict[str, Offsets] = {}
        self.share = 1.0
        """How much of the index is there, from 0 to 1."""
        self._matches: dict[Shown, Matches] = {}
        self._table: TurnTable | None = None
        self._ledger = Ledger()
        self._findings: tuple[int, list[tuple[str, str]]] | None = None
        self._findings_lock = Lock()
        self.version = 0
        """Counts how often its rows have changed."""
        ends = Recording.load_ends(path, run)
        if ends is not None:
            self._index = _index(uncounted(path))
            self.share = 0.0
        self.stepper = Stepper(self._load if ends is None else lambda: ends)
        self.stepper.load = self._load

    def _load(self) -> Recording:
        recording = Recording.load(self._path, self._run, counted=self._counted)
        self._counted = {}
        self._run = self._run or recording.run_id
        recording.entries.stays_near = not recording.is_small
        return recording

    @property
    def recording(self) -> Recording:
        return self.stepper.recording

    @property
    def is_indexed(self) -> bool:
        """False while only the two ends of the run have been read."""
        return self._index is None

    def refresh(self) -> bool:
        """Read the file again if it has changed; True if that was done."""
        before = self.recording
        if self.is_indexed:
            self.stepper.refresh()
        if self.recording is before:
            return False
        self._changed()
        self._table = None
        return True

    def _changed(self) -> None:
        self._matches.clear()
        self.version += 1

    # what takes a while, bit by bit ---------------------------------------------------------------

    def work(self) -> None:
        """Do a little of what is left: the index of a very large run, then the figures of its turns."""
        if self._index is not None:
            self._count(self._index)
        elif not self.table.is_done and self.table.look(_SLICE) and self.table.derived:
            self._changed()

    def _count(self, index: Generator[float, None, dict[str, Offsets]]) -> None:
        until = time.monotonic() + _SLICE
        try:
            while time.monotonic() < until:
                self.share = next(index)
        except StopIteration as end:
            self._index, self._counted, self.share = None, end.value, 1.0
            self.stepper.reload()
            self._changed()

    @property
    def table(self) -> TurnTable:
        """The turns as far as they were looked at."""
        if self._table is None:
            self._table = TurnTable(self.recording, self._ledger)
        return self._table

    def findings(self) -> list[tuple[str, str]]:
        """Return the suspects. This takes a while and reads the file for itself: hold no lock."""
        with self._findings_lock:
            version = self.version
            if self._findings is None or self._findings[0] != version:
                own = None if self.is_indexed else Recording.load_ends(self._path, self._run)
                self._findings = version, run_findings(own or Recording.load(self._path, self._run))
            return self._findings[1]

    # the list -------------------------------------------------------------------------------------

    def listed(self, shown: Shown) -> Rows | Matches:
        """Return the list of some events, a little longer than before if it is not complete."""
        is_small, derived = self.recording.is_small, None
        if not is_small and self.is_indexed and self.table.is_done:
            derived = self.table.derived
        if not shown and not is_small:
            return Rows(self.recording, derived or [])
        found = self._matches.get(shown)
        if found is None:
            while len(self._matches) >= _MOST_FILTERS:
                del self._matches[next(iter(self._matches))]
            found = self._matches[shown] = Matches(self.recording, shown, derived)
        if self.is_indexed:  # without a filter every row is needed to tell where an event stands
            found.look(_SLICE if shown else math.inf)
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


def _index(paths: list[str]) -> Generator[float, None, dict[str, Offsets]]:
    """Count the lines of files in small steps; each yields how much is done, from 0 to 1."""
    total, done = 2 * sum(map(os.path.getsize, paths)), 0  # read twice: for lines, for the recorder's own
    found: dict[str, Offsets] = {}
    for path in paths:
        steps = counting(path)
        while True:
            try:
                done += next(steps)
            except StopIteration as end:
                found[path] = end.value
                break
            yield min(1.0, done / max(1, total))
    return found


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
