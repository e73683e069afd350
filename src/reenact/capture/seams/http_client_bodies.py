"""What goes out through a connection of http.client: bodies made while they are sent, and requests put
together by hand with ``putrequest``, ``putheader``, ``endheaders`` and ``send``.

Nothing is read ahead: the bytes that ``send`` gets are reported as they are sent. A request by hand
is recorded when its head is sent; if its body follows in one piece, just before that, and with it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from .. import guard
from ..http.exchange import CLOSED, COMPLETE, CUT, Exchange, how_raised

Begin = Callable[[str, str, list[tuple[str, str]], bytes | None], Exchange | None]
T = TypeVar("T")


# A body as http.client reads it from its socket: the framing of chunks taken off, its end known.

SIZE, DATA, AFTER, TRAILER, OVER = "size", "data", "after", "trailer", "over"
MAX_LINE = 65_536


class Transfer:
    """The state of one body: chunked, of a length, or up to the end of the connection."""

    def __init__(self, chunked: bool, length: int | None) -> None:
        self._state = SIZE if chunked else DATA
        self._chunked = chunked
        self._left = length
        self._line = b""
        self.to_the_end = not chunked and length is None
        if length == 0:
            self._state = OVER

    @property
    def is_over(self) -> bool:
        """True once the last byte of the body has been seen."""
        return self._state == OVER

    def add(self, data: bytes) -> bytes:
        """Take in bytes from the connection; returns those that are the body's."""
        if not self._chunked:
            return self._counted(data)
        found = []
        while data and self._state != OVER:
            if self._state == DATA:
                piece, data = data[: self._left], data[self._left :]
                found.append(self._counted(piece))
            else:
                end = data.find(b"\n") + 1
                self._line += data[: end or len(data)]
                data = data[end:] if end else b""
                if end:
                    self._end_of_line()
                elif len(self._line) > MAX_LINE:
                    raise ValueError("no end of a chunk's first line")
        return b"".join(found)

    def _counted(self, data: bytes) -> bytes:
        if self._left is not None:
            self._left -= len(data)
            if self._left <= 0:
                self._state = AFTER if self._chunked else OVER
        return data

    def _end_of_line(self) -> None:
        line, self._line = self._line.strip(), b""
        if self._state == SIZE:
            self._left = int(line.partition(b";")[0], 16)
            self._state = DATA if self._left else TRAILER
        elif self._state == AFTER:
            self._state = SIZE
        elif not line:
            self._state = OVER


_OUT = "_reenact_out"
"""Attribute of a connection: the request that is going out."""


class Outgoing:
    """A request on its way; ``begin`` where it is not known yet what exchange it belongs to."""

    def __init__(self, exchange: Exchange | None, begin: Begin | None = None) -> None:
        self.exchange = exchange
        self.is_by_hand = begin is not None
        self.is_busy = False
        """True within ``send``, which may connect first and send a request to a proxy."""
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
        """Take in the head: request line and headers."""
        method, target = [*lines[0].decode("latin-1").split(" "), ""][:2]
        fields = [line.decode("latin-1").partition(":") for line in lines[1:]]
        headers = [(name.strip(), value.strip()) for name, _, value in fields]
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
        """Record that the request could not be sent; a server that hung up may have answered before."""
        if self.exchange is None:
            return
        if isinstance(exc, BrokenPipeError):
            self.exchange.fault = exc
        else:
            self.exchange.end(how, exc)

    def passing(self, data: Any) -> Any:
        """Return what ``send`` sends in place of ``data``: the same, or a wrapper that reports its bytes."""
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
        """Report bytes of the body, framing and all."""
        with guard.Swallowing("record a request body"):
            sent = self.exchange.sent if self.exchange is not None else None
            if sent is not None and self._body is not None:
                data = data.encode("latin-1") if isinstance(data, str) else bytes(data)
                sent.add(self._body.add(data))
                if self._body.is_over:
                    sent.all()


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
    """Set which request is going out."""
    if out is not None:
        vars(connection)[_OUT] = out
    else:
        vars(connection).pop(_OUT, None)


def send(connection: Any, original: Any, data: Any) -> Any:
    """Do what ``send`` does, and report it."""
    out = outgoing(connection)
    if out is None or out.is_busy:
        return original(connection, data)
    out.is_busy = True
    try:
        passed = data
        with guard.Swallowing("record a request body"):
            passed = out.passing(data)
        return original(connection, passed)
    except BaseException as exc:
        if out.is_by_hand:
            out.failed(how_raised(exc), exc)
        raise
    finally:
        out.is_busy = False


class _Along:
    """A file that reports what is read from it."""

    def __init__(self, file: Any, on_read: Callable[[Any], None]) -> None:
        self._file = file
        self._on_read = on_read

    def read(self, size: int | None = -1, /) -> Any:
        data = self._file.read(size)
        self._on_read(data)
        return data


class _TextAlong(_Along, io.TextIOBase):
    """A text file, which http.client encodes."""


def _each(pieces: Any, on_read: Callable[[Any], None]) -> Iterator[Any]:
    for piece in pieces:
        on_read(piece)
        yield piece


# The file a response of http.client reads from, passed through: each byte it hands out is reported.

SMALL, ENOUGH = 64, 512
"""Pieces below the one are put together up to the other, or to the end of a line."""


class ReadAlong:
    """A binary file that reads from another and reports to an exchange what it read."""

    def __init__(self, file: Any, exchange: Exchange, body: Transfer) -> None:
        self._file = file
        self._exchange = exchange
        self._body = body
        self._few = b""
        self._at_end = False

    def read(self, size: int | None = -1) -> bytes:
        data: bytes = self._read_from(self._file.read, size)
        self._seen(data, size is None or size < 0 or len(data) < size)
        return data

    def read1(self, size: int = -1) -> bytes:
        data: bytes = self._read_from(self._file.read1, size)
        self._seen(data, not data and size != 0)
        return data

    def readline(self, size: int | None = -1) -> bytes:
        data: bytes = self._read_from(self._file.readline, size)
        self._seen(data, not data and size != 0)
        return data

    def readinto(self, buffer: Any) -> int:
        count: int = self._read_from(self._file.readinto, buffer)
        self._seen(bytes(memoryview(buffer)[:count]), count < len(buffer))
        return count

    def close(self) -> None:
        try:
            self._file.close()
        finally:
            self._over()

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line

    def __enter__(self) -> ReadAlong:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_file"), name)

    def _read_from(self, read: Callable[[Any], T], size: Any) -> T:
        try:
            return read(size)
        except BaseException as exc:
            self._pass_on(b"")
            self._exchange.end(how_raised(exc), exc)
            raise

    def _seen(self, data: bytes, at_end: bool) -> None:
        try:
            self._at_end = self._at_end or at_end
            data = self._body.add(data)
            if len(data) < SMALL:
                self._few += data
                if not self._few.endswith(b"\n") and len(self._few) < ENOUGH:
                    return
                data = b""
            self._pass_on(data)
        except Exception as exc:
            guard.swallow("record a response body", exc)

    def _pass_on(self, data: bytes) -> None:
        if self._few:
            data, self._few = self._few + data, b""
        if data:
            self._exchange.chunk(data)

    def _over(self) -> None:
        self._pass_on(b"")
        body = self._body
        if body.is_over or (body.to_the_end and self._at_end):
            self._exchange.end(COMPLETE)
        else:
            self._exchange.end(CUT if self._at_end else CLOSED)
