"""Where a run goes live: which recorded calls still answer, and which request is the first sent for real.

All calls that began before the cut are answered, except tools that contain the cut: they run to reach it.
After the cut, agents that ran in parallel keep their recorded answers as long as they make the recorded
requests; none do if the whole run is live.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterable

from ...errors import UsageError
from ...recording.recording import Recording
from ...tracefile.events.event import Event
from ..edits.cut_request import CutRequest
from ..matching.frontier import Frontier, is_same_request, same_site
from ..matching.request import MODEL, TOOL, Request
from ..matching.tape import RecordedCall, Tape
from ..replay.recorded_events import server_processes

ANSWERED, AROUND, AT_CUT, BEYOND = "answered", "around the cut", "at the cut", "beyond"
"""The place of a request: the recording answers it or reports a divergence; it calls a tool that contains the
cut; it is the request at the cut; it comes after the cut and nothing is recorded for it."""


class Cut:
    """The boundary before one recorded call. Processes of one run share it through a file, ``mark``."""

    def __init__(
        self, tape: Tape, call: RecordedCall, mark: str, *, is_rebased: bool = False, is_whole: bool = False
    ) -> None:
        self.call = call
        self.kept = kept_calls(tape, call, is_whole=is_whole)
        self.is_whole = is_whole
        """The whole run is live: nothing after the cut is answered, parallel agents included."""
        self._around = tools_around(tape, call)
        self._all = tape.calls if is_whole else []
        self._mark = mark
        self._is_rebased = is_rebased
        self._is_passed = False

    @property
    def is_passed(self) -> bool:
        """True once the call at the cut was made."""
        self._is_passed = self._is_passed or os.path.exists(self._mark)
        return self._is_passed

    def mark_passed(self, request: CutRequest | None) -> None:
        """Mark the cut as reached and publish its model request to the other processes."""
        fields = None if request is None else {"body": request.body, "url": request.url}
        file = os.open(f"{self._mark}.new", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with open(file, "w", encoding="utf-8") as mark:
            json.dump(fields, mark)
        os.replace(f"{self._mark}.new", self._mark)
        self._is_passed = True

    def request(self) -> CutRequest | None:
        """Return the published request at the cut; None before the cut is reached."""
        if not self.is_passed:
            return None
        with open(self._mark, encoding="utf-8") as file:
            fields = json.load(file)
        return None if fields is None else CutRequest(fields["body"], fields["url"])

    def place_of(self, request: Request, frontier: Frontier, promised: int) -> str:
        """Return the place of a request; ``promised`` counts equal requests that the recording answers."""
        equal = frontier.first_equal(request, promised)
        if self._enters(request, equal):
            return AROUND
        is_before = equal is not None and equal.begin < self.call.begin
        if not self.is_passed and not is_before and self._is_at(request, frontier):
            return AT_CUT
        if equal is not None or not (self.is_passed or self.is_whole):
            return ANSWERED
        return BEYOND

    def left_out(self, frontier: Frontier) -> list[RecordedCall]:
        """Return the calls of the cut's lane that should have been made before the cut."""
        return [call for call in frontier.missing() if self._is_earlier(call)]

    def _enters(self, request: Request, equal: RecordedCall | None) -> bool:
        """True for the call of a tool that contains the cut, once."""
        around = next((call for call in self._around if is_same_request(call, request)), None)
        if around is None or (equal is not None and equal.begin < around.begin):
            return False
        self._around.remove(around)
        return True

    def _is_at(self, request: Request, frontier: Frontier) -> bool:
        if is_same_request(self.call, request):
            return True
        if not (self._is_rebased or self.is_whole) or self.left_out(frontier):
            return False
        is_others = any(is_same_request(call, request) for call in self._all)
        return self.call.kind == request.kind and same_site(self.call, request) and not is_others

    def _is_earlier(self, call: RecordedCall) -> bool:
        return call.lane == self.call.lane and call.end < self.call.begin


def call_at(tape: Tape, address: str | None, recording: Recording) -> RecordedCall:
    """Return the call at an address of a recording, or the first that began after what is there.

    The tape may hold the runs inside it, too.
    """
    if not tape.calls:
        raise UsageError(
            f"{recording.name} holds no call that could be answered", hint="record it with reenact run"
        )
    if address is None:
        return next((call for call in tape.calls if call.kind == MODEL), tape.calls[0])
    is_inside = address.startswith("call:")  # ids are the same in all runs, numbers of turns are not
    event = (tape.recording if is_inside else recording).event(address)
    event = tape.recording.at_step(event.step or 0, event.writer) or event
    for call in tape.calls:
        if event in (call.event, call.end_event):
            return call
    later = next((call for call in tape.calls if _is_after(call, event)), None)
    if later is None:
        raise UsageError(
            f"no call was made at {address} or after it", hint=f"the last one is {tape.calls[-1].label()}"
        )
    return later


def _is_after(call: RecordedCall, event: Event) -> bool:
    """True if a call began after an event; the first and last line of a process have no index."""
    if event.index is not None:
        return call.begin > event.index
    return call.event.writer == event.writer and (call.event.step or 0) > (event.step or 0)


def tools_around(tape: Tape, cut: RecordedCall) -> list[RecordedCall]:
    """Return the calls of tools that contain the cut, the outermost first."""
    before = (call for call in tape.calls[: cut.number] if call.kind == TOOL and call.end > cut.begin)
    return [call for call in before if any(each is cut for each in tape.inside(call))]


def kept_calls(tape: Tape, cut: RecordedCall, *, is_whole: bool = False) -> list[RecordedCall]:
    """Return the calls that the recording still answers in a run that goes live at ``cut``."""
    left_out = {call.number for call in tools_around(tape, cut)}
    absent = server_processes(tape.recording) - {cut.event.writer}  # absent before the cut, live after it
    left_out |= {call.number for call in tape.calls if absent and call.event.writer in absent}
    before = [call for call in tape.calls[: cut.number] if call.number not in left_out]
    if is_whole:
        return before
    beside = {lane for lane in {call.lane for call in tape.calls} if lane != cut.lane}
    beside &= _overlapping(tape.calls, cut.lane)
    began = {call.lane for call in tape.calls if call.begin < cut.begin} | _with(tape.calls, cut)
    later = [call for call in tape.calls[cut.number + 1 :] if call.lane in beside & began]
    others = _later_agents(tape.calls, cut) | left_out
    return before + [call for call in later if call.number not in others]


def _overlapping(calls: Iterable[RecordedCall], lane: tuple[str, str]) -> set[tuple[str, str]]:
    """Return the lanes with a call that overlaps one of this lane."""
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


def _later_agents(calls: Iterable[RecordedCall], cut: RecordedCall) -> set[int]:
    """Return the calls of agents that reused a lane after the agent at the cut had finished.

    Such an agent starts a new conversation; a slower parallel agent only continues its own.
    """
    over = max(call.end for call in calls if call.lane == cut.lane)
    found: set[int] = set()
    sizes: dict[tuple[str, str], int] = {}
    restarted: set[tuple[str, str]] = set()
    for call in calls:
        size = call.size
        if size is not None:
            if call.begin > over and size <= sizes.get(call.lane, -1):
                restarted.add(call.lane)
            sizes[call.lane] = size
        if call.lane in restarted:
            found.add(call.number)
    return found


def _with(calls: Iterable[RecordedCall], cut: RecordedCall) -> set[tuple[str, str]]:
    """Return the lanes that began during the call at the cut: it did not cause them."""
    return {call.lane for call in calls if cut.begin < call.begin < cut.end}
