"""Recorded responses for http.client and urllib3: connections lead nowhere, responses are their own.

A connection gets a socket that discards what is sent; the response that the library makes reads the recorded
bytes of HTTP from it. A request that the recording does not answer gets a real connection.
"""

from __future__ import annotations

import builtins
import io
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit
from weakref import ref

from ...capture import replay_hook
from ...capture.http.recorded_once import current
from ...capture.seams.patching import genuine, listen, undo_all
from ...errors import Diverged
from .raw_http import THE_END, Raw, named, os_error, text_of
from .replies import BREAKS, ENDS, RAISES, STAYS_OPEN, responder

if TYPE_CHECKING:
    from ...capture.http.exchange import Exchange
    from ...capture.http.watch import Watch
    from ...capture.replay_hook import Live
    from ...capture.seams.http_client_bodies import Outgoing
    from .replies import Reply

_LIVE = "_reenact_live"
"""Attribute of a connection that is to be a real one."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CONNECTING = ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError", "ConnectionRefusedError")


class Nowhere:
    """The socket of a connection that leads nowhere: the recorded answer is read from it.

    Who waits for "100 Continue" gets it at once.
    """

    _continues = False
    _always_readable: int | None = None

    def __init__(self, connection: Any) -> None:
        self._connection = ref(connection)
        self.out: Outgoing | None = None
        """The request that is discarded."""
        self.reply: Reply | None = None
        """Its reply, where it is known before the answer is read."""

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

    def makefile(self, *args: Any, **kwargs: Any) -> Any:
        return io.BufferedReader(_Played(self._coming()))

    def _coming(self) -> Iterator[bytes]:
        if self._continues:
            self._continues = False
            yield _CONTINUE
        exchange = self.out.exchange if self.out is not None else None
        if exchange is None or exchange.live is not None:
            raise Diverged("a request that is not recorded was put together by hand: nobody answers it")
        reply, self.reply = self.reply or _reply(exchange), None
        connection = self._connection()
        if connection is not None and connection.sock is self:
            connection.sock = None  # the next request has another
        yield from _bytes_of(reply, exchange.method)


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Keep connections of a module closed until it is known who answers; returns what undoes it."""
    owners = [genuine(getattr(module, name)) for name in ("HTTPConnection", "HTTPSConnection")]
    return undo_all(*[listen(owner, {"connect": _connect}) for owner in owners if "connect" in vars(owner)])


def _connect(connection: Any, original: Any) -> None:
    if replay_hook.responder is None or current() is not None or _LIVE in vars(connection):
        original(connection)
    else:
        _sink(connection)


def _sink(connection: Any) -> None:
    connection.sock = Nowhere(connection)
    connection.is_verified = True  # else urllib3 warns that nobody looked at a certificate


def carry(
    exchange: Exchange | None, send: Callable[[Any], Any], request: Any, connection: Any, out: Outgoing | None
) -> Any:
    """Discard a request of ``HTTPConnection.request`` and get its reply ready; or send it, where it is live.

    ``request`` is its URL, its positional and its other arguments; None if its head is written by hand.
    """
    if request is None:
        _lead_by_hand(connection, exchange, out)
        return send(request)
    is_answered = exchange is not None and exchange.live is None
    _lead(connection, out, nowhere=is_answered)
    if exchange is None:
        return send(request)
    if exchange.live is not None:
        return send(changed(exchange.live, *request))
    done = send(request)
    _ask(connection, exchange)
    return done


def _lead(connection: Any, out: Outgoing | None, *, nowhere: bool) -> None:
    """Have the next request of a connection discarded, or sent as usual."""
    is_sunk = isinstance(connection.sock, Nowhere)
    if nowhere:
        vars(connection).pop(_LIVE, None)
        if not is_sunk:
            if connection.sock is not None:
                connection.sock.close()
            _sink(connection)
        connection.sock.out, connection.sock.reply = out, None
    else:
        vars(connection)[_LIVE] = True
        if is_sunk:
            connection.sock = None  # the library makes one when it sends


def _lead_by_hand(connection: Any, exchange: Exchange | None, out: Outgoing | None) -> None:
    """Have a request discarded whose head is written already, or sent as usual."""
    if exchange is not None and exchange.live is not None:
        if exchange.live.body is not None or exchange.live.url is not None:
            raise Diverged("a request that is put together by hand cannot be changed")
        _lead(connection, out, nowhere=False)
    else:
        _lead(connection, out, nowhere=out is None or out.expects_body or exchange is not None)


def changed(live: Live, url: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """Return the arguments of ``request`` for the request that is sent in place of another."""
    if live.url is not None:
        where = urlsplit(live.url)
        url = live.url if "://" in str(url)[:16] else urlunsplit(("", "", where.path, where.query, ""))
    if live.body is None:
        return url, args, kwargs
    headers = dict((args[1] if len(args) > 1 else kwargs.get("headers")) or {})
    for name in [name for name in headers if _name(name) == "content-length"]:
        headers[name] = str(len(live.body))
    changes = {"body": live.body, "headers": headers}
    return (
        url,
        args[2:],
        {**{name: value for name, value in kwargs.items() if name not in changes}, **changes},
    )


def _name(header: Any) -> str:
    return header.decode("latin-1").lower() if isinstance(header, bytes) else str(header).lower()


def _ask(connection: Any, exchange: Exchange) -> None:
    """Get the reply to a discarded request, or raise the recorded error of its connection."""
    reply = _reply(exchange)
    if reply.then == RAISES and getattr(reply.error, "type", None) in _CONNECTING:
        raise _error(reply.error, connection)
    connection.sock.reply = reply


def _reply(exchange: Exchange) -> Reply:
    if exchange.sent is not None:
        exchange.sent.all()
    return responder().reply(exchange)


class _Played(io.RawIOBase):
    """The bytes of a response, never more at once than arrived at once."""

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
        raise TimeoutError("timed out")  # the agent did not read on when it was recorded
    if reply.then == BREAKS and getattr(reply.error, "type", None) != "cut":
        raise _error(reply.error)


def _error(error: Any, connection: Any = None) -> Exception:
    """Return the recorded exception, as nearly as its name and text describe it."""
    import http.client
    import ssl

    text, os_fault = text_of(error), os_error(text_of(error))
    urllib3 = sys.modules.get("urllib3.exceptions")
    kind = named(error, builtins, http.client, socket, ssl, urllib3)
    if kind is None:
        return ConnectionResetError(text)
    if kind.__module__.startswith("urllib3."):
        return _not_connected(kind, text, os_fault, connection)
    if issubclass(kind, OSError) and os_fault is not None:
        return os_fault if isinstance(os_fault, kind) else kind(*os_fault.args)
    return kind(text)


def _not_connected(kind: Any, text: str, os_fault: OSError | None, connection: Any) -> Exception:
    if kind.__name__ == "NameResolutionError":
        cause: OSError = os_fault if isinstance(os_fault, socket.gaierror) else socket.gaierror(-2, text)
        error: Exception = kind(connection.host, connection, cause)
    else:
        error, cause = kind(connection, text.partition("): ")[2] or text), os_fault or OSError(text)
    error.__cause__ = cause
    return error
