"""When an answer may be given: in the order the recorded ones came, once nothing else goes on.

An answer leaves when it has the earliest recorded end of all that were asked for, the agent has had time to
act on the one before it, and the calls that had begun by then have been asked for. It waits a moment for
these, once for each, and as long as the agent did nothing then: code that has changed may never make them.
So nothing is ever held up for good.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Protocol

from .tape import NEVER, RecordedCall

RECORDED = "recorded"
TICKS = 16
"""Turns of the event loop without a request, after which a loop counts as idle."""
QUIET = 0.01
"""Seconds without a request, after which threads count as idle: twice what Python lets one of them run on."""
TOGETHER = 0.001
"""Seconds between two recorded ends within which an agent may have seen both before it acted on either."""
PATIENCE = 0.1
"""Seconds without a request, after which a call that should have been made by now is no more waited for."""
LOOKS = 5
"""Looks in which the quiet seconds pass, twice as many for the patient ones. Each is a turn for whoever else
wants to run: a machine that is too busy to give us ours in time gives others theirs no sooner."""


class Coming(Protocol):
    """Knows which calls nobody has asked for; ``Frontier`` does."""

    def to_come_before(self, position: float, given_up: Container[int]) -> RecordedCall | None: ...


class _Ticket:
    """One answer that waits to be given."""

    __slots__ = ("call", "granted", "looks", "not_before", "owner", "poke", "queued", "seen")

    def __init__(
        self, call: RecordedCall, poke: Callable[[], None], pause: float, owner: tuple[int, object]
    ) -> None:
        self.call = call
        self.poke = poke
        """Wakes who waits; may be called by any thread."""
        self.granted = False
        """True once the answer may be given."""
        self.queued = time.monotonic()
        self.not_before = self.queued + pause
        self.owner = owner
        self.seen = 0
        self.looks = 0
        """How often it was looked whether anything has gone on since ``seen``."""

    def __lt__(self, other: _Ticket) -> bool:
        return (self.call.end, self.call.begin) < (other.call.end, other.call.begin)


class Release:
    """The order in which the answers of one execution are given; for threads, event loops, or both."""

    def __init__(
        self,
        coming: Coming,
        *,
        pace: str | None = None,
        ticks: int = TICKS,
        quiet: float = QUIET,
        patience: float = PATIENCE,
        pauses: Callable[[], Mapping[int, float]] = dict,
    ) -> None:
        self._coming = coming
        self._pauses = pauses
        self._at_recorded_pace = pace == RECORDED
        self._ticks = ticks
        self._quiet = quiet
        self._patience = patience
        self._most = 20 * patience
        """However much goes on elsewhere, no answer is held longer than it took then and this for calls that
        do not come."""
        self._lock = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._activity = 0
        """Counts requests and answers given: while it changes, something goes on."""
        self._last = 0.0
        """When it changed, on the clock of time.monotonic()."""
        self._last_owner: object = None
        """To whom the last answer went."""
        self._acted = True
        """True once that one has asked again, so that it must have acted on the answer."""
        self._threads: set[int] = set()
        self.given_up: set[int] = set()
        """Numbers of the calls that were waited for in vain."""
        self.order: list[str] = []
        """The ids of calls in the order their answers were given."""

    def asked(self) -> None:
        """Something was asked for that gets no answer in turn: a miss, or what runs live."""
        with self._lock:
            self._changed()

    def is_quiet(self, seconds: float) -> bool:
        """True if nothing was asked for or given for so long."""
        return time.monotonic() - self._last > seconds

    def wait(self, call: RecordedCall) -> None:
        """Return when a call's answer may be given to this thread."""
        event = threading.Event()
        # One that blocks its event loop is no task to the loop: nothing else can act there meanwhile.
        ticket = self._queue(call, event.set, (threading.get_ident(), None))
        try:
            while True:
                event.clear()
                pause = self._step(ticket, idle=False)
                if pause is None:
                    return
                event.wait(pause)
        finally:
            self._leave(ticket)

    async def wait_async(self, call: RecordedCall) -> None:
        """Return when a call's answer may be given to this task."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        here = threading.get_ident()

        def poke() -> None:
            if threading.get_ident() == here:
                event.set()  # at once: what the loop does first is in the order we say it
                return
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                pass  # its loop is closed, and nobody waits there any more

        ticket = self._queue(call, poke, (here, asyncio.current_task()))
        try:
            while True:
                event.clear()
                idle = await self._ticked(ticket)
                pause = self._step(ticket, idle=idle)
                if pause is None:
                    return
                if not event.is_set():
                    # Not wait_for(): it would need several turns of the loop to come back.
                    timer = loop.call_later(pause, event.set)
                    try:
                        await event.wait()
                    finally:
                        timer.cancel()
        finally:
            self._leave(ticket)

    def _queue(self, call: RecordedCall, poke: Callable[[], None], owner: tuple[int, object]) -> _Ticket:
        pause = call.duration if self._at_recorded_pace else 0.0
        with self._lock:
            ticket = _Ticket(call, poke, pause, owner)
            self._threads.add(threading.get_ident())
            self._acted = self._acted or ticket.owner == self._last_owner
            heapq.heappush(self._waiting, ticket)
            self._changed()
            return ticket

    def _changed(self) -> None:
        self._activity += 1
        self._last = time.monotonic()
        if self._waiting:
            self._waiting[0].poke()

    async def _ticked(self, ticket: _Ticket) -> bool:
        """Let the loop turn; True if nothing happened while it did. Only for who is next."""
        if ticket.granted or self._waiting[0] is not ticket:
            return False
        if self._acted:
            return True
        before = self._activity
        for _ in range(self._ticks):
            await asyncio.sleep(0)
            if self._activity != before:
                return False
        return True

    def _step(self, ticket: _Ticket, *, idle: bool) -> float | None:
        """Give the answer and return None if its time has come, else the seconds until another look."""
        with self._lock:
            if ticket.granted:
                return None
            if self._waiting[0] is not ticket:
                return self._patience  # who is before it wakes it
            now = time.monotonic()
            if now < ticket.not_before:
                return ticket.not_before - now
            if not self._acted:
                if ticket.owner[1] is not None and not idle:
                    return 0.0
                is_alone = ticket.owner[1] is not None and len(self._threads) == 1
                if not is_alone and not self._is_still(ticket, self._quiet, LOOKS, now):
                    return self._quiet / LOOKS
            missing = self._coming.to_come_before(ticket.call.end, self.given_up)
            if missing is not None:
                patience = self._patience + 2 * self._pauses().get(missing.number, 0.0)
                is_held = now < ticket.queued + self._most + ticket.call.duration
                if is_held and not self._is_still(ticket, patience, 2 * LOOKS, now):
                    return self._patience / (2 * LOOKS)
                self.given_up.add(missing.number)
                return 0.0
            self._grant(now)
            return None

    def _is_still(self, ticket: _Ticket, seconds: float, looks: int, now: float) -> bool:
        """True if nothing was asked for or given for so long, and in so many looks."""
        if ticket.seen != self._activity:
            ticket.seen, ticket.looks = self._activity, 0
        ticket.looks += 1
        return ticket.looks > looks and now >= self._last + seconds

    def _grant(self, now: float) -> None:
        """Let the first of those that wait go, and all that came together with it."""
        while True:
            ticket = heapq.heappop(self._waiting)
            ticket.granted = True
            ticket.poke()
            self._last_owner, self._acted = ticket.owner, False
            self.order.append(ticket.call.id)
            following = self._waiting[0] if self._waiting else None
            if following is None or not following.call.ended_at - ticket.call.ended_at <= TOGETHER:
                break
            if now < following.not_before or self._coming.to_come_before(following.call.end, self.given_up):
                break
        self._changed()

    def _leave(self, ticket: _Ticket) -> None:
        """Forget one that was cancelled while it waited."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                heapq.heapify(self._waiting)
                self._changed()


# How long an agent did nothing before it made a call: a timer of its own, which takes as long again.


def pauses(calls: Iterable[RecordedCall]) -> dict[int, float]:
    """Return the seconds in which nothing began or ended before each call, by its number."""
    marks: list[tuple[float, float, int | None]] = []
    for call in calls:
        marks.append((call.begin, call.event.timestamp or 0.0, call.number))
        if NEVER not in (call.end, call.ended_at):
            marks.append((call.end, call.ended_at, None))
    found: dict[int, float] = {}
    before = None
    for _, when, number in sorted(marks, key=lambda mark: mark[0]):
        if number is not None:
            found[number] = 0.0 if before is None else max(when - before, 0.0)
        before = when
    return found
