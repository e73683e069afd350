"""Which calls of a tape are still to come: by lane for order, by begin for what may be waited for.

Not thread-safe; ``frontier`` holds the lock.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Iterator

from .tape import NEVER, RecordedCall

OPEN, DISPLACED, OPTIONAL, SERVED = 0, 1, 2, 3
"""To come; to come, but another request seems to have come in its place, so nothing waits for it; may come or
not; over."""


class _Lane:
    """The calls of one lane."""

    def __init__(self, state: list[int]) -> None:
        self.calls: list[RecordedCall] = []
        self.first = 0
        """All before it are over."""
        self._ends: list[tuple[float, int]] = []
        self._state = state

    def add(self, call: RecordedCall) -> None:
        self.calls.append(call)
        heapq.heappush(self._ends, (call.end, call.number))

    def eligible(self) -> Iterator[RecordedCall]:
        """Yield what is not over and began before any that is still to come had ended."""
        while self._ends and self._state[self._ends[0][1]] != OPEN:
            heapq.heappop(self._ends)
        limit = self._ends[0][0] if self._ends else NEVER
        for call in self.rest():
            if call.begin > limit:
                break
            yield call

    def rest(self) -> Iterator[RecordedCall]:
        """Yield all that is not over, in the order it began."""
        while self.first < len(self.calls) and self._state[self.calls[self.first].number] == SERVED:
            self.first += 1
        for at in range(self.first, len(self.calls)):
            if self._state[self.calls[at].number] != SERVED:
                yield self.calls[at]


class Remaining:
    """The calls that are not over."""

    def __init__(self, calls: Iterable[RecordedCall]) -> None:
        self.calls = sorted(calls, key=lambda call: call.begin)
        self._state = [SERVED] * (max((call.number for call in self.calls), default=-1) + 1)
        self._lanes: dict[tuple[str, str], _Lane] = {}
        for call in self.calls:
            self._state[call.number] = OPEN
            self._lanes.setdefault(call.lane, _Lane(self._state)).add(call)
        self._next = 0
        """All before it are over."""

    def state(self, call: RecordedCall) -> int:
        return self._state[call.number] if call.number < len(self._state) else SERVED

    def serve(self, call: RecordedCall) -> None:
        """It is over: no second time."""
        self._state[call.number] = SERVED

    def displace(self, call: RecordedCall) -> None:
        """Let nothing wait for a call any more; it may still be asked for, and is missed if it is not."""
        if self.state(call) == OPEN:
            self._state[call.number] = DISPLACED

    def displace_before(self, call: RecordedCall) -> None:
        """The same for all that should have been asked for before a call, so that each is waited for once."""
        for each in self._lanes[call.lane].rest():
            if each.begin >= call.begin:
                break
            if each.end < call.begin:
                self.displace(each)

    def excuse(self, call: RecordedCall) -> None:
        """A call need not come any more."""
        if self.state(call) in (OPEN, DISPLACED):
            self._state[call.number] = OPTIONAL

    def eligible(self) -> list[RecordedCall]:
        """Return the calls that may be asked for now without leaving out any before them."""
        found: list[RecordedCall] = []
        for name, lane in list(self._lanes.items()):
            found += lane.eligible()
            if lane.first == len(lane.calls):
                del self._lanes[name]
        found.sort(key=lambda call: call.begin)
        return found

    def all(self) -> list[RecordedCall]:
        """Return all that is not over, in the order it began."""
        return [call for call in self.calls[self._over() :] if self._state[call.number] != SERVED]

    def to_come(self) -> list[RecordedCall]:
        """Return all that has to be asked for yet."""
        return [call for call in self.calls[self._over() :] if self._state[call.number] <= DISPLACED]

    def to_come_before(
        self,
        position: float,
        given_up: Container[int] = (),
        counts: Callable[[RecordedCall], bool] | None = None,
    ) -> RecordedCall | None:
        """Return the first call to come, of those that count, that had begun before a position."""
        for at in range(self._over(), len(self.calls)):
            if self.calls[at].begin >= position:
                return None
            call = self.calls[at]
            if self._state[call.number] == OPEN and call.number not in given_up:
                if counts is None or counts(call):
                    return call
        return None

    def _over(self) -> int:
        while self._next < len(self.calls) and self._state[self.calls[self._next].number] == SERVED:
            self._next += 1
        return self._next
