"""The breakpoints and watches of a session, and the search for the next stop in either direction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError
from .breakpoints import Breakpoint, Change, Watch, test_of
from .expressions import Expr

if TYPE_CHECKING:
    from .stepper import Stepper


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
        Expr(text)  # a wrong one takes no number
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

    def next(self, start: int, direction: int, limit: int | None = None) -> tuple[int, list[Reason]] | None:
        """Return the nearest event to stop at beyond ``start``, and why; not beyond ``limit``."""
        changed = self._nearest_change(start, direction)
        if changed is not None and (limit is None or (changed - limit) * direction <= 0):
            limit = changed
        end = limit if limit is not None else (len(self._stepper.events) - 1 if direction > 0 else 0)
        points = [one for one in self._points.values() if isinstance(one, Breakpoint) and one.enabled]
        if points:
            for index in range(start + direction, end + direction, direction):
                self._stepper.progress(abs(index - start), abs(end - start))
                reasons = self._hits(points, index)
                if reasons or index == changed:
                    return index, reasons + self._changes(index)
            return None
        return None if changed is None or changed != limit else (changed, self._changes(changed))

    def _hits(self, points: list[Breakpoint], index: int) -> list[Reason]:
        event = self._stepper.events[index]
        hits = [point for point in points if point.matches(event) and point.hit()]
        for point in hits:
            if point.temporary:
                self._points.pop(point.number, None)
        return [Reason(point) for point in hits]

    def _watches(self) -> list[Watch]:
        return [one for one in self._points.values() if isinstance(one, Watch) and one.enabled]

    def _nearest_change(self, start: int, direction: int) -> int | None:
        events, progress = self._stepper.events, self._stepper.progress
        found: list[int] = []
        for watch in self._watches():
            look = watch.after if direction > 0 else watch.before
            change = look(events, start, progress)
            if change is not None:
                found.append(change.at)
        return None if not found else min(found) if direction > 0 else max(found)

    def _changes(self, index: int) -> list[Reason]:
        reasons = []
        for watch in self._watches():
            change = watch.before(self._stepper.events, index + 1, self._stepper.progress)
            if change is not None and change.at == index:
                watch.hits += 1
                reasons.append(Reason(watch, change))
        return reasons
