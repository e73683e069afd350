"""The recording at the seams: every call that leaves is asked of the player, and gets what came back then.

What is asked is redacted as the recording was before it is compared. A call that the recording does not
answer ends in ``Diverged``, which no SDK wraps or retries; or, if the run is to go on, in the provider's own
kind of refusal.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import Diverged
from ..protocols import BREAKS, COMPLETE, RAISES, STAYS_OPEN, Reply
from .answers import CANCELLED, CLOSED, CUT, EXCEPTION, IN_FLIGHT, Answer
from .fingerprint import HTTP, MODEL, Request
from .frontier import STRICT, Miss, Served
from .player import Player

if TYPE_CHECKING:
    from ..protocols import Asked
    from .divergence import Divergence

_THEN = {CUT: BREAKS, CANCELLED: STAYS_OPEN, CLOSED: STAYS_OPEN, IN_FLIGHT: STAYS_OPEN}
_UNFIT = ("content-length", "transfer-encoding", "content-encoding", "connection", "keep-alive")
"""Headers about how bytes travelled, which they do not do now."""
REFUSED = 418
"""The status of a refusal, which no SDK tries again."""


class TapeResponder:
    """Answers the calls of one process from a player; ``tell`` hears of each divergence."""

    def __init__(
        self, player: Player, *, mode: str = STRICT, tell: Callable[[Divergence], None] | None = None
    ) -> None:
        self.player = player
        self._mode = mode
        self._tell = tell
        self.given = 0
        """How many calls were answered."""

    def reply(self, exchange: Asked) -> Reply:
        """Return what a call gets, when this thread may have it."""
        return self._made(self.player.ask(asked_by(exchange)), exchange)

    async def reply_async(self, exchange: Asked) -> Reply:
        """Return the same, when this task may have it."""
        return self._made(await self.player.ask_async(asked_by(exchange)), exchange)

    def _made(self, found: Served | Miss, exchange: Asked) -> Reply:
        if isinstance(found, Served):
            self.given += 1
            return reply_of(found.call.answer)
        divergence = self.player.explain(found)
        if self._tell is not None:
            self._tell(divergence)
        if self._mode == STRICT:
            raise Diverged(divergence.text().partition("\n")[0])  # the report has the rest
        error = {"type": "reenact_diverged", "message": divergence.text()}
        body = json.dumps({"type": "error", "error": error}).encode()
        return Reply(
            REFUSED, [("content-type", "application/json"), ("x-should-retry", "false")], [(body, 0)]
        )


def asked_by(exchange: Asked) -> Request:
    """Return what a call asks, redacted as it is recorded."""
    clean = exchange.recorder.texts.clean
    kind = MODEL if exchange.sort == MODEL else HTTP
    body: Any = exchange.request
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
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
