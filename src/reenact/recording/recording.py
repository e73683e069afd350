"""Recording: one run as read back, its events fetched by number, nothing parsed before it is needed.

The base of the debugger and of ``show``. Opening a file takes no more than its index; findings come later.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from .. import schema
from ..shown import ShownAsHtml
from ..tracefile.columns import Execution, Offsets, choose, ends_only, executions, uncounted
from ..tracefile.events.event import ErrorText, Event
from ..tracefile.events.event_source import Shelf
from ..tracefile.findings import Findings
from ..tracefile.plain_files import read_plain
from ..tracefile.reader import require_file
from ..tracefile.run_files import name_of
from ..wire import reading
from ..wire.messages import MAY_HAVE_FAILED
from ..wire.streams import Assembled, assemble
from .calls import MODEL, Call, Turn, join_calls, join_known
from .derived_events import Entries
from .derived_tools import DerivedCall, derived_tools, turns_of, with_derived
from .event_addresses import find_event
from .garbage import nothing_to_collect
from .index import Index
from .kept_conversations import SeenMessages, kept_before, sent_messages
from .run_addresses import find_run, locate
from .run_lines import RunLines, each_line, event_types, events_of_calls, whole_events

_OFF = 16
"""Lines around its place among which a step is sought."""

_CALL = re.compile(r"[0-9a-f]{16}\Z")
MAX_PART = 64 << 20
"""Bytes read of a response that had not ended."""

SMALL_EVENTS, SMALL_BYTES = 5_000, 8 << 20
"""A run up to this size is read whole without a noticeable wait."""


class Recording(RunLines, ShownAsHtml):
    """One run. ``events`` leaves bookkeeping out; ``lines`` has it."""

    def __init__(self, path: str, shelf: Shelf, execution: Execution, findings: Findings) -> None:
        super().__init__(path, shelf, execution, findings)
        self.inside: Sequence[tuple[str, str]] = ()
        """Files and ids of runs whose events are among its own: see ``inside.with_inside``."""
        self._calls: list[Call] | None = None
        self._event_types: list[str] | None = None

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        run: str | None = None,
        *,
        blobs: str | None = None,
        counted: Mapping[str, Offsets] | None = None,
    ) -> Recording:
        """Open one run of a file: the newest unless ``run`` says which by id, or ``"*"`` all as one.

        ``counted`` are the line offsets of its files, where somebody has them.
        """
        name = os.fspath(path)
        require_file(name)
        if os.path.isdir(name):
            row = find_run(run, name)
            name, run = row.path, row.id
        findings = Findings()
        shelf = Shelf(name, findings.add, blobs)
        found = executions(name, shelf, findings.add, merge=run == "*", counted=counted)
        return cls(name, shelf, choose(found, run, name, findings), findings)

    @classmethod
    def load_ends(cls, path: str, run: str | None = None) -> Recording | None:
        """Open a very large run of one writer by its two ends; None where the whole is opened at once.

        What stands between them raises ``NotIndexed``.
        """
        require_file(path)
        if not uncounted(path):
            return None
        findings = Findings()
        shelf = Shelf(path, findings.add)
        found = ends_only(path, shelf)
        if found is None or (run is not None and run != found.run):
            return None
        return cls(path, shelf, found, findings)

    @property
    def name(self) -> str:
        """The name of the run, else that of its file."""
        name = self.start.name if self.start is not None else None
        return name if type(name) is str else name_of(self.path)

    @property
    def start_fields(self) -> dict[str, Any]:
        """The fields of its first line as stored; empty if that is lost."""
        return self.start.stored_fields if self.start is not None else {}

    @property
    def end_fields(self) -> dict[str, Any]:
        """The fields of its last line as stored; empty if it has none."""
        return self.end.stored_fields if self.end is not None else {}

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
    def error(self) -> ErrorText | None:
        """What the run ended with."""
        return self.end.error if self.end is not None else None

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

    def calls(self, *, derived: bool = False) -> list[Call]:
        """Return the calls in the order they began; ``derived``: also tools known from model traffic only."""
        if self._calls is None:
            with nothing_to_collect():
                if self.execution.is_gapless:
                    self._calls = join_known(events_of_calls(self))
                else:
                    self._calls = join_calls(self.events)
        return with_derived(self._calls, self._derived) if derived else self._calls

    def calls_of_all(
        self,
        visit: Callable[[Event, dict[str, Any], bytes | None], None],
        numbers: Sequence[int] | None = None,
    ) -> list[Call]:
        """Return the recorded calls; on the way each event is shown to ``visit`` with all its fields and,
        where it is at hand, its line: one pass for whoever needs both. With ``numbers`` only these events."""
        with nothing_to_collect():

            def seen() -> Iterator[tuple[Event, dict[str, Any]]]:
                for event, fields, line in whole_events(self, numbers):
                    visit(event, fields, line)
                    yield event, fields

            calls = join_known(seen())
        if numbers is not None:
            return calls
        if self._calls is None:
            self._calls = calls
        return self._calls

    def turns(self, *, derived: bool = False) -> list[Turn]:
        """Return the turns; turn n is element n - 1."""
        return turns_of(self.calls(), self._derived) if derived else list(self.index.turns)

    @cached_property
    def _derived(self) -> list[DerivedCall]:
        calls = self.calls()
        with nothing_to_collect():
            return derived_tools(calls)

    @property
    def has_derived(self) -> bool:
        """True once the tools of the whole run were derived."""
        return "_derived" in self.__dict__

    @cached_property
    def may_have_failed_tools(self) -> bool:
        """False if no line holds an error as the result of a tool, so that no derived tool failed."""
        request = schema.MODEL_REQUEST.encode()
        return any(
            MAY_HAVE_FAILED.search(line)
            for _, head, line in each_line(self)
            if head is None or head[3] == request
        )

    @cached_property
    def entries(self) -> Entries:
        """The events with the derived tools between them."""
        return Entries(self)

    def event_types(self, *, system: bool = False) -> list[str]:
        """Return the type of every event by its index; not to be changed."""
        if self._event_types is None:
            if self.execution.is_gapless:
                self._event_types = event_types(self)
            else:
                self._event_types = [event.event_type for event in self.lines]
        if system:
            return self._event_types
        book = set(self.execution.book)
        return [kind for at, kind in enumerate(self._event_types) if at not in book]

    def event(self, address: str | int) -> Event:
        """Return the event at ``12``, ``p77aa:12``, ``turn:3``, ``call:a1b2`` or ``@error``.

        ``12.1`` is the first derived tool call, or result of one, that the line at 12 carries.
        """
        return find_event(self, address)

    def at_step(self, step: int, writer: str | None = None) -> Event | None:
        """Return a writer's event by its step; by default the first writer's."""
        writer = self.first_writer if writer is None else writer
        position = None if writer is None else self.execution.find(writer, step)
        if position is None:
            return None
        event = self.event_at(position)
        if event.step == step:
            return event
        # A large file's steps are not looked at one by one: the line may stand a little off.
        near = range(max(0, position - _OFF), min(len(self.execution.places), position + _OFF))
        return next((event for event in map(self.event_at, near) if event.step == step), None)

    def request_of(self, call: str) -> Event | None:
        """Return the ``model.request`` of a call id."""
        place = self.shelf.request_place(call)
        if place is None:
            return None
        places = self.execution.places
        index = bisect_left(places, place)  # they are in order unless several wrote them
        try:
            found = index < len(places) and places[index] == place
            return self.event_at(index if found else places.index(place))
        except ValueError:
            return None

    def partial_answer(self, call: str | None) -> tuple[Assembled, int] | None:
        """Return the answer of an open model call as far as it came, and how many bytes that is.

        It is put together from the file ``<call>.part`` beside the trace.
        """
        if call is None or _CALL.match(call) is None:  # a call id from a trace may hold anything
            return None
        for folder in self.shelf.blobs.folders:
            try:
                data = read_plain(os.path.join(folder, f"{call}.part"), MAX_PART)
            except OSError:
                continue
            request = self.request_of(call)
            return assemble(data, request.provider if request is not None else None), len(data)
        return None

    def context_at(self, event: Event) -> SeenMessages:
        """Return all messages the model saw in a request, or in the one an event came from."""
        request = self.request_before(event)
        if request is None:
            return SeenMessages([])
        body = request.body
        return SeenMessages(sent_messages(body), kept_before(self.index, request, body))

    def sent_at(self, event: Event) -> list[Any]:
        """Return the messages of ``context_at`` that the request carried."""
        request = self.request_before(event)
        return [] if request is None else sent_messages(request.body)

    def request_before(self, event: Event) -> Event | None:
        """Return the request that led to an event; None if there is none, or it is not recorded."""
        return self.index.request_of(event)

    def __repr__(self) -> str:
        return f"<Recording {self.name} {self.status}, {self.count()} events>"


def recording_at(address: str | None, *, run: str | None = None, blobs: str | None = None) -> Recording:
    """Return the recording at an address as people type it; see ``locate``."""
    path, found = locate(address)
    return Recording.load(path, run or found, blobs=blobs)


def final_text(recording: Recording) -> str:
    """Return the text of a run's last answer, "" if there is none or it is an error."""
    ends = [call.end for call in recording.calls() if call.kind == MODEL and call.end is not None]
    return reading.text(ends[-1].body, ends[-1].provider) if ends and ends[-1].error is None else ""
