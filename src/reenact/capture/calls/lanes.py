"""Which lane a captured request belongs to: found by the conversation it continues, then by its context.

A fresh conversation takes a lane in which nothing is going on; where a call is open, or an answer waits for
its tools, another agent is at work beside it, and that one gets a lane of its own. One per recorder.
"""

from __future__ import annotations

from _contextvars import ContextVar
from collections.abc import Hashable

MAIN = "main"
MAX_LANES = 1_000

_in_context: ContextVar[tuple[str, str] | None] = ContextVar("reenact_lane", default=None)
"""Run and lane of the latest request in this context."""


class _Lane:
    __slots__ = ("attempt", "brought", "failed", "last", "open", "waiting", "wanted")

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.waiting = False
        """True while an answer's tool uses have no results yet."""
        self.wanted: frozenset[str] = frozenset()
        """The ids of those."""
        self.brought: frozenset[str] = frozenset()
        """The tool uses whose results the latest request brought."""
        self.last: Hashable = None
        """What the latest request was, to recognise it when it is tried once more."""
        self.failed = False
        self.attempt = 1


class Lanes:
    """The lanes of one run in this process."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._lanes: dict[str, _Lane] = {}
        self._count = 0
        self._of_call: dict[str, str] = {}
        self._of_name: dict[str, str] = {}
        """Lanes by what the provider calls an answer or a conversation that it keeps."""

    def begin(
        self,
        call: str,
        continued: str | None,
        request: Hashable,
        attempt: int | None,
        kept: str | None = None,
        results: frozenset[str] = frozenset(),
    ) -> tuple[str, int]:
        """Return the lane of a request and which attempt it is.

        ``continued`` is its conversation's lane, ``kept`` names what it continues at the provider,
        ``results`` are the tool uses whose results it brings.
        """
        continued = self._of_name.get(kept or "", continued) or self._lane_waiting_for(results)
        run_id, here = _in_context.get() or ("", None)
        here = here if run_id == self._run_id else None
        retried = self._retried((continued, here), request)
        name = retried or self._free(continued, here, results)
        lane = self._lanes.get(name) or self._make(name)
        is_retry = retried is not None or (attempt or 1) > 1
        lane.attempt = attempt or (lane.attempt + 1 if is_retry else 1)
        lane.open.add(call)
        lane.waiting, lane.failed, lane.last, lane.brought = False, False, request, results
        self._of_call[call] = name
        self._remember(kept, name)
        _in_context.set((self._run_id, name))
        return name, lane.attempt

    def _make(self, name: str) -> _Lane:
        if len(self._lanes) >= MAX_LANES:
            idle = next((each for each in self._lanes if not self._busy(each)), None)
            self._lanes.pop(idle or "", None)
        self._count += 1
        self._lanes[name] = lane = _Lane()
        return lane

    def end(
        self, call: str, *, failed: bool, wanted: frozenset[str] | None = None, answer: str | None = None
    ) -> None:
        """Note how a call ended: the ids of its tool uses, None if it has none, and the answer's name."""
        name = self._of_call.pop(call, "")
        lane = self._lanes.get(name)
        if lane is not None:
            self._remember(answer, name)
            lane.open.discard(call)
            if not lane.open:  # else it is read to its end only now, and the conversation has gone on
                lane.failed, lane.waiting, lane.wanted = failed, wanted is not None, wanted or frozenset()

    def _remember(self, known_as: str | None, lane: str) -> None:
        if known_as:
            self._of_name[known_as] = lane
            if len(self._of_name) > MAX_LANES:
                del self._of_name[next(iter(self._of_name))]

    def _retried(self, near: tuple[str | None, ...], request: Hashable) -> str | None:
        """Return the lane in which the very same request has just failed."""
        for name in (*near, *self._lanes):
            lane = self._lanes.get(name or "")
            if lane is not None and lane.failed and not lane.open and lane.last == request:
                return name
        return None

    def _lane_waiting_for(self, results: frozenset[str]) -> str | None:
        """Return the one lane whose answer waits for these results: another agent may have taken over."""
        waiting = [name for name, lane in self._lanes.items() if lane.waiting and lane.wanted & results]
        return waiting[0] if len(waiting) == 1 else None

    def _free(self, continued: str | None, here: str | None, results: frozenset[str]) -> str:
        if continued is not None and (not self._busy(continued) or self._has_gone_on(continued, results)):
            return continued
        for name in (here, MAIN, *self._lanes) if continued is None else self._lanes:
            if name is not None and name != continued and not self._busy(name) and not self._waits(name):
                return name
        return MAIN if not self._count else f"lane-{self._count + 1}"

    def _has_gone_on(self, name: str, results: frozenset[str]) -> bool:
        """True if a request answers what an open call has requested: nobody reads that one to its end."""
        lane = self._lanes.get(name)
        return lane is not None and bool(results) and results != lane.brought

    def _busy(self, name: str) -> bool:
        lane = self._lanes.get(name)
        return lane is not None and bool(lane.open)

    def _waits(self, name: str) -> bool:
        lane = self._lanes.get(name)
        return lane is not None and lane.waiting
