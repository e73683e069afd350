"""Never a full disk: when the folder's traces or the device reach their limit, only metadata is recorded.

Used by the recorder when it opens a file and after every few megabytes.
"""

from __future__ import annotations

import os

from .. import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..front.options import Options

MAX_ENTRIES = 100_000
"""Folder entries looked at; a folder with more of them has other problems."""

SNAPSHOTS = ".workspace.git"
"""How the name of a run's repository of workspace snapshots ends."""

_used: dict[str, int] = {}
"""Bytes of traces per folder, as last measured plus what this process has written since."""


def over_quota(folder: str, options: Options, wrote: int) -> str | None:
    """Return why only metadata may be written now, or None. ``wrote``: bytes since the last call."""
    folder = folder or "."
    try:
        device = os.statvfs(folder)
        free = device.f_bavail / device.f_blocks if device.f_blocks else 1.0
        if free < options.min_free:
            return f"only {free:.1%} of the disk is free (min_free={options.min_free:.0%})"
        used = _used.get(folder)
        # Far from the limit the estimate will do; near it other processes' files count too.
        if used is None or used + wrote > options.max_bytes // 2:
            used = folder_bytes(folder)
        else:
            used += wrote
        _used[folder] = used
        if used > options.max_bytes:
            return (
                f"the traces in {guard.shown(folder)} take {used:,} bytes (max_bytes={options.max_bytes:,})"
            )
    except OSError as exc:
        guard.pass_on(exc)  # else no such folder yet, or not ours to measure: the write itself will tell
    return None


def over_quota_by_now(folder: str, options: Options) -> str | None:
    """Return the same for somebody who does not count what he writes: all of it is measured."""
    _used.pop(folder or ".", None)
    return over_quota(folder, options, 0)


def folder_bytes(folder: str) -> int:
    """Return what the traces, blobs and snapshots of a folder measure."""
    total = 0
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count > MAX_ENTRIES:
                break
            if entry.name.endswith(".jsonl"):
                total += _bytes(entry)
            elif entry.name.endswith(".blobs") and entry.is_dir(follow_symlinks=False):
                with os.scandir(entry.path) as blobs:
                    total += sum(map(_bytes, blobs))
            elif entry.name.endswith(SNAPSHOTS) and entry.is_dir(follow_symlinks=False):
                total += _repository_bytes(entry.path)
    return total


def _repository_bytes(folder: str) -> int:
    """Return what a repository measures; what git removes meanwhile does not count."""
    total, left, folders = 0, MAX_ENTRIES, [folder]
    while folders and left > 0:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += _bytes(entry)
        except FileNotFoundError:
            continue
    return total


def _bytes(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:  # gone or renamed meanwhile
        return 0
