"""follow: the events of a run as they are written, over rotation, new processes and re-created files.

Polls, because that works on every file system. A line without its newline is still being written:
it is waited for, not reported.
"""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Callable, Iterator

from .. import schema
from . import dialects, run_files
from .events.event import Event
from .events.event_source import Shelf
from .findings import Finding, Note, OnFinding
from .plain_files import not_plain, open_plain
from .reader import Placed, check_version, is_bookkeeping, placed_time
from .records import LineReader, blocks, raw_lines

_HEAD = 256
"""Bytes by which a file is known to be still the same."""


def follow(
    path: str | os.PathLike[str],
    *,
    from_start: bool = False,
    poll: float = 0.2,
    stop: Callable[[], bool] | None = None,
    on_finding: OnFinding | None = None,
) -> Iterator[Event]:
    """Yield events as they come, for ever, or until ``stop()`` is true and all there is was read.

    ``path`` is a file, also one that does not exist yet, or a folder: then every run in it. What is
    there already is left out unless ``from_start``; ``index`` is None then, as nothing was counted.
    """
    name = os.fspath(path)
    runs: dict[str, _Run] = {}
    skipped: set[str] = set()
    first = True
    while True:
        ending = stop is not None and stop()
        for main in _mains(name):
            if main != name and (reason := not_plain(main)) is not None:
                if main not in skipped and on_finding is not None:
                    on_finding(Finding("skipped", f"{main} is {reason}", main))
                skipped.add(main)
                continue
            if main not in runs:
                runs[main] = _Run(main, on_finding, counting=from_start or not first)
            yield from runs[main].news(skip=first and not from_start)
        if ending:
            return
        first = False
        time.sleep(poll)


def _mains(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path] if os.path.exists(path) else []
    try:
        return run_files.trace_files(path)
    except OSError:
        return []


class _Run:
    """One family of files and how far each has been read."""

    def __init__(self, path: str, on_finding: OnFinding | None, *, counting: bool) -> None:
        self._path = path
        self._on_finding = on_finding
        self._shelf = Shelf(path, on_finding)
        self._files: dict[str, _Growing] = {}
        self._index: int | None = 0 if counting else None

    def news(self, *, skip: bool) -> Iterator[Event]:
        """Yield what was written since the last time; or only take note that it is there."""
        for chain in run_files.streams(self._path):
            for path in chain:
                if path not in self._files:
                    self._files[path] = _Growing(path, self._shelf, self._on_finding)
        files = list(self._files.values())
        if skip:
            for file in files:
                file.skip()
            return
        for envelope, fields, place in heapq.merge(*(file.news() for file in files), key=placed_time):
            index = None if is_bookkeeping(envelope) else self._index
            if index is not None:
                self._index = index + 1
            yield Event(envelope, fields, place, self._shelf, index)


class _Growing:
    """One file that grows."""

    def __init__(self, path: str, shelf: Shelf, on_finding: OnFinding | None) -> None:
        self._path = path
        self._shelf = shelf
        self._note = Note(path, on_finding)
        self._begin()

    def _begin(self) -> None:
        self._base = self._shelf.add(self._path)
        self._reader = LineReader(self._note)
        self._offset, self._line = 0, 1
        self._head, self._mtime, self._inode = b"", 0, 0
        self._steps: dict[str | None, int] = {}

    def news(self) -> Iterator[Placed]:
        try:
            if not self._has_grown():
                return
            for line in raw_lines(self._path, start=self._offset, number=self._line):
                number, offset, size, _, ended = line
                if not ended:
                    return
                self._offset, self._line = offset + size + 1, number + 1
                for envelope, fields, place, _, _ in self._reader.feed(line):
                    if envelope.dialect == dialects.OURS:
                        if envelope.kind in schema.HEADS and fields is not None:
                            check_version(fields.get("v"), self._note, number)
                    elif envelope.step is None:
                        step = self._steps[envelope.run] = self._steps.get(envelope.run, 0) + 1
                        envelope = envelope._replace(step=step)
                    yield envelope, fields, self._base | place
        except OSError:  # gone for the moment, or for good
            return

    def skip(self) -> None:
        """Go to the end of the last whole line."""
        try:
            self._has_grown()
            at = self._offset
            for block in blocks(self._path, at):
                self._line += block.count(b"\n")
                newline = block.rfind(b"\n")
                if newline >= 0:
                    self._offset = at + newline + 1
                at += len(block)
        except OSError:
            return

    def _has_grown(self) -> bool:
        stat = os.stat(self._path)
        if stat.st_mtime_ns != self._mtime or stat.st_ino != self._inode:
            with open(open_plain(self._path, follow=True), "rb") as file:
                head = file.read(_HEAD)
            # A new file of that name may have the old one's inode, but not its first time and run.
            if not head.startswith(self._head) or stat.st_size < self._offset:
                self._begin()
            self._head, self._mtime, self._inode = head, stat.st_mtime_ns, stat.st_ino
        return stat.st_size > self._offset
