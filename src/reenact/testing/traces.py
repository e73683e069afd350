"""Traces of tests: loaded, written by hand, replaced by a new run in one step."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .. import lines, schema
from ..errors import ReenactError, UsageError
from ..playback.matching.tape import Tape
from ..recording.recording import Recording
from ..recording.runs_inside import with_inside
from ..tracefile.plain_files import create_private, open_plain
from ..tracefile.run_files import blob_folders, has_recorders_name, member, streams


def is_there(path: str) -> bool:
    """True if a path is a folder or a file that is not empty."""
    return os.path.isdir(path) or (os.path.exists(path) and os.path.getsize(path) > 0)


def load(path: str, advice: str) -> Tape:
    """Return a recording; UsageError, with advice, if there is none that can answer."""
    record = f"record it: {advice}"
    if not os.path.exists(path):
        raise UsageError(f"there is no recording {path}", hint=record)
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder", hint="name the file of the recording")
    try:
        recording = Recording.load(path)
        # A test's trace contains its inner runs; beside it may be hundreds of others.
        tape = Tape(with_inside(recording) if has_recorders_name(path) else recording)
    except ReenactError as exc:
        first = f"{exc.hint}; " if exc.hint else ""
        raise UsageError(str(exc), hint=f"{first}remove it to record it again: {advice}") from exc
    if not tape.recording.lines:
        raise UsageError(f"{path} is empty: nothing was recorded in it", hint=record)
    return tape


def write_trace(
    path: str | os.PathLike[str],
    events: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    run: str = "0" * 32,
    status: str | None = "ok",
) -> str:
    """Write a trace file of (kind, fields) pairs, one second apart, the same bytes every time.

    The run's first and last line are added; with ``status=None`` it has no end, as if killed.
    """
    rows: list[tuple[str, Mapping[str, Any]]] = [(schema.RUN_START, {"v": schema.VERSION, "name": "test"})]
    rows += [(schema.user_kind(kind), fields) for kind, fields in events]
    if status is not None:
        rows.append((schema.RUN_END, {"status": status}))
    place = os.fspath(path)
    with create_private(place) as file:
        for step, (kind, fields) in enumerate(rows, 1):
            file.write(lines.whole(float(step), run, "0" * 8, step, kind, fields).encode("ascii"))
    return place


def replace_trace(new: str, old: str) -> None:
    """Copy a finished run with all its files to the path of another, existing or not.

    Blobs and files of further processes are copied first, the file itself by one rename; then files that only
    the old run needed are removed.
    """
    folder = os.path.dirname(old) or "."
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with _locked(folder):
        before, wanted = _belonging(old), _wanted(new, old)
        try:
            for target, source in wanted.items():
                if (
                    target not in before
                ):  # what a blob is called says what it holds, and a process has one name
                    os.makedirs(os.path.dirname(target) or ".", mode=0o700, exist_ok=True)
                    _put(source, target)
            _put(new, old)
        except BaseException:
            _remove(_belonging(old) - before)
            raise
        _remove(before - set(wanted))
        _drop_empty(blob_folders(old)[-1])


def remove(path: str) -> None:
    """Remove a run with all its files, if it exists."""
    _remove({each for each in (*_belonging(path), path) if os.path.exists(each)})
    _drop_empty(blob_folders(path)[-1])


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Lock a folder: one process at a time changes its traces."""
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _wanted(new: str, old: str) -> dict[str, str]:
    """Return the files that the new run needs beside the old path, and where each is now."""
    stem, blobs = member(new).stem, blob_folders(new)[-1]
    found = {}
    for path in _belonging(new):
        if os.path.dirname(path) == blobs:
            if not path.endswith(".tmp"):
                found[os.path.join(blob_folders(old)[-1], os.path.basename(path))] = path
        else:
            found[member(old).stem + path.removeprefix(stem)] = path
    return found


def _belonging(path: str) -> set[str]:
    """Return the files that belong to a trace, without the trace itself."""
    files = {each for stream in streams(path) for each in stream} - {path}
    folder = blob_folders(path)[-1]
    blobs = {os.path.join(folder, name) for name in os.listdir(folder)} if os.path.isdir(folder) else set()
    return files | blobs


def _put(source: str, target: str) -> None:
    partial = os.path.join(os.path.dirname(target) or ".", f".{os.path.basename(target)}.{os.getpid()}.tmp")
    try:
        with open(open_plain(source), "rb") as file, create_private(partial) as copy:
            shutil.copyfileobj(file, copy)
        os.replace(partial, target)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def _remove(paths: set[str]) -> None:
    for path in paths:
        os.unlink(path)


def _drop_empty(folder: str) -> None:
    if os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)
