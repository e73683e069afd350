"""A recording that answers: what is asked is matched with it, and gets its answer when its turn has come.

What a seam, a tool's decorator or a test talks to; for threads and event loops alike.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from .divergence import Divergence, explain, is_left_behind, never_made
from .frontier import Early, Frontier, Miss, Served
from .recorded_answers import IN_FLIGHT
from .request import Request
from .rules import STRICT
from .schedule import PATIENCE, Release, pauses
from .tape import NEVER, RecordedCall, Tape

if TYPE_CHECKING:
    from .processes import Shared

_FOR_LAST = 1.0
"""Seconds without a request after which nothing more is expected of a run that died."""
_LOOK = 0.002
"""Seconds between two looks whether a request's turn has come."""
_FOR_OTHERS = 10.0
"""Seconds that a request's turn is waited for while other processes are there: they may only be starting."""
_LONGEST = 60.0
"""Seconds that a run is given to end by itself while a call is left behind."""
_SLOWER = 2.0
"""Seconds that other processes may take longer than they took then."""


class Player:
    """Answers the requests of one execution from a tape.

    ``calls`` are those to be answered: what will run live must not be among them. ``mode`` says what follows
    a miss, ``pace="recorded"`` keeps the recorded durations, ``shared`` tells of other processes on the tape.
    """

    def __init__(
        self,
        tape: Tape,
        *,
        calls: Iterable[RecordedCall] | None = None,
        mode: str = STRICT,
        pace: str | None = None,
        patience: float = PATIENCE,
        shared: Shared | None = None,
    ) -> None:
        self.tape = tape
        self.shared = shared
        calls = tape.calls if calls is None else calls
        self.frontier = Frontier(calls, mode=mode, inside=tape.inside, shared=shared)
        self.release = Release(
            self.frontier, pace=pace, patience=patience, pauses=cache(lambda: pauses(tape.calls))
        )
        self._patience = patience

    def ask(self, request: Request) -> Served | Miss:
        """Return the recorded call that answers a request, when this thread may have it; or a miss."""
        until = time.monotonic() + self._patience
        while isinstance(found := self._find(request, until), Early):
            time.sleep(_LOOK)
        if isinstance(found, Served):
            if found.call.comes_to_something:
                self.release.wait(found.call)
            time.sleep(self._until_killed(found.call))
            while self._others_go_on(found.call):
                time.sleep(_LOOK)
        return found

    async def ask_async(self, request: Request) -> Served | Miss:
        """Return the same, when this task may have it."""
        until = time.monotonic() + self._patience
        while isinstance(found := self._find(request, until), Early):
            await asyncio.sleep(_LOOK)
        if isinstance(found, Served):
            if found.call.comes_to_something:
                await self.release.wait_async(found.call)
            if pause := self._until_killed(found.call):
                await asyncio.sleep(pause)
            while self._others_go_on(found.call):
                await asyncio.sleep(_LOOK)
        return found

    def _find(self, request: Request, until: float) -> Served | Miss | Early:
        past = time.monotonic() - until
        patient = past < 0 or (past < _FOR_OTHERS and self.frontier.has_company())
        found = self.frontier.ask_patiently(request, patient=patient)
        if isinstance(found, Miss):
            self.release.asked()
        return found

    def writer(self) -> str | None:
        """Return which of the recorded processes this one is."""
        if self.shared is not None:
            return self.shared.writer()
        return self.tape.recording.first_writer

    def _until_killed(self, call: RecordedCall) -> float:
        """Return the seconds in which another process may end this one, as one did while the call went on."""
        if not self.frontier.is_one_of_many or call.outcome != IN_FLIGHT:
            return 0.0
        return min(self._went_on(call) + _SLOWER, _FOR_OTHERS)

    def _went_on(self, call: RecordedCall) -> float:
        """Return the seconds from a call's begin to the end of the run."""
        return max((self.tape.recording.ended or 0) - (call.event.timestamp or 0), 0.0)

    def _others_go_on(self, call: RecordedCall) -> bool:
        """True while other work of a run that died is still to be done before the end of its recording.

        A run that ended by itself had left the call behind, and so will this one.
        """
        if call.outcome != IN_FLIGHT:
            return False
        if is_left_behind(call, self.tape) and not self.frontier.is_one_of_many and not call.answer.pieces:
            return not self.release.is_quiet(min(self._went_on(call), _LONGEST) + _FOR_OTHERS)
        to_come = any(each.end != NEVER for each in self.frontier.missing())
        return to_come and not self.release.is_quiet(_FOR_LAST)

    def explain(self, miss: Miss, *, user_agent: str | None = None) -> Divergence:
        """Return the report of a miss."""
        mode = self.frontier.mode
        return explain(miss, self.tape, self.frontier.log, mode=mode, user_agent=user_agent)

    def report(self) -> list[Divergence]:
        """Return all misses, and what was recorded and never asked for; empty if the run was the same."""
        misses = [self.explain(miss) for miss in self.frontier.misses]
        return misses + never_made(self.frontier, self.tape)
