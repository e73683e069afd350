"""Calls within calls: a tool within the model call that requests it, a sub-agent within the tool it ran in.

Needs all calls, so it is built when first needed. A sub-agent's requests do not say which tool they ran
in: it is the one of another lane that was open when the lane began, of several the first not yet taken.
"""

from __future__ import annotations

from ..tracefile.events.event import Event
from .calls import MODEL, TOOL, Call
from .derived_events import DerivedEvent
from .derived_tools import DerivedCall
from .index import MAIN, Index
from .recording import Recording

_DEEPEST = 100
"""Calls and lanes within each other that are followed."""

_MOST_OPEN = 1000
"""Tool calls without an end, the latest, among which the one around a sub-agent is sought."""


class CallTree:
    """The calls of a recording by event, with their parents and children."""

    def __init__(self, recording: Recording) -> None:
        self._index = recording.index
        self._parents: dict[int, Call] = {}
        self._children: dict[int, list[Call]] = {}
        self.lane_calls: dict[str, list[Call]] = {}
        """Calls of each lane, lanes in order of appearance."""
        calls = recording.calls(derived=True)
        self._derived = {
            (call.event.index or 0, call.order): call for call in calls if isinstance(call, DerivedCall)
        }
        _Planter(self, recording.index).plant(calls)

    def call_at(self, event: Event) -> Call | None:
        """Return the call that an event begins or ends, a derived one too."""
        if isinstance(event, DerivedEvent):
            return self._derived.get((event.index or 0, event.call.order))
        return self._index.call_of(event)

    def parent(self, call: Call) -> Call | None:
        """Return the call this one was made in."""
        return self._parents.get(id(call))

    def children(self, call: Call) -> list[Call]:
        """Return the calls that were made in this one, in order."""
        return self._children.get(id(call), [])

    def enclosing(self, event: Event) -> Call | None:
        """Return the innermost call that was still open at an event, its own left out."""
        call = self.call_at(event)
        for _ in range(_DEEPEST):
            call = None if call is None else self.parent(call)
            if call is None or _is_within(event, call):
                return call
        return None

    def link(self, call: Call, parent: Call) -> None:
        self._parents[id(call)] = parent
        self._children.setdefault(id(parent), []).append(call)


class _Planter:
    """Goes through the calls once in the order they began."""

    def __init__(self, tree: CallTree, index: Index) -> None:
        self._tree = tree
        self._index = index
        self._lane_of: dict[int, str] = {}
        self._open: list[Call] = []
        """Tool calls that may not have ended."""
        self._inside: dict[str, Call] = {}
        """The tool call that each lane ran in last."""
        self._taken: set[int] = set()
        """The tool calls that a lane ran in."""

    def plant(self, calls: list[Call]) -> None:
        for call in calls:
            index = call.event.index
            if index is None:
                continue
            lane = self._lane_of[id(call)] = self._index.lane_of(call)
            self._tree.lane_calls.setdefault(lane, []).append(call)
            parent = self._index.call_named(call.parent)
            if parent is None or parent is call or (parent.event.index or 0) > index:
                parent = call.requested_by if call.kind == TOOL else self._tool_around(lane, index)
            if parent is not None:
                self._tree.link(call, parent)
            if call.kind != MODEL and call.end is not call.begin:
                self._open.append(call)
                if len(self._open) > 2 * _MOST_OPEN:
                    self._open = self._open_at(index)[-_MOST_OPEN:]

    def _open_at(self, index: int) -> list[Call]:
        return [call for call in self._open if _is_open_at(call, index)]

    def _tool_around(self, lane: str, index: int) -> Call | None:
        inside = self._inside.get(lane)
        if lane == MAIN or (inside is not None and _is_open_at(inside, index)):
            return inside
        self._open = self._open_at(index)
        around = [call for call in self._open if not self._is_inside(call, lane)]
        free = [call for call in around if id(call) not in self._taken] or around
        if not free:
            return None
        # Tools requested together start their sub-agents in the same order.
        chosen = next(call for call in free if call.parent == free[-1].parent)
        self._inside[lane] = chosen
        self._taken.add(id(chosen))
        return chosen

    def _is_inside(self, call: Call, lane: str) -> bool:
        """True if a tool call was made by the lane itself or by one that runs within it."""
        at = self._lane_of[id(call)]
        for _ in range(_DEEPEST):
            if at == lane:
                return True
            outer = self._inside.get(at)
            if outer is None:
                return False
            at = self._lane_of[id(outer)]
        return True


def _is_open_at(call: Call, index: int) -> bool:
    return call.end is None or (call.end.index or 0) > index


def _is_within(event: Event, call: Call) -> bool:
    begin, end = call.event.index, call.end.index if call.end is not None else None
    here = event.index
    return begin is not None and here is not None and begin < here and (end is None or here < end)
