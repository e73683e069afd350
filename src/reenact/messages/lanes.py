"""Which model call an event comes from, and what stands beside and after it in the same lane.

Links first: an end leads to its begin, a tool to the answer that asked for it. Only what has no link
goes with the nearest call before it of the same writer.
"""

from __future__ import annotations

from .. import schema
from ..recording.calls import MODEL, Call
from ..recording.recording import Recording


class Lanes:
    """The calls of a run by event, by answer and by lane."""

    def __init__(self, recording: Recording) -> None:
        self._events = recording.events
        self._of_event: dict[int, Call] = {}
        self._by_id: dict[str, Call] = {}
        self._tools: dict[int, list[Call]] = {}
        self._order: dict[tuple[str, str], list[Call]] = {}
        self._place: dict[int, int] = {}
        self._parent: dict[int, Call] = {}
        latest: dict[str, Call] = {}
        for call in recording.calls():
            for event in (call.begin, call.end):
                if event is not None and event.index is not None:
                    self._of_event[event.index] = call
            if call.kind == MODEL:
                if call.id is not None:
                    self._by_id.setdefault(call.id, call)
                lane = self._order.setdefault(self.name(call), [])
                self._place[id(call)] = len(lane)
                lane.append(call)
                latest[call.event.writer] = call
                continue
            parent = self._by_id.get(call.parent or "") or latest.get(call.event.writer)
            if parent is not None:
                self._parent[id(call)] = parent
                self._tools.setdefault(id(parent), []).append(call)

    def name(self, call: Call) -> tuple[str, str]:
        """Return a lane: processes run side by side even where both say ``main``."""
        return call.event.writer, call.lane

    def names(self) -> list[tuple[str, str]]:
        return list(self._order)

    def tools(self, call: Call) -> list[Call]:
        """Return the tool calls a model call led to, in the order they began."""
        return self._tools.get(id(call), [])

    def model_call(self, call: Call) -> Call | None:
        """Return the model call itself, or the one that led to a tool call."""
        return call if call.kind == MODEL else self._parent.get(id(call))

    def before(self, call: Call) -> Call | None:
        """Return the model call before this one in its lane."""
        place = self._place[id(call)]
        return self._order[self.name(call)][place - 1] if place else None

    def after(self, call: Call, most: int) -> list[Call]:
        """Return the next model calls of the same lane."""
        place = self._place[id(call)] + 1
        return self._order[self.name(call)][place : place + most]

    def at(self, index: int) -> Call | None:
        """Return the model call that the event at an index comes from."""
        writer = self._events[index].writer
        other: Call | None = None
        for number in range(index, -1, -1):
            call = self._of_event.get(number)
            found = self.model_call(call) if call is not None else None
            if found is not None and self._events[number].writer == writer:
                return found
            other = other or found
        return other


def has_request(call: Call) -> bool:
    """True if what the model was asked is recorded."""
    begin = call.begin
    if begin is None or begin.event_type != schema.MODEL_REQUEST:
        return False
    return (
        begin.stored_fields.get("body") is not None or begin.is_partial
    )  # of a very long line only the head is read
