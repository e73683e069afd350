"""``reenact.runs("logs/")``: many runs as one object to ask; each file is read once, from beginning to end.

A file that is not a trace becomes a finding and is skipped; no content of a file raises.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

from .. import extras, schema
from ..errors import NotATrace, TraceFileError, UsageError
from ..money.prices import Bill, Book
from ..recording.listing import head_and_tail
from ..recording.run_addresses import default_folder, find_run
from ..totals import Totals
from ..tracefile import run_files, status
from ..tracefile.columns import Execution, Sorter
from ..tracefile.events.event import Event
from ..tracefile.events.event_source import Shelf
from ..tracefile.findings import Finding, Findings
from ..tracefile.light_lines import skimmer
from ..tracefile.plain_files import SPECIAL, is_special, not_plain
from ..tracefile.reader import one_of_many, placed, require_file
from ..wire.json_values import as_text
from .groups import Group, group
from .rows import CallStats, RunStats, gathered, merged, nearest_rank, summed
from .run_filters import Filter, moment, parse_filter
from .sums import Gatherer

Tick = Callable[[int, int, int], object]
"""Called now and then: files read, files there are, events read so far."""

_TICK = 1000

Condition = str | Callable[[RunStats], object]

SAMPLES = ("run", "model", "tool")


class Runs(Sequence[RunStats]):
    """Some runs, oldest first, and what they amount to."""

    def __init__(
        self, rows: list[RunStats], findings: list[Finding], skipped: list[Finding], book: Book
    ) -> None:
        self._rows = rows
        self.findings = findings
        """Damage met while reading."""
        self.skipped = skipped
        """Files that were left out, with the reason."""
        self._book = book
        self._ordered: dict[tuple[str, str | None], list[float]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> RunStats: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> RunStats | Runs:
        return self.only(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __iter__(self) -> Iterator[RunStats]:
        return iter(self._rows)

    def where(self, *conditions: Condition, **equal: object) -> Runs:
        """Return the runs that all conditions hold for: ``"tokens>1000"``, a function, ``status="error"``."""
        tests = [_test(condition) for condition in conditions]
        tests += [Filter(key, "=", _as_filtered(value)).holds for key, value in equal.items()]
        return self.only([row for row in self._rows if all(test(row) for test in tests)])

    def since(self, when: Any) -> Runs:
        """Return the runs that began at or after a time: ``"2h"`` (ago), ``"2026-11-01"``, a datetime."""
        begin = moment(when)
        return self.only([row for row in self._rows if row.started is not None and row.started >= begin])

    def only(self, rows: list[RunStats]) -> Runs:
        """Return these of the runs, with the same findings and prices."""
        return Runs(rows, self.findings, self.skipped, self._book)

    def by(self, key: str) -> list[Group]:
        """Return sums by ``model tool stop_reason`` of calls, or ``day name status run meta.KEY`` of runs."""
        return group(self, key)

    @property
    def totals(self) -> Totals:
        """The sums of all runs."""
        total = Totals()
        for row in self._rows:
            total += row.totals
        return total

    @property
    def calls(self) -> CallStats:
        """All model calls as one."""
        return summed(stats for row in self._rows for stats in row.by_model_and_stop.values())

    @property
    def cost(self) -> Bill:
        """What all model calls cost, and by which prices."""
        bill = self._book.bill()
        for row in self._rows:
            for stats in row.by_model_and_stop.values():
                bill += stats.cost
        return bill

    @property
    def models(self) -> dict[str, CallStats]:
        """Model calls by model."""
        return gathered(pair for row in self._rows for pair in row.models.items())

    @property
    def tools(self) -> dict[str, CallStats]:
        """Tool calls by tool."""
        return gathered(pair for row in self._rows for pair in row.tools.items())

    @property
    def stop_reasons(self) -> dict[str, int]:
        """Why model calls stopped, most frequent first."""
        return merged(row.stop_reasons for row in self._rows)

    @property
    def error_types(self) -> dict[str, int]:
        """The errors that count, by type, most frequent first; ``totals.errors`` is their number."""
        return merged(row.error_types for row in self._rows)

    @property
    def statuses(self) -> dict[str, int]:
        """Runs by how they ended, most frequent first."""
        return merged({row.status: 1} for row in self._rows)

    def p50(self, what: str, name: str | None = None) -> float | None:
        """Return the median in milliseconds; see ``percentile``."""
        return self.percentile(50, what, name)

    def p95(self, what: str, name: str | None = None) -> float | None:
        """Return what 95 of 100 do not exceed, in milliseconds; see ``percentile``."""
        return self.percentile(95, what, name)

    def p99(self, what: str, name: str | None = None) -> float | None:
        """Return what 99 of 100 do not exceed, in milliseconds; see ``percentile``."""
        return self.percentile(99, what, name)

    def percentile(self, q: float, what: str, name: str | None = None) -> float | None:
        """Return a nearest-rank percentile of durations in milliseconds, None if there are none.

        Of ``"run"`` (those still running are left out), ``"model"`` or ``"tool"``; ``name`` picks one
        model or tool. Calls that have not ended, or do not tell how long they took, are left out.
        """
        if what not in SAMPLES:
            raise UsageError(f"{what!r} has no durations", hint=f"there are {', '.join(SAMPLES)}")
        key = (what, name)
        if key not in self._ordered:
            self._ordered[key] = sorted(self._durations(what, name))
        return nearest_rank(q, self._ordered[key])

    def _durations(self, what: str, name: str | None) -> Iterable[float]:
        for row in self._rows:
            if what == "run":
                took = row.duration_ms if row.status != status.RUNNING else None
                if took is not None and name in (None, row.name):
                    yield took
            elif what == "tool":
                for tool, stats in row.tools.items():
                    if name in (None, tool):
                        yield from stats.durations
            else:
                for (model, _), stats in row.by_model_and_stop.items():
                    if name in (None, model):
                        yield from stats.durations

    def df(self, by: str | None = None) -> Any:
        """Return a pandas DataFrame: a row for each run, or for each group ``by`` a key."""
        pandas = extras.need("pandas", extra=None)
        if by is not None:
            return pandas.DataFrame([one.as_dict() for one in self.by(by)])
        frame = pandas.DataFrame([_flat(row) for row in self._rows])
        for column in ("started", "ended"):
            if column in frame:
                frame[column] = pandas.to_datetime(frame[column], unit="s", utc=True, errors="coerce")
        for column, dtype in _meta_types(self._rows).items():  # else a number becomes a float beside a gap
            values = [row.meta.get(column) for row in self._rows]
            frame[f"meta.{column}"] = pandas.array(values, dtype=dtype)
        return frame

    def __repr__(self) -> str:
        ended = ", ".join(f"{count} {word}" for word, count in self.statuses.items())
        return f"<Runs {len(self)}{': ' + ended if ended else ''}>"


def runs(
    *paths: str | os.PathLike[str], where: Condition | Iterable[Condition] | None = None, since: Any = None
) -> Runs:
    """Read trace files, folders or single runs by name or id, and return what is in them.

    Without any: the default folder. ``where`` and ``since`` choose as ``Runs.where`` and ``Runs.since`` do.
    """
    return collect(paths, where=where, since=since)


def collect(
    paths: Iterable[str | os.PathLike[str]],
    *,
    where: Condition | Iterable[Condition] | None = None,
    since: Any = None,
    tick: Tick | None = None,
) -> Runs:
    """The same for ``stats``, which shows how far it is."""
    conditions = [where] if isinstance(where, str) or callable(where) else list(where or [])
    tests = [_test(condition) for condition in conditions]  # a wrong one is reported at once
    begin = None if since is None else moment(since)
    book = Book.open()
    scan = _Scan(book, tick)
    rows = scan.read(_places(paths), begin)
    found = Runs(rows, scan.findings, scan.skipped, book)
    if begin is not None:
        found = found.since(begin)
    return found.where(*tests)


def _test(condition: Condition) -> Callable[[RunStats], object]:
    return parse_filter(condition).holds if isinstance(condition, str) else condition


def _as_filtered(value: object) -> str:
    """Return a value as filters see it: metadata is JSON, so True is ``true``."""
    return as_text(value) if isinstance(value, bool | list | dict) else str(value)


def _flat(row: RunStats) -> dict[str, Any]:
    """Return a run's facts with its metadata in columns of their own."""
    facts = row.as_dict()
    meta = facts.pop("meta")
    facts["tokens"] = row.tokens_in + row.tokens_out
    return facts | {f"meta.{key}": value for key, value in meta.items()}


def _meta_types(rows: Iterable[RunStats]) -> dict[str, str]:
    """Return pandas' type for the metadata whose values are all whole numbers, or all true or false."""
    found: dict[str, set[type]] = {}
    for row in rows:
        for key, value in row.meta.items():
            is_small = type(value) is not int or abs(value) < 1 << 63
            found.setdefault(key, set()).add(type(value) if is_small else object)
    names: dict[type, str] = {int: "Int64", bool: "boolean"}
    alone = {key: next(iter(types)) for key, types in found.items() if len(types) == 1}
    return {key: names[one] for key, one in alone.items() if one in names}


# The files that paths mean, and the runs in them.


class _Place:
    """A file to read, and which of its runs are meant: None for all."""

    __slots__ = ("ids", "names", "path")

    def __init__(self, path: str, ids: set[str | None] | None = None, names: list[str] | None = None) -> None:
        self.path = path
        self.ids = ids
        self.names = names
        """The files of the folder that share its stem, where a folder was listed."""


def _places(named: Iterable[str | os.PathLike[str]]) -> list[_Place]:
    """Return the files meant by folders, files, names and ids; without any: those of the default folder."""
    texts = [os.fspath(path) for path in named]
    if not texts:
        folder = default_folder()
        return _folder(folder) if os.path.isdir(folder) else []
    found: dict[str, _Place] = {}
    for text in texts:
        for place in _places_at(text):
            known = found.setdefault(os.path.abspath(place.path), place)
            if known is not place:
                both = known.ids is not None and place.ids is not None
                known.ids = (known.ids or set()) | (place.ids or set()) if both else None
    if len(texts) == 1:
        return list(found.values())
    heads = _heads(found)
    return [place for path, place in found.items() if path in heads]


def _places_at(text: str) -> list[_Place]:
    if os.path.isdir(text):
        return _folder(text)
    if os.path.lexists(text):
        return [_Place(text)]
    if os.sep in text or text.endswith(".jsonl"):
        require_file(text)

    row = find_run(text)
    return [_Place(row.path, {row.id})]


def _folder(folder: str) -> list[_Place]:
    """Return the files of a folder that begin a family."""
    return [_Place(path, None, names) for path, names in run_files.families(folder).items()]


def _heads(paths: Iterable[str]) -> set[str]:
    """Leave out segments and further processes of a file that is there too: ``logs/*.jsonl`` names all."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        folder, name = os.path.split(path)
        by_folder.setdefault(folder, []).append(name)
    return {
        os.path.join(folder, name) for folder, names in by_folder.items() for name in run_files.heads(names)
    }


class _Scan:
    """Reads files and keeps count; ``findings`` fill up as it goes."""

    def __init__(self, book: Book, tick: Tick | None = None) -> None:
        self.findings = Findings()
        self.skipped: list[Finding] = []
        """Files that are not traces or could not be read."""
        self._book = book
        self._tick = tick
        self._read = skimmer()
        self._events = 0

    def read(self, wanted: list[_Place], since: float | None = None) -> list[RunStats]:
        """Return the runs in the order they began."""
        rows: list[RunStats] = []
        for number, place in enumerate(wanted):
            self._at = number, len(wanted)
            if since is None or _may_be_since(place, since):
                rows += [row for row in self._file(place) if place.ids is None or row.id in place.ids]
        rows.sort(key=lambda row: (row.started or 0.0, row.path))
        return rows

    def _file(self, place: _Place) -> Iterable[RunStats]:
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


def _may_be_since(place: _Place, since: float) -> bool:
    """False if the two ends of a file say that all its runs began before; what they do not say is read."""
    if is_special(place.path):
        return True

    rows = head_and_tail(place.path, place.names)
    return any(row.started is None or row.started >= since for row in rows)
