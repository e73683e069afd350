"""What the events of one family of files share: the bytes to read again, the blobs, the history.

An event keeps only its place (file and offset); everything else is fetched here when needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ... import lines, schema
from ...wire.json_values import string
from .. import dialects, records, run_files
from ..findings import Note, OnFinding
from ..plain_files import open_plain
from .rebuilt_requests import History, base_of
from .stored_values import Blobs

PLACE_BITS = 48
"""A place is the file's number above, the byte offset below: one integer an event."""
_OFFSET = (1 << PLACE_BITS) - 1

_HEAD, _SMALL, _WINDOW = 4 << 10, 8 << 10, 256 << 10
_HELD_BYTES, _PIECE = 8 << 20, 1 << 20
_LARGE = 8 << 20
MAX_LINKS = 10_000
"""Requests followed from base to base for a model; a hostile file must not hold us up."""
_MODEL_LINE = lines.heads(rb"model\.(request|response)", call=rb'([^"\\]*)"')
_BODY = lines.field_start("body")
_OTHER_LINE = lines.heads(rb'(?!model\.re)[^"\\]*')
_CALL_ID = re.compile(rb"([0-9a-f]{8})([0-9a-f]{8})\Z")
"""The writer, and a number that counts up."""
_FEW, _FAR = 256 << 10, 4 << 20
"""Bytes that are searched one line after the other: around a place, and for what must be near it."""

_MODEL_KINDS = frozenset(
    (
        schema.MODEL_REQUEST,
        schema.MODEL_RESPONSE,
        "model_request",
        "model_response",
        "llm_request",
        "llm_response",
    )
)


class Source:
    """One file, read at any offset through a small window."""

    __slots__ = ("_at", "_fd", "_window", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._at = 0
        self._window = b""

    def line(self, offset: int) -> bytes:
        """Return the bytes from ``offset`` up to the next newline or the end of the file, or their first."""
        begin = offset - self._at
        if 0 <= begin < len(self._window):
            end = self._window.find(b"\n", begin)
            if end >= 0:
                return self._window[begin:end]
        return self._read(offset)

    def head(self, offset: int) -> bytes:
        """Return the line at ``offset``, or the beginning of one that is long."""
        begin = offset - self._at
        if not 0 <= begin < len(self._window):
            self._fill(offset)
            begin = offset - self._at
        end = self._window.find(b"\n", begin)
        if end < 0 and len(self._window) - begin < _HEAD:
            self._fill(offset)
            begin = offset - self._at
            end = self._window.find(b"\n", begin)
        return self._window[begin : end if end >= 0 else begin + _HEAD]

    def _pread(self, size: int, offset: int) -> bytes:
        if self._fd < 0:
            self._fd = open_plain(self.path, follow=True)
        return os.pread(self._fd, size, offset)

    def _fill(self, offset: int) -> int:
        """Move the window so that it holds ``offset``; returns its size."""
        near = abs(offset - self._at) < _WINDOW
        size = _WINDOW if near else _SMALL
        # Going backwards through a chain of requests, what comes next lies before.
        self._at = max(0, offset - size * 3 // 4) if near and offset < self._at else offset
        self._window = self._pread(size, self._at)
        return size

    def _read(self, offset: int) -> bytes:
        size = self._fill(offset)
        begin = offset - self._at
        parts = [self._window[begin:]]
        at = offset + len(parts[0])
        while (end := parts[-1].find(b"\n")) < 0:
            size = min(size * 4, 16 << 20, offset + records.MAX_WHOLE - at)
            parts.append(os.pread(self._fd, max(size, 0), at))
            if not parts[-1]:
                return b"".join(parts)
            at += len(parts[-1])
        parts[-1] = parts[-1][:end]
        return b"".join(parts)

    def pieces(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes of a line of any length, without its newline, in pieces."""
        while piece := self._pread(_PIECE, offset):
            end = piece.find(b"\n")
            yield piece if end < 0 else piece[:end]
            offset += len(piece)
            if end >= 0:
                return

    def block(self, offset: int, size: int) -> bytes:
        """Return the bytes from ``offset`` on, more than ``size`` if its line is longer, up to the bound."""
        data = self._pread(size, offset)
        while b"\n" not in data and len(data) == size and size <= records.MAX_LINE:
            size *= 4
            data = self._pread(size, offset)
        return data

    def is_long(self, offset: int) -> bool:
        """True if the line is one of those that are not parsed unless they are needed whole."""
        if len(self.head(offset)) < _HEAD or self._window.find(b"\n", offset - self._at) >= 0:
            return False
        size, step = len(self._window) - (offset - self._at), 2 * _SMALL
        while size <= records.MAX_LINE:
            piece = self._pread(step, offset + size)
            end = piece.find(b"\n")
            if end >= 0 or not piece:
                return size + max(end, 0) > records.MAX_LINE
            size += len(piece)
            step = min(step * 4, 4 << 20)
        return True

    def beginning(self, offset: int) -> dict[str, Any]:
        """Return the fields that stand in the head of a long line."""
        self.head(offset)
        return records.head_fields(os.pread(self._fd, records.HEAD, offset))

    def fields(self, offset: int) -> tuple[dict[str, Any], int] | None:
        """Return the event that begins at ``offset`` and the size of its line; None if it is gone."""
        try:
            line = self.line(offset)
            if len(line) >= records.MAX_WHOLE:
                del line
                return self.beginning(offset), records.MAX_WHOLE
            if line.startswith(lines.START):
                try:
                    return records.parse(line), len(line)
                except ValueError:
                    pass
            del line  # before it is read again
            for record in records.records(self.path, Note(self.path, None), start=offset):
                if record.offset == offset and record.fields is not None:
                    return record.fields, record.size
                break  # the line itself is gone, this is a later one
        except OSError:
            pass
        return None

    def close(self) -> None:
        """Give back the descriptor."""
        fd, self._fd = getattr(self, "_fd", -1), -1  # an interrupt may have ended __init__
        if fd >= 0:
            os.close(fd)

    __del__ = close


class Parsed(NamedTuple):
    """A line's fields; of one of many megabytes only the first ones."""

    fields: dict[str, Any]
    size: int
    is_partial: bool


class Shelf:
    """All files of one run or shared file."""

    __slots__ = ("_calls", "_held", "_held_bytes", "_scanned", "blobs", "history", "note", "sources")

    def __init__(self, path: str, on_finding: OnFinding | None = None, blobs: str | None = None) -> None:
        self.note = Note(path, on_finding)
        self.sources: list[Source] = []
        folders = run_files.blob_folders(path)
        self.blobs = Blobs([*folders, blobs] if blobs else folders, self.note)
        self.history = History(self._request, self._outline, self._response, self.note)
        self._calls: dict[tuple[str, bool], int] = {}
        self._held: dict[int, Parsed] = {}
        """The lines parsed last, by place, up to a bound: references come in groups."""
        self._held_bytes = 0
        self._scanned: dict[int, int] = {}

    def add(self, path: str) -> int:
        """Take in a file; returns what its places begin with."""
        self.sources.append(Source(path))
        return (len(self.sources) - 1) << PLACE_BITS

    def at(self, place: int) -> tuple[Source, int]:
        """Return the file of a place and the offset in it."""
        return self.sources[place >> PLACE_BITS], place & _OFFSET

    def fields(self, place: int) -> tuple[dict[str, Any], int] | None:
        """Return the fields of the event at a place and its size."""
        found = self.sources[place >> PLACE_BITS].fields(place & _OFFSET)
        if found is not None and found[1] >= records.MAX_WHOLE:
            size = f"{records.MAX_WHOLE >> 20} MB"
            message = (
                f"the event at byte {place & _OFFSET:,} is longer than {size}; only its first fields are read"
            )
            self.note.once("long", message)
        return found

    def parsed(self, place: int) -> Parsed | None:
        """Return the fields of the line at a place, and hold them for a while; None if it is gone."""
        held = self._held.get(place)
        if held is None:
            held = self._parse(place)
            if held is not None:
                self._hold(place, held)
        return held

    def holds(self, place: int) -> bool:
        """True if the line at a place need not be parsed."""
        return place in self._held

    def beginning(self, place: int) -> dict[str, Any] | None:
        """Return the first fields of a line too long to be parsed by the way; None for any other."""
        source, offset = self.sources[place >> PLACE_BITS], place & _OFFSET
        try:
            return source.beginning(offset) if source.is_long(offset) else None
        except OSError:
            return None

    def _parse(self, place: int) -> Parsed | None:
        first = self.beginning(place)
        if first is not None:
            return Parsed(first, records.HEAD, True)
        got = self.fields(place)
        return None if got is None else Parsed(*got, False)

    def _hold(self, place: int, parsed: Parsed) -> None:
        """Take in a line; past the bound the older half goes, in steps no other thread can come between."""
        self._held[place] = parsed
        self._held_bytes += parsed.size
        if self._held_bytes > _HELD_BYTES:
            held = list(self._held.items())
            self._held = dict(held[len(held) // 2 :]) if len(held) > 1 else {}
            self._held_bytes = sum(each.size for each in self._held.values())

    def request_place(self, call: str) -> int | None:
        """Return where the request of a call stands."""
        return self._place(call, False)

    def requested_model(
        self, fields: dict[str, Any], known: dict[str, str | None], *, links: int = MAX_LINKS
    ) -> str | None:
        """Return the model a request asks for, also where the request keeps it from an earlier one.

        It follows at most so many ``links`` from base to base. ``known`` are the models of other requests by
        call id; those found on the way are added.
        """
        model = _named_model(fields)
        if model is not None:
            return model
        base, passed = base_of(fields), dict[str, None]()
        while model is None and base is not None and base not in passed:
            if base in known:
                model = known[base]
                break
            if len(passed) >= links:
                break
            passed[base] = None
            found = self._request(base)
            if found is None:
                break
            model, base = _named_model(found[0]), base_of(found[0])
        known.update(dict.fromkeys(passed, model))
        return model

    def is_large(self, place: int) -> bool:
        """True if it takes a while to look for a base in the file of a place."""
        try:
            return os.path.getsize(self.at(place)[0].path) > _LARGE
        except OSError:
            return True

    def _request(self, call: str) -> tuple[dict[str, Any], int] | None:
        return self._line(call, False)

    def _outline(self, call: str) -> dict[str, Any]:
        place = self._place(call, False)
        try:
            head = b"" if place is None else self.sources[place >> PLACE_BITS].head(place & _OFFSET)
            return records.parse(head[: max(head.find(_BODY), 0)] + b"}")
        except (OSError, ValueError):
            return {}

    def _response(self, call: str) -> tuple[dict[str, Any], int] | None:
        return self._line(call, True)

    def _line(self, call: str, answer: bool) -> tuple[dict[str, Any], int] | None:
        """Return the fields of a model call's line and its size."""
        place = self._place(call, answer)
        parsed = None if place is None else self.parsed(place)
        if place is None or parsed is None:
            return None
        return self.fields(place) if parsed.is_partial else (parsed.fields, parsed.size)

    def _place(self, call: str, answer: bool) -> int | None:
        place = self._calls.get((call, answer))
        if place is None:
            place = self._sought(call, answer)
        if place is None and self._scan():
            place = self._calls.get((call, answer))
        return place

    def _sought(self, call: str, answer: bool) -> int | None:
        """Return the place of a call in a large file by halving it, since the ids of a writer count up."""
        wanted = _CALL_ID.match(call.encode("utf-8", "replace"))
        for number, source in enumerate(self.sources):
            try:
                size = os.path.getsize(source.path)
                if wanted is None or size <= _LARGE or self._scanned.get(number, 0) >= size:
                    continue
                begin = _request_before(source, wanted, size)
                for found, offset in _model_lines(source, begin, size, _FEW + _FAR):
                    if (found[2], found[1] == b"response") == (wanted[0], answer):
                        self._calls[call, answer] = number << PLACE_BITS | offset
                        return number << PLACE_BITS | offset
            except OSError:
                continue
        return None

    def _scan(self) -> bool:
        """Note where model calls stand in what has grown since the last time; True if anything has."""
        grown = False
        for number, source in enumerate(self.sources):
            try:
                size = os.path.getsize(source.path)
                if size > self._scanned.get(number, 0):
                    self._scan_file(number, source.path)
                    grown = True
            except OSError:
                continue
        return grown

    def _scan_file(self, number: int, path: str) -> None:
        base, start = number << PLACE_BITS, self._scanned.get(number, 0)
        place = self._calls.setdefault
        reader = records.LineReader(Note(path, None))
        for _, offset, size, data, ended in records.raw_lines(path, start=start):
            if not ended:
                break
            self._scanned[number] = offset + size + 1
            head = data[:512]
            whole = data.find(lines.START, 1) < 0
            found = _MODEL_LINE.match(head) if whole else None
            if found is not None:
                place((found[2].decode("utf-8", "replace"), found[1] == b"response"), base | offset)
            elif not whole or _OTHER_LINE.match(head) is None:
                for record in reader.feed((0, offset, size, data, ended)):
                    self.learn(record.envelope.kind, record.fields, base | record.offset)

    def learn(self, kind: str, fields: dict[str, Any] | None, place: int) -> None:
        """Note where a model call stands, met by someone who reads all lines in order anyway."""
        if kind in _MODEL_KINDS and fields is not None and type(fields.get("call")) is str:
            answer = dialects.event_type(kind) == schema.MODEL_RESPONSE
            self._calls.setdefault((fields["call"], answer), place)
        self._scanned[place >> PLACE_BITS] = place & _OFFSET


def _model_lines(source: Source, begin: int, end: int, most: int) -> Iterator[tuple[re.Match[bytes], int]]:
    """Yield the requests and responses from a byte on, as the recorder writes them, with where they stand."""
    at = begin
    while at < min(end, begin + most):
        data = source.block(at, _FEW)
        stop = data.rfind(b"\n") + 1
        if not stop:
            return
        line = data.find(b"\n") + 1 if at == begin and begin else 0
        while 0 <= line < stop:
            found = _MODEL_LINE.match(data, line, line + 512)
            if found is not None:
                yield found, at + line
            line = data.find(b"\n", line) + 1 or -1
        at += stop


def _request_before(source: Source, wanted: re.Match[bytes], size: int) -> int:
    """Return a byte a little before the request of a call, if the writer's requests stand in order."""
    low, high = 0, size
    while high - low > _FEW:
        middle = (low + high) // 2
        seen = (
            (_CALL_ID.match(found[2]), offset)
            for found, offset in _model_lines(source, middle, high, _FAR)
            if found[1] == b"request"
        )
        name, offset = next(((name, at) for name, at in seen if name and name[1] == wanted[1]), (None, 0))
        if name is not None and name[2] < wanted[2]:
            low = offset
        else:
            high = middle
    return max(0, low - 1)


def _named_model(fields: dict[str, Any]) -> str | None:
    from ...wire import reading  # it loads every provider, which a listing of runs needs none of

    return reading.model_of(fields.get("body"), fields.get("url")) or string(fields.get("model")) or None
