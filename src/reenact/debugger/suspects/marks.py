"""Which runs of a listing have a suspect: kept from an earlier look, else looked for within a moment.

A listing reads the ends of files only; suspects need the whole run. So a listing looks at the small runs on
its first screen, for a fifth of a second, and keeps what it found in the user's cache: the next has the rest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ... import _version
from ...recording.listing import RunRow
from ...tracefile import cache, status

if TYPE_CHECKING:
    from .suspect import Suspect  # it needs dataclasses, which take as long to load as all of a listing

_ENTRY = "suspects.marks"
_MOST_KEPT = 4000
_MOST_BYTES = 4 << 20
LOOKED_AT = 24
"""Runs of a listing that are looked at: a screen of them."""
_SMALL = 1 << 20
_PATIENCE_S = 0.2


class Mark(NamedTuple):
    """What a listing shows of a run's suspects."""

    number: int
    """How many ``show`` prints unasked."""
    first: str
    """The evidence of the first of them."""


def mark_of(found: Sequence[Suspect]) -> Mark:
    shown = [each for each in found if each.is_shown]
    return Mark(len(shown), shown[0].evidence[:200] if shown else "")


def marks_of(rows: Sequence[RunRow], progress: Callable[[str], None] | None = None) -> dict[int, Mark]:
    """Return the marks of rows by the ``id()`` of the row; of a run that nobody has looked at there is none.

    With ``progress``, which is called with how far it is, all runs are looked at, however long that takes.
    """
    kept = _load()
    found: dict[int, Mark] = {}
    fresh: dict[str, list[object]] = {}
    until = time.monotonic() + _PATIENCE_S
    for place, row in enumerate(rows):
        if row.id is None:
            continue
        known = kept.get(row.path + row.id)
        mark = None if known is None else _known(known, row)
        is_quick = place < LOOKED_AT and is_small(row) and time.monotonic() < until
        if mark is None and _has_ended(row) and (is_quick or progress is not None):
            if progress is not None:
                progress(f"{place + 1:,} of {len(rows):,} runs")
            mark = _look(row)
            fresh[row.path + row.id] = [row.size, row.ended, *mark]
        if mark is not None:
            found[id(row)] = mark
    if fresh:
        _store(kept | fresh)
    return found


def _known(value: object, row: RunRow) -> Mark | None:
    """Return a kept mark if it is about the run as it is now; a cache may hold anything."""
    if type(value) is not list or len(value) != 4 or value[:2] != [row.size, row.ended]:
        return None
    number, first = value[2:]
    return Mark(number, first) if type(number) is int and type(first) is str else None


def is_small(row: RunRow) -> bool:
    """True if a listing looks for the suspects of a run unasked."""
    return row.size <= _SMALL and _has_ended(row)


def _has_ended(row: RunRow) -> bool:
    return row.status not in (status.RUNNING, status.FOREIGN, status.UNREADABLE)


def _look(row: RunRow) -> Mark:
    from ...recording.recording import Recording
    from .search import suspects_of  # only where there is something to look for: a listing starts fast

    try:
        return mark_of(suspects_of(Recording.load(row.path, row.id)))
    except Exception:  # a damaged run: its row says so already
        return Mark(0, "")


def _load() -> dict[str, object]:
    try:
        saved = json.loads(cache.load(_ENTRY, _MOST_BYTES) or b"{}")
    except ValueError:
        return {}
    runs = saved.get("runs") if type(saved) is dict and saved.get("version") == _version.__version__ else None
    return runs if type(runs) is dict else {}


def _store(runs: dict[str, object]) -> None:
    newest = dict(list(runs.items())[-_MOST_KEPT:])
    saved = {"version": _version.__version__, "runs": newest}
    cache.store(_ENTRY, json.dumps(saved, separators=(",", ":")).encode())
