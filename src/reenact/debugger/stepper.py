"""Stepper: a cursor in a recording that moves both ways, by lane, call, breakpoint, watch or text.

The engine under ``reenact debug`` and whatever else shows a run event by event: no output, no input.
Moving reads the events it passes; nothing in the run is ever executed. Derived tools are stopped at like
recorded ones: the cursor is at a place among the entries (``recording.derived_events``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from .. import schema
from ..errors import NoSuchEvent, UsageError
from ..money.prices import Book
from ..recording.call_tree import CallTree
from ..recording.calls import Call
from ..recording.derived_events import DerivedEvent, Entries, Place
from ..recording.derived_tools import DerivedCall
from ..recording.index import MAIN
from ..recording.recording import Recording
from ..recording.run_lines import Events
from ..stats.rows import RunStats
from ..stats.sums import Gatherer
from ..tracefile import run_files
from ..tracefile import status as states
from ..tracefile.events.event import Event, base_kind, is_model_begin, is_tool_begin, is_turn_begin
from .breakpoints import Progress, Reason, Repeats, Stops, change_before
from .expressions import Expr, check_names
from .search import TextSearch

# Where to go, as it is typed: an address, ``#index``, ``-1``, ``%50``, ``first``, ``last`` or ``@mark``.

_MARK = re.compile(r"[A-Za-z_]\w*\Z")
_RESERVED = ("error", "first", "last")
_COUNTED = re.compile(r"([#%-])(\d{1,18})\Z", re.ASCII)


def _counted(sign: str, number: int, count: int) -> int:
    if sign == "%" and number <= 100:
        return round((count - 1) * number / 100)
    index = number if sign == "#" else count - number
    if sign == "%" or not 0 <= index < count:
        message = f"no event is at {sign}{number}"
        raise NoSuchEvent(message, asked=f"{sign}{number}", hint=f"the run has {count:,} events")
    return index


def _beside(recording: Recording, event: Event) -> int:
    """Return the event next to one of the recorder's own lines."""
    step = event.step or 0
    for near in (*range(step + 1, step + 10), *range(step - 1, step - 10, -1)):
        found = recording.at_step(near, event.writer) if near > 0 else None
        if found is not None and found.index is not None:
            return found.index
    return 0


END, BEGINNING = "End of trace.", "Beginning of trace."
STILL_GOING = "The run is still going; no newer event yet."

_MODEL = frozenset((schema.MODEL_REQUEST, schema.MODEL_RESPONSE, schema.LLM_CALL))

_EVERY = 255
"""Progress is reported once in so many events (a mask)."""


class Move(NamedTuple):
    """How a move ended."""

    moved: bool
    note: str = ""
    """Why it went no further, or nowhere."""
    reasons: tuple[Reason, ...] = ()


class Stepper:
    """A position among a recording's events, and what one needs to choose the next one."""

    def __init__(self, load: Callable[[], Recording]) -> None:
        """``load`` opens the recording, and opens it again when its file has grown."""
        self.load = load
        self.on_progress: Progress | None = None
        """Called with how many of how many events were looked at, now and then."""
        self.stops = Stops(self)
        self.marks: dict[str, Place] = {}
        self._trail: list[Place] = []
        self._trail_at = -1
        self._pattern: TextSearch | None = None
        self._open()
        self.place: Place = (0, 0)
        self._visit(self.place)

    def _open(self) -> None:
        self._size = 0
        self.recording = self.load()
        self._size = self._bytes()
        self.events: Events = self.recording.events
        self.entries: Entries = self.recording.entries
        self._tree: CallTree | None = None
        self._repeats = Repeats()
        self.__dict__.pop("_fields", None)
        self._sums: Gatherer | None = None
        self._summed = 0

    @property
    def index(self) -> int:
        """The index of the event the cursor is at, or beside which its entry stands."""
        return self.place[0]

    @property
    def event(self) -> Event:
        """The event the cursor is at."""
        if not self.events:
            raise NoSuchEvent("there is no event in this run", asked="the current event")
        return self.entries[self.place]

    @property
    def tree(self) -> CallTree:
        """Calls within calls; the first time this reads the whole run."""
        if self._tree is None:
            self._tree = CallTree(self.recording)
        return self._tree

    def lane_at(self, index: int) -> str:
        """Return the lane of the event with this index."""
        return self.recording.index.lane_at(index)

    def turn_at(self, index: int) -> int:
        """Return the number of the turn that an event belongs to; 0 before the first."""
        return self.recording.index.turn_at(index)

    def caller(self, event: Event) -> Event | None:
        """Return where the call began that an event ends, or that led to the call it begins."""
        index = event.index or 0
        if isinstance(event, DerivedEvent) and not event.is_call:
            return self.entries[index, event.call.order + 1]
        begin = self.recording.index.cause_at(index)
        if begin is None and (is_tool_begin(event) or self.lane_at(index) != MAIN):
            call = self.tree.call_at(event)
            parent = self.tree.parent(call) if call is not None else None
            return None if parent is None else parent.event
        return None if begin is None else self.events[begin]

    def expression(self, text: str) -> Expr:
        """Return a checked expression; a field that no event of a run has is an error, unless it is large."""
        expr = Expr(text)
        if self.events and self.recording.is_small and self.recording.status != states.RUNNING:
            check_names(expr, lambda: self._fields)
        return expr

    @cached_property
    def _fields(self) -> set[str]:
        return {name for event in self.events for name in event.stored_fields} | {"at_most_ms", "source"}

    def progress(self, done: int, total: int) -> None:
        """Say how far a long look has come, for whoever listens."""
        if self.on_progress is not None and not done & _EVERY:
            self.on_progress(done, total)

    def repeats(self, event: Event) -> int:
        """Return how often the tool call at an event was made in its lane by then, equal arguments."""
        return self._repeats.of(event, self)

    def spent(self) -> RunStats:
        """Return the figures of the model calls up to the cursor; after a move back it sums up anew."""
        if self._sums is None or self._summed > self.index + 1:
            self._sums, self._summed = Gatherer(self.recording.path, self.recording.run_id, self._book), 0
        for at in range(self._summed, self.index + 1):
            self.progress(at, self.index)
            event = self.events[at]
            if base_kind(event) in _MODEL:
                self._sums.add(event)
        self._summed = max(self._summed, self.index + 1)
        return self._sums.row

    @cached_property
    def _book(self) -> Book:
        return Book.open()

    # moving ---------------------------------------------------------------------------------------

    def step(self, direction: int = 1) -> Move:
        """Go to the next event, or the one before, whichever lane it is in."""
        to = self._beyond(self.place, direction)
        return self._stay(direction) if to is None else self._go(to)

    def next(self, direction: int = 1) -> Move:
        """Go to the next event of this lane, or the one before."""
        if not self.events:
            return self._stay(direction)
        lane, passed = self._lane(self.place), False
        to = self._beyond(self.place, direction)
        while to is not None:
            self.progress(abs(to[0] - self.index), len(self.events))
            if self._lane(to) == lane:
                return self._go(to)
            to, passed = self._beyond(to, direction), True
        if passed:
            side = "after" if direction > 0 else "before"
            return Move(
                False,
                f"No event of lane {lane} comes {side} this one; {'s' if direction > 0 else 'rs'} continues.",
            )
        return self._stay(direction)

    def turn(self, direction: int = 1) -> Move:
        """Go to where the next turn begins, or the one before; before the first one to the first event."""
        if not self.events:
            return self._stay(direction)
        begins = (at for at in self._from_here(direction) if is_turn_begin(self.events[at]))
        if direction < 0:
            next(begins, None)  # where this one begins
        to = next(begins, None)
        if to is None and direction > 0:
            return Move(False, "This is the last turn.")
        return self._go((to or 0, 0))

    def _from_here(self, direction: int) -> Iterator[int]:
        indexes = range(self.index + 1, len(self.events)) if direction > 0 else range(self.index, -1, -1)
        for passed, index in enumerate(indexes):
            self.progress(passed, len(indexes))
            yield index

    def out(self) -> Move:
        """Go to where the call begun here ends, else out to the end of the call around it."""
        event = self.event
        call = self.tree.call_at(event)
        is_begin = is_tool_begin(event) or is_model_begin(event)
        if call is None or not is_begin or call.end == event:
            call = self.tree.enclosing(event)
        if call is None:
            return Move(False, "No call is open around this event; c continues.")
        to = self.end_of(call)
        return Move(False, "That call has no end in the trace.") if to is None else self._go(to)

    def end_of(self, call: Call) -> Place | None:
        """Return where a call ends; None if it has no end."""
        if isinstance(call, DerivedCall):
            return self.entries.result_place(call)
        return None if call.end is None or call.end.index is None else (call.end.index, 0)

    def up(self) -> Move:
        """Go to the call this one was made in."""
        call = self.tree.call_at(self.event)
        parent = self.tree.parent(call) if call is not None else None
        if parent is None or parent.event.index is None:
            return Move(False, "No call led to this event.")
        return self._go(_begin_of(parent))

    def down(self) -> Move:
        """Go to the first call that was made in this one."""
        call = self.tree.call_at(self.event)
        children = self.tree.children(call) if call is not None else []
        if not children or children[0].event.index is None:
            return Move(False, "This event led to no call.")
        return self._go(_begin_of(children[0]))

    def run(self, direction: int = 1, limit: Place | None = None) -> Move:
        """Go on until a breakpoint or watch stops it, or to the end; not beyond ``limit``."""
        start = seen = self.place
        stop = self.stops.next(start, direction, limit) if self.events else None
        while stop is None and limit is None and direction > 0:
            seen = self._last
            if not self.refresh():
                break
            stop = self.stops.next(seen, direction)
        if stop is not None:
            return self._go(stop[0])._replace(reasons=tuple(stop[1]))
        end = limit if limit is not None else self._last if direction > 0 else (0, 0)
        if not self.events or end == start:
            return self._stay(direction)
        return self._go(end)._replace(note="" if limit is not None else self._end_note(direction))

    def until(self, address: str | None = None) -> Move:
        """Go on to an address, or to the next turn of this lane; stops on the way count."""
        if address is None:
            lane = self.lane_at(self.event.index or 0)
            later = range(self.index + 1, len(self.events))
            here = (at for at in later if is_turn_begin(self.events[at]) and self.lane_at(at) == lane)
            to = next(here, None)
            return self.run() if to is None else self.run(limit=(to, 0))
        limit = self.resolve(address)
        if limit <= self.place:
            raise UsageError(f"{address} is not after this event", hint=f"`j {address}` goes there")
        return self.run(limit=limit)

    def go(self, address: str) -> Move:
        """Go to an address, ``#index``, ``-1``, ``%50`` or ``@mark``."""
        return self._go(self.resolve(address))

    def retrace(self, direction: int) -> Move:
        """Go to where the cursor was before, or forward again."""
        at = self._trail_at + direction
        if not 0 <= at < len(self._trail):
            return Move(False, "No earlier position." if direction < 0 else "No later position.")
        self._trail_at = at
        self.place = min(self._trail[at], self._last)
        return Move(True)

    def find(self, pattern: str, direction: int = 1) -> Move:
        """Go to the next event, or the one before, with a text that matches; "" looks for the last again."""
        if pattern:
            self._pattern = TextSearch(pattern)
        if self._pattern is None:
            raise UsageError("there is no pattern to look for again", hint="/hotel looks for hotel")
        at = self.index + (direction if self.place[1] * direction >= 0 else 0)
        while not self._is_beyond(at):
            self.progress(abs(at - self.index), len(self.events))
            if self._pattern(self.events[at]):
                return self._go((at, 0))
            at += direction
        where, other = ("after", "?") if direction > 0 else ("before", "/")
        message = f"No event {where} this one matches {self._pattern.pattern}; {other} looks the other way."
        return Move(False, message)

    def to_last_change(self, text: str) -> Move:
        """Go back to where the value of an expression last changed."""
        expr = self.expression(text)
        change = change_before(self.entries, expr, self.place, self.progress)
        if change is None:
            return Move(False, f"No event before this one has a value for {expr.text}.")
        return self._go(change.at)._replace(note=f"{expr.text} changed here.")

    # places ---------------------------------------------------------------------------------------

    def mark(self, name: str = "") -> str:
        """Name the cursor's event, by the next free ``m1``, ``m2`` … if there is no name; return the name."""
        self.event  # noqa: B018 - an empty run has nothing to mark
        if not name:
            name = next(f"m{n}" for n in range(1, len(self.marks) + 2) if f"m{n}" not in self.marks)
        elif not _MARK.match(name) or name in _RESERVED:
            raise UsageError(f"{name!r} cannot be the name of a mark", hint="a word, for instance: before")
        self.marks[name] = self.place
        return name

    def resolve(self, address: str) -> Place:
        """Return the place of an address, ``#index``, ``-1``, ``%50``, ``first``, ``last`` or ``@mark``."""
        text, count = address.strip(), len(self.events)
        if not count:
            raise NoSuchEvent("there is no event in this run", asked=text)
        if text in ("first", "last"):
            return (0 if text == "first" else count - 1), 0
        if (counted := _COUNTED.match(text)) is not None:
            return _counted(counted[1], int(counted[2]), count), 0
        if text.startswith("@") and text != "@error":
            if text[1:] in self.marks:
                return self.marks[text[1:]]
            known = ", ".join(f"@{name}" for name in self.marks) or "none yet; `mark NAME` sets one"
            raise NoSuchEvent(f"there is no mark {text}", asked=text, hint=f"marks: {known}")
        found = self.recording.event(text)
        return (_beside(self.recording, found), 0) if found.index is None else self.entries.place_of(found)

    # growing --------------------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Read the file again if it has grown; True if there are more events now."""
        return self._bytes() != self._size and self.reload()

    def reload(self) -> bool:
        """Read the file again; True if there are more events now."""
        count, places = len(self.events), (self.place, *self.marks.values())
        keys = {at: self._key(at) for at, _ in places}
        self._open()
        self.place = self._place_now(self.place, keys)
        self.marks = {name: self._place_now(place, keys) for name, place in self.marks.items()}
        return len(self.events) > count

    def _place_now(self, place: Place, keys: dict[int, tuple[str, int | None] | None]) -> Place:
        """Return where an entry is now; a tool that was derived may have been recorded since."""
        index = self._index_now(place[0], keys)
        return index, place[1] if place[1] and place[1] in self.entries.parts(index) else 0

    def _key(self, index: int) -> tuple[str, int | None] | None:
        if index >= len(self.events):
            return None
        return self.events[index].writer, self.events[index].step

    def _index_now(self, index: int, keys: dict[int, tuple[str, int | None] | None]) -> int:
        """Return where an event is now; another process may have written before it."""
        key = keys[index]
        if key is None or key[1] is None or self._key(index) == key:
            return index
        moved = self.recording.at_step(key[1], key[0])
        return index if moved is None or moved.index is None else moved.index

    def _bytes(self) -> int:
        total = 0
        for chain in run_files.streams(self.recording.path):
            for path in chain:
                try:
                    total += os.path.getsize(path)
                except OSError:
                    continue
        return total

    # inner ----------------------------------------------------------------------------------------

    @property
    def _last(self) -> Place:
        """The place of the last entry."""
        last = len(self.events) - 1
        return (last, self.entries.parts(last)[-1]) if self.events else (0, 0)

    def _lane(self, place: Place) -> str:
        return self.lane_at(self.entries[place].index or 0)

    def _beyond(self, place: Place, direction: int) -> Place | None:
        """Return the place after one, or before it, of a run that may have grown."""
        if not self.events and not self.refresh():
            return None
        to = self.entries.next(place, direction)
        return self.entries.next(place, direction) if to is None and direction > 0 and self.refresh() else to

    def _is_beyond(self, index: int) -> bool:
        if index < 0:
            return True
        return index >= len(self.events) and not (self.refresh() and index < len(self.events))

    def _stay(self, direction: int) -> Move:
        return Move(False, self._end_note(direction))

    def _end_note(self, direction: int) -> str:
        if direction < 0:
            return BEGINNING
        return STILL_GOING if self.recording.status == states.RUNNING else END

    def _go(self, place: Place) -> Move:
        moved = place != self.place
        self.place = place
        if moved:
            self._visit(place)
        return Move(moved)

    def _visit(self, place: Place) -> None:
        del self._trail[self._trail_at + 1 :]
        self._trail.append(place)
        self._trail_at += 1


def _begin_of(call: Call) -> Place:
    """Return where a call begins."""
    return call.event.index or 0, call.order + 1 if isinstance(call, DerivedCall) else 0
