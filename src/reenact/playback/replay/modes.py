"""Responders for tests: strict, tools only, or recording what is missing."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...capture.replay_hook import Live
from ...errors import NotRecorded
from ...tracefile.status import FAILED
from ..matching.frontier import Miss, Served, is_same_request
from ..matching.recorded_answers import IN_FLIGHT
from ..matching.request import TOOL
from ..serve.replies import ToolReply
from .report import WentLive
from .responder import TapeResponder, http_request
from .side_effect_guard import agent_location
from .tool_results import tool_request

if TYPE_CHECKING:
    from ...capture.replay_hook import OutgoingRequest, ToolCall
    from ..matching.divergence import Divergence
    from ..matching.player import Player
    from ..serve.replies import ServerReply, ServerRequest

ENDS_IN_FAILURE = (
    "the recording ends where the run failed, so later requests of the fixed code are not recorded:"
    " --reenact=record-missing sends them to the model, and keeps them if the test passes"
)


class Strict(TapeResponder):
    """Raises ``raised`` with the whole report for any call that is not recorded."""

    def __init__(
        self, player: Player, *, raised: Callable[[str], BaseException], advice: str, **options: Any
    ) -> None:
        super().__init__(player, **options)
        self._raised = raised
        self._advice = advice
        self.misses: list[Divergence] = []
        self.texts: list[str] = []
        """The reports of the misses, each with its place in the code."""

    def _missed(self, found: Miss) -> str:
        ends_here = self._ends_in_failure()
        divergence = replace(
            self.player.explain(found), next=(ENDS_IN_FAILURE if ends_here else self._advice,)
        )
        place, text = agent_location(), divergence.text()
        if place is not None:
            first, newline, rest = text.partition("\n")
            text = f"{first}\n  made at   {place}{newline}{rest}"
        self.misses.append(divergence)
        self.texts.append(text)
        raise self._raised(text)

    def _ends_in_failure(self) -> bool:
        """True if all recorded calls are used up and the recorded run failed."""
        return self.player.tape.recording.status in FAILED and not self.player.frontier.missing()


class ToolsOnly(TapeResponder):
    """Answers tools with the results of equal calls, in any order; models are called live."""

    def __init__(self, player: Player, **options: Any) -> None:
        super().__init__(player, **options)
        self._lock = Lock()
        self._left = [call for call in player.tape.calls if call.kind == TOOL]

    def live(self, leaving: OutgoingRequest) -> Live | None:
        """Send every request."""
        return Live()

    def opens(self, url: str) -> bool:
        """Connect every socket to the real server."""
        return True

    def tool(self, tool_call: ToolCall) -> ToolReply | None:
        """Return a tool's recorded result for the same arguments; raise NotRecorded if there is none."""
        if tool_call.name in self._live:
            return None
        request = self._translated(tool_request(tool_call))
        with self._lock:
            found = next((call for call in self._left if is_same_request(call, request)), None)
            if found is None:
                raise NotRecorded(f"tool {tool_call.name} has no recorded call with these arguments")
            if len([call for call in self._left if is_same_request(call, request)]) > 1:
                self._left.remove(found)
        return self._result(tool_call, found.id, found.answer)

    async def tool_async(self, tool_call: ToolCall) -> ToolReply | None:
        """Return the same as ``tool``."""
        return self.tool(tool_call)


class RecordMissing(TapeResponder):
    """Sends requests that are not recorded to the model, and runs tools that are not recorded."""

    def __init__(self, player: Player, **options: Any) -> None:
        super().__init__(player, **options)
        self.went_live = 0
        self._lock = Lock()
        self._left: dict[str, int] = {}
        """How many recorded calls are not reserved by a request, by their L1 fingerprint."""

    def live(self, leaving: OutgoingRequest) -> Live | None:
        """Send a request that no recorded call answers."""
        request = self._translated(http_request(leaving))
        digest = request.fingerprint.l1
        with self._lock:
            if digest not in self._left:
                self._left[digest] = self.player.frontier.count_equal(request)
            self._left[digest] -= 1
            if self._left[digest] >= 0:
                return None
        self._goes_live()
        return Live()

    def _tool_reply(self, found: Served | Miss, tool_call: ToolCall) -> ToolReply | None:  # type: ignore[override]
        if isinstance(found, Miss) or found.call.answer.outcome == IN_FLIGHT:
            self._goes_live()
            return None
        return super()._tool_reply(found, tool_call)

    def server_reply(self, request: ServerRequest) -> ServerReply | None:
        """Return the recorded reply; None lets the real server answer."""
        found = self.servers.reply(request)
        if found is None:
            self._goes_live()
        return found

    def _goes_live(self) -> None:
        self.went_live += 1
        self._note(WentLive(os.getpid()))
        self.player.release.note_request()
