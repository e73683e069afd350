"""httpx and httpx2 by their public door, ``send``: for a version whose inside is not as it used to be.

A redirect and what follows it are one call then, as they are for whoever called ``send``.
"""

from __future__ import annotations

from ... import protocols
from ..inside import HandedOn
from .httpx_stream import answered, begin, make_async_tee, make_tee
from .instance import override
from .methods import replace
from .selftest import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..watch import Watch


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client of a module; returns what undoes it."""
    need(module.Client, "send")
    need(module.AsyncClient, "send")
    sync, asynchronous = _tapped(module, watch), _async_tapped(module, watch)
    send, async_send = module.Client.send, module.AsyncClient.send

    def tapped_send(self: Any, *args: Any, **given: Any) -> Any:
        return sync(self, send, *args, **given)

    async def tapped_async_send(self: Any, *args: Any, **given: Any) -> Any:
        return await asynchronous(self, async_send, *args, **given)

    undo = replace(module.Client, {"send": tapped_send})
    undo_async = replace(module.AsyncClient, {"send": tapped_async_send})

    def undo_both() -> None:
        undo()
        undo_async()

    return undo_both


def tap(module: Any, client: Any, watch: Watch) -> None:
    """Listen to one client."""
    make = _async_tapped if isinstance(client, module.AsyncClient) else _tapped
    override(client, "send", make(module, watch))


def _tapped(module: Any, watch: Watch) -> Any:
    tee = make_tee(module)

    def send(client: Any, original: Any, request: Any, *, stream: bool = False, **given: Any) -> Any:
        exchange = begin(watch, request)
        if exchange is None:
            return original(client, request, stream=stream, **given)
        with HandedOn(exchange):
            if protocols.responder is None:
                response = original(client, request, stream=True, **given)
            elif exchange.live is not None:
                from .httpx_serve import changed

                response = original(client, changed(module, exchange.live, request), stream=True, **given)
            else:
                from .httpx_serve import answer

                response = answer(module, exchange, request)
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

    async def send(client: Any, original: Any, request: Any, *, stream: bool = False, **given: Any) -> Any:
        exchange = begin(watch, request)
        if exchange is None:
            return await original(client, request, stream=stream, **given)
        with HandedOn(exchange):
            if protocols.responder is None:
                response = await original(client, request, stream=True, **given)
            elif exchange.live is not None:
                from .httpx_serve import changed

                sent = changed(module, exchange.live, request)
                response = await original(client, sent, stream=True, **given)
            else:
                from .httpx_serve import answer_async

                response = await answer_async(module, exchange, request)
        answered(exchange, response, tee)
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response

    return send
