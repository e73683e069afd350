"""The facts of every run in a file or folder, cheaply, for ``ls`` and for finding a run.

Reads the two ends of each file; one that several runs or writers share is scanned once and remembered.
One bad file never raises: it gets a row that says so. What reads events is loaded only where the ends are not
enough: it takes as long as the ends of a thousand files.
"""

from __future__ import annotations

import os
from typing import Any

from .. import lines, schema
from ..errors import NotATrace, TraceFileError
from ..totals import Totals
from ..tracefile import run_files, status
from ..tracefile.events.text import short_json
from ..tracefile.file_ends import Ends, read_ends
from ..tracefile.findings import Findings, Note
from ..tracefile.plain_files import not_plain
from ..tracefile.records import LineReader, raw_lines
from ..wire.json_values import as_text
from .garbage import nothing_to_collect


class Summed:
    """What has ``totals`` names the sums in them that everybody asks for."""

    __slots__ = ()
    totals: Totals

    @property
    def turns(self) -> int:
        return self.totals.turns

    @property
    def steps(self) -> int:
        return self.totals.steps

    @property
    def tokens_in(self) -> int:
        """All input, cached or not."""
        return self.totals.tokens_in

    @property
    def tokens_out(self) -> int:
        return self.totals.tokens_out

    @property
    def errors(self) -> int:
        return self.totals.errors


class RunRow(Summed):
    """One run as ``ls`` shows it."""

    # A plain class: ``dataclasses`` takes as long to load as the rest of what listing needs.
    __slots__ = (
        "ended", "error", "findings", "id", "input", "is_fork", "made_from", "meta", "model", "name",
        "parent_run", "path", "reason", "size", "started", "status", "totals",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        totals: Totals | None = None,
        *,
        name: str = "",
        status: str = status.UNKNOWN,
        reason: str | None = None,
        size: int = 0,
        findings: int | None = None,
    ) -> None:
        self.path = path
        self.id: str | None = None
        self.name = name
        self.status = status
        self.reason = reason
        """Why a foreign or unreadable file is that."""
        self.totals = totals or Totals()
        self.started: float | None = None
        self.ended: float | None = None
        self.size = size
        """Bytes of all its files, blobs left out."""
        self.meta: dict[str, Any] = {}
        self.parent_run: str | None = None
        self.is_fork = False
        """True if it was made from its parent."""
        self.findings = findings
        """None: not looked for."""
        self.input: Any = None
        """What the run was started with: its recorded input, else the arguments of its command."""
        self.model: str | None = None
        """That of its last response, where the end of the file shows it."""
        self.error: str | None = None
        """What it ended with."""
        self.made_from: str | None = None
        """Of a replay or a fork: the id of the run it is made from."""

    @property
    def failed(self) -> bool:
        return self.status in status.FAILED


Kept = dict[str, tuple[object, list[RunRow]]]
"""The rows of an earlier listing by the stem of their files, with the state these were in."""


def list_runs(folder: str, kept: Kept | None = None) -> list[RunRow]:
    """Return a row for every run in a folder, oldest first; files that are not traces come first.

    Who lists again passes ``kept``, empty at first: then only files that have changed are read again.
    """
    groups: dict[str, list[str]] = {}
    states: dict[str, list[tuple[str, int, int]]] = {}
    rows: list[RunRow] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith(".jsonl"):
                continue
            if not entry.is_file(follow_symlinks=False) and (reason := not_plain(entry.path)) is not None:
                rows.append(_bad(entry.path, status.UNREADABLE, reason))
            else:
                stem = run_files.stem(entry.name)
                groups.setdefault(stem, []).append(entry.name)
                if kept is not None:
                    states.setdefault(stem, []).append((entry.name, *_state(entry)))
    folder = os.path.join(folder, "")
    with nothing_to_collect():
        for stem, names in groups.items():
            if kept is not None and _is_kept(kept.get(stem), states[stem]):
                rows += kept[stem][1]
                continue
            begin = len(rows)
            for name in run_files.heads(names):
                rows += head_and_tail(folder + name, names)
            if kept is not None:
                kept[stem] = states[stem], rows[begin:]
    if kept is not None:
        for stem in kept.keys() - groups.keys():
            del kept[stem]
    rows.sort(key=lambda row: (row.started or 0.0, row.path))
    return rows


def _state(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        found = entry.stat()
    except OSError:  # it has just gone
        return -1, -1
    return found.st_size, found.st_mtime_ns


def _is_kept(known: tuple[object, list[RunRow]] | None, state: object) -> bool:
    """True if rows are as they were; that a running program has ended cannot be seen in its file."""
    return known is not None and known[0] == state and all(row.status != status.RUNNING for row in known[1])


def with_copies(rows: list[RunRow]) -> list[tuple[RunRow, list[RunRow]]]:
    """Return the rows, each with the replays and forks that are made from it."""
    tops = {row.id: row for row in rows if row.made_from is None and row.id is not None}
    found: dict[int, tuple[RunRow, list[RunRow]]] = {}
    for row in rows:
        if row.made_from not in tops:
            found[id(row)] = row, []
    for row in rows:
        if row.made_from in tops:
            found[id(tops[row.made_from])][1].append(row)
    return list(found.values())


def input_text(row: RunRow) -> str:
    """Return what a run was started with, as one would type it."""
    value = row.input
    if type(value) is dict and type(value.get("url")) is str:
        return str(value["url"])
    if type(value) is list:
        return " ".join(map(as_text, value))
    return "" if value is None else value if type(value) is str else short_json(value, _WIDE)


_WIDE = 120
"""Characters of an input that is no text."""


def head_and_tail(path: str, names: list[str] | None = None) -> list[RunRow]:
    """Return the rows of one file with its segments and processes; one row unless runs share it."""
    try:
        return _rows(path, names)
    except NotATrace as why:
        return [_bad(path, status.FOREIGN, str(why))]
    except TraceFileError as why:
        return [_bad(path, status.UNREADABLE, str(why))]
    except OSError as why:
        return [_bad(path, status.UNREADABLE, why.strerror or str(why))]
    except Exception as why:
        from ..tracefile.reader import unexpected

        return [_bad(path, status.UNREADABLE, str(unexpected(path, why)))]


def _bad(path: str, word: str, reason: str) -> RunRow:
    try:
        size = os.path.getsize(path)
    except OSError:
        size = 0
    return RunRow(path, name=run_files.name_of(path), status=word, reason=reason, size=size)


def _rows(path: str, names: list[str] | None) -> list[RunRow]:
    if names is not None and len(names) == 1:
        files = [[path]]
        found = read_ends(path)
    else:
        files = run_files.streams(path, names)
        found = _joined([_ends_of(chain) for chain in files])
    if found is None:
        return _scan(path, files)
    if found.first.get("v") not in schema.READ:
        from ..tracefile.reader import check_version

        check_version(found.first.get("v"), Note(path, None))
    return [_row(path, found)]


def _ends_of(chain: list[str]) -> list[Ends | None]:
    """Return the ends of one writer's files; where the last one holds the sums, the others need none.

    A segment of a quarter of a gigabyte that holds notes alone has none.
    """
    last = read_ends(chain[-1])
    has_sums = last is not None and last.has_sums
    return [*(read_ends(file, sums=not has_sums) for file in chain[:-1]), last]


def _joined(found: list[list[Ends | None]]) -> Ends | None:
    """Return what the files of one run say together; None where one says nothing, or is of another run."""
    chains = [[end for end in chain if end is not None] for chain in found]
    files = [end for chain in chains for end in chain]
    if len(files) < sum(map(len, found)) or any(end.last[1] != files[0].last[1] for end in files):
        return None
    last = chains[0][-1]
    steps = sum([end.totals.steps for end in files])
    totals = _summed(chains[0])
    for chain in chains[1:]:
        totals += _summed(chain)
    totals.steps = steps
    return last._replace(
        first=files[0].first,
        last=(max([chain[-1].last[0] for chain in chains]), *last.last[1:]),
        totals=totals,
        size=sum([end.size for end in files]),
        torn=any(end.torn for end in files),
        model=next((chain[-1].model for chain in chains if chain[-1].model is not None), None),
    )


def _row(path: str, ends: Ends) -> RunRow:
    """Put together the row of one run from the ends of its files."""
    first, (ended, run, _, _, kind), end, totals, size, torn, _, model = ends
    start = first if first.get("kind") == "run.start" else None
    ts: Any = first.get("ts")
    started = ts if type(ts) in (float, int) and -lines.LATEST < ts < lines.LATEST else None
    if start is None and kind != "run.end":
        end = None
    row = RunRow(path, totals, status=status.status_of(start, end, started), size=size)
    row.id, row.started, row.ended, row.model = run, started, ended, model
    if torn and row.status != status.RUNNING:
        row.findings = 1
    _describe(row, start, end)
    return row


def _summed(chain: list[Ends]) -> Totals:
    """Return the sums of one writer; a segment that died young may have none of those before it."""
    totals = chain[-1].totals
    for file, before in zip(chain[:0:-1], chain[-2::-1], strict=True):
        if file.has_sums:
            break
        totals += before.totals
    return totals


def _describe(row: RunRow, start: dict[str, Any] | None, end: dict[str, Any] | None) -> None:
    name = start.get("name") if start is not None else None
    row.name = name if type(name) is str else run_files.name_of(row.path)
    if start is not None:
        meta, parent = start.get("meta"), start.get("parent_run")
        row.meta = meta if type(meta) is dict else {}
        row.parent_run = parent if type(parent) is str else None
        row.is_fork = "fork" in start
        origin = row.parent_run if row.is_fork else row.meta.get("replay_of")
        row.made_from = origin if type(origin) is str else None
        row.input = start.get("input")
        if row.input is None and "command" in start:
            row.input = _arguments(start["command"])
    error = end.get("error") if end is not None else None
    if type(error) is dict:
        kind, message = str(error.get("type") or "").rpartition(".")[2], str(error.get("message") or "")
        row.error = f"{kind}: {message}" if kind and message else kind or message or None


def _arguments(command: Any) -> list[Any] | None:
    """Return what follows the program in a command: after a script or ``-m module``, else after its name."""
    words = command if type(command) is list else []
    begin = next((at for at, word in enumerate(words) if type(word) is str and word.endswith(".py")), None)
    if begin is None:
        begin = words.index("-m") + 1 if "-m" in words else 0
    return words[begin + 1 :] or None


_scanned: dict[str, tuple[tuple[tuple[int, int], ...], list[RunRow]]] = {}
_MAX_SCANNED = 1000


def _scan(path: str, files: list[list[str]]) -> list[RunRow]:
    """Read a shared, foreign or damaged file whole, once for each state it is in."""
    stats = [os.stat(file) for chain in files for file in chain]
    state = tuple((stat.st_size, stat.st_mtime_ns) for stat in stats)
    known = _scanned.get(path)
    if known is not None and known[0] == state:
        return known[1]
    if not stats[0].st_size:
        return [RunRow(path, name=run_files.name_of(path), reason="the file is empty", findings=1)]
    _sniff(path)
    rows = _read_whole(path, sum(size for size, _ in state))
    if len(_scanned) >= _MAX_SCANNED:
        _scanned.clear()
    _scanned[path] = (state, rows)
    return rows


def _sniff(path: str) -> None:
    """Raise NotATrace if nothing in the first megabyte is an event, so that ``ls`` reads no further."""
    from ..tracefile.reader import refuse_if_foreign

    reader = LineReader(Note(path, None))
    for line in raw_lines(path):
        if next(iter(reader.feed(line)), None) is not None:
            return
        if line[1] > 1 << 20:
            break
    refuse_if_foreign(path, None)


def _read_whole(path: str, size: int) -> list[RunRow]:
    from ..tracefile.columns import executions
    from ..tracefile.events.event_source import Shelf
    from .run_lines import RunLines

    findings = Findings()
    shelf = Shelf(path, findings.add)
    rows = []
    for execution in executions(path, shelf, findings.add):
        run = RunLines(path, shelf, execution, findings)
        row = RunRow(path, run.totals, status=run.status, size=size, findings=len(findings))
        row.id, row.started, row.ended = run.run_id, run.started, run.ended
        ends = [None if event is None else event.stored_fields for event in (run.start, run.end)]
        _describe(row, *ends)
        rows.append(row)
    if not rows:
        rows.append(RunRow(path, name=run_files.name_of(path), size=size, findings=len(findings)))
    return rows
