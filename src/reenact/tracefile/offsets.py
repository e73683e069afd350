"""Where each line of a file begins: 8 bytes a line, found at about the speed of ``wc -l``.

Kept beside large files as ``<name>.offsets``, so that a 10 GB trace opens at once the second time;
a kept index is used only if it still fits the file, and is extended where the file has grown.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import os
import sys
from array import array
from typing import Any, NamedTuple

from .. import lines, schema
from .rawlines import blocks

KEEP_FROM = 64 << 20
"""Below this, counting again is faster than looking whether a kept index still fits."""

_BLOCK = 256 << 10
_MAGIC = b"reenact offsets 2\n"
_DIGESTED = 4096
_NEEDLES = (b'"kind": "run.', b'"kind": "proc.')


class Offsets(NamedTuple):
    """The lines of a file as it was when they were counted."""

    starts: array[int]
    """Byte offset of each line, a last one without newline included."""
    size: int
    """Bytes of the file that were counted."""
    ended: bool
    """False if the last line has no newline (yet)."""
    book: array[int] | None = None
    """The numbers of the recorder's own lines, where they are kept too."""


def line_offsets(path: str, *, keep_from: int = KEEP_FROM) -> Offsets:
    """Return where the lines begin, from the kept index where it fits."""
    size = os.path.getsize(path)
    kept = _load(path, size) if size >= keep_from else None
    starts, book, counted = kept if kept is not None else (array("Q"), array("Q"), 0)
    if counted == size:
        return Offsets(starts, size, True, book)
    starts, end, ended = _count(path, starts, counted)
    if end < keep_from:
        return Offsets(starts, end, ended)
    book.extend(bookkeeping(path, starts, counted))
    _store(path, Offsets(starts, end, ended, book))
    return Offsets(starts, end, ended, book)


def bookkeeping(path: str, starts: array[int], begin: int = 0) -> array[int]:
    """Return the numbers of the recorder's own lines from byte ``begin`` on, found by their text."""
    found = set()
    at, tail = begin, b""
    for block in blocks(path, begin):
        text = tail + block
        for needle in _NEEDLES:
            hit = text.find(needle)
            while hit >= 0:
                found.add(bisect.bisect_right(starts, at - len(tail) + hit) - 1)
                hit = text.find(needle, hit + 1)
        at += len(block)
        tail = text[-16:]
    numbers = array("Q")
    with open(path, "rb") as file:
        for number in sorted(found):
            file.seek(starts[number])
            head = lines.peek(file.readline(4096))
            if head is not None and schema.is_bookkeeping(head[4]):
                numbers.append(number)
    return numbers


def _count(path: str, starts: array[int], begin: int) -> tuple[array[int], int, bool]:
    """Append the starts of all lines from ``begin`` on, which is itself the start of one."""
    at = begin
    starts.append(begin)
    append, buffer = starts.append, bytearray(_BLOCK)
    find = buffer.find
    with open(path, "rb", buffering=0) as file:
        file.seek(begin)
        while got := file.readinto(buffer):
            base = at + 1
            found = find(b"\n", 0, got)
            while found >= 0:
                append(base + found)
                found = find(b"\n", found + 1, got)
            at += got
    if starts[-1] == at:
        starts.pop()
        return starts, at, True
    return starts, at, False


def _load(path: str, size: int) -> tuple[array[int], array[int], int] | None:
    """Return the kept numbers and how much of the file they cover, or None if they do not fit."""
    try:
        with open(path + ".offsets", "rb") as file:
            if file.readline(64) != _MAGIC:
                return None
            told: dict[str, Any] = json.loads(file.readline(1024))
            data = file.read()
        covered = told["size"]
        if (
            type(covered) is not int
            or not 0 <= covered <= size
            or len(data) != (told["lines"] + told["book"]) * 8
        ):
            return None
        if covered == size and told["mtime"] != os.stat(path).st_mtime_ns:
            return None
        if told["digest"] != _digest(path, covered):
            return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    numbers = array("Q")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers[: told["lines"]], numbers[told["lines"] :], covered


def _store(path: str, offsets: Offsets) -> None:
    """Keep what is known of all finished lines; a folder that cannot be written to is no error."""
    starts, end, ended, book = offsets
    assert book is not None
    whole = starts[:] if ended else starts[:-1]
    end = end if ended else starts[-1]
    marked = array("Q", (number for number in book if number < len(whole)))
    told: dict[str, int | str] = {"size": end, "lines": len(whole), "book": len(marked)}
    whole.extend(marked)
    if sys.byteorder == "big":
        whole.byteswap()
    kept, fresh = path + ".offsets", f"{path}.offsets.{os.getpid()}"
    try:
        told |= {"mtime": os.stat(path).st_mtime_ns, "digest": _digest(path, end)}
        with open(fresh, "wb") as file:
            file.write(_MAGIC + json.dumps(told).encode() + b"\n")
            file.write(whole)
        os.replace(fresh, kept)
    except OSError:
        try:
            os.unlink(fresh)
        except OSError:
            pass


def _digest(path: str, size: int) -> str:
    """Of the first and last bytes covered: a file written anew is not taken for the old one grown."""
    with open(path, "rb") as file:
        head = file.read(min(_DIGESTED, size))
        file.seek(max(0, size - _DIGESTED))
        return hashlib.blake2b(head + file.read(min(_DIGESTED, size)), digest_size=16).hexdigest()
