"""Where a run goes live: which recorded calls still answer, and which request is the first to leave.

All that began before the cut is answered. Of what came later only agents that worked beside the one that is
cut keep to their recording, as long as they ask what they asked then.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable

from .fingerprint import Request
from .frontier import Frontier, asks_the_same, same_site
from .tape import RecordedCall, Tape

ANSWERED, AT_CUT, BEYOND = "answered", "at the cut", "beyond"
"""Where a request stands: the recording answers it, or tells that it diverged; it is the one at the cut; it
comes after the cut and nothing is recorded for it."""


class Cut:
    """The boundary before one recorded call. Processes of one run share it through a file, ``mark``."""

    def __init__(self, tape: Tape, call: RecordedCall, mark: str, *, is_rebased: bool = False) -> None:
        self.call = call
        self.kept = kept_calls(tape, call)
        self._mark = mark
        self._is_rebased = is_rebased
        self._is_passed = False

    @property
    def is_passed(self) -> bool:
        """True once the call at the cut was made."""
        self._is_passed = self._is_passed or os.path.exists(self._mark)
        return self._is_passed

    def passes(self) -> None:
        """The call at the cut is being made."""
        os.close(os.open(self._mark, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        self._is_passed = True

    def place_of(self, request: Request, frontier: Frontier) -> str:
        """Return where a request stands."""
        equal = frontier.first_equal(request)
        is_before = equal is not None and equal.begin < self.call.begin
        if not self.is_passed and not is_before and self._is_at(request, frontier):
            return AT_CUT
        if equal is not None or not self.is_passed:
            return ANSWERED
        return BEYOND

    def left_out(self, frontier: Frontier) -> list[RecordedCall]:
        """Return the calls of this line of work that should have been made before the cut."""
        return [call for call in frontier.missing() if self._is_earlier(call)]

    def _is_at(self, request: Request, frontier: Frontier) -> bool:
        if asks_the_same(self.call, request):
            return True
        if not self._is_rebased or self.left_out(frontier):
            return False
        return self.call.kind == request.kind and same_site(self.call, request)

    def _is_earlier(self, call: RecordedCall) -> bool:
        return call.lane == self.call.lane and call.end < self.call.begin


def kept_calls(tape: Tape, cut: RecordedCall) -> list[RecordedCall]:
    """Return the calls that are answered although the run goes live at one of them."""
    beside = {lane for lane in {call.lane for call in tape.calls} if lane != cut.lane}
    beside &= _overlapping(tape.calls, cut.lane)
    began = {call.lane for call in tape.calls if call.begin < cut.begin} | _with(tape.calls, cut)
    return [
        call
        for call in tape.calls
        if call is not cut and (call.begin < cut.begin or call.lane in beside & began)
    ]


def _overlapping(calls: Iterable[RecordedCall], lane: tuple[str, str]) -> set[tuple[str, str]]:
    """Return the lanes that had a call under way at the same time as this one."""
    mine = sorted((call.begin, call.end) for call in calls if call.lane == lane)
    begins = [begin for begin, _ in mine]
    found = set()
    for call in calls:
        at = bisect_right(begins, call.begin)
        before = at > 0 and mine[at - 1][1] > call.begin
        after = at < len(mine) and mine[at][0] < call.end
        if before or after:
            found.add(call.lane)
    return found


def _with(calls: Iterable[RecordedCall], cut: RecordedCall) -> set[tuple[str, str]]:
    """Return the lanes that began while the call at the cut was under way: it did not cause them."""
    return {call.lane for call in calls if cut.begin < call.begin < cut.end}
