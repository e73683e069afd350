"""Which files belong to one trace file: its rotated segments, other processes, blobs.

Pure name arithmetic plus one directory listing; used by the reader, ``ls``, follow and repair.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import NamedTuple

from .plain_files import not_plain

_MEMBER = re.compile(r"^(?P<stem>.+?)(?:\.p(?P<w>[0-9a-f]{4,32}))?(?:\.s(?P<segment>\d{4,}))?\.jsonl$")


Skipped = Callable[[str, str], object]
"""Gets the path of a file that is not read, and the reason."""


class Member(NamedTuple):
    """One file's place in its family."""

    stem: str
    """Path without ``.jsonl``, process and segment: what all files of a run share."""
    writer: str
    """The ``<w>`` of a further process's file, "" for the first one's."""
    segment: int
    """0 for the file a writer began with."""


def member(path: str) -> Member:
    """Take a file's name apart."""
    folder, name = os.path.split(path)
    found = _MEMBER.match(name)
    if found is None:
        return Member(os.path.splitext(path)[0], "", 0)
    return Member(os.path.join(folder, found["stem"]), found["w"] or "", int(found["segment"] or 0))


def stem(name: str) -> str:
    """Return what the names of all files of a run begin with."""
    stop = len(name) - 6
    if name.find(".") == stop > 0 and name.endswith(".jsonl"):  # of a folder full of runs, most
        return name[:stop]
    return member(name).stem


def name_of(path: str) -> str:
    """Return what a run is called that was given no name."""
    return stem(os.path.basename(path))


def streams(path: str, names: list[str] | None = None, on_skipped: Skipped | None = None) -> list[list[str]]:
    """Return the files to read for ``path``: one list per writer stream, segments in order.

    A process's own file stands for itself and its segments only. ``names`` spares a directory listing.
    A link, pipe or device with such a name is left out and reported to ``on_skipped``, with the reason.
    """
    folder, own = os.path.split(path)
    if names is None:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            names = [own]
    prefix = os.path.splitext(own)[0] + "."
    own_part = member(path)
    found: dict[str, list[tuple[int, str]]] = {own_part.writer: [(own_part.segment, path)]}
    for name in names:
        if not name.startswith(prefix) or name == own or not name.endswith(".jsonl"):
            continue
        file = os.path.join(folder, name)
        part = member(file)
        if not part.writer and not part.segment:
            continue  # another file's beginning: t.jsonl beside t.log
        if part.stem != own_part.stem or (own_part.writer and part.writer != own_part.writer):
            continue
        reason = not_plain(file)
        if reason is None:
            found.setdefault(part.writer, []).append((part.segment, file))
        elif on_skipped is not None:
            on_skipped(file, reason)
    return [[file for _, file in sorted(files)] for _, files in sorted(found.items())]


def heads(names: list[str]) -> list[str]:
    """Return the names that begin a family, leaving out segments and further processes of another."""
    if len(names) == 1:
        return names
    known = set(names)
    result = []
    for name in sorted(names):
        part = member(name)
        if (part.writer or part.segment) and part.stem + ".jsonl" in known:
            continue
        if part.segment and part.writer and f"{part.stem}.p{part.writer}.jsonl" in known:
            continue
        result.append(name)
    return result


def trace_files(folder: str) -> list[str]:
    """Return the paths in a folder that begin a family, sorted by name; other files are left out."""
    return list(families(folder))


def families(folder: str) -> dict[str, list[str]]:
    """Return the paths of ``trace_files``, each with the names that may belong to it.

    The folder is listed once, however many there are.
    """
    stems: dict[str, list[str]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl") and not _is_folder(entry):
                stems.setdefault(stem(entry.name), []).append(entry.name)
    found = {head: names for names in stems.values() for head in heads(names)}
    return {os.path.join(folder, head): found[head] for head in sorted(found)}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself: whoever opens it says so
        return False


def blob_folders(path: str) -> list[str]:
    """Return where the blobs of a file are sought."""
    own = os.path.splitext(path)[0] + ".blobs"
    shared = member(path).stem + ".blobs"
    return [own] if own == shared else [own, shared]


_NAMED = re.compile(r"\d{8}-\d{6}-")
_STAMP = 15
"""Letters of a file's name that tell the second in which its run began."""


def has_recorders_name(path: str) -> bool:
    """True if a file is called as a recorder calls it: by the time, so that it is among the runs it was made
    with."""
    return _NAMED.match(os.path.basename(path)) is not None


def files_beside(path: str, ended: float | None = None) -> list[str]:
    """Return the files that may have been begun while a run went on, as far as their names tell."""
    folder, own = os.path.split(os.path.abspath(path))
    since = own[:_STAMP] if has_recorders_name(own) else ""
    try:
        until = time.strftime("%Y%m%d-%H%M%S", time.gmtime(ended)) if ended is not None else "9"
    except (OverflowError, ValueError, OSError):  # no time of this world
        until = "9"
    try:
        files = trace_files(folder)
    except OSError:
        return []
    names = ((file, os.path.basename(file)) for file in files)
    return [
        file
        for file, name in names
        if name != own and (not has_recorders_name(name) or since <= name[:_STAMP] <= until)
    ]
