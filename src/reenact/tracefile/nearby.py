"""The lines of model calls going backwards from a place in a file, where references mostly lead."""

from __future__ import annotations

import os
from typing import Protocol

_WINDOW = 256 << 10
_FAR = 16 << 20
"""A line that is further back than this is looked up in another way."""


class Way(Protocol):
    """Where the lines of model calls are found."""

    def request(self, call: bytes) -> bytes | None: ...
    def response(self, call: bytes) -> bytes | None: ...


class Nearby:
    """Goes back through a file by a window; where a request is found, the next ones are sought before it."""

    __slots__ = ("_at", "_data", "_end", "_fd")

    def __init__(self, fd: int, offset: int) -> None:
        self._fd = fd
        self._at = offset
        self._data = b""
        """The bytes of the file from ``_at`` on."""
        self._end = 0

    def request(self, call: bytes) -> bytes | None:
        """Return the line of the last such request, and go there."""
        begin, line = self._find(b'"kind": "model.request", "call": "%s"' % call)
        if line is not None:
            self._end = begin - self._at
        return line

    def response(self, call: bytes) -> bytes | None:
        """Return the line of the last such answer."""
        return self._find(b'"kind": "model.response", "call": "%s"' % call)[1]

    def _find(self, needle: bytes) -> tuple[int, bytes | None]:
        size = _WINDOW
        while True:
            hit = self._data.rfind(needle, 0, self._end)
            begin = self._data.rfind(b"\n", 0, hit) + 1 if hit >= 0 else 0
            if hit >= 0 and (begin or not self._at):
                return self._at + begin, self._data[begin : self._data.find(b"\n", hit)]
            if not self._at or size > _FAR:
                return 0, None
            self._fill(size)
            size *= 8

    def _fill(self, size: int) -> None:
        """Move the window so that it ends where it is looked from."""
        end = self._at + self._end
        self._at = max(0, end - size)
        self._data = os.pread(self._fd, end - self._at, self._at)
        self._end = len(self._data)
