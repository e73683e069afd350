"""The flat listing: one line per event, a heading before each turn; of a long run the two ends only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ... import schema
from ...recording.recording import Recording
from ...tracefile.event import Event
from ..output import Output
from .event_line import event_lines
from .selection import Block

FIRST, LAST = 20, 40
"""Of a long run: how it set out, and what led to its end."""


def show_events(recording: Recording, out: Output, *, everything: bool) -> None:
    """Write a line per event."""
    lines = recording.lines
    if everything or len(lines) <= FIRST + LAST + 2:
        print_events(lines, recording, out)
        return
    print_events(lines[:FIRST], recording, out)
    hidden = len(lines) - FIRST - LAST
    out.line(out.paint(f"       … {hidden:,} more events; --all shows them, --turn N one turn", "yellow"))
    print_events(lines[-LAST:], recording, out)


def print_events(events: Iterable[Event], recording: Recording, out: Output) -> None:
    """Write the events, a heading before each turn."""
    root, started = recording.first_writer, recording.started
    shown = -1
    for event, number in with_turns(events, recording):
        if event.kind in (schema.RUN_START, schema.RUN_END, schema.RUN_MORE):
            continue
        if number != shown and number:
            shown = number
            out.line(out.paint(f"turn {number}", "bold"))
        for line in event_lines(event, out, root=root, started=started):
            out.line(line)


def with_turns(events: Iterable[Event], recording: Recording) -> Iterator[tuple[Event, int]]:
    """Yield events, each with the number of its turn; bookkeeping has the latest turn so far."""
    latest = 0
    for event in events:
        number = latest if event.index is None else recording.index.turn_number(event)
        latest = max(latest, number)
        yield event, number


def events_of(block: Block, recording: Recording) -> list[Event]:
    """Return the events of one turn in order."""
    assert block.turn is not None
    calls = [*block.turn.attempts, *(item for item in block.items if not isinstance(item, int))]
    found = {event.index: event for call in calls for event in (call.begin, call.end) if event is not None}
    found |= {item: recording.events[item] for item in block.items if isinstance(item, int)}
    return [event for _, event in sorted(found.items(), key=lambda pair: pair[0] or 0)]
