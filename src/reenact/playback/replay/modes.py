"""Who answers a test: a recording and nothing else, or a recording as far as it goes."""

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
from .guard import agents_place
from .report import WentLive
from .responder import TapeResponder, http_request
from .tools import tool_request

if TYPE_CHECKING:
    from ...capture.replay_hook import OutgoingRequest, ToolCall
    from ..matching.divergence import Divergence
    from ..matching.player import Player
    from ..serve.replies import ServerReply, ServerRequest

ENDS_IN_FAILURE = (
    "the recording ends where the run failed, and what fixed code requests after that was never answered:"
    " --reenact=record-missing asks the model for it, and keeps it if the test passes"
)


class Strict(TapeResponder):
    """What is not recorded raises ``raised`` with the whole report: nobody else will tell it."""

    def __init__(
        self, player: Player, *, raised: Callable[[str], BaseException], advice: str, **given: Any
    ) -> None:
        super().__init__(player, **given)
        self._raised = raised
        self._advice = advice
        self.misses: list[Divergence] = []
        self.texts: list[str] = []
        """The reports of the misses, each with where it was made."""

    def _missed(self, found: Miss) -> str:
        ends_here = self._ends_in_failure()
        divergence = replace(
            self.player.explain(found), next=(ENDS_IN_FAILURE if ends_here else self._advice,)
        )
        place, text = agents_place(), divergence.text()
        if place is not None:
            first, newline, rest = text.partition("\n")
            text = f"{first}\n  made at   {place}{newline}{rest}"
        self.misses.append(divergence)
        self.texts.append(text)
        raise self._raised(text)

    def _ends_in_failure(self) -> bool:
        """True if all that was recorded has been asked for, and ended in the failure of the run."""
        return self.player.tape.recording.status in FAILED and not self.player.frontier.missing()


class ToolsAlone(TapeResponder):
    """Tools get the results of equal calls, in whatever order; none runs, and models are called."""

    def __init__(self, player: Player, **given: Any) -> None:
        super().__init__(player, **given)
        self._lock = Lock()
        self._left = [call for call in player.tape.calls if call.kind == TOOL]

    def live(self, leaving: OutgoingRequest) -> Live | None:
        """Let every request leave."""
        return Live()

    def opens(self, url: str) -> bool:
        """Have every socket lead to the real server."""
        return True

    def tool(self, asked: ToolCall) -> ToolReply | None:
        """Return what a tool gave for the same arguments; NotRecorded, as its failure, if it never did."""
        if asked.name in self._live:
            return None
        request = self._translated(tool_request(asked))
        with self._lock:
            found = next((call for call in self._left if is_same_request(call, request)), None)
            if found is None:
                raise NotRecorded(f"tool {asked.name} was not called like this when it was recorded")
            if len([call for call in self._left if is_same_request(call, request)]) > 1:
                self._left.remove(found)
        return self._result(asked, found.id, found.answer)

    async def tool_async(self, asked: ToolCall) -> ToolReply | None:
        """Return the same."""
        return self.tool(asked)


class AsFarAsItGoes(TapeResponder):
    """What is not recorded goes its own way: models are called, tools run."""

    def __init__(self, player: Player, **given: Any) -> None:
        super().__init__(player, **given)
        self.went_live = 0
        self._lock = Lock()
        self._left: dict[str, int] = {}
        """How many recorded calls are not yet promised to a request, by what they ask."""

    def live(self, leaving: OutgoingRequest) -> Live | None:
        """Let a request leave that nothing recorded answers."""
        request = self._translated(http_request(leaving))
        asked = request.fingerprint.l1
        with self._lock:
            if asked not in self._left:
                self._left[asked] = self.player.frontier.count_equal(request)
            self._left[asked] -= 1
            if self._left[asked] >= 0:
                return None
        self._goes_live()
        return Live()

    def _made_of_tool(self, found: Served | Miss, asked: ToolCall) -> ToolReply | None:  # type: ignore[override]
        if isinstance(found, Miss) or found.call.answer.outcome == IN_FLIGHT:
            self._goes_live()
            return None
        return super()._made_of_tool(found, asked)

    def server_reply(self, asked: ServerRequest) -> ServerReply | None:
        """Have the real server asked what it was not asked then."""
        found = self.servers.reply(asked)
        if found is None:
            self._goes_live()
        return found

    def _goes_live(self) -> None:
        self.went_live += 1
        self._note(WentLive(os.getpid()))
        self.player.release.note_request()
