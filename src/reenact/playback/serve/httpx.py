"""Recorded responses for httpx and httpx2: genuine response objects, made per module."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...errors import Diverged
from .raw_http import THE_END, text_of
from .replies import BREAKS, COMPLETE, ENDS, RAISES, STAYS_OPEN, responder

if TYPE_CHECKING:
    from ...capture.http.exchange import Exchange
    from ...capture.replay_hook import Live
    from .replies import Reply

_streams: dict[str, tuple[type, type]] = {}


def changed(module: Any, live: Live, request: Any) -> Any:
    """Return the request that is sent in place of another."""
    if live.body is None and live.url is None:
        return request
    body, headers = {"stream": request.stream}, list(request.headers.raw)
    if live.body is not None:
        length = str(len(live.body)).encode()
        body = {"content": live.body}
        headers = [
            (name, length if name.lower() == b"content-length" else value)
            for name, value in headers
            if name.lower() != b"transfer-encoding"
        ]
    return module.Request(
        request.method, live.url or request.url, headers=headers, extensions=request.extensions, **body
    )


def carry(
    exchange: Exchange, send: Callable[[Any], Any], request: Any, module: Any, is_async: bool = False
) -> Any:
    """Return the response to a request, whose body is made first if it is made while it is sent."""
    if exchange.live is not None:
        return send(changed(module, exchange.live, request))
    if is_async:
        return _answer(exchange, request, module)
    if exchange.sent is not None:
        for _ in request.stream:
            pass
    return _response(module, responder().reply(exchange), request)


async def _answer(exchange: Exchange, request: Any, module: Any) -> Any:
    """Return the response to a request of an ``AsyncClient``."""
    if exchange.sent is not None:
        async for _ in request.stream:
            pass
    return _response(module, await responder().reply_async(exchange), request, is_async=True)


def _response(module: Any, reply: Reply, request: Any, *, is_async: bool = False) -> Any:
    """Return the response, or raise the recorded exception of the transport."""
    if reply.then == RAISES:
        raise _error(module, reply, request)
    kinds = _streams.get(module.__name__)
    if kinds is None:
        kinds = _streams[module.__name__] = _make_streams(module)
    stream = kinds[is_async](reply, request)
    return module.Response(reply.status, headers=list(reply.headers), stream=stream, request=request)


def _make_streams(module: Any) -> tuple[type, type]:
    class Stream(module.SyncByteStream):  # type: ignore[misc]
        """The recorded bytes, in the pieces in which they arrived."""

        def __init__(self, reply: Reply, request: Any) -> None:
            self._reply = reply
            self._request = request
            self._pieces = iter(reply.pieces)  # read on, not again, by a client that drains it

        def __iter__(self) -> Iterator[bytes]:
            for data, pause in self._pieces:
                if pause:
                    time.sleep(pause)
                yield data
            if self._reply.then == ENDS:
                raise Diverged(THE_END)
            if self._reply.then != COMPLETE:
                raise _error(module, self._reply, self._request)

    class AsyncStream(module.AsyncByteStream):  # type: ignore[misc]
        """The recorded bytes for an ``AsyncClient``."""

        def __init__(self, reply: Reply, request: Any) -> None:
            self._reply = reply
            self._request = request
            self._pieces = iter(reply.pieces)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for data, pause in self._pieces:
                await asyncio.sleep(pause)  # others have their turn, as while one waits for a socket
                yield data
            if self._reply.then == ENDS:
                raise Diverged(THE_END)
            if self._reply.then == STAYS_OPEN:
                await asyncio.Event().wait()  # the agent gave up here, and will again
            if self._reply.then == BREAKS:
                raise _error(module, self._reply, self._request)

    return Stream, AsyncStream


def _error(module: Any, reply: Reply, request: Any) -> Exception:
    """Return the exception that a transport of the module raised."""
    known: Any = getattr(module, getattr(reply.error, "type", None) or "", None)
    is_one = isinstance(known, type) and issubclass(known, module.TransportError)
    kind: Any = known if is_one else module.RemoteProtocolError
    error: Exception = kind(text_of(reply.error), request=request)
    return error
