"""Which lane and which turn an event belongs to, looked up near it, so that moving stays cheap.

A begin event names its lane, an end leads to it by its call, a tool by its parent. What other processes
do in their main lane is a lane of its own, named like their addresses.
"""

from __future__ import annotations

from .. import schema
from ..tracefile.event import Event
from ..tracefile.line_heads import base_kind, is_model_begin, is_turn_begin, links_of, text_link
from .recording import Recording

MAIN = "main"

_NEAR = 400
"""Events before an end among which its begin is sought before all calls are joined."""

_DEEPEST = 20
"""Calls within calls that are followed."""

_KEPT = 64
"""Every so many events the number of turns so far is remembered."""


def lane_name(lane: str, writer: str, root: str | None) -> str:
    """Return the lane; the main lane of a further process is its own, named like its addresses."""
    return f"p{writer[:4]}" if lane == MAIN and writer != root else lane


class Lanes:
    """Lanes and turns of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._events = recording.events
        writers = recording.writers
        self._root = writers[0] if writers else ""
        self._summed = len(writers) == 1
        """One writer: the ``turns`` it summed up are the run's."""
        self._has_turns: bool | None = None
        self._begins: dict[str, int] = {}
        self._joined: dict[int, int] | None = None
        self._counted: dict[int, int] = {}

    def of(self, index: int, depth: int = 0) -> str:
        """Return the lane of the event with this index."""
        event = self._events[index]
        links = links_of(event)
        lane = text_link(links, "lane")
        if lane is None and not is_model_begin(event):
            begin = self.led_by(index, event)
            if begin is not None and depth < _DEEPEST:
                return self.of(begin, depth + 1)
        return self.named(event, lane or MAIN)

    def led_by(self, index: int, event: Event | None = None) -> int | None:
        """Return the event this one follows from: an end from its begin, a tool from its model call."""
        event = self._events[index] if event is None else event
        links = links_of(event)
        kind = base_kind(event)
        own, parent = text_link(links, "call"), text_link(links, "parent")
        if kind in (schema.MODEL_RESPONSE, schema.TOOL_RESULT, schema.OLD_TOOL_RESULT):
            return self._begin(own, index) if own else self._joined_begin(index)
        self._note(own, index)
        return self._begin(parent, index) if parent is not None and parent != own else None

    @property
    def has_turns(self) -> bool:
        """False for a run without a model call."""
        if self._has_turns is None:
            self._has_turns = self._recording.tot["turns"] > 0
        return self._has_turns

    def turn(self, index: int) -> int:
        """Return the turn of the event with this index, 1-based; 0 before the first."""
        if not self.has_turns:
            return 0
        at: int | None = index
        for _ in range(_DEEPEST):
            if at is None or is_model_begin(self._events[at]):
                break
            at = self.led_by(at)
        return self._turns_through(index if at is None else at)

    def named(self, event: Event, lane: str) -> str:
        """Return a lane as it is named in a run of several processes."""
        return lane_name(lane, event.writer, self._root)

    def _note(self, call: str | None, index: int) -> None:
        if call is not None:
            self._begins.setdefault(call, index)

    def _begin(self, call: str, index: int) -> int | None:
        """Return where a call began before an event: nearby, else among all calls."""
        known = self._begins.get(call)
        if known is not None and known < index:
            return known
        for at in range(index - 1, max(-1, index - _NEAR), -1):
            event = self._events[at]
            if base_kind(event) not in (schema.MODEL_RESPONSE, schema.TOOL_RESULT):
                own = text_link(links_of(event), "call")
                self._note(own, at)
                if own == call:
                    return at
        if self._joined is None:
            self._join()
        known = self._begins.get(call)
        return known if known is not None and known < index else None

    def _joined_begin(self, index: int) -> int | None:
        """Return the begin of an end without a call id, as the rules of its dialect pair them."""
        if self._joined is None:
            self._join()
        return (self._joined or {}).get(index)

    def _join(self) -> None:
        self._joined = {}
        for call in self._recording.calls():
            begin = call.begin.index if call.begin is not None else None
            if begin is None:
                continue
            self._note(call.id, begin)
            if call.end is not None and call.end.index is not None and call.end.index > begin:
                self._joined[call.end.index] = begin

    def _turns_through(self, index: int) -> int:
        """Return how many turns began up to an event, itself included."""
        begun, at = 0, index
        passed: list[tuple[int, int]] = []
        while at >= 0:
            known = self._counted.get(at)
            event = self._events[at]
            if known is None and self._summed and base_kind(event) in _ENDS:
                known = _told(event)
            if known is not None:
                begun += known
                break
            if at % _KEPT == 0:
                passed.append((at, begun))
            begun += is_turn_begin(event)
            at -= 1
        for place, later in passed:
            self._counted[place] = begun - later
        self._counted[index] = begun
        return begun


_ENDS = frozenset(
    (schema.MODEL_RESPONSE, schema.TOOL_RESULT, schema.LLM_CALL, schema.TOOL_CALL, schema.ERROR)
)


def _told(event: Event) -> int | None:
    """Return the turns its writer had counted at an end."""
    tot = event.tot if event.is_ours else None
    turns = tot.get("turns") if type(tot) is dict else None
    return turns if type(turns) is int and turns >= 0 else None
