"""The flat listing: one line per event, a heading before each turn; of a long run the two ends only."""

from __future__ import annotations

from collections.abc import Iterable

from ... import schema
from ...recording.recording import Recording
from ...tracefile.event import Event
from ...tracefile.line_heads import is_turn_begin
from ..output import Output
from .ending import first_writer
from .event_line import event_lines
from .selection import Block

FIRST, LAST = 20, 40
"""Of a long run: how it set out, and what led to its end."""


def show_events(recording: Recording, out: Output, *, everything: bool) -> None:
    """Write a line per event."""
    lines = recording.lines
    if everything or len(lines) <= FIRST + LAST + 2:
        print_events(lines, 0, recording, out)
        return
    print_events(lines[:FIRST], 0, recording, out)
    hidden = len(lines) - FIRST - LAST
    out.line(out.paint(f"       … {hidden:,} more events; --all shows them, --turn N one turn", "yellow"))
    last = list(lines[-LAST:])
    before = recording.tot["turns"] - sum(map(is_turn_begin, last))
    print_events(last, max(before, 0), recording, out)


def print_events(events: Iterable[Event], turn: int, recording: Recording, out: Output) -> None:
    """Write the events, a heading before each turn; ``turn`` is the one that was going on before."""
    root, started = first_writer(recording), recording.started
    numbers, shown = TurnNumbers(turn), -1
    for event in events:
        number = numbers.of(event)
        if event.kind in (schema.RUN_START, schema.RUN_END, schema.RUN_MORE):
            continue
        if number != shown and number:
            shown = number
            out.line(out.paint(f"turn {number}", "bold"))
        for line in event_lines(event, out, root=root, started=started):
            out.line(line)


class TurnNumbers:
    """Which turn an event belongs to, told from the events before it."""

    def __init__(self, turn: int) -> None:
        self._turn = turn
        self._by_call: dict[str, int] = {}

    def of(self, event: Event) -> int:
        fields = event.stored_fields
        if is_turn_begin(event):
            self._turn += 1
            self._note(fields.get("call"), self._turn)
            return self._turn
        # Turns of several lanes may be interleaved; a call goes where its request or parent went.
        known = self._by_call.get(str(fields.get("parent"))) or self._by_call.get(str(fields.get("call")))
        if known is not None:
            self._note(fields.get("call"), known)
        return known or self._turn

    def _note(self, call: object, turn: int) -> None:
        if type(call) is str:
            self._by_call[call] = turn
            if len(self._by_call) > 10_000:
                del self._by_call[next(iter(self._by_call))]


def events_of(block: Block, recording: Recording) -> list[Event]:
    """Return the events of one turn in order."""
    assert block.turn is not None
    calls = [*block.turn.attempts, *(item for item in block.items if not isinstance(item, int))]
    found = {event.index: event for call in calls for event in (call.begin, call.end) if event is not None}
    found |= {item: recording.events[item] for item in block.items if isinstance(item, int)}
    return [event for _, event in sorted(found.items(), key=lambda pair: pair[0] or 0)]
