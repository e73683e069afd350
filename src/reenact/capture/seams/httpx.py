"""httpx and httpx2, which are alike: a transport around the client's own.

``tap`` changes one client (``tap.wrap``), ``patch`` all of a module's (``install``). In a version whose
transports are not as expected, ``send`` is wrapped. Classes are made per module, because each insists on its
own base classes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from .. import guard
from ..http.exchange import CLOSED, Exchange, carry
from ..http.recorded_once import AgentsOwn, HandedOn
from ..http.request_body import Sent
from ..http.watch import Watch
from .patching import LibraryChanged, listen, need, need_arguments, need_called, override, restore, undo_all

MODULES = ("httpx", "httpx2")
_MARK = "_reenact_inner"


def begin(watch: Watch, request: Any) -> Exchange | None:
    """Return the exchange of a request, None if it is not to be recorded."""
    with guard.Swallowing("look at a request"):
        try:
            body = request.content
        except Exception as exc:  # a body that is made while it is sent: a file, a generator
            guard.pass_on(exc)
            body = None
        return watch.begin(request.method, str(request.url), _items(request.headers), body)
    return None


def _items(headers: Any) -> list[tuple[str, str]]:
    """Return headers as text; their own ``multi_items`` looks the encoding up for each of them."""
    encoding = headers.encoding
    return [(name.decode(encoding), value.decode(encoding)) for name, value in headers.raw]


def answered(module: Any, exchange: Exchange, response: Any) -> Any:
    """Listen to a response, and return it."""
    with guard.Swallowing("listen to an answer"):
        whole = _content(response)
        exchange.answered(response.status_code, _items(response.headers), decoded=whole is not None)
        if whole is None:
            response.stream = _listened(module, response.stream, _ResponseBody(exchange))
        else:
            exchange.chunk(whole)
            exchange.end()
    return response


def _content(response: Any) -> bytes | None:
    """Return the body of a response that a transport made without a server: nobody reads its stream."""
    if not response.is_closed:
        return None
    try:
        return bytes(response.content)
    except Exception as exc:  # closed before it was read
        guard.pass_on(exc)
        return None


_KNOWN = nullcontext()
"""Around a request whose body is known before it is sent."""


@contextmanager
def _reported_body(module: Any, request: Any, sent: Sent) -> Iterator[None]:
    """Record a body that is made while it is sent, as the transport reads it inside.

    Only inside, so that a redirect or a retry finds the agent's own.
    """
    own = None
    with guard.Swallowing("record a request body"):
        own = request.stream
        request.stream = _listened(module, own, _RequestBody(sent))
    try:
        yield
    finally:
        if own is not None and isinstance(request.stream, _Stream):  # else somebody has put another there
            request.stream = own


# The bytes of a body, passed on as they come and reported to a listener.


class _Pieces:
    """Iterates over a stream of either kind."""

    def __init__(self, pieces: Any, listener: _ResponseBody | _RequestBody) -> None:
        self._pieces = pieces
        self._raised, self._add, self._whole = listener.raised, listener.add, listener.whole

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> bytes:
        try:
            piece: bytes = next(self._pieces)
        except BaseException as exc:
            self._raised(exc)
            raise
        self._add(piece)
        return piece

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece: bytes = await self._pieces.__anext__()
        except StopAsyncIteration:
            self._whole()
            raise
        except BaseException as exc:
            self._raised(exc)
            raise
        self._add(piece)
        return piece


class _AgentsPieces(_Pieces):
    """Pieces that code of the agent makes."""

    def __next__(self) -> bytes:
        with AgentsOwn():
            return super().__next__()

    async def __anext__(self) -> bytes:
        with AgentsOwn():
            return await super().__anext__()


class _ResponseBody:
    """Reports a response to its exchange."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.add, self.raised = exchange.chunk, exchange.raised

    def pieces(self, pieces: Any) -> _Pieces:
        return _Pieces(pieces, self)

    def whole(self) -> None:
        """Note that the last byte has come; httpx closes the stream next, while other tasks go on.

        The end is recorded when that is done, so that it stands before a request if the agent had the answer
        when it made that request, and not if it was still to get it.
        """
        self._exchange.is_whole = True

    def closed(self) -> None:
        self._exchange.end(CLOSED)


class _RequestBody:
    """Reports a request body as it is sent."""

    def __init__(self, sent: Sent) -> None:
        self._sent = sent
        self.add = sent.add

    def pieces(self, pieces: Any) -> _Pieces:
        self._sent.restart()
        return _AgentsPieces(pieces, self)

    def raised(self, exc: BaseException) -> None:
        if isinstance(exc, StopIteration):
            self._sent.all()

    def whole(self) -> None:
        self._sent.all()

    def closed(self) -> None:
        pass


class _Stream:
    def __init__(self, stream: Any, listener: _ResponseBody | _RequestBody) -> None:
        self._reenact_stream = stream
        self._reenact_listener = listener

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_reenact_stream"), name)


class _SyncStream(_Stream):
    def __iter__(self) -> _Pieces:
        return self._reenact_listener.pieces(iter(self._reenact_stream))

    def close(self) -> None:
        try:
            self._reenact_stream.close()
        finally:
            self._reenact_listener.closed()


class _AsyncStream(_Stream):
    def __aiter__(self) -> _Pieces:
        return self._reenact_listener.pieces(self._reenact_stream.__aiter__())

    async def aclose(self) -> None:
        try:
            await self._reenact_stream.aclose()
        finally:
            self._reenact_listener.closed()


_stream_classes: dict[tuple[str, bool, bool], type] = {}


def _listened(module: Any, stream: Any, listener: _ResponseBody | _RequestBody) -> Any:
    """Return a stream of the same kinds that reports what passes; one of no known kind as it is."""
    is_sync, is_async = isinstance(stream, module.SyncByteStream), isinstance(stream, module.AsyncByteStream)
    if not is_sync and not is_async:
        return stream
    kind = _stream_classes.get((module.__name__, is_sync, is_async))
    if kind is None:
        bases: tuple[type, ...] = (_SyncStream, module.SyncByteStream) if is_sync else ()
        bases += (_AsyncStream, module.AsyncByteStream) if is_async else ()
        kind = _stream_classes[module.__name__, is_sync, is_async] = type("Listened", bases, {})
    return kind(stream, listener)


# Transports.


class _Tap:
    _reenact_module: Any

    def __init__(self, transport: Any, watch: Watch) -> None:
        setattr(self, _MARK, transport)
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, _MARK), name)


class _SyncTap(_Tap):
    def handle_request(self, request: Any) -> Any:
        module, send = self._reenact_module, getattr(self, _MARK).handle_request
        exchange = begin(self._watch, request)
        if exchange is None:
            return send(request)
        with HandedOn(exchange), _reported_body(module, request, exchange.sent) if exchange.sent else _KNOWN:
            response = carry("httpx", exchange, send, request, module)
        return answered(module, exchange, response)

    def close(self) -> None:
        getattr(self, _MARK).close()

    def __enter__(self) -> Any:
        getattr(self, _MARK).__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        getattr(self, _MARK).__exit__(*args)


class _AsyncTap(_Tap):
    async def handle_async_request(self, request: Any) -> Any:
        module, send = self._reenact_module, getattr(self, _MARK).handle_async_request
        exchange = begin(self._watch, request)
        if exchange is None:
            return await send(request)
        with HandedOn(exchange), _reported_body(module, request, exchange.sent) if exchange.sent else _KNOWN:
            response = await carry("httpx", exchange, send, request, module, True)
        return answered(module, exchange, response)

    async def aclose(self) -> None:
        await getattr(self, _MARK).aclose()

    async def __aenter__(self) -> Any:
        await getattr(self, _MARK).__aenter__()
        return self

    async def __aexit__(self, *args: Any) -> None:
        await getattr(self, _MARK).__aexit__(*args)


_transport_classes: dict[str, tuple[type, type]] = {}


def tapped(module: Any, transport: Any, watch: Watch) -> Any:
    """Return a transport of the module's own kind that reports to ``watch`` and passes everything on."""
    known = _transport_classes.get(module.__name__)
    if known is None:
        own = {"_reenact_module": module}
        known = _transport_classes[module.__name__] = (
            type("TapTransport", (_SyncTap, module.BaseTransport), own),
            type("AsyncTapTransport", (_AsyncTap, module.AsyncBaseTransport), own),
        )
    is_async = not hasattr(transport, "handle_request")
    return known[is_async](transport, watch)


def is_tapped(transport: object) -> bool:
    return hasattr(transport, _MARK)


def kinds() -> tuple[type, ...]:
    """Return the classes that can be tapped, of the modules that are loaded."""
    modules = [sys.modules[name] for name in MODULES if name in sys.modules]
    classes = [getattr(module, name, None) for module in modules for name in ("Client", "AsyncClient")]
    return tuple(each for each in classes if each is not None)  # another thread may still import them


def tap(client: Any, watch: Watch) -> None:
    """Tap the transports inside one client; if it is tapped again, the last tap counts."""
    module = next(each for each in map(sys.modules.get, MODULES) if each is not None and _is_of(each, client))
    places = _places(client)
    if not places or not is_known(module):
        sends = _sends(module, watch)
        override(client, "send", sends[isinstance(client, module.AsyncClient)])
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
    owners = (module.Client, module.AsyncClient)
    if is_known(module):
        tap_transport = _tapping(module, watch)
        return undo_all(*[listen(owner, {"_transport_for_url": tap_transport}) for owner in owners])
    for owner in owners:
        need(owner, "send")
    sends = _sends(module, watch)
    return undo_all(*[listen(owner, {"send": send}) for owner, send in zip(owners, sends, strict=True)])


def _tapping(module: Any, watch: Watch) -> Any:
    def _transport_for_url(client: Any, original: Any, url: Any) -> Any:
        transport = original(client, url)
        with guard.Swallowing("listen to a client"):
            if not watch.is_off and not is_tapped(transport):
                return tapped(module, transport, watch)
        return transport

    return _transport_for_url


# The public method ``send``: for a version whose transports are not as expected.
#
# A redirect and the request that follows it are one call then, as they are for the caller of ``send``.


def _sends(module: Any, watch: Watch) -> tuple[Any, Any]:
    """Return what is called in place of ``send``, for both kinds of clients."""

    def send(client: Any, original: Any, request: Any, *, stream: bool = False, **kwargs: Any) -> Any:
        exchange = begin(watch, request)
        if exchange is None:
            return original(client, request, stream=stream, **kwargs)
        send_streamed = partial(original, client, stream=True, **kwargs)
        with HandedOn(exchange):
            response = carry("httpx", exchange, send_streamed, request, module)
        answered(module, exchange, response)
        if not stream:
            try:
                response.read()
            except BaseException:
                response.close()
                raise
        return response

    async def async_send(
        client: Any, original: Any, request: Any, *, stream: bool = False, **kwargs: Any
    ) -> Any:
        exchange = begin(watch, request)
        if exchange is None:
            return await original(client, request, stream=stream, **kwargs)
        send_streamed = partial(original, client, stream=True, **kwargs)
        with HandedOn(exchange):
            response = await carry("httpx", exchange, send_streamed, request, module, True)
        answered(module, exchange, response)
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response

    return send, async_send
