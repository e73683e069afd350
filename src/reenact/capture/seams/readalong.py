"""The file a response of http.client reads from, passed through: each byte it hands out is told of."""

from __future__ import annotations

from .. import guard
from ..exchange import CLOSED, COMPLETE, CUT, how_raised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from ..exchange import Exchange
    from .transfer import Transfer

    T = TypeVar("T")

SMALL, ENOUGH = 64, 512
"""Pieces below the one are put together up to the other, or to the end of a line."""


class ReadAlong:
    """A binary file that reads from another and tells an exchange of what it read."""

    def __init__(self, file: Any, exchange: Exchange, body: Transfer) -> None:
        self._file = file
        self._exchange = exchange
        self._body = body
        self._few = b""
        self._at_end = False

    def read(self, size: int | None = -1) -> bytes:
        data: bytes = self._told(self._file.read, size)
        self._seen(data, size is None or size < 0 or len(data) < size)
        return data

    def read1(self, size: int = -1) -> bytes:
        data: bytes = self._told(self._file.read1, size)
        self._seen(data, not data and size != 0)
        return data

    def readline(self, size: int | None = -1) -> bytes:
        data: bytes = self._told(self._file.readline, size)
        self._seen(data, not data and size != 0)
        return data

    def readinto(self, buffer: Any) -> int:
        count: int = self._told(self._file.readinto, buffer)
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

    def _told(self, read: Callable[[Any], T], wanted: Any) -> T:
        try:
            return read(wanted)
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
            guard.swallow("read along", exc)

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
