"""websockets: a socket to a model's API carries a request in one message, its answer in many.

As openai's ``responses.connect`` has it: ``response.create`` goes out, events come in up to the one that
ends the response. What a socket to anything else carries is none of ours.
"""

from __future__ import annotations

from .. import guard
from ..exchange import CLOSED, how_raised
from .selftest import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..exchange import Exchange, Watch

ASK = "response.create"
LAST = frozenset({"response.completed", "response.failed", "response.incomplete", "error"})
_OPEN = "_reenact_open"
"""Attribute of a connection: the exchanges that are not over, oldest first."""


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client connection of ``websockets.sync.client`` or ``websockets.asyncio.client``."""
    owner = module.ClientConnection
    need(owner, "send", "recv", "close")
    taps = _asynchronous if module.__name__.endswith("asyncio.client") else _synchronous
    originals = {name: (name in vars(owner), getattr(owner, name)) for name in ("send", "recv", "close")}
    for name, tapped in taps(watch, *[original for _, original in originals.values()]).items():
        setattr(owner, name, tapped)

    def undo() -> None:
        for name, (is_own, original) in originals.items():
            if is_own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

    return undo


def _synchronous(watch: Watch, send: Any, recv: Any, close: Any) -> dict[str, Any]:
    def tapped_send(self: Any, message: Any, *args: Any, **given: Any) -> Any:
        exchange = _begin(watch, self, message)
        try:
            return send(self, message, *args, **given)
        except BaseException as exc:
            _failed(self, exchange, exc)
            raise

    def tapped_recv(self: Any, *args: Any, **given: Any) -> Any:
        try:
            message = recv(self, *args, **given)
        except BaseException as exc:
            _broken(self, exc)
            raise
        _received(self, message)
        return message

    def tapped_close(self: Any, *args: Any, **given: Any) -> Any:
        try:
            return close(self, *args, **given)
        finally:
            _closed(self)

    return {"send": tapped_send, "recv": tapped_recv, "close": tapped_close}


def _asynchronous(watch: Watch, send: Any, recv: Any, close: Any) -> dict[str, Any]:
    async def tapped_send(self: Any, message: Any, *args: Any, **given: Any) -> Any:
        exchange = _begin(watch, self, message)
        try:
            return await send(self, message, *args, **given)
        except BaseException as exc:
            _failed(self, exchange, exc)
            raise

    async def tapped_recv(self: Any, *args: Any, **given: Any) -> Any:
        try:
            message = await recv(self, *args, **given)
        except BaseException as exc:
            _broken(self, exc)
            raise
        _received(self, message)
        return message

    async def tapped_close(self: Any, *args: Any, **given: Any) -> Any:
        try:
            return await close(self, *args, **given)
        finally:
            _closed(self)

    return {"send": tapped_send, "recv": tapped_recv, "close": tapped_close}


def _begin(watch: Watch, connection: Any, message: Any) -> Exchange | None:
    try:
        body = _asked(message)
        if body is None:
            return None
        request, response = connection.request, connection.response
        place = getattr(connection.protocol, "uri", None) or connection.protocol.wsuri
        secure = "s" if place.secure else ""
        url = f"http{secure}://{request.headers['Host']}{request.path}"
        exchange = watch.begin("POST", url, request.headers.raw_items(), body)
        if exchange is not None:
            exchange.answered(response.status_code, response.headers.raw_items(), decoded=True, stream="sse")
            vars(connection).setdefault(_OPEN, []).append(exchange)
        return exchange
    except Exception as exc:
        guard.swallow("look at a message", exc)
        return None


def _asked(message: Any) -> bytes | None:
    """Return the request a message carries, None if it carries none."""
    data = message.encode() if isinstance(message, str) else message
    if not isinstance(data, bytes) or ASK.encode() not in data:
        return None
    import json

    asked = json.loads(data)
    if not isinstance(asked, dict) or asked.pop("type", None) != ASK:
        return None
    return json.dumps(asked).encode()


def _received(connection: Any, message: Any) -> None:
    waiting = vars(connection).get(_OPEN)
    if not waiting:
        return
    try:
        data = message.encode() if isinstance(message, str) else message
        waiting[0].chunk(b"data: " + data + b"\n\n")
        if any(each.encode() in data for each in LAST):
            import json

            if json.loads(data).get("type") in LAST:
                waiting.pop(0).end()
    except Exception as exc:
        guard.swallow("look at a message", exc)


def _failed(connection: Any, exchange: Exchange | None, exc: BaseException) -> None:
    if exchange is not None:
        exchange.end(how_raised(exc), exc)
        vars(connection)[_OPEN].remove(exchange)


def _broken(connection: Any, exc: BaseException) -> None:
    """The connection is gone; waiting in vain or being cancelled while waiting loses nothing."""
    if type(exc).__name__.startswith("ConnectionClosed"):
        for exchange in vars(connection).pop(_OPEN, ()):
            exchange.end(how_raised(exc), exc)


def _closed(connection: Any) -> None:
    for exchange in vars(connection).pop(_OPEN, ()):
        exchange.end(CLOSED)
