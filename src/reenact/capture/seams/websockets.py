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
from ..http.exchange import CLOSED, Exchange, how_raised
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
"""Recorded messages of one connection: a server may send them for as long as audio lasts."""
_AUDIO = "input_audio_buffer.append"
"""Their number depends on time alone, so they are not counted."""
_HERE = ("localhost", "127.0.0.1", "::1")
ASK = "response.create"
ITEM = "conversation.item.create"
LAST = frozenset({"response.completed", "response.failed", "response.incomplete", "response.done", "error"})
MAX_ITEMS = 1_000
WATCH, _SOCKET = "_reenact_watch", "_reenact_socket"
"""Attributes of a connection: who listens to this one, and its ``Socket``."""
OTHER_END = "_reenact_other_end"
"""Attribute of a connection that a recording answers: an ``OtherEnd``, in this process."""
_numbers = count(1)


class Socket:
    """What is known of one connection."""

    def __init__(self) -> None:
        self.open: list[Exchange] = []
        """Requests that are not answered to their end, oldest first."""
        self.items: list[Any] = []
        """Items sent since the last request."""
        self.requests = 0
        self.sent = 0
        """Other messages, except audio."""
        self.recorded = 0
        """Messages that no request caused."""
        self.number: int | None = None
        self.url: str | None = None
        """None if such messages are not recorded."""

    def request_body(self, message: Any) -> bytes | None:
        """Return the request a message carries, None if it carries none."""
        if type(message) in (list, tuple) and all(type(part) is str for part in message):  # fragments
            message = "".join(message)
        data = message.encode() if isinstance(message, str) else message
        if not isinstance(data, bytes) or (ASK.encode() not in data and ITEM.encode() not in data):
            return None
        fields = json.loads(data)
        kind = fields.pop("type", None) if isinstance(fields, dict) else None
        if kind == ITEM:
            self.items = [*self.items, fields.get("item")][-MAX_ITEMS:]
        if kind != ASK:
            return None
        items, self.items = self.items, []
        if isinstance(fields.get("response"), dict):  # a realtime session has it one level deeper
            fields = {**fields.pop("response"), **fields}
        return json.dumps({**fields, "input": items} if items and "input" not in fields else fields).encode()

    def received(self, message: Any) -> None:
        """Take in a message of the response to the oldest request."""
        data = message.encode() if isinstance(message, str) else message
        self.open[0].chunk(b"data: " + data + b"\n\n")
        if any(each.encode() in data for each in LAST) and json.loads(data).get("type") in LAST:
            self.open.pop(0).end()

    def record(self, watch: Watch, url: str, message: Any) -> None:
        """Record a message that no request caused."""
        if self.number is None:
            self.number = next(_numbers)
            self.url = url if is_models(watch, url) else None
        if self.url is None or watch.is_off or self.recorded > MOST:
            return
        try:
            body = json.loads(message if isinstance(message, str) else bytes(message).decode())
        except ValueError:
            return  # not text, or not JSON: audio, for instance
        fields = {"url": self.url, "socket": self.number, "asked": self.requests, "sent": self.sent}
        fields |= {"body": body} if self.recorded < MOST else {"cut": True}
        self.recorded += 1
        watch.recorder().emit(schema.SOCKET_MESSAGE, fields)

    def end_all(self, how: str, exc: BaseException | None = None) -> None:
        """End what is open: the connection is gone."""
        exchanges, self.open = self.open, []
        for exchange in exchanges:
            exchange.end(how, exc)


def socket_of(connection: Any) -> Socket:
    """Return what is known of a connection."""
    found: Socket = vars(connection).get(_SOCKET) or vars(connection).setdefault(_SOCKET, Socket())
    return found


def is_audio(message: Any) -> bool:
    """True for a piece of audio input."""
    return isinstance(message, str) and _AUDIO in message[:200]


def is_models(watch: Watch, url: Any) -> bool:
    """True if requests over a socket to this URL are recorded; other servers of this machine do not count."""
    hosts = [host for host in watch.hosts if host not in _HERE]
    return isinstance(url, str) and route_of("POST", url, {"input": ""}, hosts) is not None


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
    vars(connection)[WATCH] = watch
    is_async = ".asyncio." in type(connection).__module__
    for name, tapped in (_asynchronous(watch) if is_async else _synchronous(watch)).items():
        override(connection, name, tapped)


def _as_method(tap: Any, original: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if WATCH in vars(self):  # its own tap is around us
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
        if exchange is not None:
            exchange.raised(exc)
            still_open = socket_of(connection).open
            if exchange in still_open:  # else another thread, which was receiving, has seen it end
                still_open.remove(exchange)
        raise


@contextmanager
def _receiving(connection: Any) -> Iterator[None]:
    """Record that a connection broke inside; raise the fault of a recording in place of what that caused."""
    try:
        yield
    except BaseException as exc:
        other_end = _other_end(connection)
        fault = None if other_end is None else other_end.fault
        _broken(connection, exc, fault)
        if fault is not None:
            raise fault from None
        raise


def _begin(watch: Watch, connection: Any, message: Any) -> Exchange | None:
    with guard.Swallowing("look at a message"):
        socket = socket_of(connection)
        body = socket.request_body(message)
        if body is None:
            socket.sent += not is_audio(message)
            return None
        socket.requests += 1
        url, other_end, response = _url(connection), _other_end(connection), connection.response
        lost = None if other_end is None else other_end.lost(url, body)
        exchange = watch.begin("POST", url, connection.request.headers.raw_items(), body, lost=lost)
        if exchange is not None:
            exchange.answered(response.status_code, response.headers.raw_items(), decoded=True, stream="sse")
            socket.open.append(exchange)
        return exchange
    return None


def _url(connection: Any) -> str:
    request = connection.request
    place = getattr(connection.protocol, "uri", None) or connection.protocol.wsuri
    secure = "s" if place.secure else ""
    return f"ws{secure}://{request.headers['Host']}{request.path}"


def _received(watch: Watch, connection: Any, message: Any) -> None:
    with guard.Swallowing("look at a message"):
        socket = socket_of(connection)
        if socket.open:
            socket.received(message)
        else:
            socket.record(watch, _url(connection), message)


def _broken(connection: Any, exc: BaseException, fault: BaseException | None = None) -> None:
    """End the open exchanges if the connection is gone; a timeout or a cancelled wait loses nothing."""
    socket: Socket | None = vars(connection).get(_SOCKET)
    if socket is not None and (fault is not None or type(exc).__name__.startswith("ConnectionClosed")):
        socket.end_all(how_raised(fault or exc), fault or exc)


def _closed(connection: Any) -> None:
    socket: Socket | None = vars(connection).get(_SOCKET)
    if socket is not None:
        socket.end_all(CLOSED)


def _other_end(connection: Any) -> OtherEnd | None:
    """Return who answers a connection in this process; None if it leads to a server."""
    found: OtherEnd | None = vars(connection).get(OTHER_END)
    return found


def _leaving(connection: Any, exchange: Exchange | None, message: Any) -> Any:
    """Return what is sent: a fork may have changed it."""
    if exchange is None:
        return message
    other_end, live = _other_end(connection), exchange.live
    if other_end is not None:
        other_end.expect(exchange)
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
    other_end = _other_end(connection)
    if other_end is None:
        return
    if exchange is None:
        if not is_audio(message):
            other_end.heard()
    elif exchange.live is None:
        other_end.ask(exchange)


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
