"""What goes out through a connection of http.client: bodies made while they are sent, and requests put
together by hand with ``putrequest``, ``putheader``, ``endheaders`` and ``send``.

Nothing is read ahead: what ``send`` is given is told of as it goes. A request by hand is recorded when its
head leaves; if its body follows in one piece, just before that, and with it.
"""

from __future__ import annotations

import io

from .. import guard
from ..exchange import how_raised
from .transfer import Transfer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ..exchange import Exchange

    Begin = Callable[[str, str, list[tuple[str, str]], bytes | None], Exchange | None]

_OUT = "_reenact_out"
"""Attribute of a connection: the request that is going out."""


class Outgoing:
    """A request on its way; ``begin`` where it is not known yet what exchange it belongs to."""

    def __init__(self, exchange: Exchange | None, begin: Begin | None = None) -> None:
        self.exchange = exchange
        self.is_by_hand = begin is not None
        self.is_busy = False
        """True within ``send``, which may connect first and send what a proxy wants to hear."""
        self._begin = begin
        self._head: tuple[str, str, list[tuple[str, str]]] = "", "", []
        self._body: Transfer | None = None
        self._length: int | None = None
        self._head_is_out = False

    @property
    def has_head(self) -> bool:
        return self._body is not None

    @property
    def expects_body(self) -> bool:
        """True if the head promises a body."""
        return self._body is not None and not self._body.is_over and not self._body.to_the_end

    def take_head(self, lines: list[bytes]) -> None:
        """Take in what the head says, its first line too."""
        method, target = [*lines[0].decode("latin-1").split(" "), ""][:2]
        told = [line.decode("latin-1").partition(":") for line in lines[1:]]
        headers = [(name.strip(), value.strip()) for name, _, value in told]
        self._head = method, target, headers
        named = {name.lower(): value for name, value in headers}
        self._length = int(named["content-length"]) if "content-length" in named else None
        chunked = "chunked" in named.get("transfer-encoding", "").lower()
        self._body = Transfer(chunked, None if chunked else self._length)

    def begin(self, body: bytes | None = None) -> None:
        """Record the request, if that is still to be done."""
        if self.exchange is None and self._begin is not None:
            self.exchange = self._begin(*self._head, body)
            self._begin = None

    def failed(self, how: str, exc: BaseException) -> None:
        """The request could not be sent. One that the server hung up on may have been answered even so."""
        if self.exchange is None:
            return
        if isinstance(exc, BrokenPipeError):
            self.exchange.fault = exc
        else:
            self.exchange.end(how, exc)

    def passing(self, data: Any) -> Any:
        """Return what ``send`` is to send in place of what it was given: the same, or the same read along."""
        if not self.has_head:
            return data
        if not self._head_is_out:
            self._head_is_out = True
            return data
        held = as_bytes(data)
        self.begin(held if held is not None and len(held) == self._length else None)
        if self.exchange is None or self.exchange.sent is None:
            return data
        if held is not None:
            self.add(held)
            return data
        if hasattr(data, "read"):
            return (_TextAlong if isinstance(data, io.TextIOBase) else _Along)(data, self.add)
        return _each(data, self.add) if hasattr(data, "__iter__") else data

    def add(self, data: Any) -> None:
        """Tell of bytes of the body, framing and all."""
        try:
            sent = self.exchange.sent if self.exchange is not None else None
            if sent is not None and self._body is not None:
                data = data.encode("latin-1") if isinstance(data, str) else bytes(data)
                sent.add(self._body.add(data))
                if self._body.is_over:
                    sent.all()
        except Exception as exc:
            guard.swallow("read a body along", exc)


def as_bytes(data: Any) -> bytes | None:
    """Return a body that is there already, whatever holds it; a file or a generator is left to be sent."""
    try:
        return None if hasattr(data, "read") else data if type(data) is bytes else bytes(memoryview(data))
    except TypeError:
        return None


def outgoing(connection: Any) -> Outgoing | None:
    """Return the request that is going out through a connection."""
    found: Outgoing | None = vars(connection).get(_OUT)
    return found


def put(connection: Any, out: Outgoing | None) -> None:
    """Say which request is going out."""
    if out is not None:
        vars(connection)[_OUT] = out
    else:
        vars(connection).pop(_OUT, None)


def send(connection: Any, original: Any, data: Any) -> Any:
    """Do what ``send`` does, and tell of it."""
    out = outgoing(connection)
    if out is None or out.is_busy:
        return original(connection, data)
    out.is_busy = True
    try:
        try:
            passed = out.passing(data)
        except Exception as exc:
            guard.swallow("read a body along", exc)
            passed = data
        return original(connection, passed)
    except BaseException as exc:
        if out.is_by_hand:
            out.failed(how_raised(exc), exc)
        raise
    finally:
        out.is_busy = False


class _Along:
    """A file that tells of what is read from it."""

    def __init__(self, file: Any, tell: Callable[[Any], None]) -> None:
        self._file = file
        self._tell = tell

    def read(self, size: int | None = -1, /) -> Any:
        data = self._file.read(size)
        self._tell(data)
        return data


class _TextAlong(_Along, io.TextIOBase):
    """One of text, which http.client encodes."""


def _each(pieces: Any, tell: Callable[[Any], None]) -> Iterator[Any]:
    for piece in pieces:
        tell(piece)
        yield piece
