"""Which lines belong to which execution of a run, in order: 20 bytes an event.

Made once when a recording is opened. A large file of one gapless writer is not even looked through:
its line offsets say it all.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import operator
import os
import sys
from array import array
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from .. import lines, schema
from ..errors import NoSuchRun
from ..totals import Totals
from . import cache, dialects, run_files
from .dialects import OURS, Envelope
from .events.event_source import PLACE_BITS, Shelf
from .findings import Finding, Findings, OnFinding
from .reader import check_version, is_bookkeeping, placed, resolve_run
from .records import blocks

# Where each line of a file begins: 8 bytes a line, found at about the speed of ``wc -l``.
#
# Those of a large file are kept in the user's cache folder, so that a 10 GB trace opens at once the second
# time; a kept index is used only if it still fits the file, and is extended where the file has grown.

KEEP_FROM = 64 << 20
"""Below this, counting again is faster than looking whether a kept index still fits."""

_BLOCK = 256 << 10
_MAGIC = b"reenact offsets 3"
_DIGESTED = 4096


_T = TypeVar("_T")


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


Steps = Generator[int, None, _T]
"""Work in small steps: each yields how many bytes it has read; what it returns is the result."""


def _at_once(steps: Steps[_T]) -> _T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: _T = end.value
            return found


def line_offsets(path: str, *, keep_from: int | None = None, shortest: int = 0) -> Offsets:
    """Return where the lines begin, from the kept index where it fits.

    Lines shorter on average than ``shortest`` are not counted to their end, as they cannot be events of ours.
    """
    return _at_once(counting(path, keep_from=keep_from, shortest=shortest))


def counting(path: str, *, keep_from: int | None = None, shortest: int = 0) -> Steps[Offsets]:
    """Do what ``line_offsets`` does in small steps."""
    keep_from = KEEP_FROM if keep_from is None else keep_from
    size = os.path.getsize(path)
    kept = _load(path, size) if size >= keep_from else None
    starts, book, counted = kept if kept is not None else (array("Q"), array("Q"), 0)
    if counted == size:
        return Offsets(starts, size, True, book)
    most = size // shortest + 1 if shortest else sys.maxsize
    starts, end, ended = yield from _count(path, starts, counted, most)
    if end < max(keep_from, size):
        return Offsets(starts, end, ended)
    book.extend((yield from _bookkeeping(path, starts, counted)))
    _store(path, Offsets(starts, end, ended, book))
    return Offsets(starts, end, ended, book)


def bookkeeping(path: str, starts: array[int], begin: int = 0) -> array[int]:
    """Return the numbers of the recorder's own lines from byte ``begin`` on, found by their text."""
    return _at_once(_bookkeeping(path, starts, begin))


def _bookkeeping(path: str, starts: array[int], begin: int) -> Steps[array[int]]:
    found = set()
    at, tail = begin, b""
    for block in blocks(path, begin):
        yield len(block)
        text = tail + block
        for needle in lines.BOOKKEEPING:
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


def _count(path: str, starts: array[int], begin: int, most: int) -> Steps[tuple[array[int], int, bool]]:
    """Append the starts of the lines from ``begin`` on, itself one; it gives up past ``most`` lines."""
    at = begin
    starts.append(begin)
    append, buffer = starts.append, bytearray(_BLOCK)
    find = buffer.find
    with open(path, "rb", buffering=0) as file:
        file.seek(begin)
        while got := file.readinto(buffer):
            yield got
            base = at + 1
            found = find(b"\n", 0, got)
            while found >= 0:
                append(base + found)
                found = find(b"\n", found + 1, got)
            at += got
            if len(starts) > most:
                return starts, at, False
    if starts[-1] == at:
        starts.pop()
        return starts, at, True
    return starts, at, False


def _load(path: str, size: int) -> tuple[array[int], array[int], int] | None:
    """Return the kept numbers and how much of the file they cover, or None if they do not fit."""
    magic, _, rest = (cache.load(_entry(path), 4096 + 8 * size) or b"").partition(b"\n")
    head, _, data = rest.partition(b"\n")
    try:
        header: dict[str, Any] = json.loads(head)
        count, covered = header["lines"], header["size"]
        if magic != _MAGIC or type(covered) is not int or type(count) is not int or len(data) % 8:
            return None
        if covered == size and header["mtime"] != os.stat(path).st_mtime_ns:
            return None
        if not 0 < covered <= size or header["digest"] != _digest(path, covered):
            return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    numbers = array("Q")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    starts, book = numbers[: max(count, 0)], numbers[max(count, 0) :]
    if not starts or starts[0] or not _ascend(starts, covered) or not _ascend(book, len(starts)):
        return None
    return starts, book, covered


def _entry(path: str) -> str:
    """Return the name of a file's index in the cache."""
    return cache.name_of(os.path.realpath(path), "offsets")


def _ascend(numbers: array[int], below: int) -> bool:
    """True if each number is larger than the one before it, and all are below a bound."""
    return not numbers or (numbers[-1] < below and all(map(operator.lt, numbers, numbers[1:])))


def _store(path: str, offsets: Offsets) -> None:
    """Keep what is known of all finished lines."""
    starts, end, ended, book = offsets
    assert book is not None
    whole = starts[:] if ended else starts[:-1]
    end = end if ended else starts[-1]
    marked = array("Q", (number for number in book if number < len(whole)))
    header: dict[str, int | str] = {"size": end, "lines": len(whole)}
    whole.extend(marked)
    if sys.byteorder == "big":
        whole.byteswap()
    try:
        header |= {"mtime": os.stat(path).st_mtime_ns, "digest": _digest(path, end)}
    except OSError:
        return
    cache.store(_entry(path), _MAGIC + b"\n" + json.dumps(header).encode() + b"\n", whole)


def _digest(path: str, size: int) -> str:
    """Of the first and last bytes covered: a file written anew is not taken for the old one grown."""
    with open(path, "rb") as file:
        head = file.read(min(_DIGESTED, size))
        file.seek(max(0, size - _DIGESTED))
        return hashlib.blake2b(head + file.read(min(_DIGESTED, size)), digest_size=16).hexdigest()


_SHORTEST = 40
"""Bytes; no line of ours is as short."""

LARGE = 1 << 20
"""From here on a file is trusted if its steps are gapless, instead of parsed whole."""


class Execution:
    """The events of one execution of a run, all writers merged."""

    __slots__ = (
        "_book", "_find_book", "_numbers", "_shift", "is_gapless", "places", "root", "run", "steps", "totals",
        "unread", "writer_numbers", "writers",
    )  # fmt: skip

    def __init__(self, run: str | None) -> None:
        self.run = run
        self.places = array("Q")
        self.steps = array("Q")
        self.writer_numbers = array("I")
        self.writers: list[str] = []
        self._numbers: dict[str, int] = {}
        self._book = array("Q")
        self._find_book: list[Callable[[], array[int]]] = []
        self.is_gapless = False
        """True if nothing of it was looked at but where its lines begin: all of one writer."""
        self.root: str | None = None
        """The writer of ``run.start``."""
        self.totals: Totals | None = None
        self.unread = range(0)
        """Positions of lines in the middle whose places are not known yet."""
        self._shift: array[int] | None = None

    @property
    def book(self) -> array[int]:
        """Positions of the recorder's own lines; of a large file sought when first needed."""
        while self._find_book:
            self._book.extend(self._find_book.pop(0)())
        return self._book

    def add(self, envelope: Envelope, place: int) -> None:
        """Append the next event."""
        number = self._numbers.get(envelope.w)
        if number is None:
            number = self._numbers[envelope.w] = len(self.writers)
            self.writers.append(envelope.w)
        if is_bookkeeping(envelope):
            self._book.append(len(self.places))
        self.places.append(place)
        self.steps.append(max(envelope.step or 0, 0) & 0xFFFFFFFFFFFFFFFF)
        self.writer_numbers.append(number)

    def take(self, envelope: Envelope, fields: dict[str, Any] | None, place: int, shelf: Shelf) -> None:
        """Append the next event of those that are read whole, and count what it says."""
        self.add(envelope, place)
        shelf.learn(envelope.kind, fields, place)
        if self.totals is None:
            self.totals = Totals()
        known = fields if fields is not None else shelf.beginning(place) or {}
        self.totals.writer = envelope.w
        self.totals.add(dialects.event_type(envelope.kind), known)

    def count(self, *, system: bool = False) -> int:
        """Return the number of events, without bookkeeping by default."""
        return len(self.places) if system else len(self.places) - len(self.book)

    def position(self, index: int) -> int:
        """Return where the event with this index stands among all lines."""
        if self._shift is None:
            self._shift = array("Q", (at - i for i, at in enumerate(self.book)))
        return index + bisect.bisect_right(self._shift, index)

    def index(self, position: int) -> int | None:
        """Return the index of the event at a position, None for bookkeeping."""
        before = bisect.bisect_left(self.book, position)
        if before < len(self.book) and self.book[before] == position:
            return None
        return position - before

    def late_index(self, position: int) -> int | Callable[[], int | None] | None:
        """Return the index, or what gives it, where it is not known yet which lines are bookkeeping."""
        return partial(self.index, position) if self._find_book else self.index(position)

    def find(self, writer: str, step: int) -> int | None:
        """Return the position of a writer's step."""
        try:
            number = self.writers.index(writer)
        except ValueError:
            return None
        at = -1
        try:
            while True:
                at = self.steps.index(step, at + 1)
                if self.writer_numbers[at] == number:
                    return at
        except (ValueError, OverflowError):
            return None


def executions(
    path: str,
    shelf: Shelf,
    on_finding: OnFinding | None,
    *,
    merge: bool = False,
    counted: Mapping[str, Offsets] | None = None,
) -> list[Execution]:
    """Return the executions in a family of files, in order of their first lines; or all as one.

    ``counted`` are the offsets of large files that are known already.
    """
    files = run_files.streams(path)
    if len(files) == 1 and sum(map(os.path.getsize, files[0])) >= LARGE:
        quick = _gapless(files[0], shelf, counted or {})
        if quick is not None:
            return [quick]
    sorter = Sorter(merge)
    for envelope, fields, place in placed(path, shelf, on_finding):
        sorter.execution(envelope, fields).take(envelope, fields, place, shelf)
    return sorter.found


class Sorter:
    """Decides to which execution each event belongs."""

    def __init__(self, merge: bool) -> None:
        self.found: list[Execution] = []
        self._merge = merge
        self._by_writer: dict[tuple[str | None, str], Execution] = {}
        self._latest: dict[str | None, Execution] = {}

    def execution(self, envelope: Envelope, fields: dict[str, Any] | None) -> Execution:
        if self._merge and self.found:
            return self.found[0]
        if envelope.run is None and self.found:
            return self.found[-1]  # a dialect that names the run only now and then
        key = (envelope.run, envelope.w)
        begins = envelope.kind == schema.RUN_START and envelope.dialect == OURS
        known = self._by_writer.get(key)
        if known is not None and not begins:
            return known
        execution = self._latest.get(envelope.run)
        if begins:
            # The same id again and no link: run again. A child's line may have come before its parent's.
            if execution is None or execution.root is not None:
                execution = self._new(envelope.run)
            execution.root = envelope.w
        else:
            parent = fields.get("parent_w") if fields is not None else None
            linked = self._by_writer.get((envelope.run, parent)) if type(parent) is str else None
            execution = linked or execution or self._new(envelope.run)
        self._by_writer[key] = execution
        return execution

    def _new(self, run: str | None) -> Execution:
        execution = self._latest[run] = Execution(run)
        self.found.append(execution)
        return execution


def _gapless(segments: list[str], shelf: Shelf, counted: Mapping[str, Offsets]) -> Execution | None:
    """Return the one execution of a file, or of its segments, whose every line is one writer's next step."""
    execution = Execution(None)
    for path in segments:
        base = shelf.add(path)
        source = shelf.sources[-1]
        starts, _, ended, book = counted.get(path) or line_offsets(path, shortest=_SHORTEST)
        first = lines.peek(source.head(0)) if starts and ended else None
        last = lines.peek(source.head(starts[-1])) if first is not None else None
        is_first = not execution.places
        if is_first and first is not None:
            execution.run, execution.writers = first[1], [first[2]]
            execution.root = first[2] if first[4] == schema.RUN_START else None
        expected = (execution.run, execution.writers, len(execution.places) + 1)
        if first is None or last is None or (first[1], [first[2]], first[3]) != expected:
            break
        if first[1:3] != last[1:3] or last[3] - first[3] != len(starts) - 1:
            break
        head = source.fields(0)
        check_version(head[0].get("v") if head is not None else None, shelf.note, 1)
        execution._find_book.append(partial(_book, path, starts, book, len(execution.places)))
        if is_first and not base:
            execution.places = starts
        else:
            execution.places.extend(base | start for start in starts)
    else:
        execution.steps = array("Q", range(1, len(execution.places) + 1))
        execution.writer_numbers = array("I", bytes(4 * len(execution.places)))
        execution.is_gapless = True
        return execution
    shelf.sources.clear()
    return None


def _book(path: str, starts: array[int], kept: array[int] | None, before: int) -> array[int]:
    """Return the positions of a segment's own lines, ``before`` of whose execution come earlier."""
    own = bookkeeping(path, starts) if kept is None else kept
    return array("Q", (number + before for number in own)) if before else own


# Of a very large run of one writer, both ends at once; what is between them is counted later, in steps.

_ENOUGH, _MOST_ENDS = 2_500, 8 << 20
"""Lines at either end, or bytes, that are read."""
_FEWEST = 400
"""Lines at either end that are read however long they are."""


def uncounted(path: str) -> list[str]:
    """Return the large files of a run that have no kept index that fits."""
    files = run_files.streams(path)
    if len(files) != 1:
        return []
    sizes = {file: os.path.getsize(file) for file in files[0]}
    if sum(sizes.values()) < 2 * KEEP_FROM:
        return []
    known = {file: _load(file, size) for file, size in sizes.items() if size >= KEEP_FROM}
    return [file for file, kept in known.items() if kept is None or kept[2] < sizes[file] - KEEP_FROM]


def ends_only(path: str, shelf: Shelf) -> Execution | None:
    """Return the execution of a large run of one gapless writer with the lines of its two ends only."""
    segments = run_files.streams(path)[0]
    for segment in segments:
        shelf.add(segment)
    execution = Execution(None)
    head = _some_lines(segments[0], from_end=False)
    tails: list[int] = []
    for number in range(len(segments) - 1, -1, -1):
        starts = _some_lines(segments[number], from_end=True)
        tails[:0] = [number << PLACE_BITS | start for start in starts]
        if not starts or starts[0] > 0 or len(tails) >= _ENOUGH:
            break
    first, *others = [lines.peek(_head(shelf, place)) for place in (0, *head[-1:], *tails[:1], *tails[-1:])]
    if first is None or len(others) < 3 or any(one is None or one[1:3] != first[1:3] for one in others):
        shelf.sources.clear()
        return None
    head_end, tail_begin, last = (one[3] for one in others if one is not None)
    if head_end != len(head) or last - tail_begin != len(tails) - 1 or tail_begin <= head_end:
        shelf.sources.clear()
        return None
    execution.run, execution.writers = first[1], [first[2]]
    execution.root = first[2] if first[4] == schema.RUN_START else None
    execution.places = array("Q", bytes(8 * last))
    execution.places[: len(head)] = array("Q", head)
    execution.places[tail_begin - 1 :] = array("Q", tails)
    execution.unread = range(head_end, tail_begin - 1)
    execution.steps = array("Q", range(1, last + 1))
    execution.writer_numbers = array("I", bytes(4 * last))
    for position in (*range(head_end), *range(tail_begin - 1, last)):
        envelope = lines.peek(_head(shelf, execution.places[position]))
        if envelope is not None and schema.is_bookkeeping(envelope[4]):
            execution._book.append(position)
    return execution


def _head(shelf: Shelf, place: int) -> bytes:
    source, offset = shelf.at(place)
    return source.head(offset)


def _some_lines(path: str, *, from_end: bool) -> list[int]:
    """Return where the first or the last whole lines of a file begin."""
    size = os.path.getsize(path)
    wanted = min(size, _MOST_ENDS)
    while True:
        begin = size - wanted if from_end else 0
        with open(path, "rb") as file:
            file.seek(begin)
            data = file.read(wanted)
        stop = data.rfind(b"\n") + 1
        starts = [0] if begin == 0 else []
        at = data.find(b"\n", 0, stop)
        while at >= 0:
            starts.append(begin + at + 1)
            at = data.find(b"\n", at + 1, stop)
        starts = starts[:-1]  # the last begins where the data ends
        if len(starts) >= _FEWEST or wanted in (size, 8 * _MOST_ENDS):
            return starts[-_ENOUGH:] if from_end else starts[:_ENOUGH]
        wanted = min(size, 8 * _MOST_ENDS)


def choose(found: list[Execution], run: str | None, path: str, findings: Findings) -> Execution:
    """Return the execution that is meant: the newest, or the newest of a run."""
    if not found:
        if run is not None and run != "*":
            raise NoSuchRun(f"{path} holds no run", asked=run)
        return Execution(None)
    if run not in (None, "*"):
        wanted = resolve_run(run, [str(execution.run) for execution in found], path)
        found = [execution for execution in found if str(execution.run) == wanted]
    if len(found) > 1:
        ids = len({execution.run for execution in found})
        what = f"{ids} runs" if ids > 1 else f"run {found[0].run} {len(found)} times"
        message = f"the file holds {what}; this is the newest. run= selects another, run='*' reads all as one"
        findings.add(Finding("several-runs", message, path))
    return found[-1]
