"""Replace one run by another on disk: a reader sees the whole old run or the whole new one."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from ..tracefile.run_files import blob_folders, member, streams


def replace_trace(new: str, old: str) -> None:
    """Copy a finished run with all its files to the path of another, existing or not.

    Blobs and files of further processes are copied first, the file itself by one rename; then files that only
    the old run needed are removed.
    """
    folder = os.path.dirname(old) or "."
    os.makedirs(folder, exist_ok=True)
    with _locked(folder):
        before, wanted = _belonging(old), _wanted(new, old)
        try:
            for target, source in wanted.items():
                if (
                    target not in before
                ):  # what a blob is called says what it holds, and a process has one name
                    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
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
        shutil.copyfile(source, partial)
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
