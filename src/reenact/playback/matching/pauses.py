"""How long an agent did nothing before it made a call: a timer of its own, which takes as long again."""

from __future__ import annotations

from collections.abc import Iterable

from .tape import NEVER, RecordedCall


def pauses(calls: Iterable[RecordedCall]) -> dict[int, float]:
    """Return the seconds in which nothing began or ended before each call, by its number."""
    marks: list[tuple[float, float, int | None]] = []
    for call in calls:
        marks.append((call.begin, call.event.timestamp or 0.0, call.number))
        if NEVER not in (call.end, call.ended_at):
            marks.append((call.end, call.ended_at, None))
    found: dict[int, float] = {}
    before = None
    for _, when, number in sorted(marks, key=lambda mark: mark[0]):
        if number is not None:
            found[number] = 0.0 if before is None else max(when - before, 0.0)
        before = when
    return found
