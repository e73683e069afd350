"""Recording: one run as read back, its events fetched by number, nothing parsed before it is asked for.

The base of the debugger and of ``show``. Opening a file takes no more than its index; findings come later.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from .. import lines, schema
from ..totals import Totals
from ..tracefile import dialects
from ..tracefile.columns import Execution, choose, executions
from ..tracefile.dialects import OURS, Envelope
from ..tracefile.event import ErrorText, Event
from ..tracefile.findings import Finding, Findings
from ..tracefile.reader import require_file
from ..tracefile.run_files import member
from ..tracefile.source import PLACE_BITS, Shelf
from ..tracefile.status import status_of
from . import full_pass
from .calls import Call, Turn, join_calls, join_known
from .derived_tools import DerivedCall, derived_tools, turns_of, with_derived
from .index import Index

_OFFSET = (1 << PLACE_BITS) - 1
_OFF = 16
"""Lines around its place among which a step is sought."""

SMALL_EVENTS, SMALL_BYTES = 5_000, 8 << 20
"""A run up to this size is read whole without a noticeable wait."""


class Recording:
    """One run. ``events`` leaves bookkeeping out; ``lines`` has it."""

    def __init__(self, path: str, shelf: Shelf, execution: Execution, findings: Findings) -> None:
        self.path = path
        self.findings: list[Finding] = findings
        self.shelf = shelf
        self._execution = execution
        self.inside: Sequence[tuple[str, str]] = ()
        """Files and ids of runs whose events are among its own: see ``inside.with_inside``."""
        self._calls: list[Call] | None = None
        self._ends: tuple[Event | None, Event | None] | None = None
        self._event_types: list[str] | None = None

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], run: str | None = None, *, blobs: str | None = None
    ) -> Recording:
        """Open one run of a file: the newest unless ``run`` says which by id, or ``"*"`` all as one."""
        name = os.fspath(path)
        require_file(name)
        if os.path.isdir(name):
            from .addresses import find_run

            row = find_run(run, name)
            name, run = row.path, row.id
        findings = Findings()
        shelf = Shelf(name, findings.add, blobs)
        found = executions(name, shelf, findings.add, merge=run == "*")
        return cls(name, shelf, choose(found, run, name, findings), findings)

    @property
    def events(self) -> Events:
        """The events by index, fetched when asked for."""
        return Events(self, range(self._execution.count()))

    @property
    def lines(self) -> Events:
        """The same with the recorder's own bookkeeping."""
        return Events(self, range(self._execution.count(system=True)), system=True)

    def count(self, *, system: bool = False) -> int:
        return self._execution.count(system=system)

    @property
    def run_id(self) -> str | None:
        return self._execution.run

    @property
    def name(self) -> str:
        """The name given to the run, else that of its file."""
        name = self.start.name if self.start is not None else None
        return name if type(name) is str else os.path.basename(member(self.path).stem)

    @property
    def status(self) -> str:
        start, end = self.start, self.end
        return status_of(
            start.stored_fields if start is not None else None,
            end.stored_fields if end is not None else None,
            start.timestamp if start is not None else None,
        )

    @property
    def meta(self) -> dict[str, Any]:
        meta = self.start.meta if self.start is not None else None
        return meta if type(meta) is dict else {}

    @property
    def input(self) -> Any:
        return self.start.input if self.start is not None else None

    @property
    def parent_run(self) -> str | None:
        return self.start.parent_run if self.start is not None else None

    @property
    def start(self) -> Event | None:
        """The ``run.start`` event; None if lost or never written."""
        return self._start_and_end()[0]

    @property
    def end(self) -> Event | None:
        """The ``run.end`` event; None if the run was killed or still goes on."""
        return self._start_and_end()[1]

    def _start_and_end(self) -> tuple[Event | None, Event | None]:
        if self._ends is None:
            start = end = None
            for event in map(self._event, self._execution.book):
                if event.kind == schema.RUN_START and start is None and event.run_id == self.run_id:
                    start = event
                elif event.kind == schema.RUN_END and self._execution.root in (None, event.writer):
                    end = event
            self._ends = start, end
        return self._ends

    @property
    def error(self) -> ErrorText | None:
        """What the run ended with."""
        return self.end.error if self.end is not None else None

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
        names, root = list(self._execution.writers), self._execution.root
        return [root, *(name for name in names if name != root)] if root is not None else names

    @property
    def first_writer(self) -> str | None:
        """The writer that began the run; None for a file without any event."""
        return next(iter(self.writers), None)

    @cached_property
    def is_small(self) -> bool:
        """True if all of it can be read without a noticeable wait."""
        if self.count() > SMALL_EVENTS:
            return False
        paths = [source.path for source in self.shelf.sources]
        return sum(os.path.getsize(path) for path in paths if os.path.exists(path)) <= SMALL_BYTES

    @cached_property
    def index(self) -> Index:
        """Which call, turn, lane and request each event belongs to."""
        return Index(self)

    @property
    def has_joined(self) -> bool:
        """True once the calls were joined, which reads all of the run."""
        return self._calls is not None

    @property
    def totals(self) -> Totals:
        """Exact sums over all events; for a large file this reads all of it once."""
        if self._execution.totals is None:
            self._execution.totals = full_pass.totals(self) if self._execution.is_gapless else Totals()
        return self._execution.totals

    @property
    def tot(self) -> dict[str, int]:
        """``turns in out err`` as the writers summed them up: the same sums without reading all."""
        if self._execution.totals is not None or not self._execution.places:
            return (self._execution.totals or Totals()).as_tot()
        from ..tracefile.file_ends import tail_totals

        last = self._execution.places[-1] >> PLACE_BITS
        return (tail_totals(self.shelf.sources[last].path, only=last == 0) or self.totals).as_tot()

    def calls(self, *, derived: bool = False) -> list[Call]:
        """Return the calls in the order they began; ``derived``: also tools that only the wire tells of."""
        if self._calls is None:
            with full_pass.nothing_to_collect():
                if self._execution.is_gapless:
                    self._calls = join_known(full_pass.events_of_calls(self))
                else:
                    self._calls = join_calls(self.events)
        return with_derived(self._calls, self._derived) if derived else self._calls

    def turns(self, *, derived: bool = False) -> list[Turn]:
        """Return the turns; turn n is element n - 1."""
        return turns_of(self.calls(), self._derived) if derived else list(self.index.turns)

    @cached_property
    def _derived(self) -> list[DerivedCall]:
        return derived_tools(self.calls())

    def event_types(self, *, system: bool = False) -> list[str]:
        """Return the type of every event by its index; not to be changed."""
        if self._event_types is None:
            if self._execution.is_gapless:
                self._event_types = full_pass.event_types(self)
            else:
                self._event_types = [event.event_type for event in self.lines]
        if system:
            return self._event_types
        book = set(self._execution.book)
        return [kind for at, kind in enumerate(self._event_types) if at not in book]

    def event(self, address: str | int) -> Event:
        """Return the event at ``12``, ``p77aa:12``, ``turn:3``, ``call:a1b2`` or ``@error``."""
        from .addresses import find_event

        return find_event(self, address)

    def at_step(self, step: int, writer: str | None = None) -> Event | None:
        """Return a writer's event by its step; the first writer's unless told."""
        writer = self.first_writer if writer is None else writer
        position = None if writer is None else self._execution.find(writer, step)
        if position is None:
            return None
        event = self._event(position)
        if event.step == step:
            return event
        # A large file's steps are not looked at one by one: the line may stand a little off.
        near = range(max(0, position - _OFF), min(len(self._execution.places), position + _OFF))
        return next((event for event in map(self._event, near) if event.step == step), None)

    def request_of(self, call: str) -> Event | None:
        """Return the ``model.request`` of a call id."""
        place = self.shelf.request_place(call)
        if place is None:
            return None
        places = self._execution.places
        index = bisect_left(places, place)  # they are in order unless several wrote them
        try:
            found = index < len(places) and places[index] == place
            return self._event(index if found else places.index(place))
        except ValueError:
            return None

    def context_at(self, event: Event) -> list[Any]:
        """Return all messages the model saw in a request, or in the one an event came from."""
        request = self.request_before(event)
        body = request.body if request is not None else None
        if type(body) is not dict:
            return []
        return next((body[key] for key in schema.LISTS if type(body.get(key)) is list), [])

    def request_before(self, event: Event) -> Event | None:
        """Return the request that led to an event; None if there is none, or it is not recorded."""
        return self.index.request_of(event)

    def _event(self, position: int) -> Event:
        place = self._execution.places[position]
        source = self.shelf.sources[place >> PLACE_BITS]
        index = self._execution.late_index(position)
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
        return Event(
            envelope._replace(step=self._execution.steps[position]), fields, place, self.shelf, index
        )

    def __repr__(self) -> str:
        return f"<Recording {self.name} {self.status}, {self.count()} events>"


class Events(Sequence[Event]):
    """A view on a recording's events; slices are views too."""

    def __init__(self, recording: Recording, numbers: range, *, system: bool = False) -> None:
        self._recording = recording
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
            return Events(self._recording, self._numbers[index], system=self._system)
        number = self._numbers[index]
        position = number if self._system else self._recording._execution.position(number)
        return self._recording._event(position)

    def __iter__(self) -> Iterator[Event]:
        for number in range(len(self)):
            yield self[number]
