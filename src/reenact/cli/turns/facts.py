"""Numbers of turns and of the whole run: tokens, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable

from ...summary import Totals
from ...tracefile import dialects
from ...tracefile.calls import MODEL, Call, Turn


def tokens(calls: Iterable[Call]) -> Totals:
    """Return the tokens of the model calls that ended."""
    totals = Totals()
    for call in calls:
        if call.end is not None:
            totals.add(dialects.event_type(call.end.kind), call.end._raw())
    return totals


def spent_ms(turn: Turn) -> float | None:
    """Return how long the model took, all attempts together."""
    known = [call.duration_ms for call in turn.attempts if call.duration_ms is not None]
    return sum(known) if known else None


Interval = tuple[float, float]


def interval(call: Call) -> Interval | None:
    """Return when a call began and ended; None if that is not known."""
    end = call.end.timestamp if call.end is not None else None
    if end is not None and call.duration_ms is not None:
        begin: float | None = end - call.duration_ms / 1000
    else:
        begin = call.event.timestamp
    if begin is None or end is None or not 0 <= end - begin < 1e9:
        return None
    return begin, end


def time_spent(calls: Iterable[Call], started: float | None, ended: float | None) -> dict[str, float] | None:
    """Return the seconds with a model call under way, with a tool, and with neither.

    Calls that run at the same time are counted once; so the parts are parts of the clock's time.
    """
    if started is None or ended is None or not 0 <= ended - started < 1e9:
        return None
    sorts: dict[bool, list[Interval]] = {True: [], False: []}
    for call in calls:
        when = interval(call) if call.end is not None else _until_the_end(call, ended)
        if when is not None:
            sorts[call.kind == MODEL].append(when)
    model, busy = _covered(sorts[True]), _covered(sorts[True] + sorts[False])
    total = max(ended - started, busy)
    return {"model": model, "tools": _covered(sorts[False]), "elsewhere": total - busy}


def _until_the_end(call: Call, ended: float) -> Interval | None:
    """Return the time of a recorded call that the run died inside of."""
    begin = None if call.derived else call.event.timestamp
    return None if begin is None or begin > ended else (begin, ended)


def _covered(intervals: list[Interval]) -> float:
    covered, until = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        if end > until:
            covered += end - max(begin, until)
            until = end
    return covered
