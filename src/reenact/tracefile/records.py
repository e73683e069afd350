"""Bytes -> lines -> records: every whole event of a file with its place, damage noted, nothing raised.

``raw_lines`` splits on LF only, knows nothing of JSON and holds no more than one line; of one beyond
``MAX_LINE`` it passes on the head. No file stays open between two lines, so a reader may be abandoned and
thousands of files merged. What counts as an event: a JSON object that parses and that a dialect recognises.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

from .. import lines
from . import dialects
from .dialects import Envelope, Unwrapper
from .findings import Note
from .plain_files import open_plain

MAX_LINE = 64 << 20
"""Longer lines are not parsed unless their payload is needed."""

MAX_WHOLE = 96 << 20
"""Of longer lines only the head is ever parsed; ``cat`` passes them on."""

HEAD = 64 << 10
"""What is kept of such a line: enough for its envelope."""

_BLOCK = 96 << 10
"""Small enough to stay in the processor's cache, and to be allocated without a system call."""

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
        fd = open_plain(path, follow=True)
        try:
            block = os.pread(fd, size, start)
        finally:
            os.close(fd)
        if block:
            yield block
        if len(block) < size:
            return
        start += size


def whole_lines(path: str, *, start: int = 0) -> Iterator[tuple[int, int, bytes, bool]]:
    """Yield the lines from byte ``start`` on, many at a time: (offset, size, bytes, ended by a newline).

    The bytes are those lines of a block that stand whole in it, each with its newline; or one line without
    it, which goes over the end of a block: of a long one its head.
    """
    open_line = _OpenLine()
    offset = start
    for block in blocks(path, start):
        begin = 0
        if open_line.size:
            begin = block.find(b"\n") + 1
            open_line.add(block[: begin - 1] if begin else block)
            if not begin:
                continue
            size, data = open_line.take()
            yield offset, size, data, True
            offset += size + 1
        stop = block.rfind(b"\n") + 1
        if stop > begin:
            data = block[begin:stop]
            yield offset, stop - begin, data, True
            offset += stop - begin
        open_line.add(block[stop:])
    if open_line.size:
        size, data = open_line.take()
        yield offset, size, data, False


def raw_lines(path: str, *, start: int = 0, number: int = 1) -> Iterator[RawLine]:
    """Yield every line from byte ``start`` on, which counts as line ``number``."""
    for offset, size, data, ended in whole_lines(path, start=start):
        if data.endswith(b"\n"):
            number = yield from split(data, offset, number)
        else:
            yield number, offset, size, data, ended
            number += 1


def split(data: bytes, offset: int, number: int) -> Generator[RawLine, None, int]:
    """Yield the lines of a part of a file that ends with a newline; return the number of the next one."""
    for line in data[:-1].split(b"\n"):
        size = len(line)
        yield number, offset, size, line, True
        offset += size + 1
        number += 1
    return number


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


_RESTART = lines.restarts()
_BOM = b"\xef\xbb\xbf"
_DIRT = b"\0\r\t\n \x0b\x0c\x1a"


class Record(NamedTuple):
    """One event as found."""

    envelope: Envelope
    fields: dict[str, Any] | None
    """None for a line too long to hold; it is parsed when needed."""
    offset: int
    line: int
    size: int


class _Place(NamedTuple):
    line: int
    offset: int
    ended: bool
    """By a newline; the last line of a killed writer is not."""


Read = Callable[[bytes], dict[str, Any]]
"""Bytes of a line of ours -> its fields, or those its caller needs; ValueError if it holds no object."""


class LineReader:
    """Reads one file's lines in order; remembers only what a container runtime has split."""

    __slots__ = ("crlf", "note", "other_lines", "read", "unwrapper")

    def __init__(self, note: Note, read: Read | None = None) -> None:
        self.note = note
        self.read = read or parse
        self.unwrapper = Unwrapper()
        self.crlf = False
        self.other_lines = 0

    def feed(self, line: RawLine) -> Iterable[Record]:
        """Return the events on the next line."""
        number, offset, size, data, ended = line
        if not size:
            return ()
        if data.startswith(lines.START) and data.endswith(b"}") and len(data) == size:
            try:
                fields = self.read(data)
                envelope = dialects.recognise(fields)
            except ValueError:
                envelope = None
            if envelope is not None:
                return (Record(envelope, fields, offset, number, size),)
        return _line(data, size, _Place(number, offset, ended), self)

    def close(self) -> None:
        """Report what was only counted."""
        if self.other_lines:
            self.note("other-lines", f"lines of other output between the events: {self.other_lines:,}")
        self.note.close()


def records(
    path: str, note: Note, *, start: int = 0, first_line: int = 1, read: Read | None = None
) -> Iterator[Record]:
    """Yield the events of one file from byte ``start`` on."""
    reader = LineReader(note, read)
    for line in raw_lines(path, start=start, number=first_line):
        yield from reader.feed(line)
    reader.close()


def _line(data: bytes, size: int, place: _Place, state: LineReader) -> Iterator[Record]:
    note = state.note
    number, offset, ended = place
    if offset == 0 and data.startswith(_BOM):
        note.once("bom", "the file begins with a byte order mark; some editor has saved it", number, 0)
        data, offset, size = data[3:], 3, size - 3
    if len(data) < size:
        yield from _too_long(data, size, _Place(number, offset, ended), note)
        return
    if data.endswith(b"\r") and not state.crlf:
        _note_crlf(state, number, offset)
    clean = data.lstrip(_DIRT)
    begin = offset + len(data) - len(clean)
    clean = clean.rstrip(_DIRT)
    if b"\0" in data:
        nuls = f"{data.count(0):,} NUL bytes; the machine probably went down while writing"
        note("nul", nuls, number, offset)
    if not clean:
        return
    place = _Place(number, begin, ended)
    try:
        fields = parse(clean)
    except ValueError as why:
        try:
            inner = state.unwrapper.stamped(clean, number, begin)
        except LookupError:
            yield from _salvage(clean, place, note, str(why))
        else:
            yield from _inner(inner, state)
        return
    yield from _object(fields, len(clean), place, state)


def _object(fields: dict[str, Any], size: int, place: _Place, state: LineReader) -> Iterator[Record]:
    number, offset, _ = place
    envelope = dialects.recognise(fields)
    if envelope is not None:
        yield Record(envelope, fields, offset, number, size)
    elif dialects.is_wrapper(fields):
        yield from _inner(state.unwrapper.record(fields, number, offset), state)
    else:
        what = dialects.foreign(fields) or "something else"
        state.note(
            "foreign", f"a JSON object that is not an event of ours; it looks like {what}", number, offset
        )


def _inner(inner: tuple[int, int, bytes] | None, state: LineReader) -> Iterator[Record]:
    """A line out of a container log: ours or the program's other output; None while it continues."""
    if inner is None:
        return
    number, offset, data = inner
    if not data.startswith(b"{"):
        state.other_lines += 1
        return
    try:
        fields = parse(data)
    except ValueError as why:
        yield from _salvage(data, _Place(number, offset, True), state.note, str(why))
        return
    envelope = dialects.recognise(fields)
    if envelope is None:
        state.other_lines += 1
    else:
        yield Record(envelope, fields, offset, number, len(data))


def _salvage(data: bytes, place: _Place, note: Note, why: str) -> Iterator[Record]:
    """Find every whole event on a damaged line."""
    number, offset, _ = place
    starts = [found.start() for found in _RESTART.finditer(data)]
    if not starts or starts[0] > 0:
        starts.insert(0, 0)
    found = 0
    lost: list[tuple[int, bytes]] = []
    for begin, end in zip(starts, [*starts[1:], len(data)], strict=True):
        at = begin
        piece = data[begin:end].strip(_DIRT)
        while piece:
            fields, used, exact = _first_object(piece)
            envelope = dialects.recognise(fields) if fields is not None else None
            if envelope is None:
                lost.append((at, piece))
                break
            if not exact:
                note("encoding", "bytes that are not UTF-8 were replaced", number, offset + at)
            yield Record(envelope, fields, offset + at, number, used)
            found += 1
            at += used
            piece = piece[used:].lstrip(_DIRT)
    _note_lost(lost, found, place, note, why)


def _note_lost(lost: list[tuple[int, bytes]], found: int, place: _Place, note: Note, why: str) -> None:
    number, offset, ended = place
    if found and (lost or found > 1):
        rest = f", {sum(len(piece) for _, piece in lost):,} bytes of it belong to none" if lost else ""
        some = "one whole event" if found == 1 else f"{found} whole events"
        note("fused", f"lines ran together: {some} read from this one{rest}", number, offset)
        return
    for at, piece in lost:
        if not ended:
            message = (
                f"the last event is cut off after {len(piece):,} bytes, so the writer was probably killed"
            )
            note("torn", message, number, offset + at)
        elif piece.startswith(b"{"):
            note("unreadable", f"an event that cannot be read ({why})", number, offset + at)
        else:
            note("garbage", f"{len(piece):,} bytes that are no JSON", number, offset + at)


def _first_object(piece: bytes) -> tuple[dict[str, Any] | None, int, bool]:
    """Return the object a piece begins with, how many bytes it takes, and whether all were UTF-8."""
    try:
        text, exact = piece.decode("utf-8"), True
    except UnicodeDecodeError:
        text, exact = piece.decode("utf-8", "replace"), False
    try:
        fields, end = _decode(text, piece)
    except (ValueError, RecursionError):
        return None, 0, exact
    if type(fields) is not dict:
        return None, 0, exact
    # Where bytes were replaced, positions in text and bytes differ: the piece is taken whole.
    return fields, len(text[:end].encode("utf-8", "replace")) if exact else len(piece), exact


def first_object(data: bytes) -> dict[str, Any] | None:
    """Return the first JSON object a file's head begins with, if there is one."""
    fields, _, _ = _first_object(data)
    if fields is None:
        fields, _, _ = _first_object(data.partition(b"\n")[0])
    return fields


def head_fields(head: bytes) -> dict[str, Any]:
    """Return the fields that are complete in the head of a line; the writer puts the large ones last."""
    text = head.decode("utf-8", "replace")
    fields: dict[str, Any] = {}
    at = 1
    try:
        while True:
            key, at = _decoder.raw_decode(text, at)
            colon = text.index(":", at)
            fields[key], at = _decoder.raw_decode(text, colon + 1 + (text[colon + 1] == " "))
            lines.cut_deep(fields[key])
            at = text.index(",", at) + 1
            at += text[at] == " "
    except (ValueError, IndexError, RecursionError, TypeError):
        return fields


def _too_long(data: bytes, size: int, place: _Place, note: Note) -> Iterator[Record]:
    number, offset, ended = place
    head = lines.peek(data)
    if head is None:
        note("long", f"a line of {size:,} bytes that does not begin like an event", number, offset)
    elif not ended:
        message = f"the last event is cut off after {size:,} bytes, so the writer was probably killed"
        note("torn", message, number, offset)
    elif data.rstrip(b"\r")[-1:] != b"}":
        note("unreadable", f"an event of {size:,} bytes that has no end", number, offset)
    else:
        ts, run, w, step, kind = head
        yield Record(Envelope(ts, run, w, step, kind, dialects.OURS), None, offset, number, size)


def _note_crlf(state: LineReader, number: int, offset: int) -> None:
    state.crlf = True
    state.note.once(
        "crlf", "lines end in CR LF; some editor or transfer has changed the file", number, offset
    )


_decoder = json.JSONDecoder()


def _lenient_int(text: str) -> int | float:
    return int(text) if len(text) < 4000 else float(text)


_lenient = json.JSONDecoder(parse_int=_lenient_int)


def _decode(text: str, data: bytes) -> tuple[Any, int]:
    try:
        value, end = _decoder.raw_decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number beyond the interpreter's limit for digits
        value, end = _lenient.raw_decode(text)
    lines.cut_deep(value, data)
    return value, end


def parse(data: bytes) -> dict[str, Any]:
    """Return the one JSON object these bytes are; ValueError says what they are instead."""
    try:
        value, end = _decode(data.decode("utf-8"), data)
    except RecursionError:
        raise ValueError("nested too deeply to read") from None
    if type(value) is not dict:
        raise ValueError(f"a JSON {type(value).__name__}, not an object")
    if end < len(data) and data[end:].strip(_DIRT):  # ASCII in our lines: positions agree
        _rest_is_blank(data, end)
    return value


def _rest_is_blank(data: bytes, end: int) -> None:
    if data.decode("utf-8")[end:].strip("\0\r\t\n \x0b\x0c\x1a"):
        raise ValueError("more after the end of the object")
