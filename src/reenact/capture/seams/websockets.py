"""websockets: a socket to a model's API carries a request in one message, its answer in many.

As openai has it: ``response.create`` goes out, events come in up to the one that ends the response. In a
realtime session the items sent before it are its input. Sockets to anything else are not recorded.
``patch`` listens to all sockets (``install``), ``tap`` to one (``tap.wrap``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import ModuleType
from typing import Any, Protocol

from ... import schema
from ...wire.routes import route_of
from .. import guard
from ..http.exchange import CLOSED, Exchange
from ..http.watch import Watch
from .patching import after_import, need, override, replace


class OtherEnd(Protocol):
    """What answers a connection in place of its server."""

    fault: BaseException | None
    """Why there is no answer."""

    def lost(self, url: str, body: bytes) -> str | None:
        """Return why a request cannot be sent to a server that has not heard what came before it."""

    def expect(self, exchange: Exchange) -> None:
        """Learn where a request goes, before it is sent."""

    def ask(self, exchange: Exchange) -> None:
        """Answer an exchange, after those before it."""

    def heard(self) -> None:
        """The agent has sent something that is not a request."""


# Messages that a server sends without a request: a greeting, limits, the settings of a session.
#
# Each is an event of its own, with the number of messages that the agent had sent by then: so a replay can
# send it again at the same place.

MOST = 1_000
"""Recorded messages of one connection: a server may send them for as long as audio goes on."""
_AUDIO = "input_audio_buffer.append"
"""Their number depends on time alone, so they are not counted."""
_HERE = ("localhost", "127.0.0.1", "::1")
_TRAFFIC = "_reenact_traffic"
"""Attribute of a connection."""
_numbers = count(1)


class Traffic:
    """Numbers of messages on one connection."""

    __slots__ = ("number", "recorded", "requests", "sent", "url")

    def __init__(self) -> None:
        self.requests = 0
        """Requests."""
        self.sent = 0
        """Other messages, except audio."""
        self.recorded = 0
        self.number: int | None = None
        self.url: str | None = None
        """None if its messages are not recorded."""


def traffic(connection: Any) -> Traffic:
    """Return the numbers of messages on a connection."""
    found: Traffic = vars(connection).get(_TRAFFIC) or vars(connection).setdefault(_TRAFFIC, Traffic())
    return found


def note_sent(connection: Any, message: Any, *, is_request: bool) -> None:
    """Count a message that is about to be sent."""
    seen = traffic(connection)
    if is_request:
        seen.requests += 1
    elif not is_audio(message):
        seen.sent += 1


def is_audio(message: Any) -> bool:
    """True for a piece of audio input."""
    return isinstance(message, str) and _AUDIO in message[:200]


def record(watch: Watch, connection: Any, url: str, message: Any) -> None:
    """Record a message that no request caused. Never raises."""
    try:
        seen = traffic(connection)
        if seen.number is None:
            seen.number = next(_numbers)
            seen.url = url if is_models(watch, url) else None
        if seen.url is None or watch.is_off or seen.recorded > MOST:
            return

        text = message if isinstance(message, str) else bytes(message).decode()
        fields: dict[str, Any] = {"url": seen.url, "socket": seen.number}
        fields |= {"asked": seen.requests, "sent": seen.sent}
        fields |= {"body": json.loads(text)} if seen.recorded < MOST else {"cut": True}
        seen.recorded += 1
        watch.recorder().emit(schema.SOCKET_MESSAGE, fields)
    except ValueError:
        return  # not text, or not JSON: audio, for instance
    except Exception as exc:
        guard.swallow("record a message", exc)


def is_models(watch: Watch, url: Any) -> bool:
    """True if requests over a socket to this URL are recorded; other servers of this machine do not count."""
    hosts = [host for host in watch.hosts if host not in _HERE]
    return isinstance(url, str) and route_of("POST", url, {"input": ""}, hosts) is not None


ASK = "response.create"
ITEM = "conversation.item.create"
LAST = frozenset({"response.completed", "response.failed", "response.incomplete", "response.done", "error"})
MAX_ITEMS = 1_000
_OPEN, _ITEMS, _WATCH = "_reenact_open", "_reenact_items", "_reenact_watch"
"""Attributes of a connection: the open exchanges, oldest first; the items sent since the last one;
who listens to this one connection."""
OTHER_END = "_reenact_other_end"
"""Attribute of a connection that a recording answers: an ``OtherEnd``, in this process."""


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client connection of ``websockets.sync.client`` or ``websockets.asyncio.client``."""
    owner = module.ClientConnection
    need(owner, "send", "recv", "close")
    is_async = module.__name__.endswith("asyncio.client")
    taps = _asynchronous(watch) if is_async else _synchronous(watch)
    return replace(owner, {name: _as_method(tap, getattr(owner, name)) for name, tap in taps.items()})


def tap(connection: Any, watch: Watch) -> None:
    """Listen to one connection; if it is tapped again, the last watch counts."""
    need(connection, "send", "recv", "close")
    vars(connection)[_WATCH] = watch
    is_async = ".asyncio." in type(connection).__module__
    for name, tapped in (_asynchronous(watch) if is_async else _synchronous(watch)).items():
        override(connection, name, tapped)


def _as_method(tap: Any, original: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _WATCH in vars(self):  # its own tap is around us
            return original(self, *args, **kwargs)
        return tap(self, original, *args, **kwargs)

    return method


def _synchronous(watch: Watch) -> dict[str, Any]:
    def send(self: Any, original: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        with _sending(watch, self, message) as sent:
            return original(self, sent, *args, **kwargs)

    def recv(self: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        with _receiving(self):
            message = original(self, *args, **kwargs)
        _received(watch, self, message)
        return message

    def close(self: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        finally:
            _closed(self)

    return {"send": send, "recv": recv, "close": close}


def _asynchronous(watch: Watch) -> dict[str, Any]:
    async def send(self: Any, original: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        with _sending(watch, self, message) as sent:
            return await original(self, sent, *args, **kwargs)

    async def recv(self: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        with _receiving(self):
            message = await original(self, *args, **kwargs)
        _received(watch, self, message)
        return message

    async def close(self: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await original(self, *args, **kwargs)
        finally:
            _closed(self)

    return {"send": send, "recv": recv, "close": close}


@contextmanager
def _sending(watch: Watch, connection: Any, message: Any) -> Iterator[Any]:
    """Record a message that is sent inside; yields what is sent in its place."""
    exchange = _begin(watch, connection, message)
    try:
        yield _leaving(connection, exchange, message)
        _answer(connection, exchange, message)
    except BaseException as exc:
        _failed(connection, exchange, exc)
        raise


@contextmanager
def _receiving(connection: Any) -> Iterator[None]:
    """Record that a connection broke inside; raise the fault of a recording in place of what that caused."""
    try:
        yield
    except BaseException as exc:
        why = _fault(connection)
        _broken(connection, exc, why)
        if why is not None:
            raise why from None
        raise


def _begin(watch: Watch, connection: Any, message: Any) -> Exchange | None:
    with guard.Swallowing("look at a message"):
        body = _request_body(connection, message)
        note_sent(connection, message, is_request=body is not None)
        if body is None:
            return None
        request, response, url = connection.request, connection.response, _url(connection)
        exchange = watch.begin(
            "POST", url, request.headers.raw_items(), body, lost=_lost(connection, url, body)
        )
        if exchange is not None:
            exchange.answered(response.status_code, response.headers.raw_items(), decoded=True, stream="sse")
            vars(connection).setdefault(_OPEN, []).append(exchange)
        return exchange
    return None


def _request_body(connection: Any, message: Any) -> bytes | None:
    """Return the request a message carries, None if it carries none."""
    if type(message) in (list, tuple) and all(type(part) is str for part in message):  # fragments
        message = "".join(message)
    data = message.encode() if isinstance(message, str) else message
    if not isinstance(data, bytes) or (ASK.encode() not in data and ITEM.encode() not in data):
        return None

    fields = json.loads(data)
    kind = fields.pop("type", None) if isinstance(fields, dict) else None
    if kind == ITEM:
        items = vars(connection).setdefault(_ITEMS, [])
        items.append(fields.get("item"))
        del items[:-MAX_ITEMS]
    if kind != ASK:
        return None
    items = vars(connection).pop(_ITEMS, None)
    if isinstance(fields.get("response"), dict):  # a realtime session has it one level deeper
        fields = {**fields.pop("response"), **fields}
    return json.dumps({**fields, "input": items} if items and "input" not in fields else fields).encode()


def _url(connection: Any) -> str:
    request = connection.request
    place = getattr(connection.protocol, "uri", None) or connection.protocol.wsuri
    secure = "s" if place.secure else ""
    return f"ws{secure}://{request.headers['Host']}{request.path}"


def _received(watch: Watch, connection: Any, message: Any) -> None:
    waiting = vars(connection).get(_OPEN)
    with guard.Swallowing("look at a message"):
        if not waiting:
            record(watch, connection, _url(connection), message)
            return
        data = message.encode() if isinstance(message, str) else message
        waiting[0].chunk(b"data: " + data + b"\n\n")
        if any(each.encode() in data for each in LAST):
            if json.loads(data).get("type") in LAST:
                waiting.pop(0).end()


def _failed(connection: Any, exchange: Exchange | None, exc: BaseException) -> None:
    if exchange is None:
        return
    exchange.raised(exc)
    waiting = vars(connection).get(_OPEN, ())
    if exchange in waiting:  # else another thread, which was receiving, has seen it end
        waiting.remove(exchange)


def _broken(connection: Any, exc: BaseException, why: BaseException | None = None) -> None:
    """End the open exchanges if the connection is gone; a timeout or a cancelled wait loses nothing."""
    if why is not None or type(exc).__name__.startswith("ConnectionClosed"):
        for exchange in vars(connection).pop(_OPEN, ()):
            exchange.raised(why or exc)


def _other_end(connection: Any) -> OtherEnd | None:
    """Return who answers a connection in this process; None if it leads to a server."""
    found: OtherEnd | None = vars(connection).get(OTHER_END)
    return found


def _lost(connection: Any, url: str, body: bytes) -> str | None:
    """Return why a request cannot be sent although a fork is live."""
    other = _other_end(connection)
    return None if other is None else other.lost(url, body)


def _leaving(connection: Any, exchange: Exchange | None, message: Any) -> Any:
    """Return what is sent: a fork may have changed it."""
    if exchange is None:
        return message
    other, live = _other_end(connection), exchange.live
    if other is not None:
        other.expect(exchange)
    if live is None or live.body is None:
        return message

    fields = json.loads(message if isinstance(message, str | bytes) else "".join(message))
    changed = json.loads(live.body)
    if not isinstance(fields.get("response"), dict):
        return json.dumps({"type": ASK, **changed})
    outer = {
        name: changed.pop(name, value) for name, value in fields.items() if name not in ("response", "type")
    }
    return json.dumps({"type": ASK, **outer, "response": changed})


def _answer(connection: Any, exchange: Exchange | None, message: Any) -> None:
    """Have the recording answer a message, if the connection leads there."""
    other = _other_end(connection)
    if other is None:
        return
    if exchange is None:
        if not is_audio(message):
            other.heard()
    elif exchange.live is None:
        other.ask(exchange)


def _fault(connection: Any) -> BaseException | None:
    """Return why a recording has not answered."""
    other = _other_end(connection)
    return None if other is None else other.fault


def _closed(connection: Any) -> None:
    for exchange in vars(connection).pop(_OPEN, ()):
        exchange.end(CLOSED)


# openai's ``responses.connect()`` and ``realtime.connect()`` for ``tap.wrap``: sockets that a client opens.
#
# What opens them holds its client; the tapped transport of a wrapped client, or of a copy of one, holds the
# watch. So it is looked up when a socket is there. Modules that are not imported yet are waited for.

_OPENAI_MODULES = ("openai.resources.responses.responses", "openai.resources.realtime.realtime")
_OPENERS = (
    "ResponsesConnectionManager", "AsyncResponsesConnectionManager",
    "RealtimeConnectionManager", "AsyncRealtimeConnectionManager",
)  # fmt: skip
_waits_for_openai = False


def expect_openai() -> None:
    """Listen to every socket that a wrapped openai client opens from now on. Twice is fine."""
    global _waits_for_openai
    if _waits_for_openai or "openai" not in sys.modules:
        return
    _waits_for_openai = True

    missing = [name for name in _OPENAI_MODULES if name not in sys.modules]
    sys.meta_path.insert(0, after_import(missing, lambda _, module: _prepare(module)))
    for name in _OPENAI_MODULES:
        if name not in missing:
            _prepare(sys.modules[name])


def _prepare(module: ModuleType) -> None:
    for name in _OPENERS:
        opener = getattr(module, name, None)
        original = getattr(opener, "_connect_ws", None)
        if opener is not None and original is not None:
            make = _async_opening if name.startswith("Async") else _opening
            opener._connect_ws = make(original)


def _opening(original: Any) -> Any:
    def _connect_ws(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _tap_opened(self, original(self, *args, **kwargs))

    return _connect_ws


def _async_opening(original: Any) -> Any:
    async def _connect_ws(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _tap_opened(self, await original(self, *args, **kwargs))

    return _connect_ws


def _tap_opened(opener: Any, socket: Any) -> Any:
    with guard.Swallowing("listen to a socket"):
        watch = _watch_of(opener)
        if watch is not None:
            tap(socket, watch)
    return socket


def _watch_of(opener: Any) -> Watch | None:
    """Return who listens to the client that opens a socket."""
    client = next(value for name, value in vars(opener).items() if name.endswith("__client"))
    found: Watch | None = getattr(vars(client._client).get("_transport"), "_watch", None)
    return found
