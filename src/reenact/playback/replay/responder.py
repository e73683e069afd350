"""The recording at the seams: every call that leaves is asked of the player, and gets what came back then.

What is asked is redacted as the recording was before it is compared. A call that the recording does not
answer ends in ``Diverged``, which no SDK wraps or retries; or, if the run is to go on, in the provider's own
kind of refusal.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Container
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ... import schema
from ...capture.http.request_body import described_body
from ...capture.replay_hook import ToolCall
from ...errors import Diverged, NotRecorded
from ...wire.inflate import packed
from ..matching.divergence import out_of_order
from ..matching.frontier import REORDERED, Miss, Served
from ..matching.player import Player
from ..matching.recorded_answers import CANCELLED, CLOSED, CUT, EXCEPTION, IN_FLIGHT, Answer
from ..matching.request import HTTP, MODEL, Request
from ..matching.request_secrets import SecretNumbers, cleaned
from ..matching.rules import KEEP_GOING, STRICT
from ..matching.tape import Tape
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
from .mcp import Servers
from .report import Doubt, Inexact, Listener, StandIn, Unknown
from .tools import reply_of_tool, tool_request

if TYPE_CHECKING:
    from ...capture.replay_hook import Live, OutgoingRequest
    from ..matching.divergence import Divergence
    from ..serve.replies import HttpCall, ServerRequest


# Clock and chance as they were: the values a process drew, given again in their order.
#
# Each thread has those of the thread of its name, a pool of threads those of its pool; where the recording
# knows no such thread, the next value of that name that nobody has taken.


class Ambient:
    """The recorded values of one process; ``writer`` tells, when it matters, which one it is."""

    def __init__(self, tape: Tape, writer: Callable[[], str | None]) -> None:
        self._tape = tape
        self._writer = writer
        self._lock = Lock()
        self._by_thread: dict[tuple[str, str | None], deque[int]] | None = None
        self._by_name: dict[str, deque[int]] = {}
        self._taken: set[int] = set()

    def next(self, name: str, thread: str | None) -> Any:
        """Return the next value of a name, None if there is none left."""
        with self._lock:
            if self._by_thread is None:
                self._by_thread = self._line_up()
            for queue in (self._by_thread.get((name, thread)), self._by_name.get(name)):
                while queue:
                    at = queue.popleft()
                    if at not in self._taken:
                        self._taken.add(at)
                        return self._value(at)
            return None

    def _line_up(self) -> dict[tuple[str, str | None], deque[int]]:
        recording, writer = self._tape.recording, self._writer()
        found: dict[tuple[str, str | None], deque[int]] = {}
        with self._tape.lock:
            for at, kind in enumerate(recording.event_types()):
                if kind != schema.AMBIENT:
                    continue
                event = recording.events[at]
                name, thread = event.stored_fields.get("name"), event.stored_fields.get("thread")
                if self._tape.process_of(event.writer) == writer and type(name) is str:
                    found.setdefault((name, thread), deque()).append(at)
                    self._by_name.setdefault(name, deque()).append(at)
        return found

    def _value(self, at: int) -> Any:
        with self._tape.lock:
            event = self._tape.recording.events[at]
            return event.stored_fields.get("value")


# What servers said unasked over sockets, connection by connection, in the order they were opened.


class Sockets:
    """The recorded connections of one process; each is given to one that is opened at its address."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._lock = Lock()
        self._waiting: dict[str, deque[list[Unprompted]]] | None = None

    def next(self, url: str, recorder: Any) -> list[Unprompted]:
        """Return what is said over the next connection to a URL."""
        with self._lock:
            if self._waiting is None:
                self._waiting = self._line_up()
            queue = self._waiting.get(_address(recorder.texts.clean("url", url, "full")))
            return queue.popleft() if queue else []

    def _line_up(self) -> dict[str, deque[list[Unprompted]]]:
        waiting: dict[str, deque[list[Unprompted]]] = {}
        known: dict[tuple[str, str], list[Unprompted]] = {}
        recording = self._tape.recording
        with self._tape.lock:
            for at, kind in enumerate(recording.event_types()):
                if kind != schema.SOCKET_MESSAGE:
                    continue
                event = recording.events[at]
                told, which = event.payload, (event.writer, str(event.stored_fields.get("socket")))
                url, asked, sent = told.get("url"), told.get("asked"), told.get("sent")
                if type(url) is not str or type(asked) is not int or type(sent) is not int:
                    continue
                if which not in known:
                    known[which] = []
                    waiting.setdefault(_address(url), deque()).append(known[which])
                if "body" in told:
                    known[which].append(Unprompted(asked, sent, told["body"]))
        return waiting


def _address(url: str) -> str:
    """Return what of a URL is the same where the server is another one."""
    try:
        parts = urlsplit(url)
    except ValueError:  # no address
        return url
    return f"{parts.path}?{parts.query}"


_THEN = {CUT: BREAKS, CANCELLED: STAYS_OPEN, CLOSED: STAYS_OPEN, IN_FLIGHT: ENDS}
_UNFIT = ("content-length", "transfer-encoding", "connection", "keep-alive")
"""Headers about how bytes travelled, which they do not do now."""
_TRIED_AGAIN = frozenset({408, 409, 425, 429, *range(500, 600)})
"""Statuses after which clients wait and try again: nobody has to recover now, so they need not wait."""
UNANSWERED = -32603
"""JSON-RPC's code for what a server could not do."""
REFUSED = 418
"""The status of a refusal, which no SDK tries again."""


class TapeResponder:
    """Answers the calls of one process from a player; ``tell`` hears of each divergence.

    ``live`` names tools that run; they must not be among the player's calls. ``note`` hears of a
    ``stand_in``, a result that was given but not as it was, of an ``unknown`` one, and of a ``doubt``: an
    answer that may be another call's (``drift``, ``reordered``, ``ambiguous-duplicate``); ``inexact`` is an
    answer with placeholders in it.
    """

    def __init__(
        self,
        player: Player,
        *,
        mode: str = STRICT,
        live: Container[str] = (),
        tell: Callable[[Divergence], None] | None = None,
        note: Listener | None = None,
    ) -> None:
        self.player = player
        self._mode = mode
        self._live = live
        self._tell = tell
        self._note = note or (lambda note: None)
        self.secrets = SecretNumbers()
        self.ambients = Ambient(player.tape, player.writer)
        self.servers = Servers(player.tape)
        self._sockets = Sockets(player.tape)
        self.given = 0
        """How many calls were answered."""

    def live(self, leaving: OutgoingRequest) -> Live | None:
        """Return None: nothing leaves."""
        return None

    def adapter(self, library: str) -> Any:
        """Return the module that makes answers for a library."""
        return adapter(library)

    def prepare(self, library: str, module: Any, watch: Any) -> Callable[[], None] | None:
        """Have the connections of a module lead to the recording; returns what undoes it."""
        return prepare(library, module, watch)

    def ambient(self, name: str, thread: str | None) -> Any:
        """Return the next recorded value of a clock or of chance; None, told as a doubt, if none is left."""
        value = self.ambients.next(name, thread)
        if value is None:
            self._note(Doubt(name, "no value is recorded for it, a real one was given"))
        return value

    def reply(self, exchange: HttpCall) -> Reply:
        """Return what a call gets, when this thread may have it."""
        request = self._translated(http_request(exchange))
        return self._made(self._learned(exchange, request, self.player.ask(request)))

    async def reply_async(self, exchange: HttpCall) -> Reply:
        """Return the same, when this task may have it."""
        request = self._translated(http_request(exchange))
        return self._made(self._learned(exchange, request, await self.player.ask_async(request)))

    def tool(self, asked: ToolCall) -> ToolReply | None:
        """Return what a tool gave, when this thread may have it; None if it is to run."""
        if asked.name in self._live:
            self.player.release.note_request()
            return None
        request = self._translated(tool_request(asked))
        return self._made_of_tool(self._learned(asked, request, self.player.ask(request)), asked)

    async def tool_async(self, asked: ToolCall) -> ToolReply | None:
        """Return the same, when this task may have it."""
        if asked.name in self._live:
            self.player.release.note_request()
            return None
        request = self._translated(tool_request(asked))
        return self._made_of_tool(self._learned(asked, request, await self.player.ask_async(request)), asked)

    def running(self, asked: ToolCall) -> AbstractContextManager[None]:
        """Hold nothing while a tool runs."""
        return nullcontext()

    def opens(self, url: str) -> bool:
        """Return False: no socket leads to a real server."""
        return False

    def unprompted(self, url: str, recorder: Any) -> list[Unprompted]:
        """Return what was said unasked over the next socket to a URL."""
        return self._sockets.next(url, recorder)

    def has_server(self, server: str, recorder: Any) -> bool:
        """Return whether it is recorded what an MCP server said."""
        return self.servers.has(server, recorder)

    def server_reply(self, asked: ServerRequest) -> ServerReply | None:
        """Return what an MCP server said to a request."""
        found = self.servers.reply(asked)
        if found is not None:
            return found
        what = f"{asked.method} {json.dumps(asked.params) if asked.params else ''}".strip()
        why = f"MCP {what} was not asked of {asked.server} then: what it gives is not known"
        self._note(Unknown(why))
        if self._mode == STRICT:
            raise Diverged(why)
        return ServerReply(error={"code": UNANSWERED, "message": why})

    def _made_of_tool(self, found: Served | Miss, asked: ToolCall) -> ToolReply:
        if isinstance(found, Miss):
            raise NotRecorded(self._missed(found))
        answer = found.call.answer
        if answer.outcome == IN_FLIGHT:
            raise Diverged(self._never_ended(found))
        self._served(found)
        return self._result(asked, found.call.id, answer)

    def _result(self, asked: ToolCall, call: str, answer: Answer) -> ToolReply:
        """Return a recorded result as it is given, and tell if that is not as it was."""
        reply, why = reply_of_tool(answer, asked.function)
        if why:
            self._note(StandIn(asked.name, call, tuple(why)))
        return reply

    def _made(self, found: Served | Miss) -> Reply:
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
        error = {"type": "reenact_diverged", "message": self._not_given(found)}
        body = json.dumps({"type": "error", "error": error}).encode()
        return Reply(
            REFUSED, [("content-type", "application/json"), ("x-should-retry", "false")], [(body, 0)]
        )

    def _never_ended(self, found: Served) -> str:
        why = f"{found.call.label()} never ended in the recording: its answer is not known"
        self._note(Unknown(why))
        return why

    def _translated(self, request: Request) -> Request:
        """Return a request with the recording's placeholders for the secrets that it is known to have had."""
        if not self.secrets.known:
            return request
        of = self.secrets.translated
        return Request(
            request.kind, request.name, of(request.body), url=of(request.url), sent=of(request.sent)
        )

    def _learned(self, asked: HttpCall | ToolCall, request: Request, found: Served | Miss) -> Served | Miss:
        if isinstance(found, Served):
            mark(asked, found.call.id)
        redactor = asked.recorder.texts.redactor
        met = len(redactor.placeholders) if redactor is not None else 0
        if isinstance(found, Served) and met > self.secrets.known:
            self.secrets.learn(request, found.call)
        return found

    def _not_given(self, found: Served | Miss) -> str:
        """Tell why a call gets no answer, and return it if the run is to go on."""
        if isinstance(found, Miss):
            return self._missed(found)
        why = f"the answer to {found.call.label()} is not known: {', '.join(found.call.answer.lossy)}"
        self._note(Unknown(why))
        if self._mode == STRICT:
            raise Diverged(why)
        return why

    def _served(self, found: Served) -> None:
        self.given += 1
        if REORDERED in found.notes and self._mode == KEEP_GOING and self._tell is not None:
            self._tell(out_of_order(found.call))
        elif found.notes:  # an answer, but not without a doubt
            self._note(Doubt(found.call.label(), ", ".join(found.notes)))

    def _explained(self, found: Miss) -> Divergence:
        return self.player.explain(found)

    def _missed(self, found: Miss) -> str:
        """Tell of a miss, and return its report if the run is to go on."""
        divergence = self._explained(found)
        if self._tell is not None:
            self._tell(divergence)
        text = divergence.text()
        if self._mode == STRICT:
            raise Diverged(text.partition("\n")[0])  # the report has the rest
        return text


def mark(asked: HttpCall | ToolCall, call: str) -> None:
    """Have it recorded whose answer this is."""
    told: Any = asked.opened if isinstance(asked, ToolCall) else asked
    if told is not None:
        told.replayed = call


def http_request(exchange: HttpCall) -> Request:
    """Return what a call asks, redacted as it is recorded."""
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
    )


def reply_of(answer: Answer) -> Reply:
    """Return a recorded answer as a seam gives it."""
    then = _THEN.get(answer.outcome, COMPLETE)
    if answer.outcome == EXCEPTION:
        then = BREAKS if answer.status is not None else RAISES
    pieces = [data for data, _ in answer.pieces or ()]
    headers = {name.lower(): value for name, value in answer.headers.items()}
    encoding = answer.encoding
    as_they_came = packed(pieces, encoding, is_whole=then == COMPLETE) if encoding is not None else None
    if encoding is not None and as_they_came is not None:
        headers["content-encoding"], pieces = encoding, as_they_came
    if (answer.status or 0) in _TRIED_AGAIN:
        headers |= {"retry-after-ms": "1"} | ({"retry-after": "0"} if "retry-after" in headers else {})
    unfit = _UNFIT if pieces else _UNFIT[1:]  # how long it is may be all that HEAD asks
    told = [(name, value) for name, value in headers.items() if name not in unfit]
    return Reply(answer.status or 200, told, [(data, 0.0) for data in pieces], then, answer.error)
