"""What led to an event and what it led to: its line of work, told from call ids, bases and lanes.

Parallel agents stand mixed in one file; nearness is no cause there. A line of work is a turn, the turn
its conversation went on from, and so on back to the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import schema
from ..tracefile.event import Event
from .calls import Call, Turn
from .recording import Recording


class Links:
    """The turns of a recording, by event and by call id."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.turns: list[Turn] = recording.turns()
        self._of_call: dict[str, Turn] = {}
        self._of_index: dict[int, Turn] = {}
        self._in_lane_before: list[Turn | None] = []
        """For each turn the one before it in its lane."""
        newest: dict[tuple[str, str], Turn] = {}
        for turn in self.turns:
            for call in (*turn.attempts, *turn.tools):
                self._take_in(call, turn)
            lane = turn.request.writer, turn.lane
            self._in_lane_before.append(newest.get(lane))
            newest[lane] = turn

    def turn_of(self, event: Event) -> Turn | None:
        """Return the turn an event belongs to; None for one that stands outside every call."""
        return self._of_index.get(-1 if event.index is None else event.index)

    def past(self, event: Event) -> Iterator[Event]:
        """Yield what came before an event in its line of work, nearest first."""
        turn, before = self.turn_of(event), event.index or 0
        seen: set[int] = set()
        while turn is not None and turn.number not in seen:
            seen.add(turn.number)
            yield from reversed([one for one in self._events(turn) if _number(one) < before])
            turn = self.previous(turn)

    def future(self, event: Event) -> Iterator[Event]:
        """Yield what came after an event in its line of work, nearest first."""
        turn = self.turn_of(event)
        if turn is None or event.index is None:
            return
        line = {turn.number}
        yield from (one for one in self._events(turn) if _number(one) > event.index)
        for later in self.turns[turn.number :]:
            previous = self.previous(later)
            if previous is not None and previous.number in line:
                line.add(later.number)
                yield from self._events(later)

    def previous(self, turn: Turn) -> Turn | None:
        """Return the turn whose conversation this one went on with."""
        request = turn.request
        fields = request.stored_fields if request.kind == schema.MODEL_REQUEST else {}
        for call in _links_of(fields):
            found = self._of_call.get(call)
            if found is not None and found.number < turn.number:
                return found
        return self._ended_before(turn)

    def _ended_before(self, turn: Turn) -> Turn | None:
        """Return the nearest turn of the lane that was over when this one began; the others ran beside it."""
        found = self._in_lane_before[turn.number - 1]
        while found is not None and not _is_before(found.response, turn.request):
            found = self._in_lane_before[found.number - 1]
        return found

    def _take_in(self, call: Call, turn: Turn) -> None:
        if call.id is not None:
            self._of_call.setdefault(call.id, turn)
        for event in (call.begin, call.end):
            if event is not None and event.index is not None:
                self._of_index[event.index] = turn

    def _events(self, turn: Turn) -> list[Event]:
        found = {
            event.index: event
            for call in (*turn.attempts, *turn.tools)
            for event in (call.begin, call.end)
            if event is not None and event.index is not None
        }
        return [found[index] for index in sorted(found)]


def _number(event: Event) -> int:
    return -1 if event.index is None else event.index


def _is_before(event: Event | None, other: Event) -> bool:
    return event is not None and _number(event) < _number(other)


def _links_of(fields: dict[str, Any]) -> Iterator[str]:
    """Yield the calls a request tells it came from, the surest first: the newest answer it holds,
    the request it goes on with, the call that began it."""
    body, keep = fields.get("body"), fields.get("keep")
    for name in schema.LISTS:
        elements = body.get(name) if type(body) is dict else None
        for element in reversed(elements if type(elements) is list else []):
            told = element.get("$answer") if type(element) is dict else None
            if type(told) is str:
                yield told
    goes_on = type(keep) is dict and any(keep.get(name) for name in schema.LISTS)
    for told in (fields.get("base") if goes_on else None, fields.get("parent")):
        if type(told) is str:
            yield told
