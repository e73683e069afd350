"""Paths -> the runs in them, every file read once from its beginning to its end.

A file that is not a trace becomes a finding and is skipped; no content of a file raises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from .. import schema
from ..errors import NotATrace, TraceFileError
from ..money.prices import Book
from ..recording.listing import head_and_tail
from ..recording.run_addresses import default_folder, find_run
from ..tracefile import run_files
from ..tracefile.columns import Execution, Sorter
from ..tracefile.events.event import Event
from ..tracefile.events.event_source import Shelf
from ..tracefile.findings import Finding, Findings
from ..tracefile.light_lines import skimmer
from ..tracefile.plain_files import SPECIAL, is_special, not_plain
from ..tracefile.reader import one_of_many, placed, require_file
from .rows import RunStats
from .sums import Gatherer

Tick = Callable[[int, int, int], object]
"""Told now and then: files read, files there are, events read so far."""

_TICK = 1000


class Place:
    """A file to read, and which of its runs are meant: None for all."""

    __slots__ = ("ids", "names", "path")

    def __init__(self, path: str, ids: set[str | None] | None = None, names: list[str] | None = None) -> None:
        self.path = path
        self.ids = ids
        self.names = names
        """The files of the folder that share its stem, where a folder was listed."""


def places(named: Iterable[str | os.PathLike[str]]) -> list[Place]:
    """Return the files meant by folders, files, names and ids; none given: those of the default folder."""
    texts = [os.fspath(path) for path in named]
    if not texts:
        folder = default_folder()
        return _folder(folder) if os.path.isdir(folder) else []
    found: dict[str, Place] = {}
    for text in texts:
        for place in _places(text):
            known = found.setdefault(os.path.abspath(place.path), place)
            if known is not place:
                both = known.ids is not None and place.ids is not None
                known.ids = (known.ids or set()) | (place.ids or set()) if both else None
    if len(texts) == 1:
        return list(found.values())
    heads = _heads(found)
    return [place for path, place in found.items() if path in heads]


def _places(text: str) -> list[Place]:
    if os.path.isdir(text):
        return _folder(text)
    if os.path.lexists(text):
        return [Place(text)]
    if os.sep in text or text.endswith(".jsonl"):
        require_file(text)

    row = find_run(text)
    return [Place(row.path, {row.id})]


def _folder(folder: str) -> list[Place]:
    """Return the files of a folder that begin a family."""
    return [Place(path, None, names) for path, names in run_files.families(folder).items()]


def _heads(paths: Iterable[str]) -> set[str]:
    """Leave out segments and further processes of a file that is there too: ``logs/*.jsonl`` names all."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        folder, name = os.path.split(path)
        by_folder.setdefault(folder, []).append(name)
    return {
        os.path.join(folder, name) for folder, names in by_folder.items() for name in run_files.heads(names)
    }


class Scan:
    """Reads files and keeps count; ``findings`` fill up as it goes."""

    def __init__(self, book: Book, tick: Tick | None = None) -> None:
        self.findings = Findings()
        self.skipped: list[Finding] = []
        """Files that are not traces or could not be read."""
        self._book = book
        self._tick = tick
        self._read = skimmer()
        self._events = 0

    def read(self, wanted: list[Place], since: float | None = None) -> list[RunStats]:
        """Return the runs in the order they began."""
        rows: list[RunStats] = []
        for number, place in enumerate(wanted):
            self._at = number, len(wanted)
            if since is None or _may_be_since(place, since):
                rows += [row for row in self._file(place) if place.ids is None or row.id in place.ids]
        rows.sort(key=lambda row: (row.started or 0.0, row.path))
        return rows

    def _file(self, place: Place) -> Iterable[RunStats]:
        path = place.path
        try:
            reason = not_plain(path) if place.names is not None else None
            if reason is not None or is_special(path):
                raise OSError(reason or SPECIAL)
            with one_of_many(path):
                return self._runs(path, place.names)
        except NotATrace as why:
            self._skip("foreign", str(why), path)
        except TraceFileError as why:
            self._skip("unreadable", str(why), path)
        except OSError as why:
            self._skip("unreadable", f"it cannot be read ({(why.strerror or str(why)).lower()})", path)
        return []

    def _skip(self, code: str, message: str, path: str) -> None:
        self.skipped.append(Finding(code, message.removeprefix(f"{path} is "), path))

    def _runs(self, path: str, names: list[str] | None) -> list[RunStats]:
        findings = Findings()
        shelf = Shelf(path, findings.add)
        sorter = Sorter(False)
        gatherers: dict[Execution, Gatherer] = {}
        gatherer, run, writer = None, None, None
        for envelope, fields, place in placed(path, shelf, findings.add, self._read, names):
            continues = envelope.run == run is not None and envelope.w == writer
            if gatherer is None or not continues or envelope.kind == schema.RUN_START:
                execution = sorter.execution(envelope, fields)
                gatherer = gatherers.get(execution)
                if gatherer is None:
                    gatherer = gatherers[execution] = Gatherer(path, execution.run, self._book)
                gatherer.root = execution.root
                run, writer = envelope.run, envelope.w
            known = fields if fields is not None else shelf.beginning(place) or {}
            gatherer.add(Event(envelope, known, place, shelf, None))
            self._events += 1
            if self._tick is not None and self._events % _TICK == 0:
                self._tick(*self._at, self._events)
        shelf.note.close()
        for finding in findings:
            self.findings.add(finding)
        return [gatherer.finish(len(findings)) for gatherer in gatherers.values()]


def _may_be_since(place: Place, since: float) -> bool:
    """False if the two ends of a file say that all its runs began before; what they do not say is read."""
    if is_special(place.path):
        return True

    rows = head_and_tail(place.path, place.names)
    return any(row.started is None or row.started >= since for row in rows)
