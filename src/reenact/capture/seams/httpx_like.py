"""httpx and httpx2, which are alike: a transport around the client's own.

``tap`` changes one client (``tap.wrap``), ``patch`` all of a module's (``install``). A version that is not
as these expect it is listened to at ``send``.
"""

from __future__ import annotations

import sys

from ... import protocols
from .. import guard
from ..inside import HandedOn
from . import httpx_send, httpx_sending
from .httpx_stream import answered, begin, make_async_tee, make_tee
from .instance import restore
from .methods import replace
from .selftest import Unlike, need, need_arguments, need_asked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..watch import Watch

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
    places = _places(client)
    if not places or not is_known(module):
        httpx_send.tap(module, client, watch)
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
            need_asked(owner, "_transport_for_url")
    except (AttributeError, Unlike):
        return False
    return True


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client of a module, those that exist too; returns what undoes it."""
    if not is_known(module):
        return httpx_send.patch(module, watch)
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
            body = httpx_sending.listen(module, request, exchange.sent)
            try:
                with HandedOn(exchange):
                    if protocols.responder is None:
                        response = transport.handle_request(request)
                    elif exchange.live is not None:
                        from .httpx_serve import changed

                        sent = changed(module, exchange.live, request)
                        response = transport.handle_request(sent)
                    else:
                        from .httpx_serve import answer

                        response = answer(module, exchange, request)
            finally:
                httpx_sending.let_go(request, body)
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
            body = httpx_sending.listen(module, request, exchange.sent)
            try:
                with HandedOn(exchange):
                    if protocols.responder is None:
                        response = await transport.handle_async_request(request)
                    elif exchange.live is not None:
                        from .httpx_serve import changed

                        response = await transport.handle_async_request(
                            changed(module, exchange.live, request)
                        )
                    else:
                        from .httpx_serve import answer_async

                        response = await answer_async(module, exchange, request)
            finally:
                httpx_sending.let_go(request, body)
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
