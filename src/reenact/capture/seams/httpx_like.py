"""httpx and httpx2, which are alike: a transport around the client's own.

``tap`` changes one client (``tap.wrap``), ``patch`` all of a module's (``install``). The classes are
made per module, because each insists on its own base classes.
"""

from __future__ import annotations

import sys

from .. import guard
from ..exchange import CLOSED, how_raised
from . import inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..exchange import Exchange, Watch

MODULES = ("httpx", "httpx2")
_MARK = "_reenact_inner"

_classes: dict[str, tuple[type, type]] = {}


def is_tapped(transport: object) -> bool:
    return hasattr(transport, _MARK)


def kinds() -> tuple[type, ...]:
    """Return the classes that can be tapped, of the modules there are."""
    modules = [sys.modules[name] for name in MODULES if name in sys.modules]
    return tuple(kind for module in modules for kind in (module.Client, module.AsyncClient))


def tap(client: Any, watch: Watch) -> None:
    """Tap the transports inside one client; wrapped again, by another tap perhaps, the last one holds."""
    module = next(each for each in map(sys.modules.get, MODULES) if each is not None and _is_of(each, client))
    for owner, key in _places(client):
        transport = owner[key]
        if is_tapped(transport):
            transport._watch = watch
        elif transport is not None:
            owner[key] = tapped(module, transport, watch)


def untap(client: Any) -> None:
    """Give a client its own transports back."""
    for owner, key in _places(client):
        while is_tapped(owner[key]):
            owner[key] = getattr(owner[key], _MARK)


def _is_of(module: Any, client: Any) -> bool:
    return isinstance(client, (module.Client, module.AsyncClient))


def _places(client: Any) -> list[tuple[dict[Any, Any], Any]]:
    own: dict[Any, Any] = vars(client)
    mounts = own.get("_mounts")
    places: list[tuple[dict[Any, Any], Any]] = [(own, "_transport")] if "_transport" in own else []
    return places + [(mounts, key) for key in mounts] if isinstance(mounts, dict) else places


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client of a module, those that exist too; returns what undoes it."""
    undo = []
    for owner in (module.Client, module.AsyncClient):
        original = owner._transport_for_url
        owner._transport_for_url = _tapping(original, module, watch)
        undo.append((owner, original))

    def restore() -> None:
        for owner, original in undo:
            owner._transport_for_url = original

    return restore


def _tapping(original: Any, module: Any, watch: Watch) -> Any:
    def _transport_for_url(self: Any, url: Any) -> Any:
        transport = original(self, url)
        try:
            return transport if is_tapped(transport) else tapped(module, transport, watch)
        except Exception as exc:
            guard.swallow("listen to a client", exc)
            return transport

    return _transport_for_url


def tapped(module: Any, transport: Any, watch: Watch) -> Any:
    """Return a transport of the module's own kind that reports to ``watch`` and passes everything on."""
    known = _classes.get(module.__name__)
    if known is None:
        known = _classes[module.__name__] = _make_sync(module), _make_async(module)
    is_async = not hasattr(transport, "handle_request")
    return known[is_async](transport, watch)


def _begin(watch: Watch, request: Any) -> tuple[Exchange | None, bool]:
    """Return the exchange of a request, and whether its body is still to be seen as it is sent."""
    if inside.is_inside():
        return None, False
    try:
        try:
            body = request.content
        except Exception:  # a body that is made while it is sent: a file, a generator
            body = None
        return watch.begin(
            request.method, str(request.url), request.headers.multi_items(), body
        ), body is None
    except Exception as exc:
        guard.swallow("look at a request", exc)
        return None, False


def _answered(exchange: Exchange, response: Any, tee: type) -> None:
    """Listen to what comes back."""
    try:
        exchange.answered(response.status_code, response.headers.multi_items())
        response.stream = tee(response.stream, exchange)
    except Exception as exc:
        guard.swallow("listen to an answer", exc)


def _make_sync(module: Any) -> type:
    class Tee(module.SyncByteStream):  # type: ignore[misc]
        """The answer's bytes, passed on as they come."""

        def __init__(self, stream: Any, exchange: Exchange) -> None:
            self._stream = stream
            self._exchange = exchange

        def __iter__(self) -> Any:
            return _Pieces(iter(self._stream), self._exchange)

        def close(self) -> None:
            try:
                self._stream.close()
            finally:
                self._exchange.end(CLOSED)

    class TapTransport(module.BaseTransport):  # type: ignore[misc]
        """A transport that is listened to."""

        def __init__(self, transport: Any, watch: Watch) -> None:
            setattr(self, _MARK, transport)
            self._watch = watch

        def handle_request(self, request: Any) -> Any:
            transport = getattr(self, _MARK)
            exchange, _ = _begin(self._watch, request)
            if exchange is None:
                return transport.handle_request(request)
            token = inside.enter()
            try:
                response = transport.handle_request(request)
            except BaseException as exc:
                exchange.end(how_raised(exc), exc)
                raise
            finally:
                inside.leave(token)
            _answered(exchange, response, Tee)
            return response

        def close(self) -> None:
            getattr(self, _MARK).close()

        def __enter__(self) -> Any:
            getattr(self, _MARK).__enter__()
            return self

        def __exit__(self, *args: Any) -> None:
            getattr(self, _MARK).__exit__(*args)

        def __getattr__(self, name: str) -> Any:
            return getattr(object.__getattribute__(self, _MARK), name)

    return TapTransport


class _Pieces:
    """An iterator that passes each piece on at once and tells the exchange of it."""

    def __init__(self, pieces: Any, exchange: Exchange) -> None:
        self._pieces = pieces
        self._exchange = exchange

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> bytes:
        try:
            piece: bytes = next(self._pieces)
        except StopIteration:
            self._exchange.end()
            raise
        except BaseException as exc:
            self._exchange.end(how_raised(exc), exc)
            raise
        self._exchange.chunk(piece)
        return piece


def _make_async(module: Any) -> type:
    class AsyncTee(module.AsyncByteStream):  # type: ignore[misc]
        """The answer's bytes, passed on as they come."""

        def __init__(self, stream: Any, exchange: Exchange) -> None:
            self._stream = stream
            self._exchange = exchange

        def __aiter__(self) -> Any:
            return _AsyncPieces(self._stream.__aiter__(), self._exchange)

        async def aclose(self) -> None:
            try:
                await self._stream.aclose()
            finally:
                self._exchange.end(CLOSED)

    class AsyncTapTransport(module.AsyncBaseTransport):  # type: ignore[misc]
        """A transport that is listened to."""

        def __init__(self, transport: Any, watch: Watch) -> None:
            setattr(self, _MARK, transport)
            self._watch = watch

        async def handle_async_request(self, request: Any) -> Any:
            transport = getattr(self, _MARK)
            exchange, _ = _begin(self._watch, request)
            if exchange is None:
                return await transport.handle_async_request(request)
            token = inside.enter()
            try:
                response = await transport.handle_async_request(request)
            except BaseException as exc:
                exchange.end(how_raised(exc), exc)
                raise
            finally:
                inside.leave(token)
            _answered(exchange, response, AsyncTee)
            return response

        async def aclose(self) -> None:
            await getattr(self, _MARK).aclose()

        async def __aenter__(self) -> Any:
            await getattr(self, _MARK).__aenter__()
            return self

        async def __aexit__(self, *args: Any) -> None:
            await getattr(self, _MARK).__aexit__(*args)

        def __getattr__(self, name: str) -> Any:
            return getattr(object.__getattribute__(self, _MARK), name)

    return AsyncTapTransport


class _AsyncPieces:
    def __init__(self, pieces: Any, exchange: Exchange) -> None:
        self._pieces = pieces
        self._exchange = exchange

    def __aiter__(self) -> _AsyncPieces:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece: bytes = await self._pieces.__anext__()
        except StopAsyncIteration:
            self._exchange.end()
            raise
        except BaseException as exc:
            self._exchange.end(how_raised(exc), exc)
            raise
        self._exchange.chunk(piece)
        return piece
