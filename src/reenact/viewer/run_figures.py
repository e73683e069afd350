"""What only the whole file of a run shows: money, suspects, the tokens of its turns; read when in sight.

Kept in memory as long as the run does not change. Suspects are also kept in the user's cache, as for ``ls``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from ..debugger.story import bill_of, story_of
from ..debugger.suspects.marks import LOOKED_AT, Mark, is_small, marks_of
from ..money.ledger import Ledger
from ..money.prices import Bill
from ..recording.calls import tokens_of
from ..recording.listing import RunRow
from ..recording.recording import Recording
from ..stats.many_runs import collect

_WITH_TURNS = 1 << 20
_WITH_MONEY = 64 << 20
"""Bytes of a run up to which it is read for the tokens of its turns, or at least for its money."""


class Figures(NamedTuple):
    """What a row of the list shows once its run was read."""

    money: str = ""
    usd: float | None = None
    turns: tuple[tuple[int, bool], ...] = ()
    """The tokens of each turn, and whether it failed."""
    suspects: Mark | None = None
    """None: not looked for, because the run is running or large."""


class RunFigures:
    """The figures of the runs that were looked at."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[tuple[str, str | None], tuple[object, Figures]] = {}
        self._ledger = Ledger()

    def known(self, row: RunRow) -> Figures | None:
        """Return the figures of a run as it is now; None if nobody has looked yet."""
        state, found = self._found.get((row.path, row.id), (None, None))
        return found if state == _state(row) else None

    def look(self, rows: Sequence[RunRow], seconds: float) -> None:
        """Look at some of the runs that are not known, at most so long; the next call continues."""
        with self._lock:
            until = time.monotonic() + seconds
            unknown = [row for row in rows if self.known(row) is None]
            for begin in range(0, len(unknown), LOOKED_AT):
                some = unknown[begin : begin + LOOKED_AT]
                marks = marks_of(some)
                for row in some:
                    mark = marks.get(id(row))
                    if (mark is not None or not is_small(row)) and self.known(row) is None:
                        self._add(row, mark)
                    if time.monotonic() > until:
                        return

    def _add(self, row: RunRow, mark: Mark | None) -> None:
        try:
            if row.size <= _WITH_TURNS:
                self._keep(row, self._of_turns(row, mark))
            elif row.size <= _WITH_MONEY:
                self._of_file(row, mark)
        except Exception:  # a damaged run: its row says so already
            pass
        if self.known(row) is None:
            self._keep(row, Figures(suspects=mark))

    def _of_turns(self, row: RunRow, mark: Mark | None) -> Figures:
        story = story_of(Recording.load(row.path, row.id))
        turns = [block.turn for block in story.blocks if block.turn is not None]
        tokens = [tokens_of(turn.attempts) for turn in turns]
        sums = [each.tokens_in + each.tokens_out for each in tokens]
        failed = [turn.error is not None for turn in turns]
        return _figures(
            bill_of(story, self._ledger),
            tuple(zip(sums, failed, strict=True)) if story.is_whole else (),
            mark,
        )

    def _of_file(self, row: RunRow, mark: Mark | None) -> None:
        """Look at all runs of a file: one that many share is read once."""
        for each in collect([row.path]):
            found = _figures(each.cost, (), mark if each.id == row.id else None)
            self._found[row.path, each.id] = (row.size, each.ended, each.status), found

    def _keep(self, row: RunRow, found: Figures) -> None:
        self._found[row.path, row.id] = _state(row), found


def _state(row: RunRow) -> tuple[object, ...]:
    return row.size, row.ended, row.status


def _figures(bill: Bill | None, turns: tuple[tuple[int, bool], ...], mark: Mark | None) -> Figures:
    if bill is None or not bill.priced:
        return Figures(turns=turns, suspects=mark)
    return Figures(bill.text(), float(bill.usd), turns, mark)
