"""The lines of one run: its events fetched by number or all in one pass, its first and last line, its sums.

The lower half of ``Recording``, and all of it that listing runs needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import intern
from typing import Any, overload

from .. import lines, schema
from ..errors import NotIndexed
from ..totals import Totals
from ..tracefile import dialects
from ..tracefile.columns import Execution
from ..tracefile.dialects import OURS, Envelope
from ..tracefile.events.event import Event
from ..tracefile.events.event_source import PLACE_BITS, Shelf
from ..tracefile.file_ends import tail_totals
from ..tracefile.findings import Finding, Findings
from ..tracefile.light_lines import links_and_sums
from ..tracefile.records import MAX_LINE, parse
from ..tracefile.status import status_of

_OFFSET = (1 << PLACE_BITS) - 1


class RunLines:
    """One run's lines. ``events`` leaves bookkeeping out; ``lines`` has it."""

    def __init__(self, path: str, shelf: Shelf, execution: Execution, findings: Findings) -> None:
        self.path = path
        self.findings: list[Finding] = findings
        self.shelf = shelf
        self.execution = execution
        """Where its lines stand in the files."""
        self._ends: tuple[Event | None, Event | None] | None = None

    @property
    def events(self) -> Events:
        """The events by index, fetched when needed."""
        return Events(self, range(self.execution.count()))

    @property
    def lines(self) -> Events:
        """The same with the recorder's own bookkeeping."""
        return Events(self, range(self.execution.count(system=True)), system=True)

    def count(self, *, system: bool = False) -> int:
        return self.execution.count(system=system)

    @property
    def run_id(self) -> str | None:
        return self.execution.run

    @property
    def status(self) -> str:
        start, end = self.start, self.end
        return status_of(
            start.stored_fields if start is not None else None,
            end.stored_fields if end is not None else None,
            start.timestamp if start is not None else None,
        )

    @property
    def start(self) -> Event | None:
        """The ``run.start`` event; None if lost or never written."""
        return self._start_and_end()[0]

    @property
    def end(self) -> Event | None:
        """The ``run.end`` event; None if the run was killed or is still running."""
        return self._start_and_end()[1]

    def _start_and_end(self) -> tuple[Event | None, Event | None]:
        if self._ends is None:
            start = end = None
            for event in map(self.event_at, self.execution.book):
                if event.kind == schema.RUN_START and start is None and event.run_id == self.run_id:
                    start = event
                elif event.kind == schema.RUN_END and self.execution.root in (None, event.writer):
                    end = event
            self._ends = start, end
        return self._ends

    @property
    def started(self) -> float | None:
        return self.lines[0].timestamp if self.count(system=True) else None

    @property
    def ended(self) -> float | None:
        """The time of the last line there is."""
        return self.lines[-1].timestamp if self.count(system=True) else None

    @property
    def writers(self) -> list[str]:
        """The recorders that took part, the first one first."""
        names, root = list(self.execution.writers), self.execution.root
        return [root, *(name for name in names if name != root)] if root is not None else names

    @property
    def first_writer(self) -> str | None:
        """The writer that began the run; None for a file without any event."""
        return next(iter(self.writers), None)

    @property
    def totals(self) -> Totals:
        """Exact sums over all events; for a large file this reads all of it once."""
        if self.execution.totals is None:
            self.execution.totals = _totals(self) if self.execution.is_gapless else Totals()
        return self.execution.totals

    @property
    def tot(self) -> dict[str, int]:
        """``turns in out err`` as the writers summed them up: the same sums without reading all."""
        if self.execution.totals is not None or not self.execution.places:
            return (self.execution.totals or Totals()).as_tot()
        last = self.execution.places[-1] >> PLACE_BITS
        return (tail_totals(self.shelf.sources[last].path, only=last == 0) or self.totals).as_tot()

    def event_at(self, position: int) -> Event:
        place = self.execution.places[position]
        if position in self.execution.unread:
            raise NotIndexed("this part of the run is still being indexed")
        source = self.shelf.sources[place >> PLACE_BITS]
        index = self.execution.late_index(position)
        fields = None
        head = lines.peek(source.head(place & _OFFSET))
        if head is not None:
            return Event(Envelope(*head, OURS), None, place, self.shelf, index)
        got = source.fields(place & _OFFSET)
        envelope = dialects.recognise(got[0]) if got is not None else None
        if envelope is None:
            self.shelf.note("unreadable", "an event can no longer be read", byte=place & _OFFSET)
            envelope = Envelope(None, self.run_id, "", None, "unreadable", OURS)
        elif got is not None:
            fields = got[0]
        return Event(envelope._replace(step=self.execution.steps[position]), fields, place, self.shelf, index)


class Events(Sequence[Event]):
    """A view on a recording's events; slices are views too."""

    def __init__(self, run: RunLines, numbers: range, *, system: bool = False) -> None:
        self._run = run
        self._numbers = numbers
        self._system = system

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Events: ...
    def __getitem__(self, index: int | slice) -> Event | Events:
        if isinstance(index, slice):
            return Events(self._run, self._numbers[index], system=self._system)
        number = self._numbers[index]
        position = number if self._system else self._run.execution.position(number)
        return self._run.event_at(position)

    def __iter__(self) -> Iterator[Event]:
        for number in range(len(self)):
            yield self[number]


# Going once through all lines of a large recording. Only what links and sums need is parsed, found by the
# spelling of our lines; any other line is parsed whole.

_BLOCK = 1 << 20
_FINISHED = (b'"output"', b'"error"', b'"duration_ms"', b"\\u00")

Seen = tuple[int, "re.Match[bytes] | None", bytes]
"""An event's position, its head (ts, step, kind) if it is as the recorder writes it, and its line."""


def each_line(recording: RunLines, positions: Iterable[int] | None = None) -> Iterator[Seen]:
    """Yield every line of a recording in order, read in blocks; or those at some positions, in order."""
    run, writer = recording.run_id or "", next(iter(recording.writers), "")
    head = lines.heads(rb'([^"\\]*)', run, writer)
    block, at, number = b"", 0, -1
    places = recording.execution.places
    for position in range(len(places)) if positions is None else positions:
        place = places[position]
        begin = (place & _OFFSET) - at
        if place >> PLACE_BITS != number:
            number, block = place >> PLACE_BITS, b""
        end = block.find(b"\n", begin) if 0 <= begin < len(block) else -1
        if end < 0:
            at, begin = place & _OFFSET, 0
            block = recording.shelf.sources[number].block(at, _BLOCK)
            end = block.find(b"\n")
        line = block[begin:end] if end >= 0 else block
        yield position, head.match(line) if len(line) <= MAX_LINE else None, line


def event_types(recording: RunLines) -> list[str]:
    """Return the normalised type of every line."""
    known: dict[bytes, str] = {}
    found = []
    for position, head, line in each_line(recording):
        if head is None:
            found.append(intern(recording.event_at(position).event_type))
            continue
        kind = known.get(head[3])
        if kind is None:
            kind = schema.event_type(dialects.event_type(head[3].decode()), {})
            if head[3] != schema.TOOL_CALL.encode():
                known[head[3]] = kind = intern(kind)
            elif any(needle in line for needle in _FINISHED):
                kind = intern(recording.event_at(position).event_type)
        found.append(kind)
    return found


def _totals(recording: RunLines) -> Totals:
    """Return the exact sums over all lines."""
    sums = Totals()
    for position, head, line in each_line(recording):
        fields = _light_fields(head, line)
        if head is not None and fields is not None:
            sums.add(dialects.event_type(head[3].decode()), fields)
        else:
            event = recording.event_at(position)
            sums.add(dialects.event_type(event.kind), event.stored_fields)
    return sums


def events_of_calls(recording: RunLines) -> Iterator[tuple[Event, dict[str, Any]]]:
    """Yield the events, each with those of its fields that tell which call it is of."""
    everything = range(recording.count())
    return ((event, fields) for event, fields, _ in _read_with(_light_fields, recording, everything))


def whole_events(
    recording: RunLines, numbers: Sequence[int] | None = None
) -> Iterator[tuple[Event, dict[str, Any], bytes | None]]:
    """Yield the events, or those with some numbers, each with all its fields and, where it is at hand, its
    line."""
    numbers = range(recording.count()) if numbers is None else numbers
    if recording.execution.is_gapless:
        return _read_with(_all_fields, recording, numbers)
    return ((event, event.stored_fields, None) for event in map(recording.events.__getitem__, numbers))


def _read_with(
    fields_of: Callable[[re.Match[bytes] | None, bytes], dict[str, Any] | None],
    recording: RunLines,
    numbers: Sequence[int],
) -> Iterator[tuple[Event, dict[str, Any], bytes | None]]:
    """Read the file once; what ``fields_of`` cannot read of a line, the event itself parses."""
    run, writer, shelf = recording.run_id, recording.writers[0], recording.shelf
    places, positions = recording.execution.places, map(recording.execution.position, numbers)
    for number, (position, head, line) in zip(numbers, each_line(recording, positions), strict=True):
        fields = fields_of(head, line)
        if head is not None and fields is not None:
            kind = intern(head[3].decode())
            envelope = Envelope(float(head[1]), run, writer, int(head[2]), kind, OURS)
            event = Event(envelope, None, places[position], shelf, number)
        else:
            event = recording.event_at(position)
            fields = event.stored_fields
        shelf.learn(event.kind, fields, places[position])
        yield event, fields, line if head is not None else None


def _all_fields(head: re.Match[bytes] | None, line: bytes) -> dict[str, Any] | None:
    try:
        return parse(line) if head is not None else None
    except (ValueError, RecursionError):  # damaged
        return None


def _light_fields(head: re.Match[bytes] | None, line: bytes) -> dict[str, Any] | None:
    """Return what is needed of a line's fields; None if the event itself has to be parsed."""
    try:
        return links_and_sums(line, head[3].decode(), head.end()) if head is not None else None
    except (ValueError, RecursionError):  # damaged
        return None
