"""Bytes -> lines, with their place: splits on LF only and holds no more than one line.

The lowest step of reading; knows nothing of JSON. A line beyond ``MAX_LINE`` is passed on by its head.
No file stays open between two lines, so a reader may be abandoned and thousands of files merged.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

MAX_LINE = 64 << 20
"""Longer lines are not parsed unless their payload is asked for."""

HEAD = 64 << 10
"""What is kept of such a line: enough for its envelope."""

_BLOCK = 1 << 20

RawLine = tuple[int, int, int, bytes, bool]
"""(line number from 1, byte offset, size without the newline, its bytes or its head, ended by a newline)"""


def blocks(path: str, start: int = 0, size: int = _BLOCK) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start`` on in blocks, up to the end it has when it gets there."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe cannot be opened twice
        with open(path, "rb", buffering=0) as pipe:
            while block := pipe.read(size):
                yield block
        return
    while True:
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            block = file.read(size)
        if not block:
            return
        yield block
        start += len(block)


def raw_lines(path: str, *, start: int = 0, number: int = 1) -> Iterator[RawLine]:
    """Yield every line from byte ``start`` on, which counts as line ``number``."""
    open_line = _OpenLine()
    offset = start
    for block in blocks(path, start):
        *ended, rest = block.split(b"\n")
        for data in ended:
            size = len(data)
            if open_line.size:
                open_line.add(data)
                size, data = open_line.take()
            yield number, offset, size, data, True
            offset += size + 1
            number += 1
        open_line.add(rest)
    if open_line.size:
        size, data = open_line.take()
        yield number, offset, size, data, False


class _OpenLine:
    """A line still growing over block ends; keeps only its head and last bytes once too long."""

    __slots__ = ("_parts", "size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, data: bytes) -> None:
        if not data:
            return
        self.size += len(data)
        if self.size <= MAX_LINE:
            self._parts.append(data)
        else:
            # The last byte rides along so that the reader can see whether the object was closed.
            self._parts = [b"".join([*self._parts[:2], data])[:HEAD], data[-1:]]

    def take(self) -> tuple[int, bytes]:
        size, data = self.size, b"".join(self._parts)
        self._parts, self.size = [], 0
        return size, data
