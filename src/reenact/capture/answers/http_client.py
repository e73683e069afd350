"""Answers of a recording for http.client and urllib3: connections lead nowhere, responses are their own.

A connection gets a socket that swallows what is sent; the response it then makes for itself reads the
recorded answer as bytes of HTTP. A call that no recording is asked for gets a real connection.
"""

from __future__ import annotations

import builtins
import io
import os
import socket
import sys
import time
from urllib.parse import urlsplit, urlunsplit

from ... import protocols
from ...errors import Diverged
from ...protocols import BREAKS, ENDS, RAISES, STAYS_OPEN
from ..http.exchange import how_raised
from ..http.recorded_once import current
from ..seams.patching import genuine, replace
from .raw_http import THE_END, Raw, named, os_error, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ...protocols import Live, Reply
    from ..http.exchange import Exchange
    from ..seams.http_client_bodies import Outgoing

_LIVE, _REPLY = "_reenact_live", "_reenact_reply"
"""Attributes of a connection: it is to be a real one; the answer it has been given and not yet read."""
_CONNECTING = ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError", "ConnectionRefusedError")


class Nowhere:
    """The socket of a connection that leads nowhere; who waits to be told to go on is told at once."""

    _continues = False
    _always_readable: int | None = None

    def sendall(self, data: Any, *flags: int) -> None:
        self._continues = self._continues or b"100-continue" in bytes(data[:65_536]).lower()

    def send(self, data: Any, *flags: int) -> int:
        self.sendall(data)
        return len(data)

    def settimeout(self, seconds: float | None) -> None:
        pass

    def setsockopt(self, *option: Any) -> None:
        pass

    def shutdown(self, how: int) -> None:
        pass

    def fileno(self) -> int:
        if self._always_readable is None:
            self._always_readable = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return self._always_readable

    def close(self) -> None:
        if self._always_readable is not None:
            os.close(self._always_readable)
            self._always_readable = None

    def __del__(self) -> None:
        self.close()

    def makefile(self, *args: Any, **given: Any) -> Any:
        if self._continues:
            self._continues = False
            return io.BytesIO(b"HTTP/1.1 100 Continue\r\n\r\n")
        raise Diverged("a request that is not recorded was put together by hand: nobody answers it")


def patch(module: Any) -> Callable[[], None]:
    """Have no connection of a module made before it is known who answers; returns what undoes it."""
    owners = [genuine(getattr(module, name)) for name in ("HTTPConnection", "HTTPSConnection")]
    undo = [
        replace(owner, {"connect": _connecting(vars(owner)["connect"])})
        for owner in owners
        if "connect" in vars(owner)
    ]

    def undo_all() -> None:
        for each in undo:
            each()

    return undo_all


def _connecting(original: Any) -> Any:
    def connect(self: Any) -> None:
        if protocols.responder is None or current() is not None or _LIVE in vars(self):
            original(self)
        else:
            _sink(self)

    return connect


def _sink(connection: Any) -> None:
    connection.sock = Nowhere()
    connection.is_verified = True  # else urllib3 warns that nobody looked at a certificate


def lead(connection: Any, *, nowhere: bool) -> None:
    """Have the next request of a connection swallowed, or sent as ever."""
    is_sunk = isinstance(connection.sock, Nowhere)
    if nowhere:
        vars(connection).pop(_LIVE, None)
        if not is_sunk:
            if connection.sock is not None:
                connection.sock.close()
            _sink(connection)
    else:
        vars(connection)[_LIVE] = True
        if is_sunk:
            connection.sock = None  # the library makes one when it sends


def lead_by_hand(connection: Any, out: Outgoing | None) -> None:
    """The same for a request whose head is written already."""
    exchange = out.exchange if out is not None else None
    if exchange is not None and exchange.live is not None:
        if exchange.live.body is not None or exchange.live.url is not None:
            raise Diverged("a request that is put together by hand cannot be changed")
        lead(connection, nowhere=False)
    else:
        lead(connection, nowhere=out is None or out.expects_body or exchange is not None)


def changed(live: Live, url: Any, args: Any, given: Any) -> tuple[Any, Any, Any]:
    """Return the arguments of ``request`` with which another request leaves in the place of one."""
    if live.url is not None:
        where = urlsplit(live.url)
        url = live.url if "://" in str(url)[:16] else urlunsplit(("", "", where.path, where.query, ""))
    if live.body is None:
        return url, args, given
    headers = dict((args[1] if len(args) > 1 else given.get("headers")) or {})
    for name in [name for name in headers if _name(name) == "content-length"]:
        headers[name] = str(len(live.body))
    told = {"body": live.body, "headers": headers}
    return url, args[2:], {**{name: value for name, value in given.items() if name not in told}, **told}


def _name(header: Any) -> str:
    return header.decode("latin-1").lower() if isinstance(header, bytes) else str(header).lower()


def ask(connection: Any, exchange: Exchange) -> None:
    """The request has gone nowhere: get its answer, or raise what kept the connection from being made."""
    reply = _reply(exchange)
    if reply.then == RAISES and getattr(reply.error, "type", None) in _CONNECTING:
        raise _error(reply.error, connection)
    vars(connection)[_REPLY] = reply


def _reply(exchange: Exchange) -> Reply:
    responder = protocols.responder
    assert responder is not None
    if exchange.sent is not None:
        exchange.sent.all()
    return responder.reply(exchange)


def answering(connection: Any, exchange: Exchange) -> Any:
    """Return the socket that a response reads the answer from."""
    reply = vars(connection).pop(_REPLY, None) if connection is not None else None
    if reply is None:
        try:
            reply = _reply(exchange)
        except BaseException as exc:
            exchange.end(how_raised(exc), exc)
            raise
    if connection is not None:
        connection.sock = None  # the next request has another
    return _Answer(reply, exchange.method)


class _Answer:
    """A socket of which only the file is asked for."""

    def __init__(self, reply: Reply, method: str) -> None:
        self._reply = reply
        self._method = method

    def makefile(self, *args: Any, **given: Any) -> Any:
        return io.BufferedReader(_Played(_bytes_of(self._reply, self._method)))


class _Played(io.RawIOBase):
    """The bytes of an answer, never more at once than came at once."""

    def __init__(self, coming: Iterator[bytes]) -> None:
        self._coming = coming
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = next(self._coming, b"")
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _bytes_of(reply: Reply, method: str) -> Iterator[bytes]:
    raw = Raw(reply, method)
    if reply.then == RAISES:
        raise _error(reply.error)
    yield raw.head()
    for data, pause in raw.pieces():
        if pause:
            time.sleep(pause)
        yield data
    if reply.then == ENDS:
        raise Diverged(THE_END)
    if reply.then == STAYS_OPEN:
        raise TimeoutError("timed out")  # the agent read no further then
    if reply.then == BREAKS and getattr(reply.error, "type", None) != "cut":
        raise _error(reply.error)


def _error(error: Any, connection: Any = None) -> Exception:
    """Return the exception that was raised then, as nearly as its name and text tell it."""
    import http.client
    import ssl

    text, said = text_of(error), os_error(text_of(error))
    urllib3 = sys.modules.get("urllib3.exceptions")
    kind = named(error, builtins, http.client, socket, ssl, urllib3)
    if kind is None:
        return ConnectionResetError(text)
    if kind.__module__.startswith("urllib3."):
        return _not_connected(kind, text, said, connection)
    if issubclass(kind, OSError) and said is not None:
        return said if isinstance(said, kind) else kind(*said.args)
    return kind(text)


def _not_connected(kind: Any, text: str, said: OSError | None, connection: Any) -> Exception:
    if kind.__name__ == "NameResolutionError":
        cause: OSError = said if isinstance(said, socket.gaierror) else socket.gaierror(-2, text)
        error: Exception = kind(connection.host, connection, cause)
    else:
        error, cause = kind(connection, text.partition("): ")[2] or text), said or OSError(text)
    error.__cause__ = cause
    return error
