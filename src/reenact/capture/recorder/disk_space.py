"""What stays on disk: a quota while a run is recorded, and at its end whether it is worth keeping.

Never a full disk: when the folder's traces or the device reach their limit, only metadata is recorded; the
recorder checks when it opens a file and after every few megabytes. The writer that began a run deletes it at
its end if the option ``retain`` does not want it.
"""

from __future__ import annotations

import os

from ...lines import parse
from ...schema import PROC_END
from .. import guard
from ..import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..front.options import Options
    from .recorder import Recorder

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


def drop_unwanted(recorder: Recorder, status: str) -> None:
    """Delete the files of a good run that the ``retain`` option does not want."""
    retain = recorder.options.retain
    if status != "ok" or recorder.totals.errors or recorder.lost:
        return
    if isinstance(retain, (int, float)) and _share(recorder.run_id) < retain:
        return
    sink = recorder.sink
    first = recorder.first_path
    if sink is None or first is None or not sink.regular:
        return
    if not sink.own_from_start or _measures(first, sink.size, recorder.segment):
        guard.tell(f"retain:{first}", f"{guard.shown(first)} holds other runs too, so retain= is ignored.")
        return
    _delete(first, recorder.stem, recorder.run_id)


def _share(run_id: str) -> float:
    """Return a number from 0 to 1 that is the same in every process of the run."""
    with import_lock:
        from hashlib import blake2b

    return int.from_bytes(blake2b(run_id.encode("utf-8", "replace"), digest_size=4).digest(), "big") / 2**32


def _measures(path: str, size: int, segment: int) -> bool:
    """True if somebody else has written to our first file."""
    return segment == 0 and os.path.getsize(path) != size


def _delete(first: str, stem: str, run_id: str) -> None:
    """Remove the file, and segments, further processes and blobs as far as they are this run's."""
    folder, base = os.path.split(stem)
    parts = [name for name in os.listdir(folder or ".") if _is_part(name, base)]
    foreign = [name for name in parts if not _begins_with(os.path.join(folder, name), run_id)]
    ours = [os.path.join(folder, name) for name in parts if name not in foreign]
    if not all(_ended_well(path) for path in ours if os.path.basename(path).startswith(base + ".p")):
        return
    for path in (first, *ours):
        os.unlink(path)
    blobs = stem + ".blobs"
    if not foreign and os.path.isdir(blobs) and not os.path.islink(blobs):
        for name in os.listdir(blobs):
            if len(name) >= 64 and _is_hex(name[:64]):
                os.unlink(os.path.join(blobs, name))
        if not os.listdir(blobs):
            os.rmdir(blobs)


def _is_part(name: str, base: str) -> bool:
    """True for ``base.s0001.jsonl`` and ``base.p77aa01bc.jsonl``, not for another run's longer name."""
    if not name.startswith(base + ".") or not name.endswith(".jsonl"):
        return False
    return all(
        (part[:1] == "s" and len(part) > 4 and part[1:].isdecimal())
        or (part[:1] == "p" and len(part) == 9 and _is_hex(part[1:]))
        for part in name[len(base) + 1 : -len(".jsonl")].split(".")
    )


def _begins_with(path: str, run_id: str) -> bool:
    """True if the first line is of this run: an earlier one may have left parts under the same name."""
    with open(path, "rb") as file:
        first = file.readline(1 << 16)
    try:
        return bool(parse(first).get("run") == run_id)
    except ValueError:
        return False


def _ended_well(path: str) -> bool:
    """True if a further process of the run has ended without an error; its file is kept otherwise."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - (1 << 16)))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    try:
        end = parse(last)
        return end.get("kind") == PROC_END and not end["tot"]["err"] and not end.get("dropped")
    except (ValueError, KeyError, TypeError):
        return False


def _is_hex(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)
