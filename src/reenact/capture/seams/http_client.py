"""http.client of the standard library, and urllib3 upon it: urllib, requests and botocore too.

A connection reports a request before it sends it; the response it then makes reads from a file that reports
its bytes. So every attempt is seen, and the bytes as they came over the wire. Requests put together by hand,
and bodies made while they are sent, are reported by ``endheaders`` and ``send``.
"""

from __future__ import annotations

from _contextvars import ContextVar
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

from .. import guard
from ..http.exchange import CLOSED, Exchange, carry, how_raised
from ..http.watch import Watch
from . import http_client_bodies
from .http_client_bodies import Outgoing, ReadAlong, Transfer, as_bytes, outgoing, put
from .patching import genuine, listen, need, need_called, override, restore, undo_all

_checked: set[type] = set()


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every connection of ``http.client`` or ``urllib3.connection``; returns what undoes it."""
    owner = genuine(module.HTTPConnection)
    _check(owner)
    undo = listen(owner, {name: tap for name, tap in _taps(watch).items() if name in vars(owner)})
    if not _is_of_urllib3(owner):
        return undo
    return undo_all(undo, listen(genuine(module.HTTPSConnection), {"connect": _connecting(watch)}))


def _taps(watch: Watch) -> dict[str, Any]:
    """Return what is called in place of a connection's methods, with the original as second argument."""

    def request(owner: Any, original: Any, method: Any, url: Any, *args: Any, **kwargs: Any) -> Any:
        return _request(watch, owner, original, method, url, args, kwargs)

    def endheaders(owner: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        return _endheaders(watch, owner, original, args, kwargs)

    return {"request": request, "endheaders": endheaders, "send": http_client_bodies.send}


def _connecting(watch: Watch) -> Any:
    def connect(owner: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        return _connect(watch, owner, partial(original, owner, *args, **kwargs))

    return connect


def _check(owner: type) -> None:
    """Raise if a connection does not make its responses as expected."""
    need(owner, "request", "endheaders", "send", "default_port")
    need_called(owner, "response_class")
    _checked.add(owner)


def tap_connection(connection: Any, watch: Watch) -> None:
    """Listen to one connection."""
    if type(connection) not in _checked:
        _check(type(connection))
    for name, tap in _taps(watch).items():
        override(connection, name, tap)
    if _is_of_urllib3(type(connection)):
        override(connection, "connect", _connecting(watch))


def untap_connection(connection: Any) -> None:
    """Give a connection its own methods back."""
    for name in ("request", "endheaders", "send", "connect"):
        restore(connection, name)


# urllib3 makes a TLS connection, or one through a proxy, before it makes a request of it. What is about to be
# requested is known to its pool's ``urlopen``, which calls itself again for each attempt.

_in_pool: ContextVar[PoolRequest | None] = ContextVar("reenact_pool_request", default=None)


class PoolRequest:
    """A request of a pool of urllib3, which may connect before it makes the request.

    A failed TLS handshake still counts as a call.
    """

    def __init__(self, pool: Any, method: Any, url: Any, args: Any, kwargs: Any) -> None:
        body = args[0] if args else kwargs.get("body")
        headers = args[1] if len(args) > 1 else kwargs.get("headers")
        self.request = method, url, (body, getattr(pool, "headers", None) if headers is None else headers)
        self.is_begun = False
        """True if its connection has begun the exchange, and no request has taken it yet."""
        self.exchange: Exchange | None = None

    def give_up(self, how: str, exc: BaseException | None = None) -> None:
        """End a request for which there was a connection, and which was not made."""
        if self.is_begun and self.exchange is not None:
            self.exchange.end(how, exc)


def open_in_pool(request: PoolRequest, send: Callable[[], Any]) -> Any:
    """Let a pool make a request; its connections find it here meanwhile."""
    before = _in_pool.get()
    _in_pool.set(request)
    try:
        return send()
    except BaseException as exc:
        request.give_up(how_raised(exc), exc)
        raise
    finally:
        _in_pool.set(before)
        request.give_up(CLOSED)


def _connect(watch: Watch, connection: Any, connect: Callable[[], Any]) -> Any:
    """Let a connection connect; the exchange of its pool's request begins before."""
    request = _in_pool.get()
    is_within = outgoing(connection) is not None  # a request connects if nobody has
    if request is None or request.is_begun or is_within:
        return connect()
    method, url, more = request.request
    request.is_begun, request.exchange = True, _begin(watch, connection, method, url, more, {})
    try:
        return connect()
    except BaseException as exc:
        if request.exchange is not None:
            request.exchange.raised(exc)
        raise


def _begun_in_pool() -> PoolRequest | None:
    """Return the request whose exchange began with its connection, once."""
    request = _in_pool.get()
    if request is None or not request.is_begun:
        return None
    request.is_begun = False
    return request


def _request(
    watch: Watch, connection: Any, original: Any, method: Any, url: Any, args: Any, kwargs: Any
) -> Any:
    out = outgoing(connection)
    if out is not None and not out.has_head:  # urllib3's, upon http.client's
        return original(connection, method, url, *args, **kwargs)
    begun = _begun_in_pool()
    exchange = begun.exchange if begun is not None else _begin(watch, connection, method, url, args, kwargs)
    out = Outgoing(exchange)
    put(connection, out)

    def send(request: Any) -> Any:
        target, rest, named = request
        return original(connection, method, target, *rest, **named)

    try:
        done = carry("http_client", exchange, send, (url, args, kwargs), connection, out)
    except BaseException as exc:
        if exchange is None:
            raise
        if isinstance(exc, BrokenPipeError) and _is_of_urllib3(type(connection)):
            _await_answer(connection, exchange)  # which the server sent before it hung up
        else:
            exchange.end(how_raised(exc), exc)
        raise
    finally:
        put(connection, None)
    if exchange is not None:
        if exchange.sent is not None:
            exchange.sent.all()
        _await_answer(connection, exchange)
    return done


def _endheaders(watch: Watch, connection: Any, original: Any, args: Any, kwargs: Any) -> Any:
    """Send the head of a request: one of ``request``, or one that is put together by hand."""
    out = outgoing(connection)
    by_hand = out is None or out.has_head  # what is left of a request that was given up
    with guard.Swallowing("look at a request"):
        out = _by_hand(watch, connection) if out is None or by_hand else out
        out.take_head(connection._buffer)
        if by_hand:
            put(connection, out)
            body = args[0] if args else kwargs.get("message_body")
            if body is not None or not out.expects_body:
                out.begin(_bytes(body))

    def send(_: Any) -> Any:
        return original(connection, *args, **kwargs)

    try:
        if not by_hand:
            return send(None)
        return carry("http_client", out.exchange if out is not None else None, send, None, connection, out)
    except BaseException as exc:
        if by_hand and out is not None:
            out.begin()
            out.failed(how_raised(exc), exc)
        raise


def _by_hand(watch: Watch, connection: Any) -> Outgoing:
    def begin(method: str, target: str, headers: Any, body: bytes | None) -> Exchange | None:
        with guard.Swallowing("look at a request"):
            exchange = watch.begin(method, _address(connection, target), headers, body)
            if exchange is not None:
                _await_answer(connection, exchange)
            return exchange
        return None

    return Outgoing(None, begin)


def _is_of_urllib3(kind: type) -> bool:
    return any(each.__module__.startswith("urllib3.") for each in kind.__mro__)


def _begin(watch: Watch, connection: Any, method: Any, url: Any, args: Any, kwargs: Any) -> Exchange | None:
    with guard.Swallowing("look at a request"):
        body = args[0] if args else kwargs.get("body")
        headers = (args[1] if len(args) > 1 else kwargs.get("headers")) or {}
        header_list = [(_text(name), _text(value)) for name, value in headers.items()]
        return watch.begin(_text(method), _address(connection, _text(url)), header_list, _bytes(body))
    return None


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes(body: Any) -> bytes | None:
    return body.encode("utf-8", "surrogateescape") if isinstance(body, str) else as_bytes(body)


def _address(connection: Any, url: str) -> str:
    """Return the whole URL: a request names the path only, unless it goes through a proxy."""
    if "://" in url[:16]:
        return url
    secure = connection.default_port == 443
    host = getattr(connection, "_tunnel_host", None) or connection.host
    port = getattr(connection, "_tunnel_port", None) or connection.port
    host = f"[{host}]" if ":" in host else host
    where = host if port in (None, connection.default_port) else f"{host}:{port}"
    return f"{'https' if secure else 'http'}://{where}{url}"


def _await_answer(connection: Any, exchange: Exchange) -> None:
    """Listen to the next response that the connection makes, and to no other."""
    with guard.Swallowing("wait for an answer"):
        before = connection.response_class
        if isinstance(before, _NextResponse):  # the response before this one was never read
            before.exchange.end(CLOSED)
            before = before.make
        connection.response_class = _NextResponse(connection, before, exchange)


class _NextResponse:
    """Stands in for a connection's ``response_class`` once."""

    def __init__(self, connection: Any, make: Any, exchange: Exchange) -> None:
        self.make = make
        self.exchange = exchange
        self._connection = ref(connection)
        self._was_own = "response_class" in vars(connection)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        response = self.make(*args, **kwargs)
        with guard.Swallowing("listen to an answer"):
            self._step_back()
            override(response, "begin", self._begin)
        return response

    def _step_back(self) -> None:
        """Leave the connection as it was."""
        connection = self._connection()
        if connection is not None:
            put(connection, None)
        if connection is not None and vars(connection).get("response_class") is self:
            if self._was_own:
                connection.response_class = self.make
            else:
                del connection.response_class

    def _begin(self, response: Any, original: Any) -> Any:
        restore(response, "begin")
        try:
            done = original(response)
        except BaseException as exc:
            self.exchange.end(how_raised(exc), exc)
            raise
        with guard.Swallowing("listen to an answer"):
            self.exchange.answered(response.status, response.getheaders())
            if response.fp is None:
                self.exchange.end()
            else:
                body = Transfer(response.chunked, response.length)
                response.fp = ReadAlong(response.fp, self.exchange, body)
        return done
