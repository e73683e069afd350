"""The recording at the seams: every call that leaves is asked of the player, and gets what came back then.

What is asked is redacted as the recording was before it is compared. A call that the recording does not
answer ends in ``Diverged``, which no SDK wraps or retries; or, if the run is to go on, in the provider's own
kind of refusal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from ..errors import Diverged, NotRecorded
from ..protocols import BREAKS, COMPLETE, RAISES, STAYS_OPEN, Reply, ToolReply
from .answers import CANCELLED, CLOSED, CUT, EXCEPTION, IN_FLIGHT, Answer
from .fingerprint import HTTP, MODEL, Request
from .frontier import STRICT, Miss, Served
from .player import Player
from .tools import asked_of, reasons, reply_of_tool

if TYPE_CHECKING:
    from ..protocols import Asked, AskedTool
    from .divergence import Divergence

_THEN = {CUT: BREAKS, CANCELLED: STAYS_OPEN, CLOSED: STAYS_OPEN, IN_FLIGHT: STAYS_OPEN}
_UNFIT = ("content-length", "transfer-encoding", "content-encoding", "connection", "keep-alive")
"""Headers about how bytes travelled, which they do not do now."""
REFUSED = 418
"""The status of a refusal, which no SDK tries again."""


class TapeResponder:
    """Answers the calls of one process from a player; ``tell`` hears of each divergence.

    ``live`` names tools that run; they must not be among the player's calls. ``note`` hears of a
    ``stand_in``, a result that was given but not as it was, of an ``unknown`` one, and of a ``doubt``: an
    answer that may be another call's (``drift``, ``reordered``, ``ambiguous-duplicate``).
    """

    def __init__(
        self,
        player: Player,
        *,
        mode: str = STRICT,
        live: Container[str] = (),
        tell: Callable[[Divergence], None] | None = None,
        note: Callable[[str, Any], None] | None = None,
    ) -> None:
        self.player = player
        self._mode = mode
        self._live = live
        self._tell = tell
        self._note = note or (lambda name, told: None)
        self.given = 0
        """How many calls were answered."""

    def reply(self, exchange: Asked) -> Reply:
        """Return what a call gets, when this thread may have it."""
        return self._made(self.player.ask(asked_by(exchange)), exchange)

    async def reply_async(self, exchange: Asked) -> Reply:
        """Return the same, when this task may have it."""
        return self._made(await self.player.ask_async(asked_by(exchange)), exchange)

    def tool(self, asked: AskedTool) -> ToolReply | None:
        """Return what a tool gave, when this thread may have it; None if it is to run."""
        if asked.name in self._live:
            self.player.release.asked()
            return None
        return self._made_of_tool(self.player.ask(asked_of(asked)), asked)

    async def tool_async(self, asked: AskedTool) -> ToolReply | None:
        """Return the same, when this task may have it."""
        if asked.name in self._live:
            self.player.release.asked()
            return None
        return self._made_of_tool(await self.player.ask_async(asked_of(asked)), asked)

    def _made_of_tool(self, found: Served | Miss, asked: AskedTool) -> ToolReply:
        if isinstance(found, Miss):
            raise NotRecorded(self._missed(found))
        answer = found.call.answer
        if answer.outcome == IN_FLIGHT:
            why_not = f"{found.call.label()} never ended in the recording: what it gives is not known"
            self._note("unknown", why_not)
            raise Diverged(why_not)
        self._served(found)
        why = reasons(answer)
        if why:
            self._note("stand_in", {"tool": asked.name, "call": found.call.id, "why": list(why)})
        return reply_of_tool(answer, asked.function)

    def _made(self, found: Served | Miss, exchange: Asked) -> Reply:
        if isinstance(found, Served):
            self._served(found)
            return reply_of(found.call.answer)
        error = {"type": "reenact_diverged", "message": self._missed(found)}
        body = json.dumps({"type": "error", "error": error}).encode()
        return Reply(
            REFUSED, [("content-type", "application/json"), ("x-should-retry", "false")], [(body, 0)]
        )

    def _served(self, found: Served) -> None:
        self.given += 1
        if found.notes:  # an answer, but not without a doubt
            self._note("doubt", {"call": found.call.label(), "why": ", ".join(found.notes)})

    def _missed(self, found: Miss) -> str:
        """Tell of a miss, and return its report if the run is to go on."""
        divergence = self.player.explain(found)
        if self._tell is not None:
            self._tell(divergence)
        text = divergence.text()
        if self._mode == STRICT:
            raise Diverged(text.partition("\n")[0])  # the report has the rest
        return text


def asked_by(exchange: Asked) -> Request:
    """Return what a call asks, redacted as it is recorded."""
    clean = exchange.recorder.texts.clean
    kind = MODEL if exchange.sort == MODEL else HTTP
    body: Any = exchange.request
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace") or None
    sent = exchange.sent.told() if exchange.sent is not None else None
    return Request(
        kind,
        exchange.method,
        clean("body", body, "full", ours=True),
        url=clean("url", exchange.url, "full"),
        sent=None if sent is None else clean("sent", sent, "full", ours=True),
    )


def reply_of(answer: Answer) -> Reply:
    """Return a recorded answer as a seam gives it."""
    pieces = [(data, 0.0) for data, _ in answer.pieces or ()]
    headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in _UNFIT]
    then = _THEN.get(answer.outcome, COMPLETE)
    if answer.outcome == EXCEPTION:
        then = BREAKS if answer.status is not None else RAISES
    return Reply(answer.status or 200, headers, pieces, then, answer.error)
