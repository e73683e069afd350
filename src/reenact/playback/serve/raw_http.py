"""Recorded responses as bytes of HTTP/1.1, for libraries that read them with their own parser."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .replies import COMPLETE

if TYPE_CHECKING:
    from .replies import Reply

_STREAMS = ("event-stream", "eventstream", "ndjson", "stream+json")
_BODILESS = (204, 304)
THE_END = "the recording ends in the middle of this answer"
ABOUT_LENGTH = ("content-length", "transfer-encoding")
"""Headers of a request that depend on its body."""


class Raw:
    """A reply as a server would send it, in the pieces in which it arrived."""

    def __init__(self, reply: Reply, method: str) -> None:
        self._reply = reply
        self._has_body = method.upper() != "HEAD" and reply.status not in _BODILESS
        kind = next((value for name, value in reply.headers if name.lower() == "content-type"), "")
        self._is_chunked = len(reply.pieces) > 1 or any(each in kind for each in _STREAMS)

    def head(self) -> bytes:
        """Return the first line and the headers."""
        from http import HTTPStatus

        reply = self._reply
        known = {status.value: status.phrase for status in HTTPStatus}
        lines = [f"HTTP/1.1 {reply.status} {known.get(reply.status, '')}"]
        lines += [f"{name}: {_one_line(value)}" for name, value in reply.headers]
        if self._has_body:
            lines.append(
                "transfer-encoding: chunked" if self._is_chunked else f"content-length: {self._size()}"
            )
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")

    def _size(self) -> int:
        """Return the length of a body; one byte more if it was cut, since its real length is unknown."""
        return sum(len(data) for data, _ in self._reply.pieces) + (self._reply.then != COMPLETE)

    def pieces(self) -> Iterator[tuple[bytes, float]]:
        """Return the body in pieces, each with the seconds to wait before it; its end only if it came."""
        if not self._has_body:
            return
        for data, pause in self._reply.pieces:
            if data:
                yield b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data, pause
        if self._is_chunked and self._reply.then == COMPLETE:
            yield b"0\r\n\r\n", 0.0


def _one_line(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ")


def text_of(error: Any) -> str:
    """Return the text of a recorded exception; empty if only its type was recorded."""
    text = "the connection ended" if error is None else str(error)
    return "" if text == getattr(error, "type", None) else text


def os_error(text: str) -> OSError | None:
    """Return the ``OSError`` that a recorded text describes."""
    found = re.search(r"\[Errno (-?\d+)\] ([^\])'\"]*)", text) or re.search(
        r"\w+\((-?\d+), ['\"](.*?)['\"]\)", text
    )
    if found is None:
        return None
    number, message = int(found[1]), found[2]
    return socket.gaierror(number, message) if number < 0 else OSError(number, message)


def named(error: Any, *places: Any) -> type[Exception] | None:
    """Return the class of a recorded exception, if one of these modules has it."""
    name = getattr(error, "type", None) or ""
    for place in places:
        kind: Any = getattr(place, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind
    return None
