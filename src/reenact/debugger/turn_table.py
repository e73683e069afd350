"""The turns of a run as a table: where each begins, its lane, tokens, money and time; and the derived tools.

A run of any size is read part by part, each in a bounded time and memory, by whoever wants to show it; so
calls further apart than a part's margin are not joined. What was found of a large run is kept in the cache.
"""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from decimal import Decimal
from typing import Any, NamedTuple

from ..money.ledger import Ledger
from ..money.prices import Bill
from ..recording.calls import MODEL, Call, Joiner, join_calls, tokens_of
from ..recording.derived_events import MARGIN, Place, places_of
from ..recording.derived_tools import derived_tools
from ..recording.index import lane_name
from ..recording.recording import Recording
from ..tracefile import cache
from ..tracefile import status as states

_PART = 5 * MARGIN
"""Events that are read at once, with a margin on either side."""
_COLUMNS = (
    ("begin", "Q"),
    ("fresh", "Q"),
    ("cached", "Q"),
    ("out", "Q"),
    ("usd", "d"),
    ("ms", "d"),
    ("flags", "Q"),
)
_FAILED, _PRICED, _TIMED, _LANE = 1, 2, 4, 3
"""Bits of ``flags``; the number of the lane stands above them."""
_MAGIC = b"reenact turns 1\n"
_KEPT_FROM, _LARGEST = 2_000, 1 << 30
"""Events from which on a table is kept, and its most bytes."""


class TurnFigures(NamedTuple):
    """One turn: what it used, what it cost, how long it took."""

    number: int
    begin: int
    """The index of its request."""
    lane: str
    fresh: int
    """Tokens in that were not cached."""
    cached: int
    out: int
    usd: float | None
    ms: float | None
    failed: bool


class Bin(NamedTuple):
    """Some turns after another: their sums."""

    first: int
    last: int
    turns: int
    fresh: int
    cached: int
    out: int
    usd: float
    ms: float
    failed: bool


class TurnTable:
    """Grows with ``look`` until ``is_done``."""

    def __init__(self, recording: Recording, ledger: Ledger) -> None:
        self._recording = recording
        self._ledger = ledger
        self._columns: dict[str, array[Any]] = {name: array(kind) for name, kind in _COLUMNS}
        self.lanes: list[str] = []
        """In order of appearance."""
        self.derived: list[Place] = []
        """Where derived tools stand between the events."""
        self.bill = Bill()
        """What the calls cost that have ended so far."""
        self._seen = 0
        self._joiner = _Counted(self)
        self._open: dict[int, int] = {}
        """The rows of open calls, and the latest row of each lane of a writer."""
        self._latest: dict[tuple[str, str], int] = {}
        self._load()

    def __len__(self) -> int:
        return len(self._columns["begin"])

    def __getitem__(self, at: int) -> TurnFigures:
        begin, fresh, cached, out, usd, ms, flags = (column[at] for column in self._columns.values())
        return TurnFigures(
            range(len(self))[at] + 1, begin, self.lanes[flags >> _LANE], fresh, cached, out,
            usd if flags & _PRICED else None, ms if flags & _TIMED else None, bool(flags & _FAILED),
        )  # fmt: skip

    @property
    def is_done(self) -> bool:
        return self._seen >= self._recording.count()

    @property
    def share(self) -> float:
        """How much of the run was read, from 0 to 1."""
        return min(1.0, self._seen / max(1, self._recording.count()))

    def bins(self, first: int, last: int, most: int, lane: str | None = None) -> list[Bin]:
        """Return the turns ``first`` to ``last`` in at most so many groups of equal size; of one lane if it
        is named: groups in which it has no turn are left out."""
        step = -(-(last - first + 1) // most)
        groups = (range(at - 1, min(at - 1 + step, last)) for at in range(first, last + 1, step))
        found = [self._bin(group, lane) for group in groups]
        return [each for each in found if each.turns]

    def _bin(self, group: range, lane: str | None) -> Bin:
        columns = {name: column[group.start : group.stop] for name, column in self._columns.items()}
        flags = columns["flags"]
        if lane is not None and len(self.lanes) > 1:
            number = self.lanes.index(lane)
            own = [at for at, each in enumerate(flags) if each >> _LANE == number]
            columns = {
                name: array(column.typecode, (column[at] for at in own)) for name, column in columns.items()
            }
            group = range(group.start + own[0], group.start + own[-1] + 1) if own else group
        fresh, cached, out, usd, ms = (sum(columns[name]) for name in ("fresh", "cached", "out", "usd", "ms"))
        flags = columns["flags"]
        return Bin(
            group.start + 1,
            group.stop,
            len(flags),
            fresh,
            cached,
            out,
            usd,
            ms,
            any(each & _FAILED for each in flags),
        )

    def look(self, seconds: float) -> bool:
        """Read on, about so long; True if that was the rest."""
        until = time.monotonic() + seconds
        count, before = self._recording.count(), self._seen
        while self._seen < count and time.monotonic() < until:
            self._read(self._seen, min(self._seen + _PART, count))
        if before < self._seen == count:
            self._store()
        return self._seen == count

    def _read(self, begin: int, end: int) -> None:
        """Count the calls of some events, and find the derived tools between them."""
        margin = min(begin, MARGIN)
        events = list(self._recording.events[begin - margin : end + MARGIN])
        for event in events[margin : margin + end - begin]:
            self._joiner.feed(event, event.stored_fields)
        places = places_of(derived_tools(join_calls(events)))
        self.derived += [place for place in places if begin <= place[0] < end]
        self._seen = end

    def begin(self, call: Call) -> None:
        """Add the turn of a model call, unless the call is a retry."""
        where = call.event.writer, call.lane
        if call.attempt == 1 or where not in self._latest:
            lane = lane_name(call.lane, call.event.writer, self._recording.first_writer)
            if lane not in self.lanes:
                self.lanes.append(lane)
            self._latest[where] = len(self)
            row = (call.event.index or 0, 0, 0, 0, 0.0, 0.0, self.lanes.index(lane) << _LANE)
            for column, value in zip(self._columns.values(), row, strict=True):
                column.append(value)
        self._open[id(call)] = self._latest[where]

    def end(self, call: Call) -> None:
        """Add what an ended call used to its turn."""
        at, columns = self._open.pop(id(call), None), self._columns
        if at is None:
            return
        used, bill = tokens_of([call]), self._ledger.bill([call])
        columns["cached"][at] += used.cache_read
        columns["fresh"][at] += max(0, used.tokens_in - used.cache_read)
        columns["out"][at] += used.tokens_out
        columns["usd"][at] += float(bill.usd)
        columns["ms"][at] += call.duration_ms or 0.0
        self.bill += bill
        flags = (_PRICED if bill.priced else 0) | (0 if call.duration_ms is None else _TIMED)
        flags |= 0 if call.error is None else _FAILED  # that of the last attempt counts
        columns["flags"][at] = columns["flags"][at] & ~_FAILED | flags

    # kept in the cache ----------------------------------------------------------------------------

    def _store(self) -> None:
        state = self._state()
        if state is None:
            return
        parts = array("q", (number for place in self.derived for number in place))
        sums = [str(self.bill.reported), str(self.bill.estimated), self.bill.priced, self.bill.unknown]
        header = {"state": state, "rows": len(self), "lanes": self.lanes, "bill": sums}
        columns = [*self._columns.values(), parts]
        cache.store(self._entry, _MAGIC + json.dumps(header).encode() + b"\n", *columns)

    def _load(self) -> None:
        state = self._state()
        data = (cache.load(self._entry, _LARGEST) or b"") if state is not None else b""
        head, _, rest = data.removeprefix(_MAGIC).partition(b"\n")
        try:
            header = json.loads(head) if data.startswith(_MAGIC) else {}
            if header.get("state") != state:
                return
            width = 8 * header["rows"]
            found: dict[str, array[Any]] = {name: array(kind) for name, kind in _COLUMNS}
            for at, column in enumerate(found.values()):
                column.frombytes(rest[at * width : (at + 1) * width])
            pairs = array("q")
            pairs.frombytes(rest[len(found) * width :])
            lanes = [str(lane) for lane in header["lanes"]]
            if max(found["flags"], default=0) >> _LANE >= max(1, len(lanes)):
                return
            reported, estimated, priced, unknown = header["bill"]
            self.bill.reported, self.bill.estimated = Decimal(reported), Decimal(estimated)
            self.bill.priced, self.bill.unknown = int(priced), dict(unknown)
            self._columns, self.lanes = found, lanes
            self.derived = list(zip(pairs[::2], pairs[1::2], strict=True))
            self._seen = self._recording.count()
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
            return  # not one of ours, or of an earlier version

    def _state(self) -> object:
        """Return what tells whether a kept table fits; None where none is kept."""
        recording = self._recording
        if recording.count() < _KEPT_FROM or recording.status == states.RUNNING:
            return None
        paths = [source.path for source in recording.shelf.sources]
        try:
            found = [[os.path.getsize(path), os.stat(path).st_mtime_ns] for path in paths]
        except OSError:
            return None
        # prices change with the day, and with the user's own list
        return [recording.run_id, recording.count(), found, repr(self._ledger.book.dated), sys.byteorder]

    @property
    def _entry(self) -> str:
        return cache.name_of(f"{self._recording.path}\0{self._recording.run_id}", "turns")


class _Counted(Joiner):
    """Hands on the model calls of a table's run."""

    def __init__(self, table: TurnTable) -> None:
        super().__init__()
        self._table = table

    def began(self, call: Call) -> None:
        if call.kind == MODEL:
            self._table.begin(call)

    def ended(self, call: Call) -> None:
        if call.kind == MODEL:
            self._table.end(call)
