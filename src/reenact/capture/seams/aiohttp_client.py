"""aiohttp: a session tells of each request; the reader of the answer's body tells of what it is fed.

What arrives is taken where it arrives, how it ended where the agent reads it: that is the task the answer
belongs to. The reader has no room for anything of ours, so its buffer carries it. Where the reader is not as
it used to be, answers are recorded that are read whole.
"""

from __future__ import annotations

import sys
from collections import deque

from ... import protocols
from .. import guard
from ..exchange import CLOSED, how_raised
from ..import_lock import import_lock
from ..inside import HandedOn
from . import aiohttp_sending
from .instance import override, restore
from .methods import replace
from .selftest import Unlike, need, need_asked, need_held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..exchange import Exchange
    from ..watch import Watch

_GENAI = "google.genai._api_client"
_READER = ("_buffer", "_eof", "readany", "readuntil", "readchunk", "read", "feed_data", "set_exception")
_readers: dict[type, type] = {}


def kinds() -> tuple[type, ...]:
    """Return the classes that can be tapped, of the modules there are."""
    aiohttp = sys.modules.get("aiohttp")
    return () if aiohttp is None else (aiohttp.ClientSession, *holders())


def holders() -> tuple[type, ...]:
    """Return those of them that make sessions when they need one, and may hold other clients too."""
    genai = sys.modules.get(_GENAI)
    return () if genai is None else (genai.BaseApiClient,)


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every session; returns what undoes it."""
    _check(module)
    owner = module.ClientSession
    original = owner._request

    async def _request(self: Any, *args: Any, **given: Any) -> Any:
        return await _watched(watch, self, original, args, given)

    calls, bodies = replace(owner, {"_request": _request}), aiohttp_sending.patch(module)

    def undo() -> None:
        calls()
        bodies()

    return undo


def tap(held: Any, watch: Watch) -> None:
    """Listen to one session, or to those a google-genai client makes for each loop."""
    _check(sys.modules["aiohttp"])
    if not isinstance(held, sys.modules["aiohttp"].ClientSession):
        override(held, "_get_aiohttp_session", _tapping(watch))
        return

    async def _request(owner: Any, original: Any, *args: Any, **given: Any) -> Any:
        return await _watched(watch, owner, original, args, given)

    override(held, "_request", _request)
    aiohttp_sending.tap(held)


def untap(held: Any) -> None:
    """Give it back as it was."""
    if restore(held, "_request"):
        aiohttp_sending.untap(held)
    restore(held, "_get_aiohttp_session")
    for session in dict(getattr(held, "_aiohttp_sessions", None) or {}).values():
        untap(session)


def _tapping(watch: Watch) -> Any:
    async def _get_aiohttp_session(owner: Any, original: Any, *args: Any, **given: Any) -> Any:
        session = await original(owner, *args, **given)
        try:
            tap(session, watch)
        except Exception as exc:
            guard.swallow("listen to a session", exc)
        return session

    return _get_aiohttp_session


def _check(module: Any) -> None:
    """Raise if a session does not ask as it used to."""
    need_asked(module.ClientSession, "_request")
    need(module.ClientResponse, "read")
    need(module.ClientRequest, "write_bytes")


def shortfall(module: Any) -> str:
    """Say what of the answers is not recorded with this aiohttp, "" if nothing is."""
    try:
        need_held(module.StreamReader, *_READER)
    except (AttributeError, Unlike) as exc:
        return f"answers that are read in pieces are not recorded: {exc}"
    return ""


async def _watched(watch: Watch, session: Any, original: Any, args: Any, given: Any) -> Any:
    exchange = _begin(watch, session, args, given)
    if exchange is None:
        return await original(session, *args, **given)
    with HandedOn(exchange) as handed_on:
        handed_on.reads_body = True
        try:
            if protocols.responder is None:
                response = await original(session, *args, **given)
            elif exchange.live is not None:
                with import_lock:
                    from .aiohttp_serve import changed

                args, given = changed(exchange.live, args, given)
                response = await original(session, *args, **given)
            else:
                with import_lock:
                    from .aiohttp_serve import answered

                response = await answered(exchange, session, original, args, given)
        except BaseException as exc:
            _refused(exchange, exc)
            raise
    try:
        unpacks = given.get("auto_decompress")
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
    except Exception as exc:
        guard.swallow("listen to an answer", exc)
    return response


def _refused(exchange: Exchange, exc: BaseException) -> None:
    """Take in status and headers where the session raises for them: ``raise_for_status=True``."""
    try:
        if isinstance(exc, sys.modules["aiohttp"].ClientResponseError) and exc.status >= 400:
            exchange.answered(exc.status, list((exc.headers or {}).items()))
    except Exception as fault:
        guard.swallow("look at a refusal", fault)


def _begin(watch: Watch, session: Any, args: Any, given: Any) -> Exchange | None:
    try:
        method, url = args
        whole = session._build_url(url)
        if given.get("params"):
            whole = whole.update_query(given["params"])
        headers = list(session._prepare_headers(given.get("headers")).items())
        return watch.begin(method, str(whole), headers, _body(given))
    except Exception as exc:
        guard.swallow("look at a request", exc)
        return None


def _body(given: Any) -> bytes | None:
    if given.get("json") is not None:
        with import_lock:
            import json

        return json.dumps(given["json"], default=str).encode("ascii")
    data = given.get("data")
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
            return await self._told(super().readany())

        async def readuntil(self, *args: Any, **given: Any) -> Any:
            return await self._told(super().readuntil(*args, **given))

        async def readchunk(self) -> Any:
            return await self._told(super().readchunk())

        async def read(self, n: int = -1) -> Any:
            return await self._told(super().read(n))

        async def _told(self, reading: Any) -> Any:
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
