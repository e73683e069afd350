"""The facts of one file from its two ends, for ``ls``: first line, last ``tot`` and what comes after it.

Reads a few kilobytes of a file of any size. Says None where that is not enough.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from .. import lines, schema
from ..totals import Totals
from .records import parse

_SMALL, _END = 8 << 10, 64 << 10
_FAR = 8 << 20
"""How far back a ``tot`` is sought before the file is scanned instead."""


class Ends(NamedTuple):
    """What the two ends of one writer's file say."""

    first: dict[str, Any]
    last: tuple[float, str, str, int, str]
    """The envelope of the last whole line."""
    end: dict[str, Any] | None
    """The fields of ``run.end`` or ``proc.end``, if the file has got there."""
    totals: Totals
    """Cumulative over the writer's life, earlier segments included; only ``steps`` is of this file."""
    size: int
    torn: bool
    has_sums: bool
    """False: no line of the file carries sums, so ``totals`` are of this file only."""


def read_ends(path: str) -> Ends | None:
    """Return the facts of a file that is one writer's work on one run; None for any other."""
    fd = os.open(path, os.O_RDONLY)  # bare calls: a folder may hold tens of thousands of files
    try:
        data = os.read(fd, _SMALL)
        size = len(data)
        if size == _SMALL:
            size = os.fstat(fd).st_size
            data += os.pread(fd, _END - _SMALL, _SMALL)
        end = data.find(b"\n")
        envelope = lines.peek(data[:end]) if end >= 0 else None
        if envelope is None:
            return None
        try:
            first = parse(data[:end])
        except ValueError:
            return None
        tail = data if size <= len(data) else os.pread(fd, _END, size - _END)
        while True:
            found = _ends(first, envelope, tail, size, whole=len(tail) >= size)
            if found is not None or len(tail) >= min(size, _FAR):
                return found
            count = min(len(tail) * 8, size)
            tail = os.pread(fd, count, size - count)
    finally:
        os.close(fd)


def tail_totals(path: str, *, only: bool) -> Totals | None:
    """Return what a writer had summed up at the last line of its only or last file; None if it does not tell.

    A last segment without sums knows of itself alone.
    """
    ends = read_ends(path)
    return ends.totals if ends is not None and (ends.has_sums or only) else None


def _ends(
    first: dict[str, Any], envelope: tuple[Any, ...], tail: bytes, size: int, *, whole: bool
) -> Ends | None:
    stop = tail.rfind(b"\n")
    last_begin = tail.rfind(b"\n", 0, stop) + 1 if stop >= 0 else 0
    if stop < 0 or (last_begin == 0 and not whole):
        return None
    last = lines.peek(tail[last_begin:stop])
    if last is None or last[1] != envelope[1] or last[2] != envelope[2] or last[3] < envelope[3]:
        return None
    summed = _summed(tail, stop, whole)
    if summed is None:
        return None
    totals, end = summed
    book = sum(tail.count(needle, 0, stop) for needle in lines.BOOKKEEPING)
    book += 0 if whole else 1
    totals.steps = max(last[3] - envelope[3] + 1 - book, 0)
    return Ends(first, last, end, totals, size, stop + 1 < len(tail), tail.find(lines.TOTALS, 0, stop) >= 0)


def _summed(tail: bytes, stop: int, whole: bool) -> tuple[Totals, dict[str, Any] | None] | None:
    """Return the last ``tot`` plus the lines after it, and the end line if it is among them."""
    at = tail.rfind(lines.TOTALS, 0, stop)
    if at < 0 and not whole:
        return None
    begin = tail.rfind(b"\n", 0, max(at, 0)) + 1
    totals, end = Totals(), None
    try:
        for line in tail[begin:stop].split(b"\n"):
            fields = parse(line)
            kind = str(fields.get("kind"))
            tot = fields.get("tot")
            if type(tot) is dict:
                totals.resume(kind, fields, tot)
            else:
                totals.add(kind, fields)
            if kind in (schema.RUN_END, schema.PROC_END):
                end = fields
    except ValueError:  # damage after the last sum: the scan will name it
        return None
    return totals, end
