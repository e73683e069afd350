"""Answers requests from a recording: matches each request, and returns its answer in the recorded order.

Used by the responder of a replay and by tests; works for threads and event loops.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from .divergence import Divergence, explain, is_left_behind, missing_calls
from .equality_rules import STRICT
from .frontier import Early, Frontier, Miss, Served
from .recorded_answers import IN_FLIGHT
from .request import Request
from .schedule import PATIENCE, Release, pauses
from .tape import NEVER, RecordedCall, Tape

if TYPE_CHECKING:
    from .processes import Shared

_FOR_LAST = 1.0
"""Seconds without a request after which no more is expected from a run that died."""
_LOOK = 0.002
"""Seconds between two checks whether a request may be answered."""
_FOR_OTHERS = 10.0
"""Seconds that a request waits while other processes are alive: they may still be starting."""
_LONGEST = 60.0
"""Seconds that a run has to end by itself while a call never returns."""
_SLOWER = 2.0
"""Seconds that other processes may take longer than in the recording."""


class Player:
    """Answers the requests of one execution from a tape.

    ``calls`` are those to answer, without the calls that run live. ``mode`` decides what follows a miss,
    ``pace="recorded"`` keeps the recorded durations, ``shared`` knows the other processes on the tape.
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
        """Return the recorded call that answers a request, or a miss; block until its answer is due."""
        until = time.monotonic() + self._patience
        while isinstance(found := self._find(request, until), Early):
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
        until = time.monotonic() + self._patience
        while isinstance(found := self._find(request, until), Early):
            await asyncio.sleep(_LOOK)
        if isinstance(found, Served):
            if found.call.has_response:
                await self.release.wait_async(found.call)
            if pause := self._until_killed(found.call):
                await asyncio.sleep(pause)
            while self._others_are_busy(found.call):
                await asyncio.sleep(_LOOK)
        return found

    def _find(self, request: Request, until: float) -> Served | Miss | Early:
        past = time.monotonic() - until
        patient = past < 0 or (past < _FOR_OTHERS and self.frontier.has_other_processes())
        found = self.frontier.match_or_wait(request, patient=patient)
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

    def explain(self, miss: Miss, *, user_agent: str | None = None) -> Divergence:
        """Return the report of a miss."""
        mode = self.frontier.mode
        return explain(miss, self.tape, self.frontier.log, mode=mode, user_agent=user_agent)

    def report(self) -> list[Divergence]:
        """Return all misses and all missing calls; empty if the run matched its recording."""
        misses = [self.explain(miss) for miss in self.frontier.misses]
        return misses + missing_calls(self.frontier, self.tape)
