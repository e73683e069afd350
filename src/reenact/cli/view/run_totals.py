"""Numbers of turns and of the whole run: tokens, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...money.ledger import Ledger
from ...money.prices import Bill, money
from ...recording.calls import MODEL, Call, Turn
from ...recording.recording import Recording
from ...tracefile.text import count, cut, milliseconds, plain
from ..output import Output
from .selection import Story


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


# The last lines of ``show``: counts, money with where its prices come from, where the time went.


def bill_of(story: Story, ledger: Ledger) -> Bill | None:
    """Return what a run cost; None if it had no model call or was not read whole."""
    if not story.is_whole or not any(call.kind == MODEL for call in story.calls):
        return None
    return ledger.bill(story.calls)


def show_totals(recording: Recording, story: Story, bill: Bill | None, out: Output) -> None:
    """Write the sums of a run; those that need all of it only where all of it was read."""
    tot = recording.tot
    parts = [count(tot["turns"], "turn"), count(recording.count(), "event")]
    if tot["in"] or tot["out"]:
        cached = recording.totals.cache_read if story.is_whole else 0
        read = f", {cached:,} cached" if cached else ""
        parts.append(f"{tot['in'] + tot['out']:,} tokens ({tot['in']:,} in, {tot['out']:,} out{read})")
    parts.append(count(tot["err"], "error"))
    if len(recording.writers) > 1:
        parts.append(count(len(recording.writers), "writer"))
    _show_parts(parts, out)
    if bill is not None:
        _show_cost(bill, out)
    if story.is_whole:
        _show_time(recording, story, out)
    elif tot["turns"]:
        out.paragraph(
            [("cost  ", "bold"), ("not summed up in a run of this size: ask `reenact stats`", "dim")]
        )
    end = recording.end
    lost = end.dropped if end is not None else None
    if type(lost) is int and lost > 0:
        out.line(out.paint(f"{count(lost, 'event')} could not be recorded", "red"))


def _show_parts(parts: list[str], out: Output) -> None:
    line = parts[0]
    for part in parts[1:]:
        if len(line) + 2 + len(part) > out.width:
            out.line(out.paint(line, "bold"))
            line = part
        else:
            line += "  " + part
    out.line(out.paint(cut(line, out.width), "bold"))


def _show_cost(bill: Bill, out: Output) -> None:
    if not bill.priced and not bill.unknown:
        return

    text = bill.text()
    if bill.estimated:
        reported = f" ({money(bill.reported)} as the provider says)" if bill.reported else ""
        text += f", estimated{reported}; prices: {plain(bill.source, 100)}"
    elif bill.reported:
        text += ", as the provider says"
    why = [f"{plain(why, 80)} ({count(calls, 'call')})" for why, calls in list(bill.unknown.items())[:4]]
    if why:
        text += ("; unknown: " if bill.priced else ": ") + ", ".join(why)
    out.paragraph([("cost  ", "bold"), (text, "")])


def _show_time(recording: Recording, story: Story, out: Output) -> None:
    spent = time_spent(story.calls, recording.started, recording.ended)
    if spent is None or not story.calls:
        return
    parts = [f"{name} {milliseconds(value * 1000)}" for name, value in spent.items() if value > 0]
    out.paragraph([("time  ", "bold"), (", ".join(parts) or "none that was measured", "")])


def totals_dict(recording: Recording, story: Story | None, ledger: Ledger) -> dict[str, Any]:
    """Return money and time for ``--json``; null where the run was too large to be read whole."""
    if story is None or not story.is_whole:
        return {"money": None, "time": None}
    spent, bill = time_spent(story.calls, recording.started, recording.ended), bill_of(story, ledger)
    return {"money": bill.as_dict() if bill is not None else None, "time": spent}
