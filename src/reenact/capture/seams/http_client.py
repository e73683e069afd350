"""http.client of the standard library, and urllib3 upon it: urllib, requests and botocore too.

A connection tells us of a request before it sends it; the response it then makes for itself is given a
file that we read along with. So every attempt is seen, and the bytes as they came over the wire.
"""

from __future__ import annotations

from weakref import ref

from .. import guard
from ..exchange import CLOSED, how_raised
from . import inside
from .instance import override, restore
from .readalong import ReadAlong
from .selftest import need, need_asked
from .transfer import Transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..exchange import Exchange, Watch


_checked: set[type] = set()


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every connection of ``http.client`` or ``urllib3.connection``; returns what undoes it."""
    owner = module.HTTPConnection
    _check(owner)
    original = owner.request

    def request(self: Any, method: Any, url: Any, *args: Any, **given: Any) -> Any:
        return _request(watch, self, original, method, url, args, given)

    owner.request = request

    def undo() -> None:
        owner.request = original

    return undo


def _check(owner: type) -> None:
    """Raise if a connection does not make its responses as it used to."""
    need(owner, "request", "default_port")
    need_asked(owner, "response_class")
    _checked.add(owner)


def tap_connection(connection: Any, watch: Watch) -> None:
    """Listen to one connection."""
    if type(connection) not in _checked:
        _check(type(connection))

    def tapped(owner: Any, original: Any, method: Any, url: Any, *args: Any, **given: Any) -> Any:
        return _request(watch, owner, original, method, url, args, given)

    override(connection, "request", tapped)


def _request(
    watch: Watch, connection: Any, original: Any, method: Any, url: Any, args: Any, given: Any
) -> Any:
    exchange = _begin(watch, connection, method, url, args, given)
    if exchange is None:
        return original(connection, method, url, *args, **given)
    token = inside.enter()
    try:
        done = original(connection, method, url, *args, **given)
    except BaseException as exc:
        if isinstance(exc, BrokenPipeError) and _looks_all_the_same(connection):
            _await_answer(connection, exchange)
        else:
            exchange.end(how_raised(exc), exc)
        raise
    finally:
        inside.leave(token)
    _await_answer(connection, exchange)
    return done


def _looks_all_the_same(connection: Any) -> bool:
    """True for urllib3: the server may have answered before it hung up, so it asks for the answer."""
    return any(kind.__module__.startswith("urllib3.") for kind in type(connection).__mro__)


def _begin(watch: Watch, connection: Any, method: Any, url: Any, args: Any, given: Any) -> Exchange | None:
    if inside.is_inside():
        return None
    try:
        body = args[0] if args else given.get("body")
        headers = (args[1] if len(args) > 1 else given.get("headers")) or {}
        told = [(_text(name), _text(value)) for name, value in headers.items()]
        return watch.begin(_text(method), _address(connection, _text(url)), told, _bytes(body))
    except Exception as exc:
        guard.swallow("look at a request", exc)
        return None


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes(body: Any) -> bytes | None:
    """Return a body that is there already; a file or a generator is left to be sent."""
    if isinstance(body, str):
        return body.encode("utf-8", "surrogateescape")
    return bytes(body) if isinstance(body, (bytes, bytearray, memoryview)) else None


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
    """Have the next response that the connection makes listened to, that one and no other."""
    try:
        before = connection.response_class
        if isinstance(before, _NextResponse):  # the answer before this one was never asked for
            before.exchange.end(CLOSED)
            before = before.make
        connection.response_class = _NextResponse(connection, before, exchange)
    except Exception as exc:
        guard.swallow("wait for an answer", exc)


class _NextResponse:
    """Stands in for a connection's ``response_class`` once."""

    def __init__(self, connection: Any, make: Any, exchange: Exchange) -> None:
        self.make = make
        self.exchange = exchange
        self._connection = ref(connection)
        self._was_own = "response_class" in vars(connection)

    def __call__(self, *args: Any, **given: Any) -> Any:
        response = self.make(*args, **given)
        try:
            self._step_back()
            override(response, "begin", self._begin)
        except Exception as exc:
            guard.swallow("listen to an answer", exc)
        return response

    def _step_back(self) -> None:
        """Leave the connection as it was."""
        connection = self._connection()
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
        try:
            self.exchange.answered(response.status, response.getheaders())
            if response.fp is None:
                self.exchange.end()
            else:
                body = Transfer(response.chunked, response.length)
                response.fp = ReadAlong(response.fp, self.exchange, body)
        except Exception as exc:
            guard.swallow("listen to an answer", exc)
        return done
