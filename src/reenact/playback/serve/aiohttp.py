"""Recorded responses for aiohttp: a connection in memory, whose bytes aiohttp's own parser reads.

A session's connector hands it out in place of one of its own while a recorded request is under way. The
reply is looked up once the whole request has been written.
"""

from __future__ import annotations

import asyncio
import builtins
import sys
from _contextvars import ContextVar
from errno import ECONNREFUSED
from typing import TYPE_CHECKING, Any

from ...capture.seams.http_client_bodies import Transfer
from ...capture.seams.patching import override
from ...errors import Diverged
from .raw_http import ABOUT_LENGTH, THE_END, Raw, named, os_error, text_of
from .replies import BREAKS, ENDS, RAISES, responder

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...capture.http.exchange import Exchange
    from ...capture.replay_hook import Live
    from .replies import Reply

_exchange: ContextVar[Exchange | None] = ContextVar("reenact_answered", default=None)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def changed(live: Live, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of the request that is sent in place of another."""
    if live.url is not None:
        args, kwargs = (args[0], live.url), {**kwargs, "params": None}
    if live.body is None:
        return args, kwargs
    headers = [pair for pair in _pairs(kwargs.get("headers")) if pair[0].lower() not in ABOUT_LENGTH]
    payload = sys.modules["aiohttp"].BytesPayload(live.body, content_type="application/json")
    return args, {**kwargs, "json": None, "data": payload, "headers": headers}


def _pairs(headers: Any) -> list[tuple[str, str]]:
    held = headers.items() if hasattr(headers, "items") else headers or ()
    return [(str(name), str(value)) for name, value in held]


async def carry(exchange: Exchange, send: Callable[[Any], Any], request: Any, session: Any) -> Any:
    """Make a request ``(args, kwargs)`` that the recording answers; or send it, where it is live."""
    if exchange.live is not None:
        return await send(changed(exchange.live, *request))
    override(session.connector, "connect", _connect)
    token = _exchange.set(exchange)
    try:
        return await send(request)
    finally:
        try:
            _exchange.reset(token)
        except ValueError:  # closed in another context
            _exchange.set(None)


async def _connect(connector: Any, original: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
    exchange = _exchange.get()
    if exchange is None:
        return await original(connector, request, *args, **kwargs)
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

    loop = asyncio.get_running_loop()
    protocol = ResponseHandler(loop)
    protocol.connection_made(_InMemory(loop, protocol, exchange, request))
    protocol.force_close()  # not to be used for another request
    held: set[Any] = getattr(connector, "_acquired", set())
    held.add(protocol)  # to be closed with the connector
    return Connection(connector, request.connection_key, protocol, loop)


class _InMemory(asyncio.Transport):
    """A transport that takes one request and delivers its reply."""

    def __init__(self, loop: Any, protocol: Any, exchange: Exchange, request: Any) -> None:
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._exchange = exchange
        self._request = request
        self._head = b""
        self._body: Transfer | None = None
        self._serving: Any = None
        self._is_closing = False
        self._may_read = asyncio.Event()
        self._may_read.set()

    def write(self, data: Any) -> None:
        if self._serving is not None:
            return
        data = bytes(data)
        if self._body is None:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            self._body = self._body_of(head.decode("latin-1"))
        self._body.add(data)
        if self._body.is_over:
            self._serving = self._loop.create_task(self._serve())

    def _body_of(self, head: str) -> Transfer:
        lines = [line.partition(":") for line in head.split("\r\n")[1:]]
        headers = {name.strip().lower(): value.strip().lower() for name, _, value in lines}
        if headers.get("expect") == "100-continue":
            self._loop.call_soon(self._protocol.data_received, _CONTINUE)
        chunked = "chunked" in headers.get("transfer-encoding", "")
        return Transfer(chunked, None if chunked else int(headers.get("content-length", 0)))

    async def _serve(self) -> None:
        try:
            if self._exchange.sent is not None:
                self._exchange.sent.all()
            await self._give(await responder().reply_async(self._exchange))
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # for the task that waits for the response
            self._protocol.set_exception(exc)

    async def _give(self, reply: Reply) -> None:
        protocol, raw = self._protocol, Raw(reply, self._exchange.method)
        if reply.then == RAISES:
            self._fail(reply.error)
            return
        protocol.data_received(raw.head())
        for data, pause in raw.pieces():
            await asyncio.sleep(pause)  # others have their turn, as while one waits for a socket
            await self._may_read.wait()
            protocol.data_received(data)
        if reply.then == ENDS:
            await asyncio.sleep(0)
            reader = getattr(protocol, "_payload", None)
            (protocol if reader is None else reader).set_exception(Diverged(THE_END))
        if reply.then == BREAKS:
            await asyncio.sleep(0)
            self._break(reply.error)

    def _fail(self, error: Any) -> None:
        aiohttp: Any = sys.modules["aiohttp"]
        text, os_fault = text_of(error), os_error(text_of(error))
        kind: Any = named(error, aiohttp, builtins) or aiohttp.ClientConnectionError
        if issubclass(kind, aiohttp.ServerDisconnectedError):
            self._lose(None)
        elif issubclass(kind, aiohttp.ClientConnectorError):
            inner = text.rpartition("[")[2].rstrip("]")
            self._protocol.set_exception(
                kind(self._request.connection_key, os_fault or OSError(ECONNREFUSED, inner))
            )
        elif issubclass(kind, OSError) and os_fault is not None:
            self._lose(os_fault)
        else:
            self._protocol.set_exception(kind(text) if text else kind())

    def _break(self, error: Any) -> None:
        """End the connection in the middle of a response; a timeout is raised as the session raised it."""
        kind = named(error, sys.modules["aiohttp"], builtins)
        reader = getattr(self._protocol, "_payload", None)
        if kind is not None and issubclass(kind, TimeoutError) and reader is not None:
            reader.set_exception(kind(text_of(error)) if text_of(error) else kind())
        else:
            self._lose(os_error(str(error or "")))

    def _lose(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._protocol.connection_lost(exc)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if self._serving is not None:
                self._serving.cancel()
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False
