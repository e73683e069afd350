"""repair: a copy of a trace with every event that can be read, each on a line of its own.

The input is never changed; the blobs are linked, or copied where links are not possible. Where the copy
cannot be finished, on a full disk for instance, nothing of it is left.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from contextlib import suppress

from .. import lines, schema
from ..errors import UsageError
from . import run_files
from .dialects import OURS
from .findings import Finding, Findings, Note
from .reader import require_file
from .records import Record, parse, records

_PIECE = 1 << 20


def repair(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[Finding]:
    """Write the copy and return what was found; UsageError if ``out`` is there already.

    Segments and other processes of the run are copied likewise, under the new name.
    """
    source, target = os.fspath(path), os.fspath(out)
    require_file(source)
    if os.path.isdir(target) or target.endswith("/"):
        target = os.path.join(target, os.path.basename(source))
    files = [file for chain in run_files.streams(source) for file in chain]
    stem, new_stem = os.path.splitext(source)[0], os.path.splitext(target)[0]
    targets = [target, *(new_stem + file[len(stem) :] for file in files[1:])] if files else []
    for file in targets:
        if os.path.lexists(file):
            raise UsageError(f"{file} is there already, and repair changes no file", hint="give another name")
    findings = Findings()
    made: list[str] = []
    try:
        _make_folder(os.path.dirname(target), made)
        for file, copy in zip(files, targets, strict=True):
            _copy(file, copy, findings, made)
        for folder in run_files.blob_folders(source):
            if os.path.isdir(folder):
                _copy_blobs(folder, new_stem + ".blobs", made)
    except BaseException as why:
        _remove(made)
        if isinstance(why, OSError) and why.errno in _FULL and why.filename is None:
            why.filename = target  # a write does not know what it writes to
        raise
    return findings


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _make_folder(folder: str, made: list[str], mode: int = 0o777) -> None:
    if folder and not os.path.isdir(folder):
        _make_folder(os.path.dirname(folder), made)
        os.mkdir(folder, mode)
        made.append(folder)


def _remove(made: list[str]) -> None:
    for path in reversed(made):
        with suppress(OSError):
            (os.rmdir if os.path.isdir(path) else os.unlink)(path)


def _copy(path: str, target: str, findings: Findings, made: list[str]) -> None:
    note = Note(path, findings.add)
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    made.append(target)
    with open(fd, "wb") as out, open(path, "rb") as file:
        for record in records(path, note):
            if record.fields is None:  # too long to hold
                file.seek(record.offset)
                left = record.size
                while left > 0 and (piece := file.read(min(left, _PIECE))):
                    out.write(piece)
                    left -= len(piece)
                out.write(b"\n")
            else:
                file.seek(record.offset)
                out.write(_clean(record, file.read(record.size)))
    if os.path.getsize(target) == 0:
        note("empty", "no event could be read")


def _clean(record: Record, data: bytes) -> bytes:
    """Return an event's own bytes if they are whole, else its fields written anew."""
    try:
        if parse(data) == record.fields and data.startswith(b"{"):
            return data.rstrip(b"\0\r\n \t") + b"\n"
    except ValueError:
        pass
    assert record.fields is not None
    ts, *_, dialect = record.envelope
    order = [key for key in schema.ENVELOPE if key in record.fields]
    order += [key for key in record.fields if key not in schema.ENVELOPE]
    items = [(key, json.dumps(record.fields[key], separators=(",", ":"))) for key in order]
    is_stamped = dialect == OURS and ts is not None and math.isfinite(ts)
    return lines.rewritten(ts if is_stamped else None, items).encode("ascii")


def _copy_blobs(folder: str, target: str, made: list[str]) -> None:
    _make_folder(target, made, 0o700)
    for name in os.listdir(folder):
        source, copy = os.path.join(folder, name), os.path.join(target, name)
        if not os.path.isfile(source) or os.path.islink(source) or os.path.lexists(copy):
            continue
        try:
            os.link(source, copy)
            made.append(copy)
        except OSError:
            made.append(copy)
            shutil.copyfile(source, copy)
