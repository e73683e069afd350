"""The runs inside a run: blocks and functions that were runs of their own, each in its own file.

Who reads a run sees its own events; who runs it again needs those of all, in the order of time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..tracefile import run_files
from ..tracefile.columns import Execution
from ..tracefile.events.event_source import Shelf
from ..tracefile.findings import Findings
from ..tracefile.reader import placed, placed_time
from .listing import RunRow, head_and_tail
from .recording import Recording

_LOOKED_AT = 500
"""Files that are looked at where nobody waits for all of them."""


class Inner(NamedTuple):
    """One run inside another."""

    path: str
    run: str


def a_look_inside(path: str, run_id: str, ended: float | None = None) -> tuple[list[RunRow], bool]:
    """Return the runs inside a run, and whether there may be more: of a server there are thousands."""
    files = run_files.files_beside(path, ended)
    return _inside(files[:_LOOKED_AT], run_id), len(files) > _LOOKED_AT


def _inside(files: Iterable[str], run_id: str) -> list[RunRow]:
    """Return the runs in files that began within a run, or within one of those; forks of it are none."""
    by_parent: dict[str, list[RunRow]] = {}
    for file in files:
        for row in head_and_tail(file):
            if row.parent_run is not None and row.id is not None and not row.is_fork:
                by_parent.setdefault(row.parent_run, []).append(row)
    found: dict[str, RunRow] = {}
    parents = [run_id]
    for parent in parents:  # which grows meanwhile
        for row in by_parent.pop(parent, []):
            if row.id is not None and row.id not in found:  # else its file was copied
                found[row.id] = row
                parents.append(row.id)
    return list(found.values())


def with_inside(recording: Recording, inside: Sequence[Inner] | None = None) -> Recording:
    """Return a run with those inside it (searched for by default); itself if there are none."""
    if inside is None:
        inside = inner_of(recording)
    if not inside:
        return recording
    findings = Findings()
    shelf = Shelf(recording.path, findings.add)
    paths = list(dict.fromkeys([recording.path, *(inner.path for inner in inside)]))
    folders = [
        *recording.shelf.blobs.folders,
        *(each for path in paths for each in run_files.blob_folders(path)),
    ]
    shelf.blobs.folders = list(dict.fromkeys(folders))
    execution = Execution(recording.run_id)
    execution.root = recording.execution.root
    runs = {recording.run_id, *(inner.run for inner in inside)}
    chains = [placed(path, shelf, findings.add) for path in paths]
    for envelope, fields, place in heapq.merge(*chains, key=placed_time):
        if envelope.run in runs:
            execution.take(envelope, fields, place, shelf)
    joined = Recording(recording.path, shelf, execution, findings)
    joined.inside = inside
    return joined


def inner_of(recording: Recording) -> list[Inner]:
    """Return the runs inside a recorded one."""
    if recording.run_id is None:
        return []
    ended = recording.end.timestamp if recording.end is not None else None
    rows = _inside(run_files.files_beside(recording.path, ended), recording.run_id)
    return [Inner(row.path, row.id) for row in rows if row.id is not None]
