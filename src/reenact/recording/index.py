"""One index of a run: which call, turn, lane and request each event belongs to.

Every reader asks here, so all give the same answer. The rules, in this order:

- An event of a call belongs to that call, any other event to the call its ``call`` or ``parent`` names.
- A tool call belongs to the model call its ``parent`` names, else to the latest one of its lane, else of
  its process, else of the run (``Call.requested_by``).
- An event without a call belongs to the latest model call of the lane it names, else of its process, else
  of the run.
- A lane is what the begin of a call names; a tool without a lane is in that of its model call. The main
  lane of a further process is a lane of its own, named like its addresses.

Built from all calls on first use. In a large run, lane and turn of an event are first looked for among the
events near it, so that a debugger opens a file of any size at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .. import schema
from ..errors import NotIndexed
from ..tracefile.events.event import (
    Event,
    base_kind,
    is_model_begin,
    is_tool_begin,
    is_turn_begin,
    links_of,
    text_link,
)
from ..tracefile.events.rebuilt_requests import answer_named, base_of, kept
from .calls import MODEL, TOOL, Call, Turn, group_turns
from .kept_conversations import calls_by_kept_name

if TYPE_CHECKING:
    from .recording import Recording

MAIN = "main"

Lane = tuple[str, str]
"""Writer and lane: processes run side by side even where both say ``main``."""

_NEAR = 400
"""Events before another among which its begin or model call is looked for before all calls are joined."""

_QUESTIONS = 1_000
"""So many answers from nearby events, and more in a longer run, take as long as joining all calls."""

_DEEPEST = 20
"""Calls within calls that are followed."""

_MOST_BEGINS = 10_000
"""Begins of calls that are remembered in a large run."""

_KEPT = 64
"""Every so many events the number of turns so far is remembered."""


def lane_name(lane: str, writer: str, root: str | None) -> str:
    """Return the lane; the main lane of a further process is its own, named like its addresses."""
    return f"p{writer[:4]}" if lane == MAIN and writer != root else lane


class Index:
    """Calls, turns and lanes of one recording."""

    def __init__(
        self, recording: Recording, calls: Sequence[Call] | None = None, turns: list[Turn] | None = None
    ) -> None:
        """``calls`` and ``turns`` are those of a part of the run; without them all of it is read."""
        self._recording = recording
        self._events = recording.events
        self._calls = calls
        self._turns = turns
        self._root = recording.first_writer
        self._near = _Near(recording) if calls is None and not recording.is_small else None
        self._questions = 0

    # calls and turns ------------------------------------------------------------------------------

    @property
    def calls(self) -> Sequence[Call]:
        """The recorded calls in the order they began."""
        return self._recording.calls() if self._calls is None else self._calls

    @cached_property
    def turns(self) -> list[Turn]:
        """The turns with their recorded tools; turn n is element n - 1."""
        return group_turns(self.calls) if self._turns is None else self._turns

    def call_of(self, event: Event) -> Call | None:
        """Return the call that an event begins or ends."""
        return None if event.index is None else self._of_event.get(event.index)

    def call_named(self, name: str | None) -> Call | None:
        """Return the call with an id, the first if several share it."""
        return self._by_id.get(name) if name is not None else None

    def model_call_of(self, event: Event) -> Call | None:
        """Return the model call an event belongs to; None before the first."""
        call = self.call_of(event) or self._linked(event)
        if call is not None and call.kind == MODEL:
            return call
        if call is not None and call.requested_by is not None:
            return call.requested_by
        lane = text_link(links_of(event), "lane")
        keys = ((event.writer, lane), (event.writer, None), (None, None))
        at = self._position(event)
        found = (self._latest(key, at) for key in (keys if lane is not None else keys[1:]))
        return next((call for call in found if call is not None), None)

    def turn_of(self, event: Event) -> Turn | None:
        """Return the turn an event belongs to; None before the first."""
        call = self.model_call_of(event)
        return None if call is None else self._turn_of_call.get(id(call))

    def turn_of_call(self, event: Event) -> Turn | None:
        """Return the turn of the call an event begins or ends; None for an event outside every call."""
        return self.turn_of(event) if self.call_of(event) is not None else None

    def request_of(self, event: Event) -> Event | None:
        """Return the request that led to an event; None if there is none, or it is not recorded."""
        if base_kind(event) == schema.MODEL_REQUEST:
            return event
        if event.index is not None and (near := self._ask_near()) is not None:
            try:
                begin = near.model_begin(event.index)
                found = None if begin is None else self._events[begin]
                return found if found is not None and base_kind(found) == schema.MODEL_REQUEST else None
            except _TooFar:
                pass
        call = self.model_call_of(event)
        begun = None if call is None else call.begin
        return begun if begun is not None and base_kind(begun) == schema.MODEL_REQUEST else None

    def tools_of(self, call: Call) -> list[Call]:
        """Return the recorded tool calls a model call led to, in the order they began."""
        return self._tools.get(id(call), [])

    @cached_property
    def _of_event(self) -> dict[int, Call]:
        found: dict[int, Call] = {}
        for call in self.calls:
            for event in (call.begin, call.end):
                if event is not None and event.index is not None:
                    found[event.index] = call
        return found

    @cached_property
    def _by_id(self) -> dict[str, Call]:
        return {call.id: call for call in reversed(self.calls) if call.id is not None}

    @cached_property
    def kept_as(self) -> dict[str, list[Call]]:
        """Model calls by the ids under which later requests may continue them at the provider."""
        return calls_by_kept_name(self.calls)

    @property
    def is_whole(self) -> bool:
        """True if it has all calls of the run."""
        return self._calls is None

    @cached_property
    def _turn_of_call(self) -> dict[int, Turn]:
        return {id(call): turn for turn in self.turns for call in turn.attempts}

    @cached_property
    def _turn_by_id(self) -> dict[str, Turn]:
        """By the id of a model call or of a recorded tool."""
        calls = ((call, turn) for turn in reversed(self.turns) for call in (*turn.tools, *turn.attempts))
        return {call.id: turn for call, turn in calls if call.id is not None}

    @cached_property
    def _tools(self) -> dict[int, list[Call]]:
        found: dict[int, list[Call]] = {}
        for call in self.calls:
            if call.kind == TOOL and call.requested_by is not None:
                found.setdefault(id(call.requested_by), []).append(call)
        return found

    def _linked(self, event: Event) -> Call | None:
        """Return the call that an event outside every call names."""
        links = links_of(event)
        for key in ("call", "parent"):
            call = self.call_named(text_link(links, key))
            if call is not None and (call.event.index or 0) < self._position(event):
                return call
        return None

    def _position(self, event: Event) -> int:
        """Return where an event stands; bookkeeping stands before all others, the end of a run after them."""
        if event.index is not None:
            return event.index
        return self._recording.count() if event.kind == schema.RUN_END else -1

    def _latest(self, key: tuple[str | None, str | None], before: int) -> Call | None:
        """Return the latest model call of a lane, a writer or the run that began before a place."""
        calls = self._model_calls.get(key, [])
        at = bisect_left(calls, before, key=lambda call: call.event.index or 0)
        return calls[at - 1] if at else None

    @cached_property
    def _model_calls(self) -> dict[tuple[str | None, str | None], list[Call]]:
        """Model calls of each lane, each writer and the run, in order."""
        found: dict[tuple[str | None, str | None], list[Call]] = {}
        for call in self.calls:
            if call.kind == MODEL:
                writer = call.event.writer
                for key in ((writer, call.lane), (writer, None), (None, None)):
                    found.setdefault(key, []).append(call)
        return found

    # lanes ----------------------------------------------------------------------------------------

    def lane_of(self, call: Call) -> str:
        """Return the lane of a call as it is named in a run of several processes."""
        parent = self.call_named(call.parent) if call.kind == TOOL else None
        if parent is not None and parent.kind == MODEL and parent.lane == call.lane:
            call = parent
        return lane_name(call.lane, call.event.writer, self._root)

    @cached_property
    def lanes(self) -> dict[Lane, list[Call]]:
        """The model calls of each lane, lanes in order of appearance."""
        found: dict[Lane, list[Call]] = {}
        for call in self.calls:
            if call.kind == MODEL:
                found.setdefault((call.event.writer, call.lane), []).append(call)
        return found

    def calls_before(self, call: Call, most: int = 1) -> list[Call]:
        """Return the model calls before one in its lane, the latest first."""
        place, calls = self._place[id(call)], self.lanes[call.event.writer, call.lane]
        return calls[max(0, place - most) : place][::-1]

    def calls_after(self, call: Call, most: int = 1) -> list[Call]:
        """Return the next model calls of the same lane."""
        place, calls = self._place[id(call)] + 1, self.lanes[call.event.writer, call.lane]
        return calls[place : place + most]

    @cached_property
    def _place(self) -> dict[int, int]:
        return {id(call): place for calls in self.lanes.values() for place, call in enumerate(calls)}

    def turns_before(self, turn: Turn, most: int = 1) -> list[Turn]:
        """Return the turns before one in its lane, the latest first."""
        place, turns = self._turn_place[turn.number]
        return turns[max(0, place - most) : place][::-1]

    def turn_after(self, turn: Turn) -> Turn | None:
        """Return the next turn of the same lane."""
        place, turns = self._turn_place[turn.number]
        return turns[place + 1] if place + 1 < len(turns) else None

    @cached_property
    def _turn_place(self) -> dict[int, tuple[int, list[Turn]]]:
        """By the number of a turn: its place in its lane, and the turns of that lane."""
        lanes: dict[Lane, list[Turn]] = {}
        found: dict[int, tuple[int, list[Turn]]] = {}
        for turn in self.turns:
            turns = lanes.setdefault((turn.request.writer, turn.lane), [])
            found[turn.number] = len(turns), turns
            turns.append(turn)
        return found

    # by place in the run, without reading all of a large one --------------------------------------

    @property
    def has_turns(self) -> bool:
        """False for a run without a model call."""
        if self._near is not None and not self._recording.has_joined:
            return self._near.has_turns
        return bool(self.turns)

    def lane_at(self, index: int) -> str:
        """Return the lane of the event with this index."""
        if (near := self._ask_near()) is not None:
            try:
                return near.lane(index)
            except _TooFar:
                pass
        event = self._events[index]
        call = self.call_of(event)
        if call is not None:
            return self.lane_of(call)
        lane = text_link(links_of(event), "lane")
        linked = self._linked(event) if lane is None else None
        if linked is not None:
            return self.lane_of(linked)
        return lane_name(lane or MAIN, event.writer, self._root)

    def turn_at(self, index: int) -> int:
        """Return the number of the turn that the event with this index belongs to; 0 before the first."""
        return self.turn_number(self._events[index])

    def turn_number(self, event: Event) -> int:
        """Return the number of the turn an event belongs to; 0 before the first."""
        if not self.has_turns:
            return 0
        if event.index is not None and (near := self._ask_near()) is not None:
            try:
                return near.turn(event.index)
            except _TooFar:
                pass
        turn = self.turn_of(event)
        return 0 if turn is None else turn.number

    def begin_of_turn(self, number: int) -> Event | None:
        """Return the request a turn begins with; None if there is no such turn."""
        near = self._near
        if near is None or self._recording.has_joined or not near.counts_turns:
            return self.turns[number - 1].request if 0 < number <= len(self.turns) else None
        if not 0 < number <= self._recording.tot["turns"]:
            return None
        at = bisect_left(range(len(self._events)), number, key=near.turns_through)
        return self._events[at] if at < len(self._events) else None

    def nearby(self, index: int) -> tuple[int, str] | None:
        """Return turn and lane of an event, None if that would take joining all calls of a large run."""
        if self._near is None or self._recording.has_joined:
            return self.turn_at(index), self.lane_at(index)
        try:
            return self._near.turn(index) if self.has_turns else 0, self._near.lane(index)
        except (_TooFar, NotIndexed):
            return None

    def cause_at(self, index: int) -> int | None:
        """Return the event one follows from: an end from its begin, a tool from its model call,
        the request of an agent inside a tool from that tool."""
        if (near := self._ask_near()) is not None:
            try:
                return near.cause(index)
            except _TooFar:
                pass
        event = self._events[index]
        call = self.call_of(event)
        if call is None:
            cause = self._linked(event)
        elif call.begin is not None and call.begin.index != index:
            cause = call
        else:
            cause = self.call_named(call.parent) or call.requested_by
        found = cause.event.index if cause is not None else None
        return found if found is not None and found < index else None

    def _ask_near(self) -> _Near | None:
        """Return what answers from the events nearby; None once all calls are joined, or that is cheaper."""
        if self._near is None or self._recording.has_joined:
            return None
        self._questions += 1
        return self._near if self._questions < _QUESTIONS + len(self._events) // 50 else None

    # lines of work --------------------------------------------------------------------------------

    def previous(self, turn: Turn) -> Turn | None:
        """Return the turn whose conversation this one continues: as its request says, else by its lane."""
        request = turn.request
        fields = request.stored_fields if request.kind == schema.MODEL_REQUEST else {}
        for name in _continues(fields):
            found = self._turn_by_id.get(name)
            if found is not None and found.number < turn.number:
                return found
        return self._ended_before(turn)

    def _ended_before(self, turn: Turn) -> Turn | None:
        """Return the nearest turn of the lane that had ended when this one began; others ran beside it."""
        place, turns = self._turn_place[turn.number]
        before = (turns[at] for at in range(place - 1, -1, -1))
        return next((one for one in before if _is_before(one.response, turn.request)), None)

    def past(self, event: Event) -> Iterator[Event]:
        """Yield what came before an event in its line of work, nearest first.

        A line of work is a turn, the turn whose conversation it continues, and so on back to the first:
        parallel agents stand mixed in one file, where nearness proves nothing.
        """
        turn, before = self.turn_of_call(event), event.index or 0
        seen: set[int] = set()
        while turn is not None and turn.number not in seen:
            seen.add(turn.number)
            yield from reversed([one for one in _events_of(turn) if _number(one) < before])
            turn = self.previous(turn)

    def future(self, event: Event) -> Iterator[Event]:
        """Yield what came after an event in its line of work, nearest first."""
        turn = self.turn_of_call(event)
        if turn is None or event.index is None:
            return
        line = {turn.number}
        yield from (one for one in _events_of(turn) if _number(one) > event.index)
        for later in self.turns[turn.number :]:
            previous = self.previous(later)
            if previous is not None and previous.number in line:
                line.add(later.number)
                yield from _events_of(later)


def _events_of(turn: Turn) -> list[Event]:
    found = {
        event.index: event
        for call in (*turn.attempts, *turn.tools)
        for event in (call.begin, call.end)
        if event is not None and event.index is not None
    }
    return [found[index] for index in sorted(found)]


def _number(event: Event) -> int:
    return -1 if event.index is None else event.index


def _is_before(event: Event | None, later: Event) -> bool:
    return event is not None and _number(event) < _number(later)


def _continues(fields: dict[str, Any]) -> Iterator[str]:
    """Yield the calls a request names as its origin, the surest first: the newest answer it holds,
    the request it continues, the call that began it."""
    body, keep = fields.get("body"), kept(fields)
    for name in schema.LISTS:
        elements = body.get(name) if type(body) is dict else None
        for element in reversed(elements if type(elements) is list else []):
            answer = answer_named(element)
            if answer is not None:
                yield answer
    keeps_messages = any(keep.get(name) for name in schema.LISTS)
    for call in (base_of(fields) if keeps_messages else None, fields.get("parent")):
        if type(call) is str:
            yield call


class _TooFar(Exception):
    """What decides is not among the events nearby: all calls have to be joined."""


class _Near:
    """The same rules for one event of a large run, from the heads of the lines before it."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._events = recording.events
        self._root = recording.first_writer
        self._is_alone = len(recording.writers) == 1
        """One writer: the ``turns`` it counted are those of the run."""
        self._begins: dict[str, int] = {}
        self._counted: dict[int, int] = {}
        self._last = -1, 0
        """The latest event, and the turns through it."""

    @cached_property
    def has_turns(self) -> bool:
        return self._recording.tot["turns"] > 0

    def lane(self, index: int, depth: int = 0) -> str:
        event = self._events[index]
        lane = text_link(links_of(event), "lane")
        if lane is None and not is_model_begin(event) and depth < _DEEPEST:
            cause = self.cause(index)
            if cause is not None and self._takes_lane_of(event, self._events[cause]):
                return self.lane(cause, depth + 1)
        return lane_name(lane or MAIN, event.writer, self._root)

    def _takes_lane_of(self, event: Event, cause: Event) -> bool:
        """False for a tool that only stands after the model call of another process."""
        named = text_link(links_of(event), "parent")
        return named is not None or not is_tool_begin(event) or event.writer == cause.writer

    def turn(self, index: int) -> int:
        begin = self.model_begin(index)
        return 0 if begin is None else self.turns_through(self._first_attempt(begin))

    def model_begin(self, index: int) -> int | None:
        """Return where the model call begins that an event belongs to."""
        at = index
        for _ in range(_DEEPEST):
            if is_model_begin(self._events[at]):
                return at
            cause = self.cause(at)
            if cause is None:
                break
            at = cause
        return self._latest(index)

    def cause(self, index: int) -> int | None:
        event = self._events[index]
        links, kind = links_of(event), base_kind(event)
        own, parent = text_link(links, "call"), text_link(links, "parent")
        if kind in _ENDS:
            if own is None:
                raise _TooFar  # paired by the rules of its dialect
            return self._begin(own, index)
        self._note(own, index)
        if parent is not None and parent != own:
            begin = self._begin(parent, index)
            if begin is not None:
                return begin
        if own is not None and kind not in _BEGINS:
            return self._begin(own, index)
        return self._latest(index) if is_tool_begin(event) else None

    def _note(self, call: str | None, index: int) -> None:
        if call is not None:
            self._begins.setdefault(call, index)
            if len(self._begins) > _MOST_BEGINS:
                del self._begins[next(iter(self._begins))]

    def _begin(self, call: str, index: int) -> int | None:
        """Return where a call began before an event."""
        known = self._begins.get(call)
        if known is not None and known < index:
            return known
        for at in range(index - 1, max(-1, index - _NEAR), -1):
            event = self._events[at]
            if base_kind(event) in _BEGINS:
                own = text_link(links_of(event), "call")
                self._note(own, at)
                if own == call:
                    return at
        self._check_near(index)
        return None

    def _latest(self, index: int) -> int | None:
        """Return the latest model call before an event in its lane, else in its process, else in the run."""
        event = self._events[index]
        lane = text_link(links_of(event), "lane")
        if lane is None and is_tool_begin(event):
            lane = MAIN
        of_writer = of_run = None
        stop = -1 if self._is_alone and lane is None else max(-1, index - _NEAR)
        for at in range(index - 1, stop, -1):
            earlier = self._events[at]
            if not is_model_begin(earlier):
                continue
            if earlier.writer == event.writer:
                if lane is None or lane == (text_link(links_of(earlier), "lane") or MAIN):
                    return at
                of_writer = at if of_writer is None else of_writer
            of_run = at if of_run is None else of_run
        self._check_near(index)
        return of_run if of_writer is None else of_writer

    def _first_attempt(self, begin: int) -> int:
        """Return where the turn of a model call begins, if that is a retry."""
        event = self._events[begin]
        if is_turn_begin(event):
            return begin
        lane = text_link(links_of(event), "lane") or MAIN
        for at in range(begin - 1, max(-1, begin - _NEAR), -1):
            earlier = self._events[at]
            if is_turn_begin(earlier) and earlier.writer == event.writer:
                if (text_link(links_of(earlier), "lane") or MAIN) == lane:
                    return at
        raise _TooFar

    def _check_near(self, index: int) -> None:
        """Raise if not all events before one were looked at."""
        if index >= _NEAR:
            raise _TooFar

    @property
    def counts_turns(self) -> bool:
        """True if a turn can be found by its number: the only writer has counted them."""
        return self._is_alone and self.has_turns

    def turns_through(self, index: int) -> int:
        """Return how many turns began up to an event, itself included."""
        begun, at = 0, index
        passed: list[tuple[int, int]] = []
        while at >= 0:
            known = self._last[1] if at == self._last[0] else self._counted.get(at)
            event = self._events[at]
            if known is None and self._is_alone and base_kind(event) in _COUNTING:
                known = _turns_counted(event)
            if known is not None:
                begun += known
                break
            if at % _KEPT == 0:
                passed.append((at, begun))
            begun += is_turn_begin(event)
            at -= 1
        for place, later in passed:
            self._counted[place] = begun - later
        self._last = index, begun
        return begun


_ENDS = frozenset((schema.MODEL_RESPONSE, schema.TOOL_RESULT, schema.OLD_TOOL_RESULT, schema.HTTP_RESPONSE))
_BEGINS = frozenset(
    (schema.MODEL_REQUEST, schema.TOOL_CALLED, schema.HTTP_REQUEST, schema.LLM_CALL, schema.TOOL_CALL)
)
_COUNTING = frozenset(
    (schema.MODEL_RESPONSE, schema.TOOL_RESULT, schema.LLM_CALL, schema.TOOL_CALL, schema.ERROR)
)


def _turns_counted(event: Event) -> int | None:
    """Return the turns its writer had counted at an end."""
    tot = event.tot if event.is_ours else None
    turns = tot.get("turns") if type(tot) is dict else None
    return turns if type(turns) is int and turns >= 0 else None
