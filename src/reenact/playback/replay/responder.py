"""The responders of replays and tests: answer each intercepted call from the recording, through the player.

Requests are redacted like the recording before they are compared. A call without a recorded answer raises
``Diverged``, which no SDK wraps or retries; or, if the run continues, gets an error in the provider's shape.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import takewhile
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...capture.http.request_body import described_body
from ...capture.replay_hook import Live, ToolCall
from ...capture.tools import frameworks
from ...errors import Diverged, NotRecorded
from ...schema import FOUND, FRAMEWORKS
from ...tracefile.status import FAILED
from ...wire.inflate import packed
from ..matching.divergence import NAMED, guessed, out_of_order
from ..matching.frontier import AMBIGUOUS, REORDERED, Miss, Served, is_same_request
from ..matching.modes import KEEP_GOING, STRICT
from ..matching.player import Player
from ..matching.recorded_answers import CANCELLED, CLOSED, CUT, EXCEPTION, IN_FLIGHT, SUSPENDED, Answer
from ..matching.request import HTTP, MODEL, TOOL, Request
from ..matching.request_secrets import SecretNumbers, cleaned
from ..serve import adapter, prepare
from ..serve.replies import (
    BREAKS,
    COMPLETE,
    ENDS,
    RAISES,
    STAYS_OPEN,
    Reply,
    ServerReply,
    ToolReply,
    Unprompted,
)
from .recorded_events import Ambient, Servers, Sockets
from .report import Doubt, Inexact, Listener, StandIn, Unknown, WentLive
from .side_effect_guard import agent_location
from .tool_results import reply_of_tool, tool_request

if TYPE_CHECKING:
    from ...capture.replay_hook import OutgoingRequest
    from ..matching.divergence import Divergence
    from ..matching.tape import RecordedCall
    from ..serve.replies import HttpCall, ServerRequest

_THEN = {CUT: BREAKS, CANCELLED: STAYS_OPEN, CLOSED: STAYS_OPEN, IN_FLIGHT: ENDS}
_UNFIT = ("content-length", "transfer-encoding", "connection", "keep-alive")
"""Headers about the transport, which does not apply now."""
_RETRIED = frozenset({408, 409, 425, 429, *range(500, 600)})
"""Statuses after which clients wait and retry: in a replay they need not wait."""
UNANSWERED = -32603
"""JSON-RPC's code for an internal error."""
REFUSED = 418
"""The HTTP status of a miss, which no SDK retries."""


class TapeResponder:
    """Answers the calls of one process from a player; ``on_divergence`` is called with each divergence.

    ``live`` are tools that run; they must not be among the player's calls. ``note`` is called with each other
    report: ``StandIn`` for an inexact tool result, ``Unknown`` for a missing answer, ``Doubt`` for one that
    may belong to another call (``drift``, ``reordered``, ``ambiguous-duplicate``), ``Inexact`` for one with
    placeholders.
    """

    def __init__(
        self,
        player: Player,
        *,
        live: Container[str] = (),
        on_divergence: Callable[[Divergence], None] | None = None,
        note: Listener | None = None,
    ) -> None:
        self.player = player
        self._mode = player.frontier.mode
        self._live = live
        self._on_divergence = on_divergence
        self._note = note or (lambda note: None)
        self.secrets = SecretNumbers()
        self.ambients = Ambient(player.tape, player.writer)
        self.servers = Servers(player.tape)
        self._sockets = Sockets(player.tape)
        self.answered = 0
        """How many calls were answered."""

    def live(self, leaving: OutgoingRequest) -> Live | None:
        """Return None: nothing is sent."""
        return None

    def adapter(self, library: str) -> Any:
        """Return the module that builds responses for a library."""
        return adapter(library)

    def prepare(self, library: str, module: Any, watch: Any) -> Callable[[], None] | None:
        """Connect a module to the recording; return a function that undoes it."""
        return prepare(library, module, watch)

    def ambient(self, name: str, thread: str | None) -> Any:
        """Return the next recorded time or random value; None, reported as a doubt, if none is left."""
        value = self.ambients.next(name, thread)
        if value is None:
            self._note(Doubt(name, "no value is recorded for it, a real one was used"))
        return value

    def reply(self, exchange: HttpCall) -> Reply:
        """Return the reply to a call; block until it is due."""
        request = self._translated(http_request(exchange))
        return self._reply(self._learned(exchange, request, self.player.ask(request)))

    async def reply_async(self, exchange: HttpCall) -> Reply:
        """Return the same; await until it is due."""
        request = self._translated(http_request(exchange))
        return self._reply(self._learned(exchange, request, await self.player.ask_async(request)))

    def tool(self, tool_call: ToolCall) -> ToolReply | None:
        """Return a tool's recorded result, None if it runs; block until it is due."""
        if tool_call.name in self._live:
            self.player.release.note_request()
            return None
        request = self._translated(tool_request(tool_call))
        return self._tool_reply(self._learned(tool_call, request, self.player.ask(request)), tool_call)

    async def tool_async(self, tool_call: ToolCall) -> ToolReply | None:
        """Return the same; await until it is due."""
        if tool_call.name in self._live:
            self.player.release.note_request()
            return None
        request = self._translated(tool_request(tool_call))
        return self._tool_reply(
            self._learned(tool_call, request, await self.player.ask_async(request)), tool_call
        )

    def unwatched(self, tools: Iterable[str]) -> None:
        """End the run before a tool runs that the recording answers, but whose function is not found now."""
        sources: dict[str | None, set[str]] = {}
        for call in self.player.tape.calls:
            sources.setdefault(call.tool, set()).add(str(call.event.stored_fields.get("source")))
        for name in tools:
            by = sources.get(name, set()) & {FOUND, *FRAMEWORKS}  # a framework names it when it is called
            if by and by.isdisjoint(frameworks.in_force) and name not in self._live:
                why = (
                    f"tool {name} would run: it was recorded by watching its function, which is not found now"
                )
                self._note(Unknown(f"{why}; {NAMED.format(name)}"))
                raise Diverged(why)

    def running(self, tool_call: ToolCall) -> AbstractContextManager[None]:
        """Return an empty context: a running tool needs no permission."""
        return nullcontext()

    def opens(self, url: str) -> bool:
        """Return False: no socket connects to a real server."""
        return False

    def unprompted(self, url: str, recorder: Any) -> list[Unprompted]:
        """Return the unprompted messages of the next socket to a URL."""
        return self._sockets.next(url, recorder)

    def has_server(self, server: str, recorder: Any) -> bool:
        """Return whether replies of an MCP server are recorded."""
        return self.servers.has(server, recorder)

    def server_reply(self, request: ServerRequest) -> ServerReply | None:
        """Return the recorded reply of an MCP server."""
        found = self.servers.reply(request)
        if found is not None:
            return found
        label = f"{request.method} {json.dumps(request.params) if request.params else ''}".strip()
        why = f"MCP {label} to {request.server} is not recorded: its reply is unknown"
        self._note(Unknown(why))
        if self._mode == STRICT:
            raise Diverged(why)
        return ServerReply(error={"code": UNANSWERED, "message": why})

    def _tool_reply(self, found: Served | Miss, tool_call: ToolCall) -> ToolReply:
        if isinstance(found, Miss):
            raise NotRecorded(self._missed(found))
        answer = found.call.answer
        if answer.outcome == IN_FLIGHT:
            raise Diverged(self._never_ended(found))
        self._served(found)
        return self._result(tool_call, found.call.id, answer)

    def _result(self, tool_call: ToolCall, call: str, answer: Answer) -> ToolReply:
        """Return a recorded result; report it if it is not exact."""
        reply, why = reply_of_tool(answer, tool_call.function, self._suspensions(call))
        if why:
            self._note(StandIn(tool_call.name, call, tuple(why)))
        return reply

    def _suspensions(self, id_: str) -> list[Answer]:
        """Return the answers of earlier calls for the same tool use that suspended the agent."""
        call = self.player.tape.call(id_)
        if call is None or call.kind != TOOL:
            return []
        same = [
            each
            for each in self.player.tape.calls[: call.number]
            if each.tool == call.tool and each.event.tool_id == call.event.tool_id
        ]
        suspended = takewhile(lambda each: each.outcome == SUSPENDED, reversed(same))
        return [each.answer for each in suspended if is_same_request(each, call.request)][::-1]

    def _reply(self, found: Served | Miss) -> Reply:
        if isinstance(found, Served):
            answer = found.call.answer
            if answer.outcome == IN_FLIGHT:
                why = self._never_ended(found)
                if not answer.pieces:
                    raise Diverged(why)
            if answer.is_known:
                self._served(found)
                if answer.lossy:
                    self._note(Inexact(found.call.label(), tuple(answer.lossy)))
                return reply_of(answer)
        error = {"type": "reenact_diverged", "message": self._unanswered(found)}
        body = json.dumps({"type": "error", "error": error}).encode()
        return Reply(
            REFUSED, [("content-type", "application/json"), ("x-should-retry", "false")], [(body, 0)]
        )

    def _never_ended(self, found: Served) -> str:
        why = f"{found.call.label()} never ended in the recording: its answer is not known"
        self._note(Unknown(why))
        return why

    def _translated(self, request: Request) -> Request:
        """Return a request with the recorded placeholders of all known secrets."""
        if not self.secrets.known:
            return request
        of = self.secrets.translated
        body, url, sent = of(request.body), of(request.url), of(request.sent)
        return Request(
            request.kind, request.name, body, url=url, sent=sent, who=request.who, tool_id=request.tool_id
        )

    def _learned(self, source: HttpCall | ToolCall, request: Request, found: Served | Miss) -> Served | Miss:
        if isinstance(found, Served):
            mark(source, found.call.id)
        redactor = source.recorder.texts.redactor
        met = len(redactor.placeholders) if redactor is not None else 0
        if isinstance(found, Served) and met > self.secrets.known:
            self.secrets.learn(request, found.call)
        return found

    def _unanswered(self, found: Served | Miss) -> str:
        """Report why a call gets no answer; return the reason if the run continues."""
        if isinstance(found, Miss):
            return self._missed(found)
        why = f"the answer to {found.call.label()} is unknown: {', '.join(found.call.answer.lossy)}"
        self._note(Unknown(why))
        if self._mode == STRICT:
            raise Diverged(why)
        return why

    def _served(self, found: Served) -> None:
        self.answered += 1
        if REORDERED in found.notes and self._mode == KEEP_GOING and self._on_divergence is not None:
            self._on_divergence(out_of_order(found.call))
        elif AMBIGUOUS in found.notes:
            self._guessed(found.call)
        elif found.notes:  # answered, but not with certainty
            self._note(Doubt(found.call.label(), ", ".join(found.notes)))

    def _guessed(self, call: RecordedCall) -> None:
        """Report an answer that may be another caller's: the run continues, and counts as diverged."""
        if self._on_divergence is not None:
            self._on_divergence(guessed(call))
        else:
            self._note(Doubt(call.label(), AMBIGUOUS))

    def _explained(self, found: Miss) -> Divergence:
        return self.player.explain(found)

    def _missed(self, found: Miss) -> str:
        """Report a miss; return its text if the run continues."""
        divergence = self._explained(found)
        if self._on_divergence is not None:
            self._on_divergence(divergence)
        text = divergence.text()
        if self._mode == STRICT:
            raise Diverged(text.partition("\n")[0])  # the report has the rest
        return text


def mark(source: HttpCall | ToolCall, call: str) -> None:
    """Note the recorded call that answers this one, so that the trace names it."""
    opened: Any = source.opened if isinstance(source, ToolCall) else source
    if opened is not None:
        opened.replayed = call


def http_request(exchange: HttpCall) -> Request:
    """Return the request of a call, redacted like the recording."""
    clean = exchange.recorder.texts.clean
    kind = MODEL if exchange.sort == MODEL else HTTP
    body: Any = exchange.request
    sent = exchange.sent.described() if exchange.sent is not None else None
    if isinstance(body, bytes) and kind == HTTP:
        body, sent = None, described_body(body, exchange.content_type)
    elif isinstance(body, bytes):
        body = body.decode("utf-8", "replace") or None
    body, parts = cleaned(exchange.recorder.texts, body)
    return Request(
        kind,
        exchange.method,
        body,
        url=clean("url", exchange.url, "full"),
        sent=None if sent is None else clean("sent", sent, "full", ours=True),
        parts=parts,
        who=exchange.who,
    )


def reply_of(answer: Answer) -> Reply:
    """Return a recorded answer as a reply for a seam."""
    then = _THEN.get(answer.outcome, COMPLETE)
    if answer.outcome == EXCEPTION:
        then = BREAKS if answer.status is not None else RAISES
    pieces = [data for data, _ in answer.pieces or ()]
    headers = {name.lower(): value for name, value in answer.headers.items()}
    encoding = answer.encoding
    compressed = packed(pieces, encoding, is_whole=then == COMPLETE) if encoding is not None else None
    if encoding is not None and compressed is not None:
        headers["content-encoding"], pieces = encoding, compressed
    if (answer.status or 0) in _RETRIED:
        headers |= {"retry-after-ms": "1"} | ({"retry-after": "0"} if "retry-after" in headers else {})
    unfit = _UNFIT if pieces else _UNFIT[1:]  # a response to HEAD may be all about its length
    kept = [(name, value) for name, value in headers.items() if name not in unfit]
    return Reply(answer.status or 200, kept, [(data, 0.0) for data in pieces], then, answer.error)


# The responders of tests.

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
        self._mode = STRICT  # whatever the player matches
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

    def _guessed(self, call: RecordedCall) -> None:
        divergence = guessed(call)
        self.misses.append(divergence)
        self.texts.append(divergence.text())

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

    def unwatched(self, tools: Iterable[str]) -> None:
        """Let them run: what is not answered is recorded anew."""

    def _goes_live(self) -> None:
        self._note(WentLive(os.getpid()))
        self.player.release.note_request()
