"""Text sought in events: in every text that a line holds, long ones kept in files of their own included.

Used by ``grep``, by ``text~`` breakpoints and by ``/``. A request is searched as it is stored, that is in
what was new in it; else every later one would match too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .. import lines, schema
from ..errors import UsageError
from ..tracefile import run_files
from ..tracefile.dialects import OURS
from ..tracefile.events.event import Event
from ..tracefile.events.event_source import Shelf
from ..tracefile.events.rebuilt_requests import DELTA_FIELDS, PROOF_FIELDS
from ..tracefile.findings import Findings, Note
from ..tracefile.reader import check_version, refuse_if_foreign
from ..tracefile.records import LineReader, RawLine, split, whole_lines

_SKIPPED = frozenset(("ts", "run", "w", "step", "v", "tot", *DELTA_FIELDS, *PROOF_FIELDS))
"""Fields about storage, in which nobody looks for words."""

_HEAD = re.compile(rb',"head":"(?:[^"\\]|\\.)*"')
"""The beginning of a long text, which was searched whole already."""


_EVENT = lines.heads(rb'(?!(?:run\.start|run\.more|proc\.start)")[^"\\]*')
"""The envelope of a line of ours that does not begin a file."""


def regex(pattern: str, flags: int = 0, typed: str | None = None) -> re.Pattern[str]:
    """Compile a pattern, or say what is wrong with it; ``typed`` is what the user typed, if not all of it."""
    try:
        return re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as why:
        raise UsageError(f"{typed or pattern!r} is not a regular expression ({why})") from None


class TextSearch:
    """A pattern sought in events."""

    def __init__(
        self, pattern: str, *, is_fixed: bool = False, is_word: bool = False, flags: int = 0
    ) -> None:
        self.pattern = pattern
        text = re.escape(pattern) if is_fixed else pattern
        self._regex = regex(rf"\b(?:{text})\b" if is_word else text, flags, pattern)
        self._is_any_case = bool(flags & re.IGNORECASE)
        self._literal = _literal(pattern, is_fixed, self._is_any_case)

    def __call__(self, event: Event) -> bool:
        if self._literal is not None and event.is_ours:
            source, offset = event.stored_in.at(event.stored_at)
            if self.is_ruled_out(source.line(offset)):
                return False
        values = [value for key, value in event.whole_fields.items() if key not in _SKIPPED]
        return self.match(_texts(values, event.stored_in, with_names=True)) is not None

    def match(self, texts: Iterable[str]) -> re.Match[str] | None:
        """Return the first match in some texts."""
        return next((found for text in texts if (found := self._regex.search(text))), None)

    def is_ruled_out(self, line: bytes) -> bool:
        """True if a line of ours cannot match, so that nobody needs to parse it."""
        if self._literal is None or _find_blob(line, 0) >= 0:
            return False
        return self._literal not in (line.lower() if self._is_any_case else line)

    @property
    def has_literal(self) -> bool:
        """True if every line of ours that matches without a long text of its own holds some known bytes."""
        return self._literal is not None

    def candidates(self, data: bytes, at: int) -> Iterator[tuple[int, int]]:
        """Yield where those of our lines begin and end, from ``at`` on, that are not ruled out."""
        literal, text = self._literal or b"", data.lower() if self._is_any_case else data
        hit, blob = text.find(literal, at), _find_blob(data, at)
        while hit >= 0 or blob >= 0:
            first = hit if blob < 0 or 0 <= hit < blob else blob
            end = data.find(b"\n", first)
            yield data.rfind(b"\n", 0, first) + 1, end
            hit = text.find(literal, end) if 0 <= hit < end else hit
            blob = _find_blob(data, end) if 0 <= blob < end else blob


_BLOB = b'$blob"'


def _find_blob(data: bytes, at: int) -> int:
    """Return where a reference to a long text stands, or -1. A single byte is found three times as fast."""
    for _ in range(200):
        at = data.find(b"$", at)
        if at < 0 or data.startswith(_BLOB, at):
            return at
        at += 1
    return data.find(_BLOB, at)


def _literal(pattern: str, is_fixed: bool, is_any_case: bool) -> bytes | None:
    """Return bytes that every matching line must hold; None if the pattern does not tell."""
    special = set('"\\') if is_fixed else set('"\\.^$*+?{}[]|()')
    if not pattern.isascii() or not pattern.isprintable() or set(pattern) & special:
        return None
    return (pattern.lower() if is_any_case else pattern).encode("ascii")


def _texts(
    values: Iterable[Any], shelf: Shelf, *, with_names: bool = False, seen: set[str] | None = None
) -> Iterator[str]:
    """Yield the texts in some values in their order; a long one that is in ``seen`` only the first time.

    ``with_names`` yields the names of fields and numbers too.
    """
    waiting: list[Any] = [*values][::-1]
    while waiting:
        value = waiting.pop()
        if type(value) is str:
            yield value
        elif type(value) is list:
            waiting.extend(reversed(value))
        elif type(value) is dict:
            reference = value.get("$blob")
            if type(reference) is str:
                if seen is not None and reference in seen:
                    continue
                if seen is not None:
                    seen.add(reference)
                whole = shelf.blobs.text(reference) if "form" not in value else None
                if whole is not None:
                    yield whole
                    continue
            pairs = reversed(value.items())
            waiting.extend(part for name, item in pairs for part in ((item, name) if with_names else (item,)))
        elif with_names and type(value) in (int, float):
            yield str(value)


class Hit(NamedTuple):
    """An event and where in its text the match stands."""

    event: Event
    text: str
    begin: int
    end: int


class FileSearch(NamedTuple):
    """A pattern sought in the events of trace files, if they are of some kinds or of a tool.

    Each text is found where it was new: a conversation is stored once, so no hit is repeated per turn.
    """

    search: TextSearch
    kinds: list[str]
    tool: str | None

    def hits(
        self, path: str, blobs: str | None, findings: Findings, names: list[str] | None = None
    ) -> Iterator[Hit]:
        """Yield the matching events of a file with its segments and processes.

        ``names`` are the files beside it that may belong to it; they spare a directory listing.
        """
        shelf = Shelf(path, findings.add, blobs)
        seen: set[str] = set()
        is_empty = True
        for file in (file for chain in run_files.streams(path, names) for file in chain):
            base = shelf.add(file)
            note = Note(file, findings.add)
            reader = LineReader(note)
            steps: dict[str | None, int] = {}
            for line in self._lines_to_read(file):
                if line is None:
                    is_empty = False
                    continue
                for envelope, fields, offset, _, _ in reader.feed(line):
                    is_empty = False
                    if envelope.kind in schema.HEADS and fields is not None and envelope.dialect == OURS:
                        check_version(fields.get("v"), note, line[0])
                    if envelope.step is None:
                        steps[envelope.run] = steps.get(envelope.run, 0) + 1
                        envelope = envelope._replace(step=steps[envelope.run])
                    event = Event(envelope, fields, base | offset, shelf, None)
                    hit = self._hit(event, fields, line, seen) if self._is_wanted(event) else None
                    if hit is not None:
                        yield hit
            reader.close()
        if is_empty:
            refuse_if_foreign(path, findings.add)

    def _lines_to_read(self, file: str) -> Iterator[RawLine | None]:
        """Yield the lines of a file that may match or are not plainly ours, and None for those left out.

        A part of the file that holds nothing but lines of the writer that began it is searched as a whole.
        """
        number, writer = 1, b""
        for offset, size, data, ended in whole_lines(file):
            is_one = not data.endswith(b"\n")
            if number == 1:
                head = lines.peek(data[: data.find(b"\n")])
                writer = b"" if head is None else lines.writer_part(head[1], head[2]).encode()
            count = -1 if is_one or not writer else lines.count_if_of(data, writer)
            if count < 0 or not self.search.has_literal:
                some = [(number, offset, size, data, ended)] if is_one else split(data, offset, number)
                for line in some:
                    yield None if self._is_ruled_out(line[3]) else line
                    number = line[0] + 1
                continue
            yield None
            at, here = 0, number
            if number == 1:  # it has the version of the format
                at, here = data.find(b"\n") + 1, 2
                yield 1, offset, at - 1, data[: at - 1], True
            for begin, end in self.search.candidates(data, at):
                here += data.count(b"\n", at, begin)
                at = begin
                yield here, offset + begin, end - begin, data[begin:end], True
            number += count

    def _is_ruled_out(self, data: bytes) -> bool:
        """True if a whole line of ours cannot match; the first line of a file is read for its version."""
        return data[-1:] == b"}" and self.search.is_ruled_out(data) and _EVENT.match(data) is not None

    def _is_wanted(self, event: Event) -> bool:
        if self.kinds and event.kind not in self.kinds and event.event_type not in self.kinds:
            return False
        return self.tool is None or event.tool_name == self.tool

    def _hit(self, event: Event, fields: dict[str, Any] | None, line: RawLine, seen: set[str]) -> Hit | None:
        found = None
        if fields is not None:
            values = [value for key, value in fields.items() if key not in schema.ENVELOPE]
            found = self.search.match(_texts(values, event.stored_in, seen=seen))
            raw = _HEAD.sub(b"", line[3]) if b'"$blob"' in line[3] else line[3]
        else:  # too long to be parsed for a search
            source, offset = event.stored_in.at(event.stored_at)
            raw = source.line(offset)
        found = found or self.search.match([raw.decode("utf-8", "replace")])
        return None if found is None else Hit(event, found.string, found.start(), found.end())
