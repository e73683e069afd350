"""A run that takes another one's place on disk: whoever reads sees the old one or the new one, whole."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from ..tracefile.family import blob_folders, member, streams


def take_place(new: str, old: str) -> None:
    """Copy a finished run with all that belongs to it to where another is, or will be.

    Blobs and files of further processes come first, the file itself by one rename; then what only the old
    run needed goes.
    """
    folder = os.path.dirname(old) or "."
    os.makedirs(folder, exist_ok=True)
    with _locked(folder):
        kept = _blobs(new, old)
        stem = member(new).stem
        for path in (path for files in streams(new) for path in files):
            if path != new:
                name = member(old).stem + path.removeprefix(stem)
                _put(path, name)
                kept.add(name)
        stale = _belonging(old) - kept
        _put(new, old)
        for path in stale:
            os.unlink(path)
        if os.path.isdir(blob_folders(old)[-1]) and not os.listdir(blob_folders(old)[-1]):
            os.rmdir(blob_folders(old)[-1])


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Let one process at a time change a folder's traces."""
    held = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _blobs(new: str, old: str) -> set[str]:
    """Copy the blobs; returns what stands there of them."""
    source, target = blob_folders(new)[-1], blob_folders(old)[-1]
    names = (
        [name for name in os.listdir(source) if not name.endswith(".tmp")] if os.path.isdir(source) else []
    )
    if names:
        os.makedirs(target, exist_ok=True)
    kept = {os.path.join(target, name) for name in names}
    for name in names:
        path = os.path.join(target, name)
        if not os.path.exists(path):  # its name is the digest of what it holds
            _put(os.path.join(source, name), path)
    return kept


def _belonging(path: str) -> set[str]:
    """Return the files that go with a trace, itself left out."""
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
