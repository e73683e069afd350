"""Answers requests from a recording: matches each request, and returns its answer in the recorded order.

Used by the responder of a replay and by tests; works for threads and event loops. An answer is released when
it has the earliest recorded end of all waiting ones, the agent has had time to act on the answer before it,
and all calls that had begun by then have been requested. It waits a moment for each of these, plus the
recorded pause: changed code may never make them. So no answer waits forever.
"""

from __future__ import annotations

import heapq
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .divergence import Divergence, explain, is_left_behind, missing_calls
from .frontier import Early, Frontier, Miss, Served
from .modes import STRICT
from .other_threads import OtherThreads
from .recorded_answers import IN_FLIGHT
from .request import Request
from .tape import NEVER, RecordedCall, Tape

if TYPE_CHECKING:
    from .processes import Shared


TICKS = 16
"""Turns of the event loop without a request after which it counts as idle."""
QUIET = 0.01
"""Seconds without a request after which threads count as idle: twice Python's switch interval."""
TOGETHER = 0.001
"""Seconds between two recorded ends within which an agent may have seen both before it acted on either."""
REACTION = 0.1
"""Seconds from a recorded end to the next request within which the same holds for tasks of one event loop, if
others ended in between: each woke up in the order of ends, and none had made its request yet."""
PATIENCE = 0.1
"""Seconds without a request after which a pending call is abandoned."""
LOOKS = 5
"""Checks during the quiet seconds, twice as many during the patient ones. Each lets other threads run: on a
busy machine they are as late as we are."""


_LOOK = 0.002
"""Seconds between two checks whether a request may be answered."""
MOST_LOOKS = 200
"""Checks after which a thread that is still running counts as one that always runs."""


class Coming(Protocol):
    """Knows the pending calls; ``Frontier`` implements it."""

    def to_come_before(self, position: float, abandoned: Container[int]) -> RecordedCall | None: ...


class Turn(NamedTuple):
    """When an answer is due."""

    position: float
    """Among the recording's events."""
    number: int = 0
    """Which one it is of those that are due there."""


class _Ticket:
    """One answer that waits for its release."""

    __slots__ = ("call", "granted", "looks", "owner", "poke", "queued", "seen", "turn")

    def __init__(
        self, call: RecordedCall, turn: Turn, poke: Callable[[], None], owner: tuple[int, object]
    ) -> None:
        self.call = call
        self.turn = turn
        self.poke = poke
        """Wakes the waiting thread or task; any thread may call it."""
        self.granted = False
        """True once the answer is released."""
        self.queued = time.monotonic()
        self.owner = owner
        self.seen = 0
        self.looks = 0
        """Checks without activity since ``seen``."""

    def __lt__(self, other: _Ticket) -> bool:
        return (self.turn, self.call.begin) < (other.turn, other.call.begin)


class Release:
    """Releases the answers of one execution in order; for threads, event loops, or both."""

    def __init__(
        self,
        coming: Coming,
        *,
        patience: float = PATIENCE,
        pauses: Callable[[], Mapping[int, float]] = dict,
        reactions: Callable[[], Mapping[int, Reaction]] = dict,
        turns: Callable[[], Mapping[int, Turn]] = dict,
    ) -> None:
        self._coming = coming
        self._pauses = pauses
        self._reactions = reactions
        self._turns = turns
        self._quiet = QUIET
        self._patience = patience
        self._most = 20 * patience
        """The longest wait for pending calls beyond an answer's recorded duration, however busy the agent
        is."""
        self._others = OtherThreads()
        self._lock = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._activity = 0
        """Counts requests and released answers: while it changes, the agent is busy."""
        self._last = 0.0
        """When it changed, on the clock of time.monotonic()."""
        self._last_owner: object = None
        """The thread and task that got the last answer."""
        self._acted = True
        """True once it has made another request, so it has acted on the answer."""
        self._threads: set[int] = set()
        self._arriving: set[int] = set()
        """Threads with a request that may have its recorded call, and is not among the waiting ones yet."""
        self.abandoned: set[int] = set()
        """Numbers of the pending calls that nothing waits for any more."""
        self.order: list[str] = []
        """The ids of calls in the order of their answers."""

    def arrives(self) -> None:
        """Note that this thread has a request: until it waits for its answer, or gets none, nobody goes on.

        Its recorded call is no longer to come, so nothing else would hold a later answer back.
        """
        with self._lock:
            self._arriving.add(threading.get_ident())

    def passes(self) -> None:
        """Note that the request of this thread waits for no answer now."""
        with self._lock:
            self._arriving.discard(threading.get_ident())

    def note_request(self) -> None:
        """Note a request that gets no scheduled answer: a miss, or a live call."""
        with self._lock:
            self._changed()

    def is_quiet(self, seconds: float) -> bool:
        """True if there was no request and no answer for this long."""
        return time.monotonic() - self._last > seconds

    def wait(self, call: RecordedCall) -> None:
        """Block until a call's answer is due."""
        event = threading.Event()
        # A call that blocks its event loop has no task: nothing else can run there meanwhile.
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
        """Await until a call's answer is due."""
        import asyncio  # an agent without it is not to pay for it

        loop, event = asyncio.get_running_loop(), asyncio.Event()

        here = threading.get_ident()

        def poke() -> None:
            if threading.get_ident() == here:
                event.set()  # at once, so the loop wakes its tasks in our order
                return
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                pass  # its loop is closed: nothing waits there

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
        with self._lock:
            ticket = _Ticket(call, self._turns().get(call.number, Turn(call.end)), poke, owner)
            self._threads.add(threading.get_ident())
            self._arriving.discard(threading.get_ident())
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
        """Let the loop turn; True if nothing happened meanwhile. Only for the next ticket."""
        if ticket.granted or self._waiting[0] is not ticket:
            return False
        if self._acted:
            return True
        from asyncio import sleep

        before = self._activity
        for _ in range(TICKS):
            await sleep(0)
            if self._activity != before:
                return False
        return True

    def _step(self, ticket: _Ticket, *, idle: bool) -> float | None:
        """Release the answer and return None if it is due, else return the seconds until the next check."""
        with self._lock:
            if ticket.granted:
                return None
            if self._waiting[0] is not ticket:
                return self._patience  # the ticket before it wakes it
            if self._arriving:
                return _LOOK
            now = time.monotonic()
            if not self._acted:
                if ticket.owner[1] is not None and not idle:
                    return 0.0
                is_alone = ticket.owner[1] is not None and len(self._threads) == 1
                if not is_alone and not self._is_still(ticket, self._quiet, LOOKS, now):
                    return self._quiet / LOOKS
            missing = self._coming.to_come_before(ticket.turn.position, self.abandoned)
            if missing is not None:
                patience = self._patience + 2 * self._pauses().get(missing.number, 0.0)
                is_held = now < ticket.queued + self._most + ticket.call.duration
                if is_held and not self._is_still(ticket, patience, 2 * LOOKS, now):
                    return self._patience / (2 * LOOKS)
                self.abandoned.add(missing.number)
                return 0.0
            self._grant()
            return None

    def _is_still(self, ticket: _Ticket, seconds: float, looks: int, now: float) -> bool:
        """True if there was no activity for this long and in this many checks, and no thread is about to act.

        A thread that never waits is not waited for.
        """
        if ticket.seen != self._activity:
            ticket.seen, ticket.looks = self._activity, 0
        ticket.looks += 1
        is_idle = self._others.are_waiting() or ticket.looks > MOST_LOOKS
        return is_idle and ticket.looks > looks and now >= self._last + seconds

    def _grant(self) -> None:
        """Release the first waiting answer, and all recorded together with it."""
        first = self._waiting[0]
        while True:
            ticket = heapq.heappop(self._waiting)
            ticket.granted = True
            ticket.poke()
            self._last_owner, self._acted = ticket.owner, False
            self.order.append(ticket.call.id)
            following = self._waiting[0] if self._waiting and not self._arriving else None
            if following is None or not self._are_together(first, ticket, following):
                break
            if self._coming.to_come_before(following.turn.position, self.abandoned):
                break
        self._changed()

    def _are_together(self, first: _Ticket, ticket: _Ticket, following: _Ticket) -> bool:
        """True if the agent may have seen the following answer before it acted on the first one.

        Threads have no common order in which they wake up, so theirs come one after the other.
        """
        thread, task = following.owner
        if task is None or first.owner[1] is None or thread != first.owner[0]:
            return False
        if following.call.ended_at - ticket.call.ended_at <= TOGETHER:
            return True
        next_request = self._reactions().get(first.call.number)
        if next_request is None or next_request != self._reactions().get(following.call.number):
            return False
        return next_request.at - first.call.ended_at <= REACTION

    def _leave(self, ticket: _Ticket) -> None:
        """Forget one that was cancelled while it waited."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                heapq.heapify(self._waiting)
                self._changed()


# How long an agent was idle before a call: a timer of its own, which takes as long in a replay.


def pauses(calls: Iterable[RecordedCall]) -> dict[int, float]:
    """Return the idle seconds before each call, by its number: nothing began or ended in them."""
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


class Reaction(NamedTuple):
    """The next request that a process made after the end of a call."""

    number: int
    at: float
    """When, in seconds since the epoch."""


def reactions(calls: Iterable[RecordedCall]) -> dict[int, Reaction]:
    """Return the next request after the end of each call, by the call's number; the last ones have none."""
    begins: dict[str, list[RecordedCall]] = {}
    for call in sorted(calls, key=lambda call: call.begin):
        begins.setdefault(call.process, []).append(call)
    found: dict[int, Reaction] = {}
    for own in begins.values():
        for call in own:
            at = bisect_right(own, call.end, key=lambda each: each.begin)
            if at < len(own):
                found[call.number] = Reaction(own[at].number, own[at].event.timestamp or 0.0)
    return found


def turns(calls: Iterable[RecordedCall]) -> dict[int, Turn]:
    """Return when the last answers of threads and work items are due, by the call's number.

    Who waits for several sees them end, maybe in another order than that of their last answers: on a busy
    machine a thread may be overtaken in between.
    """
    latest: dict[tuple[str, str | None], RecordedCall] = {}
    found: dict[int, Turn] = {}
    position = 0.0
    for call in sorted(calls, key=lambda call: call.begin):
        for who in call.done:
            last = latest.get((call.event.writer, who))
            if last is not None and last.end < call.begin:
                position = max(position, last.end)
                found[last.number] = Turn(position, len(found))
        latest[call.event.writer, call.who] = call
    return found


# Requests and their answers.

_FOR_LAST = 1.0
"""Seconds without a request after which no more is expected from a run that died."""
_FOR_OTHERS = 10.0
"""Seconds that a request waits while other processes are alive: they may still be starting."""
_LONGEST = 60.0
"""Seconds that a run has to end by itself while a call never returns."""
_SLOWER = 2.0
"""Seconds that other processes may take longer than in the recording."""


class _Patience:
    """How long a request that came too early waits: for a time, and while others may still come before it."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._busy_until = self._until + 20 * seconds
        self._threads = OtherThreads()

    def is_left(self, has_other_processes: Callable[[], bool]) -> bool:
        now = time.monotonic()
        if now < self._until or (now < self._until + _FOR_OTHERS and has_other_processes()):
            return True
        return now < self._busy_until and not self._threads.are_waiting()


class Player:
    """Answers the requests of one execution from a tape.

    ``calls`` are those to answer, without the calls that run live. ``mode`` decides what follows a miss,
    ``shared`` knows the other processes on the tape.
    """

    def __init__(
        self,
        tape: Tape,
        *,
        calls: Iterable[RecordedCall] | None = None,
        mode: str = STRICT,
        patience: float = PATIENCE,
        shared: Shared | None = None,
    ) -> None:
        self.tape = tape
        self.shared = shared
        calls = tape.calls if calls is None else calls
        self.frontier = Frontier(calls, mode=mode, inside=tape.inside, shared=shared)
        self.release = Release(
            self.frontier,
            patience=patience,
            pauses=cache(lambda: pauses(tape.calls)),
            reactions=cache(lambda: reactions(tape.calls)),
            turns=cache(lambda: turns(tape.calls)),
        )
        self._patience = patience

    def ask(self, request: Request) -> Served | Miss:
        """Return the recorded call that answers a request, or a miss; block until its answer is due."""
        patience = _Patience(self._patience)
        while isinstance(found := self._find(request, patience), Early):
            time.sleep(_LOOK)
        if isinstance(found, Served):
            if found.call.has_response:
                self.release.wait(found.call)
            time.sleep(self._until_killed(found.call))
            while self._others_are_busy(found.call):
                time.sleep(_LOOK)
        return found

    async def ask_async(self, request: Request) -> Served | Miss:
        """Return the same as ``ask``; await until the answer is due."""
        from asyncio import sleep

        patience = _Patience(self._patience)
        while isinstance(found := self._find(request, patience), Early):
            await sleep(_LOOK)
        if isinstance(found, Served):
            if found.call.has_response:
                await self.release.wait_async(found.call)
            if pause := self._until_killed(found.call):
                await sleep(pause)
            while self._others_are_busy(found.call):
                await sleep(_LOOK)
        return found

    def _find(self, request: Request, patience: _Patience) -> Served | Miss | Early:
        patient = patience.is_left(self.frontier.has_other_processes)
        is_scheduled = False
        self.release.arrives()
        try:
            found = self.frontier.match_or_wait(request, patient=patient)
            is_scheduled = isinstance(found, Served) and found.call.has_response
        finally:
            if not is_scheduled:
                self.release.passes()
        if isinstance(found, Miss):
            self.release.note_request()
        return found

    def writer(self) -> str | None:
        """Return the writer of the recorded process that this process stands for."""
        if self.shared is not None:
            return self.shared.writer()
        return self.tape.recording.first_writer

    def _until_killed(self, call: RecordedCall) -> float:
        """Return the seconds to wait for another process to end this one, as it did in the recording."""
        if not self.frontier.is_child_process or call.outcome != IN_FLIGHT:
            return 0.0
        return min(self._seconds_to_end(call) + _SLOWER, _FOR_OTHERS)

    def _seconds_to_end(self, call: RecordedCall) -> float:
        """Return the seconds from a call's begin to the end of the recorded run."""
        return max((self.tape.recording.ended or 0) - (call.event.timestamp or 0), 0.0)

    def _others_are_busy(self, call: RecordedCall) -> bool:
        """True while a run that died still has other recorded calls to make before its end.

        A run that ended by itself abandoned the call, and so will this one.
        """
        if call.outcome != IN_FLIGHT:
            return False
        if is_left_behind(call, self.tape) and not self.frontier.is_child_process and not call.answer.pieces:
            return not self.release.is_quiet(min(self._seconds_to_end(call), _LONGEST) + _FOR_OTHERS)
        to_come = any(each.end != NEVER for each in self.frontier.missing())
        return to_come and not self.release.is_quiet(_FOR_LAST)

    def explain(self, miss: Miss) -> Divergence:
        """Return the report of a miss."""
        return explain(miss, self.tape, self.frontier.log, self.frontier.missing(), mode=self.frontier.mode)

    def report(self) -> list[Divergence]:
        """Return all misses and all missing calls; empty if the run matched its recording."""
        misses = [self.explain(miss) for miss in self.frontier.misses]
        return misses + missing_calls(self.frontier, self.tape)
