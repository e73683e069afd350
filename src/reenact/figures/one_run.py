"""The figures of a recording that is open: the same sums as over many runs, of all of it or of a part."""

from __future__ import annotations

from collections.abc import Iterable

from ..tracefile.event import Event
from ..tracefile.recording import Recording
from .gather import Gatherer
from .rows import RunStats


def stats_of(recording: Recording, events: Iterable[Event] | None = None) -> RunStats:
    """Sum up a run, or only these events of it."""
    from ..money.prices import Book

    gatherer = Gatherer(recording.path, recording.run_id, Book.open())
    gatherer.root = next(iter(recording.writers), None)
    for event in recording.lines if events is None else events:
        gatherer.take(event)
    return gatherer.finish(len(recording.findings), is_whole=events is None)
