"""httpx and httpx2, which are alike: a transport around the client's own.

``tap`` changes one client (``tap.wrap``), ``patch`` all of a module's (``install``). In a version whose
transports are not as expected, ``send`` is wrapped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .. import guard
from ..http.exchange import CLOSED, Exchange, carry, carry_async
from ..http.request_body import Sent
from ..http.watch import AgentsOwn, HandedOn, Watch
from .patching import LibraryChanged, need, need_arguments, need_called, override, replace, restore

# The fields of a request of httpx or httpx2, and the bytes of its response passed on as they arrive.
#
# The classes are made per module, because each insists on its own base classes.


def begin(watch: Watch, request: Any) -> Exchange | None:
    """Return the exchange of a request, None if it is not to be recorded."""
    try:
        try:
            body = request.content
        except Exception as exc:  # a body that is made while it is sent: a file, a generator
            guard.pass_on(exc)
            body = None
        return watch.begin(request.method, str(request.url), _items(request.headers), body)
    except Exception as exc:
        guard.swallow("look at a request", exc)
        return None


def _items(headers: Any) -> list[tuple[str, str]]:
    """Return headers as text; their own ``multi_items`` looks the encoding up for each of them."""
    encoding = headers.encoding
    return [(name.decode(encoding), value.decode(encoding)) for name, value in headers.raw]


def answered(exchange: Exchange, response: Any, tee: type) -> None:
    """Listen to what comes back."""
    try:
        whole = _content(response)
        exchange.answered(response.status_code, _items(response.headers), decoded=whole is not None)
        if whole is None:
            response.stream = tee(response.stream, exchange)
        else:
            exchange.chunk(whole)
            exchange.end()
    except Exception as exc:
        guard.swallow("listen to an answer", exc)


def _content(response: Any) -> bytes | None:
    """Return the body of a response that a transport made without a server: nobody reads its stream."""
    if not response.is_closed:
        return None
    try:
        return bytes(response.content)
    except Exception as exc:  # closed before it was read
        guard.pass_on(exc)
        return None


def make_tee(module: Any) -> type:
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

    return Tee


def make_async_tee(module: Any) -> type:
    class AsyncTee(module.AsyncByteStream):  # type: ignore[misc]
        """The answer's bytes, passed on as they come."""

        def __init__(self, stream: Any, exchange: Exchange) -> None:
            self._stream = stream
            self._exchange = exchange

        def __aiter__(self) -> Any:
            return _Pieces(self._stream.__aiter__(), self._exchange)

        async def aclose(self) -> None:
            try:
                await self._stream.aclose()
            finally:
                self._exchange.end(CLOSED)

    return AsyncTee


class _Pieces:
    """Passes each piece on at once and reports it to the exchange; for either kind of stream."""

    def __init__(self, pieces: Any, exchange: Exchange) -> None:
        self._pieces = pieces
        self._exchange = exchange

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> bytes:
        try:
            piece: bytes = next(self._pieces)
        except BaseException as exc:
            self._exchange.raised(exc)
            raise
        self._exchange.chunk(piece)
        return piece

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece: bytes = await self._pieces.__anext__()
        except BaseException as exc:
            self._exchange.raised(exc)
            raise
        self._exchange.chunk(piece)
        return piece


# A body of httpx that is made while it is sent: recorded piece by piece, as the transport reads it.
#
# In the request only while the transport works on it, so that a redirect or a retry finds the agent's own.

_body_classes: dict[tuple[str, bool, bool], type] = {}


def listen(module: Any, request: Any, sent: Sent | None) -> Any:
    """Record a request's body as it is sent; returns what ``let_go`` takes."""
    try:
        stream = request.stream
        kinds = [isinstance(stream, kind) for kind in (module.SyncByteStream, module.AsyncByteStream)]
        if sent is None or not any(kinds):
            return None
        along_kind = _body_classes.get((module.__name__, *kinds)) or _make(module, *kinds)
        request.stream = along_kind(stream, sent)
        return stream
    except Exception as exc:
        guard.swallow("record a request body", exc)
        return None


def let_go(request: Any, stream: Any) -> None:
    """Give a request its own body back, unless somebody else has put another there."""
    if stream is not None and isinstance(request.stream, _Along):
        request.stream = stream


def _make(module: Any, sync: bool, asynchronous: bool) -> type:
    bases: list[type] = [_Along]
    if sync:
        bases += [_SyncAlong, module.SyncByteStream]
    if asynchronous:
        bases += [_AsyncAlong, module.AsyncByteStream]
    along_kind = type("Along", tuple(bases), {})
    _body_classes[module.__name__, sync, asynchronous] = along_kind
    return along_kind


class _Along:
    def __init__(self, stream: Any, sent: Sent) -> None:
        self._reenact_stream = stream
        self._reenact_sent = sent

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_reenact_stream"), name)


class _SyncAlong:
    _reenact_stream: Any
    _reenact_sent: Sent

    def __iter__(self) -> Any:
        return _BodyPieces(iter(self._reenact_stream), self._reenact_sent)

    def close(self) -> None:
        self._reenact_stream.close()


class _AsyncAlong:
    _reenact_stream: Any
    _reenact_sent: Sent

    def __aiter__(self) -> Any:
        return _BodyPieces(self._reenact_stream.__aiter__(), self._reenact_sent)

    async def aclose(self) -> None:
        await self._reenact_stream.aclose()


class _BodyPieces:
    def __init__(self, pieces: Any, sent: Sent) -> None:
        self._pieces = pieces
        self._sent = sent
        sent.restart()

    def __iter__(self) -> _BodyPieces:
        return self

    def __next__(self) -> bytes:
        try:
            with AgentsOwn():
                piece: bytes = next(self._pieces)
        except StopIteration:
            self._sent.all()
            raise
        self._sent.add(piece)
        return piece

    def __aiter__(self) -> _BodyPieces:
        return self

    async def __anext__(self) -> bytes:
        try:
            with AgentsOwn():
                piece: bytes = await self._pieces.__anext__()
        except StopAsyncIteration:
            self._sent.all()
            raise
        self._sent.add(piece)
        return piece


# httpx and httpx2 at their public method ``send``: for a version whose transports are not as expected.
#
# A redirect and the request that follows it are one call then, as they are for the caller of ``send``.


def patch_send(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client of a module; returns what undoes it."""
    need(module.Client, "send")
    need(module.AsyncClient, "send")
    sync, asynchronous = _tapped(module, watch), _async_tapped(module, watch)
    send, async_send = module.Client.send, module.AsyncClient.send

    def tapped_send(self: Any, *args: Any, **kwargs: Any) -> Any:
        return sync(self, send, *args, **kwargs)

    async def tapped_async_send(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await asynchronous(self, async_send, *args, **kwargs)

    undo = replace(module.Client, {"send": tapped_send})
    undo_async = replace(module.AsyncClient, {"send": tapped_async_send})

    def undo_both() -> None:
        undo()
        undo_async()

    return undo_both


def tap_send(module: Any, client: Any, watch: Watch) -> None:
    """Listen to one client."""
    make = _async_tapped if isinstance(client, module.AsyncClient) else _tapped
    override(client, "send", make(module, watch))


def _tapped(module: Any, watch: Watch) -> Any:
    tee = make_tee(module)

    def send(client: Any, original: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        exchange = begin(watch, request)
        if exchange is None:
            return original(client, request, stream=stream, **kwargs)
        with HandedOn(exchange):
            response = carry(
                "httpx", exchange, lambda each: original(client, each, stream=True, **kwargs), request, module
            )
        answered(exchange, response, tee)
        if not stream:
            try:
                response.read()
            except BaseException:
                response.close()
                raise
        return response

    return send


def _async_tapped(module: Any, watch: Watch) -> Any:
    tee = make_async_tee(module)

    async def send(client: Any, original: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        exchange = begin(watch, request)
        if exchange is None:
            return await original(client, request, stream=stream, **kwargs)
        with HandedOn(exchange):
            response = await carry_async(
                "httpx", exchange, lambda each: original(client, each, stream=True, **kwargs), request, module
            )
        answered(exchange, response, tee)
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response

    return send


MODULES = ("httpx", "httpx2")
_MARK = "_reenact_inner"

_classes: dict[str, tuple[type, type]] = {}


def is_tapped(transport: object) -> bool:
    return hasattr(transport, _MARK)


def kinds() -> tuple[type, ...]:
    """Return the classes that can be tapped, of the modules that are loaded."""
    modules = [sys.modules[name] for name in MODULES if name in sys.modules]
    return tuple(kind for module in modules for kind in (module.Client, module.AsyncClient))


def tap(client: Any, watch: Watch) -> None:
    """Tap the transports inside one client; if it is tapped again, the last tap counts."""
    module = next(each for each in map(sys.modules.get, MODULES) if each is not None and _is_of(each, client))
    places = _places(client)
    if not places or not is_known(module):
        tap_send(module, client, watch)
        return
    for owner, key in places:
        transport = owner[key]
        if is_tapped(transport):
            transport._watch = watch
        elif transport is not None:
            owner[key] = tapped(module, transport, watch)


def untap(client: Any) -> None:
    """Give a client its own transports back."""
    restore(client, "send")
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


def is_known(module: Any) -> bool:
    """True if a module's transports are as we expect them."""
    try:
        need(module, "SyncByteStream", "AsyncByteStream")
        need_arguments(module.BaseTransport, "handle_request", "request")
        need_arguments(module.AsyncBaseTransport, "handle_async_request", "request")
        for owner in (module.Client, module.AsyncClient):
            need_arguments(owner, "_transport_for_url", "url")
            need_called(owner, "_transport_for_url")
    except (AttributeError, LibraryChanged):
        return False
    return True


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client of a module, also those that exist already; returns what undoes it."""
    if not is_known(module):
        return patch_send(module, watch)
    undo = [
        replace(owner, {"_transport_for_url": _tapping(owner._transport_for_url, module, watch)})
        for owner in (module.Client, module.AsyncClient)
    ]

    def undo_both() -> None:
        for each in undo:
            each()

    return undo_both


def _tapping(original: Any, module: Any, watch: Watch) -> Any:
    def _transport_for_url(self: Any, url: Any) -> Any:
        transport = original(self, url)
        try:
            if watch.is_off or is_tapped(transport):
                return transport
            return tapped(module, transport, watch)
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


def _make_sync(module: Any) -> type:
    tee = make_tee(module)

    class TapTransport(module.BaseTransport):  # type: ignore[misc]
        """A transport that is listened to."""

        def __init__(self, transport: Any, watch: Watch) -> None:
            setattr(self, _MARK, transport)
            self._watch = watch

        def handle_request(self, request: Any) -> Any:
            transport = getattr(self, _MARK)
            exchange = begin(self._watch, request)
            if exchange is None:
                return transport.handle_request(request)
            body = listen(module, request, exchange.sent)
            try:
                with HandedOn(exchange):
                    response = carry("httpx", exchange, transport.handle_request, request, module)
            finally:
                let_go(request, body)
            answered(exchange, response, tee)
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


def _make_async(module: Any) -> type:
    tee = make_async_tee(module)

    class AsyncTapTransport(module.AsyncBaseTransport):  # type: ignore[misc]
        """A transport that is listened to."""

        def __init__(self, transport: Any, watch: Watch) -> None:
            setattr(self, _MARK, transport)
            self._watch = watch

        async def handle_async_request(self, request: Any) -> Any:
            transport = getattr(self, _MARK)
            exchange = begin(self._watch, request)
            if exchange is None:
                return await transport.handle_async_request(request)
            body = listen(module, request, exchange.sent)
            try:
                with HandedOn(exchange):
                    response = await carry_async(
                        "httpx", exchange, transport.handle_async_request, request, module
                    )
            finally:
                let_go(request, body)
            answered(exchange, response, tee)
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
