"""The lines of model calls going backwards from a place in a file, where references mostly lead."""

from __future__ import annotations

import os
from collections.abc import Callable

_WINDOW = 256 << 10
_FAR = 16 << 20
"""A line that is further back than this is looked up in another way."""


class Way:
    """Goes back through a file by a window; where a request is found, the next ones are sought before it.

    Once something is not there, everything is asked ``elsewhere``.
    """

    __slots__ = ("_at", "_data", "_elsewhere", "_end", "_fd")

    def __init__(self, fd: int, offset: int, elsewhere: Callable[[bytes, bool], bytes | None]) -> None:
        self._fd = fd
        self._at = offset
        self._data = b""
        """The bytes of the file from ``_at`` on."""
        self._end = 0
        self._elsewhere = elsewhere
        """(call, its answer) -> the line"""

    def request(self, call: bytes) -> bytes | None:
        """Return the line of the last such request, and go there."""
        begin = self._find(b'"kind": "model.request", "call": "%s"' % call)
        if begin < 0:
            return self._elsewhere(call, False)
        self._end = begin
        return self._data[begin : self._data.find(b"\n", begin)]

    def response(self, call: bytes) -> bytes | None:
        """Return the line of the last such answer."""
        begin = self._find(b'"kind": "model.response", "call": "%s"' % call)
        if begin < 0:
            return self._elsewhere(call, True)
        return self._data[begin : self._data.find(b"\n", begin)]

    def _find(self, needle: bytes) -> int:
        """Return where in the window the line begins that has these bytes; -1 if it is not near."""
        hit = self._data.rfind(needle, 0, self._end)
        begin = self._data.rfind(b"\n", 0, hit) + 1 if hit >= 0 else 0
        size = _WINDOW
        while hit < 0 or (not begin and self._at):
            if not self._at or size > _FAR:
                self._at = self._end = 0
                return -1
            self._fill(size)
            size *= 8
            hit = self._data.rfind(needle)
            begin = self._data.rfind(b"\n", 0, max(hit, 0)) + 1
        return begin

    def _fill(self, size: int) -> None:
        """Move the window so that it ends where it is looked from."""
        end = self._at + self._end
        self._at = max(0, end - size)
        self._data = os.pread(self._fd, end - self._at, self._at)
        self._end = len(self._data)
