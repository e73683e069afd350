"""Breakpoints and watches: where ``continue`` stops, in either direction.

A breakpoint is written ``error``, ``tool:NAME``, ``agent:NAME`` or ``lane:NAME``, ``loop>3``,
``text~"regex"``, an address, or an expression. Whether an event matches depends on the run alone, not on
where the cursor comes from.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import NoSuchEvent, UsageError
from ..recording.derived_events import Entries, Place
from ..tracefile.events.event import Event, is_error, is_tool_begin, links_of
from ..wire.json_values import canonical
from .expressions import Expr
from .search import TextSearch

if TYPE_CHECKING:
    from ..recording.recording import Recording
    from .stepper import Stepper


Test = Callable[[Event], bool]

FORMS = 'error, tool:NAME, agent:NAME, loop>3, text~"regex", an address or an expression'

_LOOP = re.compile(r"loop\s*(>=?)\s*(\d{1,9})\Z")
_STEP = r"\d{1,18}(?:\.\d{1,9})?"
_ADDRESS = re.compile(
    rf"(?:{_STEP}|#\d{{1,18}}|p[0-9a-f]{{1,32}}:{_STEP}|turn:\d{{1,18}}|call:[0-9a-f]+|@\w+)\Z"
)
_LANE = re.compile(r"(?:agent|lane):")
_PREFIX = re.compile(r"([a-z]+):\s*(\S.*)\Z")


class Breakpoint:
    """One breakpoint."""

    def __init__(self, number: int, text: str, test: Test, *, temporary: bool = False) -> None:
        self.number = number
        self.text = text
        self.temporary = temporary
        self.enabled = True
        self.condition: Expr | None = None
        self.ignore = 0
        """Hits still to be passed over."""
        self.hits = 0
        self.commands = ""
        """Verbs to run at the stop."""
        self._test = test

    def may_match_derived(self, recording: Recording) -> bool:
        """False if no derived tool matches, which is known without looking at them."""
        if self.text == "error":
            return recording.may_have_failed_tools
        return not self.text.startswith("text~") and _LANE.match(self.text) is None

    def matches(self, event: Event) -> bool:
        """True if the event is one to stop at, hits to be passed over not considered."""
        return (
            self.enabled and self._test(event) and (self.condition is None or self.condition.matches(event))
        )

    def hit(self) -> bool:
        """Count a match; False if it is one to be passed over."""
        if self.ignore > 0:
            self.ignore -= 1
            return False
        self.hits += 1
        return True


def test_of(text: str, stepper: Stepper) -> Test:
    """Return what a breakpoint's text stands for; UsageError says what it may be."""
    text = text.strip()
    if not text:
        raise UsageError("a breakpoint needs a place", hint=FORMS)
    if text == "error":
        return is_error
    if text.startswith("text~"):
        return _text(TextSearch(unquoted(text[5:].strip())))
    if (loop := _LOOP.match(text)) is not None:
        return _loop(stepper, int(loop[2]) + (loop[1] == ">"))
    if _ADDRESS.match(text):
        return _at(stepper, text)
    if (named := _PREFIX.match(text)) is not None:
        if named[1] == "tool":
            return _tool(unquoted(named[2]))
        if named[1] in ("agent", "lane"):
            return _lane(stepper, unquoted(named[2]))
        near = difflib.get_close_matches(named[1], ("tool", "agent", "lane", "turn", "call"), 1, 0.5)
        hint = f"did you mean {near[0]}:{named[2]}?" if near else f"there is {FORMS}"
        raise UsageError(f"{named[1]}: is not a kind of breakpoint", hint=hint)
    return stepper.expression(text).matches


def unquoted(text: str) -> str:
    """Return a text without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _text(search: TextSearch) -> Test:
    """Stop where a text is written, not once more at the derived tool that repeats it."""
    return lambda event: event.derived_number is None and search(event)


def tool_begun(event: Event) -> str | None:
    """Return the name of the tool that begins at an event."""
    if not is_tool_begin(event):
        return None
    name = links_of(event).get("tool") if event.derived_number is None else None
    return name if type(name) is str else event.tool_name


def _tool(pattern: str) -> Test:
    def test(event: Event) -> bool:
        name = tool_begun(event)
        return name is not None and fnmatch.fnmatchcase(name, pattern)

    return test


def _lane(stepper: Stepper, pattern: str) -> Test:
    """Stop where work passes to the lane, not at each of its events."""

    def is_in(index: int) -> bool:
        return fnmatch.fnmatchcase(stepper.lane_at(index), pattern)

    def test(event: Event) -> bool:
        index = event.index
        if index is None or event.derived_number is not None:
            return False
        return is_in(index) and (index == 0 or not is_in(index - 1))

    return test


def _at(stepper: Stepper, address: str) -> Test:
    event = stepper.entries[stepper.resolve(address)]
    key = _key(event)

    def test(event: Event) -> bool:
        return _key(event) == key

    if event.step is None:
        raise NoSuchEvent(f"the event at {address} has no step to stop at", asked=address)
    return test


def _key(event: Event) -> tuple[object, ...]:
    """Return what names an event; its index may change while other processes write."""
    return event.writer, event.step, event.derived_number


def _loop(stepper: Stepper, least: int) -> Test:
    def test(event: Event) -> bool:
        return stepper.repeats(event) >= least

    return test


class Repeats:
    """How often each tool was called with equal arguments in a lane, up to each of its calls."""

    def __init__(self) -> None:
        self._nth: dict[Place, int] = {}
        self._seen: dict[tuple[str, str, str], int] = {}
        self._upto: Place | None = None

    def of(self, event: Event, stepper: Stepper) -> int:
        """Return the number of such calls up to an event: 1 at the first, 0 where no tool begins."""
        here = stepper.entries.place_of(event)
        if self._upto is None:
            self._upto = (0, 0)
            self._count(self._upto, stepper)
        if self._upto < here:
            for place in stepper.entries.walk(self._upto, end=here):
                stepper.progress(place[0], here[0])
                self._count(place, stepper)
            self._upto = here
        return self._nth.get(here, 0)

    def _count(self, place: Place, stepper: Stepper) -> None:
        event = stepper.entries[place]
        if is_tool_begin(event):
            key = stepper.lane_at(event.index or 0), event.tool_name or "", canonical(event.args)
            self._nth[place] = self._seen[key] = self._seen.get(key, 0) + 1


# Watches: an expression, and the events at which its value changes.
#
# An event that lacks what is watched changes nothing. So the places of change are the same whichever way
# one comes from, and going back over one and forward again ends at the same event.

Progress = Callable[[int, int], None]
"""Called with how many of how many events were searched."""


class Change(NamedTuple):
    """An event at which a value is not what it was before."""

    at: Place
    """Where it stands."""
    old: Any
    new: Any


class Watch:
    """An expression that is watched."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.expr = Expr(text)
        self.text = self.expr.text
        self.enabled = True
        self.hits = 0


def _change_after(entries: Entries, expr: Expr, start: Place, progress: Progress) -> Change | None:
    """Return the first event after a place at which the value changes."""
    old, known = None, False
    for at in entries.walk(start):
        progress(at[0], entries.count)
        new = expr(entries[at])
        if new is None:
            continue
        if not known:
            old, known = _value_at(entries, expr, start, progress), True
        if new != old:
            return Change(at, old, new)
        old = new
    return None


def change_before(entries: Entries, expr: Expr, start: Place, progress: Progress) -> Change | None:
    """Return the last event before a place at which the value changes."""
    later: tuple[Place, Any] | None = None
    for at in entries.walk(start, -1):
        progress(start[0] - at[0], start[0])
        value = expr(entries[at])
        if value is None:
            continue
        if later is not None and later[1] != value:
            return Change(later[0], value, later[1])
        later = at, value
    return None if later is None else Change(later[0], None, later[1])


def _change_at(entries: Entries, expr: Expr, place: Place, progress: Progress) -> Change | None:
    """Return the change of a value at a place, if it changes there."""
    new = expr(entries[place])
    before = entries.next(place, -1)
    old = None if new is None or before is None else _value_at(entries, expr, before, progress)
    return None if new is None or new == old else Change(place, old, new)


def _value_at(entries: Entries, expr: Expr, start: Place, progress: Progress) -> Any:
    for at in (start, *entries.walk(start, -1)):
        progress(start[0] - at[0], start[0])
        value = expr(entries[at])
        if value is not None:
            return value
    return None


# All of a session, and the search for the next stop.


class Reason(NamedTuple):
    """Why a move ended where it did."""

    point: Breakpoint | Watch
    change: Change | None = None
    """What happened to a watched value."""


class Stops:
    """Breakpoints and watches, numbered together from 1."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._points: dict[int, Breakpoint | Watch] = {}
        self._next = 1

    def __iter__(self) -> Iterator[Breakpoint | Watch]:
        return iter(self._points.values())

    def add(self, text: str, *, temporary: bool = False) -> Breakpoint:
        """Set a breakpoint."""
        test = test_of(text, self._stepper)
        point = Breakpoint(self._number(), text.strip(), test, temporary=temporary)
        self._points[point.number] = point
        return point

    def watch(self, text: str) -> Watch:
        """Watch an expression."""
        self._stepper.expression(text)  # a wrong one takes no number
        watch = Watch(self._number(), text)
        self._points[watch.number] = watch
        return watch

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number

    def get(self, number: int) -> Breakpoint | Watch:
        """Return one by its number."""
        point = self._points.get(number)
        if point is None:
            there = ", ".join(map(str, self._points)) or "none"
            raise UsageError(f"there is no breakpoint or watch {number}", hint=f"the numbers are: {there}")
        return point

    def breakpoint(self, number: int) -> Breakpoint:
        """Return a breakpoint by its number."""
        point = self.get(number)
        if not isinstance(point, Breakpoint):
            raise UsageError(f"{number} is a watch, not a breakpoint")
        return point

    def remove(self, number: int) -> None:
        self.get(number)
        del self._points[number]

    def clear(self, sort: type[Breakpoint | Watch] | None = None) -> int:
        """Remove all, or all breakpoints, or all watches; returns how many."""
        gone = [number for number, point in self._points.items() if sort is None or isinstance(point, sort)]
        for number in gone:
            del self._points[number]
        return len(gone)

    def next(
        self, start: Place, direction: int, limit: Place | None = None
    ) -> tuple[Place, list[Reason]] | None:
        """Return the nearest event to stop at beyond ``start``, and why; not beyond ``limit``."""
        changed = self._nearest_change(start, direction)
        nearest = min if direction > 0 else max
        if changed is not None and (limit is None or nearest(changed, limit) == changed):
            limit = changed
        points = [one for one in self._points.values() if isinstance(one, Breakpoint) and one.enabled]
        if points:
            end = limit[0] if limit is not None else len(self._stepper.events) if direction > 0 else 0
            recording = self._stepper.recording
            derived = changed is not None or any(point.may_match_derived(recording) for point in points)
            for place in self._stepper.entries.walk(start, direction, limit, derived=derived):
                self._stepper.progress(abs(place[0] - start[0]), abs(end - start[0]))
                reasons = self._hits(points, place)
                if reasons or place == changed:
                    return place, reasons + self._changes(place)
            return None
        return None if changed is None or changed != limit else (changed, self._changes(changed))

    def _hits(self, points: list[Breakpoint], place: Place) -> list[Reason]:
        event = self._stepper.entries[place]
        hits = [point for point in points if point.matches(event) and point.hit()]
        for point in hits:
            if point.temporary:
                self._points.pop(point.number, None)
        return [Reason(point) for point in hits]

    def _watches(self) -> list[Watch]:
        return [one for one in self._points.values() if isinstance(one, Watch) and one.enabled]

    def _nearest_change(self, start: Place, direction: int) -> Place | None:
        entries, progress = self._stepper.entries, self._stepper.progress
        found: list[Place] = []
        for watch in self._watches():
            look = _change_after if direction > 0 else change_before
            change = look(entries, watch.expr, start, progress)
            if change is not None:
                found.append(change.at)
        return None if not found else min(found) if direction > 0 else max(found)

    def _changes(self, place: Place) -> list[Reason]:
        entries, reasons = self._stepper.entries, []
        for watch in self._watches():
            change = _change_at(entries, watch.expr, place, self._stepper.progress)
            if change is not None:
                watch.hits += 1
                reasons.append(Reason(watch, change))
        return reasons
