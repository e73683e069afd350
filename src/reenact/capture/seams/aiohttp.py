"""aiohttp: a session reports each request, the reader of the response body what it is fed.

Bytes are taken where they arrive, the end where the agent reads it: that is the task the response belongs to.
The reader has no room for attributes of ours, so its buffer carries them. If the reader of this version is
not as expected, only responses that are read whole are recorded.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import guard
from ..http.exchange import CLOSED, Exchange, carry, how_raised
from ..http.recorded_once import AgentsOwn, HandedOn, current
from ..http.request_body import Sent
from ..http.watch import Watch
from .patching import LibraryChanged, listen, need, need_called, need_held, override, restore, undo_all

# A body of aiohttp that is made while it is sent: a form, a file, a generator; reported by its writer.
#
# The writer works in a task of its own, which inherits the context variable that names the exchange.

_tapped: dict[type, type] = {}


def tap_bodies(session: Any) -> None:
    """Record the bodies of one session's requests as they are sent."""
    kind = session._request_class
    if kind not in _tapped.values():
        tapped_kind = _tapped.get(kind)
        if tapped_kind is None:
            tapped_kind = _tapped[kind] = type(kind.__name__, (kind,), {})
            listen(tapped_kind, {"write_bytes": _write_bytes})
        session._request_class = tapped_kind


def untap_bodies(session: Any) -> None:
    """Give a session its own kind of request back."""
    for kind, tapped_kind in _tapped.items():
        if vars(session).get("_request_class") is tapped_kind:
            session._request_class = kind


async def _write_bytes(request: Any, original: Any, writer: Any, *args: Any, **kwargs: Any) -> Any:
    handed_on = current()
    exchange = handed_on.exchange if handed_on is not None and handed_on.reads_body else None
    sent = exchange.sent if exchange is not None else None
    if sent is None:
        return await original(request, writer, *args, **kwargs)
    with AgentsOwn():
        with guard.Swallowing("record a request body"):
            _listen_to_body(writer, sent, request)
        done = await original(request, writer, *args, **kwargs)
        if getattr(writer, "_eof", False):
            sent.all()
        return done


def _listen_to_body(writer: Any, sent: Sent, request: Any) -> None:
    sent.restart(request.headers.get("Content-Type"))
    before = writer._on_chunk_sent

    async def on_chunk(chunk: Any) -> None:
        sent.add(chunk)
        if before is not None:
            await before(chunk)

    writer._on_chunk_sent = on_chunk


_GENAI = "google.genai._api_client"
_READER = ("_buffer", "_eof", "readany", "readuntil", "readchunk", "read", "feed_data", "set_exception")
_readers: dict[type, type] = {}


def kinds() -> tuple[type, ...]:
    """Return the classes that can be tapped, of the modules that are loaded."""
    session = getattr(sys.modules.get("aiohttp"), "ClientSession", None)
    return () if session is None else (session, *holders())


def holders() -> tuple[type, ...]:
    """Return those of them that make sessions when they need one, and may hold other clients too."""
    client = getattr(sys.modules.get(_GENAI), "BaseApiClient", None)
    return () if client is None else (client,)


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every session; returns what undoes it."""
    _check(module)
    return undo_all(
        listen(module.ClientRequest, {"write_bytes": _write_bytes}),
        listen(module.ClientSession, {"_request": _requesting(watch)}),
    )


def tap(held: Any, watch: Watch) -> None:
    """Listen to one session, or to those a google-genai client makes for each loop."""
    _check(sys.modules["aiohttp"])
    if not isinstance(held, sys.modules["aiohttp"].ClientSession):
        override(held, "_get_aiohttp_session", _tapping(watch))
    else:
        override(held, "_request", _requesting(watch))
        tap_bodies(held)


def untap(held: Any) -> None:
    """Give it back as it was."""
    if restore(held, "_request"):
        untap_bodies(held)
    restore(held, "_get_aiohttp_session")
    for session in dict(getattr(held, "_aiohttp_sessions", None) or {}).values():
        untap(session)


def _tapping(watch: Watch) -> Any:
    async def _get_aiohttp_session(owner: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        session = await original(owner, *args, **kwargs)
        with guard.Swallowing("listen to a session"):
            tap(session, watch)
        return session

    return _get_aiohttp_session


def _check(module: Any) -> None:
    """Raise if a session does not make requests as expected."""
    need_called(module.ClientSession, "_request")
    need(module.ClientResponse, "read")
    need(module.ClientRequest, "write_bytes")


def shortfall(module: Any) -> str:
    """Return what of the responses is not recorded with this aiohttp, "" if everything is."""
    try:
        need_held(module.StreamReader, *_READER)
    except (AttributeError, LibraryChanged) as exc:
        return f"answers that are read in pieces are not recorded: {exc}"
    return ""


def _requesting(watch: Watch) -> Any:
    async def _request(session: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        return await _watched(watch, session, original, args, kwargs)

    return _request


async def _watched(watch: Watch, session: Any, original: Any, args: Any, kwargs: Any) -> Any:
    exchange = _begin(watch, session, args, kwargs)
    if exchange is None:
        return await original(session, *args, **kwargs)

    def send(request: Any) -> Any:
        return original(session, *request[0], **request[1])

    with HandedOn(exchange) as handed_on:
        handed_on.reads_body = True
        try:
            response = await carry("aiohttp", exchange, send, (args, kwargs), session)
        except BaseException as exc:
            _refused(exchange, exc)
            raise
    with guard.Swallowing("listen to an answer"):
        unpacks = kwargs.get("auto_decompress")
        exchange.answered(
            response.status,
            list(response.headers.items()),
            decoded=getattr(session, "_auto_decompress", True) if unpacks is None else unpacks,
        )
        if isinstance(response._body, bytes):  # read already, by a tool between us and the wire
            exchange.chunk(response._body)
            exchange.end()
        elif shortfall(sys.modules["aiohttp"]):
            override(response, "read", _read_whole(exchange))
        else:
            _listen(response.content, exchange)
    return response


def _refused(exchange: Exchange, exc: BaseException) -> None:
    """Take in status and headers where the session raises for them: ``raise_for_status=True``."""
    with guard.Swallowing("look at a refusal"):
        if isinstance(exc, sys.modules["aiohttp"].ClientResponseError) and exc.status >= 400:
            exchange.answered(exc.status, list((exc.headers or {}).items()))


def _begin(watch: Watch, session: Any, args: Any, kwargs: Any) -> Exchange | None:
    with guard.Swallowing("look at a request"):
        method, url = args
        whole = session._build_url(url)
        if kwargs.get("params"):
            whole = whole.update_query(kwargs["params"])
        headers = list(session._prepare_headers(kwargs.get("headers")).items())
        return watch.begin(method, str(whole), headers, _body(kwargs))
    return None


def _body(kwargs: Any) -> bytes | None:
    if kwargs.get("json") is not None:
        return json.dumps(kwargs["json"], default=str).encode("ascii")
    data = kwargs.get("data")
    if isinstance(data, str):
        return data.encode("utf-8", "surrogateescape")
    return bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else None


def _read_whole(exchange: Exchange) -> Any:
    async def read(response: Any, original: Any) -> Any:
        try:
            data = await original(response)
        except BaseException as exc:
            exchange.end(how_raised(exc), exc)
            raise
        if not exchange.is_over:
            exchange.chunk(data)
            exchange.end()
        return data

    return read


def _listen(content: Any, exchange: Exchange) -> None:
    kind = type(content)
    if kind is not sys.modules["aiohttp"].StreamReader:  # the one that is always empty
        exchange.end()
        return
    held = _Held(content._buffer)
    held.exchange = exchange
    content._buffer = held
    for data in held:
        exchange.chunk(data)
    content.__class__ = _readers.get(kind) or _readers.setdefault(kind, _make_reader(kind))


class _Held(deque):  # type: ignore[type-arg]
    """A reader's buffer that knows the exchange it belongs to."""

    exchange: Exchange


def _make_reader(kind: Any) -> type:
    class StreamReader(kind):  # type: ignore[misc]
        """The body of an answer that is listened to."""

        __slots__ = ()

        def feed_data(self, data: bytes, *args: Any) -> Any:
            self._buffer.exchange.chunk(data)
            return super().feed_data(data, *args)

        def set_exception(self, exc: BaseException, *args: Any) -> None:
            super().set_exception(exc, *args)
            if type(exc) is sys.modules["aiohttp"].ClientConnectionError and str(exc) == "Connection closed":
                self._buffer.exchange.end(CLOSED)  # the agent let the answer go
            else:
                self._buffer.exchange.fault = exc

        async def readany(self) -> Any:
            return await self._read_along(super().readany())

        async def readuntil(self, *args: Any, **kwargs: Any) -> Any:
            return await self._read_along(super().readuntil(*args, **kwargs))

        async def readchunk(self) -> Any:
            return await self._read_along(super().readchunk())

        async def read(self, n: int = -1) -> Any:
            return await self._read_along(super().read(n))

        async def _read_along(self, reading: Any) -> Any:
            exchange = self._buffer.exchange
            try:
                found = await reading
            except BaseException as exc:
                exchange.end(how_raised(exc), exc)
                raise
            if self._eof and not self._buffer:
                exchange.end()
            return found

    return StreamReader
