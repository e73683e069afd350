"""The facts of one file from its two ends, for ``ls``: first line, last ``tot`` and what comes after it.

Reads a few kilobytes of a file of any size. Says None where that is not enough.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from .. import lines, schema
from ..totals import Totals
from .plain_files import open_plain
from .records import parse

_SMALL, _END = 8 << 10, 64 << 10
_FAR = 8 << 20
"""How far back a ``tot`` is sought before the file is scanned instead."""
_ENDS = (schema.RUN_END, schema.PROC_END)
_OF_RUN, _OF_PROCESS = lines.BOOKKEEPING


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
    model: str | None = None
    """That of the last response near its end."""


def read_ends(path: str, *, sums: bool = True) -> Ends | None:
    """Return the facts of a file that is one writer's work on one run; None for any other.

    Without ``sums``, which a later segment holds, its last line is enough.
    """
    fd = open_plain(path, follow=True)  # bare calls: a folder may hold tens of thousands of files
    try:
        data = os.read(fd, _SMALL)
        size = len(data)
        if size == _SMALL:
            size = os.fstat(fd).st_size
            if size <= _END or b"\n" not in data:
                data += os.pread(fd, _END - _SMALL, _SMALL)
        end = data.find(b"\n")
        envelope = lines.peek(data) if end >= 0 else None
        if envelope is None:
            return None
        try:
            first = parse(data[:end])
        except ValueError:
            return None
        tail = data if size <= len(data) else os.pread(fd, _END, size - _END)
        while True:
            found = _ends(first, envelope, tail, size, sums)
            if found is not None or len(tail) >= min(size, _FAR):
                return found
            count = min(len(tail) * 8, _FAR, size)
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
    first: dict[str, Any], envelope: tuple[Any, ...], tail: bytes, size: int, sums: bool
) -> Ends | None:
    whole, stop = len(tail) >= size, tail.rfind(b"\n")
    last_begin = tail.rfind(b"\n", 0, stop) + 1 if stop >= 0 else 0
    if stop < 0 or (last_begin == 0 and not whole):
        return None
    last = lines.peek(tail, last_begin)
    if last is None or last[1] != envelope[1] or last[2] != envelope[2] or last[3] < envelope[3]:
        return None
    at = tail.rfind(lines.TOTALS, 0, stop)
    if at < 0 and not whole and sums:
        return None
    begin = last_begin if at < 0 and not whole else tail.rfind(b"\n", 0, max(at, 0)) + 1
    try:
        rest = tail[begin:stop]
        totals, end = summed((parse(rest),) if begin == last_begin else map(parse, rest.split(b"\n")))
        if end is None:  # a response that nobody had read may come after it
            end = _earlier_end(tail[:begin])
    except ValueError:  # damage after the last sum: the scan will name it
        return None
    book = tail.count(_OF_RUN, 0, stop) + tail.count(_OF_PROCESS, 0, stop) + (not whole)
    totals.steps = max(last[3] - envelope[3] + 1 - book, 0)
    return Ends(first, last, end, totals, size, stop + 1 < len(tail), at >= 0, _model(tail))


_MODEL = lines.field_start("model") + b'"'
"""Only at the top level of a line does a space follow the colon."""


def _model(tail: bytes) -> str | None:
    begin = tail.rfind(_MODEL) + len(_MODEL)
    name = tail[begin : tail.find(b'"', begin)] if begin >= len(_MODEL) else b""
    return name.decode("utf-8", "replace") if name and b"\\" not in name else None


def summed(events: Iterable[dict[str, Any]]) -> tuple[Totals, dict[str, Any] | None]:
    """Return the sums after the last of one writer's events, and the end line if it is among them."""
    totals, end = Totals(), None
    for fields in events:
        get = fields.get
        kind, tot = str(get("kind")), get("tot")
        if type(tot) is dict:
            totals.resume(kind, fields, tot)
        else:
            totals.add(kind, fields)
        if kind in _ENDS:
            end = fields
    return totals, end


def _earlier_end(before: bytes) -> dict[str, Any] | None:
    at = max(before.rfind(lines.kind_part(kind).encode()) for kind in _ENDS)
    line = before[before.rfind(b"\n", 0, at) + 1 : before.find(b"\n", at)] if at >= 0 else b""
    envelope = lines.peek(line)
    return parse(line) if envelope is not None and envelope[4] in _ENDS else None
