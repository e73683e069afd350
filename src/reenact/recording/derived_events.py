"""Derived tools as entries between the events of a run, so that a debugger steps to them as to recorded ones.

A derived tool call stands right after the response that requests it, its result right before the request
that brings it to the model. Entries are no events: no count, index or step changes by them. Their address is
that of the line which carries them and a number: ``4.1`` is the first tool use of the response at 4, ``5.1``
the first result in the request at 5. It stays valid while the run grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .. import schema
from ..tracefile.dialects import FAMILY, Envelope
from ..tracefile.events.event import ErrorText, Event, base_kind
from .calls import TOOL, Call, join_calls
from .derived_tools import DerivedCall, derived_tools

if TYPE_CHECKING:
    from .recording import Recording

Place = tuple[int, int]
"""Of an entry: the index of an event; 0 for the event itself, more for what follows it, less for what
precedes it."""

MARGIN = 400
"""Events around one of a large run among which tool calls and results are paired, before all are."""

_MOST_PARTS = 64
"""Parts that are remembered where a large run is never paired as a whole."""

_SHARE = 12 * MARGIN
"""One such part is looked at for so many events of the run; then pairing all of them costs little more."""

_CARRIERS = frozenset((schema.MODEL_REQUEST, schema.MODEL_RESPONSE, schema.LLM_CALL))


class DerivedEvent(Event):
    """The call or the result of a derived tool, with the fields of a recorded one.

    ``index`` is that of the response that requested it, so it has that turn, lane and context.
    """

    __slots__ = ("call", "derived_number")

    call: DerivedCall
    derived_number: int

    def __init__(self, call: DerivedCall, carrier: Event, number: int, kind: str) -> None:
        # Not marked as a line of ours: its values are whole, no reference in them is to be followed.
        envelope = Envelope(carrier.timestamp, carrier.run_id, carrier.writer, carrier.step, kind, FAMILY)
        super().__init__(envelope, None, carrier.stored_at, carrier.stored_in, call.event.index)
        object.__setattr__(self, "call", call)
        object.__setattr__(self, "derived_number", number)

    @property
    def is_call(self) -> bool:
        return self.kind == schema.TOOL_CALLED

    @property
    def stored_fields(self) -> dict[str, Any]:
        if self._fields is None:  # the arguments and the result are read when somebody asks
            object.__setattr__(self, "_fields", self._built_fields())
        assert self._fields is not None
        return self._fields

    @property
    def whole_fields(self) -> dict[str, Any]:
        return self.stored_fields

    @property
    def is_partial(self) -> bool:
        return False

    @property
    def tool_name(self) -> str | None:
        return self.call.tool

    @property
    def error(self) -> ErrorText | None:
        return None if self.is_call else self.call.error

    def _built_fields(self) -> dict[str, Any]:
        call = self.call
        fields: dict[str, Any] = {"kind": self.kind, "tool": call.tool, "tool_id": call.tool_id}
        fields |= {"source": call.source, "parent": call.parent, "lane": call.lane}
        if self.is_call:
            return fields | {"args": call.args}
        if call.error is not None:
            fields["error"] = str(call.error)
        return fields | {
            "at_most_ms": call.duration_ms,
            "result": None if call.error is not None else call.result,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return super().__eq__(other) is True and self.derived_number == other.derived_number

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.derived_number))


class _Pairs:
    """Derived calls by the event that requests them, and by the one that brings their results; recorded
    tool calls by their end."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.requested: dict[int, list[DerivedCall]] = {}
        self.brought: dict[int, list[DerivedCall]] = {}
        self.ended: dict[int, Call] = {}
        for call in calls:
            if not isinstance(call, DerivedCall):
                if call.kind == TOOL and call.end is not None and call.end.index is not None:
                    self.ended[call.end.index] = call
                continue
            self.requested.setdefault(call.event.index or 0, []).append(call)
            if call.end is not None and call.end.index is not None:
                self.brought.setdefault(call.end.index, []).append(call)


class Entries:
    """The events of a run with the derived tools between them."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._events = recording.events
        self._windows: dict[int, _Pairs] = {}
        self._all: _Pairs | None = None
        self.stays_near = False
        """True: nobody waits until all calls of a large run are paired; those near an event must do."""

    def __getitem__(self, place: Place) -> Event:
        index, part = place
        if part == 0:
            return self._events[index]
        pairs = self._pairs(index)
        if part > 0:
            call = next(call for call in pairs.requested[index] if call.order + 1 == part)
            return DerivedEvent(call, call.event, part, schema.TOOL_CALLED)
        brought = pairs.brought[index]
        return DerivedEvent(brought[part], self._events[index], part + len(brought) + 1, schema.TOOL_RESULT)

    def parts(self, index: int) -> list[int]:
        """Return the second halves of the places at an event, in order; 0 is its own."""
        if self._all is None and base_kind(self._events[index]) not in _CARRIERS:
            return [0]
        pairs = self._pairs(index)
        before, after = pairs.brought.get(index), pairs.requested.get(index)
        found = [*range(-len(before), 0), 0] if before else [0]
        return [*found, *(call.order + 1 for call in after)] if after else found

    def beside(self, index: int) -> list[tuple[int, DerivedEvent]]:
        """Return the entries that stand before and after an event, with the second halves of their places."""
        found = [(part, self[index, part]) for part in self.parts(index) if part]
        return [(part, event) for part, event in found if isinstance(event, DerivedEvent)]

    def ended_at(self, event: Event) -> Call | None:
        """Return the recorded tool call that an event ends, with what the model was sent for it."""
        return None if event.index is None else self._pairs(event.index).ended.get(event.index)

    def place_of(self, event: Event) -> Place:
        """Return where an event or an entry stands."""
        if not isinstance(event, DerivedEvent):
            return event.index or 0, 0
        if event.is_call:
            return event.index or 0, event.derived_number
        return self.result_place(event.call) or (event.index or 0, 0)

    def result_place(self, call: DerivedCall) -> Place | None:
        """Return where the result of a derived tool stands; None if the model never got one."""
        index = call.end.index if call.end is not None else None
        if index is None:
            return None
        brought = self._pairs(index).brought.get(index, [])
        keys = [(each.event.index, each.order) for each in brought]
        key = call.event.index, call.order
        return (index, keys.index(key) - len(keys)) if key in keys else None

    def next(self, place: Place, direction: int = 1) -> Place | None:
        """Return the place after another one, or before it; None beyond the ends."""
        return next(self.walk(place, direction), None)

    def walk(
        self, start: Place, direction: int = 1, end: Place | None = None, *, derived: bool = True
    ) -> Iterator[Place]:
        """Yield the places beyond one in a direction, through ``end`` if there is one.

        Without those of derived tools much less is read.
        """
        index, last = start[0], len(self._events)
        while 0 <= index < last:
            if (
                derived and abs(index - start[0]) == MARGIN and not self.stays_near
            ):  # a search through the run
                self._pair_all()
            for part in self.parts(index)[::direction] if derived else (0,):
                place = index, part
                if end is not None and _is_beyond(place, end, direction):
                    return
                if _is_beyond(place, start, direction):
                    yield place
            index += direction

    @property
    def count(self) -> int:
        """How many events there are, entries not counted."""
        return len(self._events)

    def _pairs(self, index: int) -> _Pairs:
        if self._all is None:
            recording = self._recording
            is_worth_it = not self.stays_near and len(self._windows) * _SHARE >= len(self._events)
            if not (recording.is_small or recording.has_derived or is_worth_it):
                return self._window(index // MARGIN)
        return self._pair_all()

    def _pair_all(self) -> _Pairs:
        if self._all is None:
            self._windows.clear()
            self._all = _Pairs(self._recording.calls(derived=True))
        return self._all

    def _window(self, number: int) -> _Pairs:
        """Return the pairs near some events of a large run: what is further apart is paired later."""
        found = self._windows.get(number)
        if found is None:
            near = self._events[max(0, (number - 1) * MARGIN) : (number + 2) * MARGIN]
            calls = join_calls(near)
            while self.stays_near and len(self._windows) >= _MOST_PARTS:
                del self._windows[next(iter(self._windows))]
            found = self._windows[number] = _Pairs([*calls, *derived_tools(calls)])
        return found


def places_of(derived: Iterable[DerivedCall]) -> list[Place]:
    """Return where derived tools stand, as ``Entries`` finds them part by part: results that came far behind
    their calls have no place there."""
    found: list[Place] = []
    brought: dict[int, int] = {}
    for call in derived:
        begin, end = call.event.index or 0, call.end.index if call.end is not None else None
        found.append((begin, call.order + 1))
        if end is not None and end // MARGIN - begin // MARGIN <= 1:
            brought[end] = brought.get(end, 0) + 1
    found += [(index, part) for index, count in brought.items() for part in range(-count, 0)]
    return sorted(found)


def _is_beyond(place: Place, other: Place, direction: int) -> bool:
    return place > other if direction > 0 else place < other
