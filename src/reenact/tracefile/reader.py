"""read_events: the event views of a trace, streamed, whatever has happened to the file.

Memory does not grow with the file. Damage becomes findings; the only refusals are a file that is
no trace in any dialect (NotATrace) and one of another major version (NewerSchema).
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan
from typing import Any

from .. import lines, schema
from ..errors import NewerSchema, NoSuchRun, NotATrace, ReenactError, TraceFileError
from . import dialects, run_files
from .dialects import Envelope
from .events.event import Event
from .events.event_source import Shelf
from .findings import Finding, Note, OnFinding
from .plain_files import not_plain, open_plain
from .records import Read, records

Placed = tuple[Envelope, "dict[str, Any] | None", int]
"""An event's envelope, fields and place."""


def read_events(
    path: str | os.PathLike[str],
    *,
    on_finding: OnFinding | None = None,
    run: str | None = None,
    blobs: str | None = None,
) -> Iterator[Event]:
    """Yield the events of a trace file with its segments and other processes, or of all in a folder.

    Bookkeeping is included. ``run`` selects one run by id or unique prefix; ``blobs`` is a further
    folder to seek long texts in. Damage goes to ``on_finding`` as it is met.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        yield from _read_folder(path, on_finding, run, blobs)
        return
    wanted = resolve_run(run, run_ids(path), path) if run is not None else None
    shelf = Shelf(path, on_finding, blobs)
    index = 0
    for envelope, fields, place in placed(path, shelf, on_finding):
        if wanted is not None and envelope.run != wanted:
            continue
        if is_bookkeeping(envelope):
            yield Event(envelope, fields, place, shelf, None)
        else:
            yield Event(envelope, fields, place, shelf, index)
            index += 1
    shelf.note.close()


@contextmanager
def one_of_many(path: str) -> Iterator[None]:
    """Turn whatever goes wrong with one file into an error about that file, so that the others are read."""
    try:
        yield
    except (ReenactError, OSError):
        raise
    except Exception as why:
        raise unexpected(path, why) from why


def unexpected(path: str, why: Exception) -> TraceFileError:
    """Return an error about a file for one that nobody foresaw."""
    return TraceFileError(f"{path} cannot be read ({type(why).__name__}: {why})", path=path)


def _read_folder(
    folder: str, on_finding: OnFinding | None, run: str | None, blobs: str | None
) -> Iterator[Event]:
    files = run_files.trace_files(folder)
    if not files:
        raise NotATrace(f"{folder} holds no trace file", path=folder, hint="trace files end in .jsonl")
    found = run is None
    for path in files:
        try:
            if (reason := not_plain(path)) is not None:
                raise OSError(f"{path} is {reason}")
            events = read_events(path, on_finding=on_finding, run=run, blobs=blobs)
            while True:
                with one_of_many(path):  # not around the yield: what the caller does is its own
                    event = next(events, None)
                if event is None:
                    break
                found = True
                yield event
        except NoSuchRun:
            continue
        except (TraceFileError, OSError) as why:
            if on_finding is not None:
                on_finding(Finding("foreign" if isinstance(why, NotATrace) else "unreadable", str(why), path))
    if not found:
        raise NoSuchRun(f"no run in {folder} has the id {run!r}", asked=str(run))


def placed(
    path: str,
    shelf: Shelf,
    on_finding: OnFinding | None,
    read: Read | None = None,
    names: list[str] | None = None,
) -> Iterator[Placed]:
    """Yield every event of a family in time order, each writer's own order kept, checked for gaps.

    ``names`` are the files beside it that may belong to it; they spare a directory listing.
    """
    files = run_files.streams(path, names, lambda file, reason: shelf.note("skipped", f"{file} is {reason}"))
    chains = [_chain(each, shelf, on_finding, read) for each in files]
    merged = chains[0] if len(chains) == 1 else heapq.merge(*chains, key=placed_time)
    checks = Checks(shelf.note)
    count = 0
    for item in merged:
        checks.see(item[0], item[1])
        count += 1
        yield item
    checks.close()
    if count == 0:
        refuse_if_foreign(path, on_finding)


def placed_time(item: Placed) -> float:
    ts = item[0].ts
    return ts if ts is not None and not isnan(ts) else 0.0


def _chain(
    files: list[str], shelf: Shelf, on_finding: OnFinding | None, read: Read | None = None
) -> Iterator[Placed]:
    """One writer's file and its later segments, one after the other."""
    steps: dict[str | None, int] = {}
    for path in files:
        base = shelf.add(path)
        note = Note(path, on_finding)
        first = True
        for envelope, fields, offset, line, _ in records(path, note, read=read):
            if envelope.dialect == dialects.OURS:
                if first and envelope.kind not in schema.HEADS:
                    note(
                        "no-header", "the first line of the file is lost; name and version are unknown", line
                    )
                if envelope.kind in schema.HEADS and fields is not None:
                    check_version(fields.get("v"), note, line)
            elif envelope.step is None:  # numbered here, so that every event has an address
                steps[envelope.run] = steps.get(envelope.run, 0) + 1
                envelope = envelope._replace(step=steps[envelope.run])
            first = False
            yield envelope, fields, base | offset


class Checks:
    """Watches the steps of each writer for lost and repeated ones.

    An event of a signal handler stands before the one it interrupted, so a skipped step may still come.
    """

    __slots__ = ("_last", "_note", "_skipped")

    _LATE = 32
    """So many steps later a skipped one is missing."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._last: dict[str, int] = {}
        self._skipped: dict[str, list[int]] = {}

    def see(self, envelope: Envelope, fields: dict[str, Any] | None) -> None:
        """Take note of the next event."""
        if envelope.dialect != dialects.OURS or envelope.step is None:
            return
        w, step = envelope.w, envelope.step
        last = self._last.get(w, 0)
        if step <= last:
            if step in self._skipped.get(w, ()):
                self._skipped[w].remove(step)
            else:
                self._note("repeat", f"step {step} of writer {w} comes again after step {last}")
            return
        self._last[w] = step
        if self._skipped and step > max(self._skipped.get(w) or [step]) + self._LATE:
            self._give_up(w)
        if step > last + 1 and (last or envelope.kind != schema.RUN_MORE):  # a segment may be read alone
            if step - last > self._LATE:
                self._missing(w, last + 1, step - 1)
            else:
                self._skipped.setdefault(w, []).extend(range(last + 1, step))

    def close(self) -> None:
        """Nothing comes any more."""
        for w in list(self._skipped):
            self._give_up(w)

    def _give_up(self, w: str) -> None:
        steps = self._skipped.pop(w)
        while steps:
            count = next((i for i, step in enumerate(steps) if step != steps[0] + i), len(steps))
            self._missing(w, steps[0], steps[count - 1])
            del steps[:count]

    def _missing(self, w: str, first: int, last: int) -> None:
        which = f"step {first}" if first == last else f"steps {first} to {last}"
        lost = "1 event is" if first == last else f"{last - first + 1:,} events are"
        self._note("gap", f"{lost} missing: {which} of writer {w}")


def check_version(found: object, note: Note, line: int | None = None) -> None:
    """Raise NewerSchema for another major version; note a newer minor one."""
    major, _, minor = found.partition(".") if type(found) is str else ("", "", "")
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        note("version", "the first line does not say which version of the format this is", line)
        return
    our_major, _, our_minor = schema.VERSION.partition(".")
    if len(major) > 4 or int(major) != int(our_major):
        raise NewerSchema(
            f"{note.path} is written in version {found} of the format; this reenact reads {our_major}.x",
            found=str(found),
            supported=schema.VERSION,
            path=note.path,
        )
    if len(minor) > 4 or int(minor) > int(our_minor):
        note(
            "newer-minor", f"written by a newer reenact (format {found}); what is new in it is skipped", line
        )


def is_bookkeeping(envelope: Envelope) -> bool:
    """True for the recorder's own lines."""
    return envelope.dialect == dialects.OURS and schema.is_bookkeeping(envelope.kind)


def run_ids(path: str) -> list[str]:
    """Return the ids of the runs in a family of files, in order of first appearance."""
    shelf = Shelf(path)
    ids: dict[str, None] = {}
    for files in run_files.streams(path):
        for envelope, _, _ in _chain(files, shelf, None):
            if envelope.run is not None:
                ids.setdefault(envelope.run)
    return list(ids)


def resolve_run(run: str, ids: list[str], path: str) -> str:
    if run in ids:
        return run
    found = [candidate for candidate in ids if run and candidate.startswith(run)]
    if len(found) == 1:
        return found[0]
    if found:
        message = f"{len(found)} runs in {path} have an id that begins with {run}"
        raise NoSuchRun(message, asked=run, hint="it could be " + ", ".join(found[:5]))
    hint = "it holds " + ", ".join(ids[:5]) if ids else None
    raise NoSuchRun(f"no run in {path} has an id that begins with {run!r}", asked=run, hint=hint)


def refuse_if_foreign(path: str, on_finding: OnFinding | None) -> None:
    """Raise NotATrace unless the file is empty, or torn in its first event of ours."""
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        if on_finding is not None:
            on_finding(Finding("empty", "the file is empty: nothing was recorded yet", path))
        return
    with open(open_plain(path, follow=True), "rb") as file:
        head = file.read(1 << 16)
    clean = head.removeprefix(b"\xef\xbb\xbf").strip(b"\0 \t\r\n")
    if not clean or (lines.START.startswith(clean[: len(lines.START)]) and clean[:1] == b"{"):
        return
    raise NotATrace(
        f"{path} is not a trace: {_looks_like(clean)}",
        path=path,
        hint="reading other formats will come with importers",
    )


def _looks_like(head: bytes) -> str:
    if b"\0" in head:
        return "it is binary"
    from .records import first_object

    fields = first_object(head)
    if fields is None:
        return "no line of it is a JSON object"
    what = dialects.foreign(fields)
    return f"it looks like {what}" if what else "its JSON objects are not events in any form we know"


def require_file(path: str) -> None:
    """Raise TraceFileError if there is nothing to read, OSError if it may not be looked at."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise TraceFileError(f"{path} does not exist", path=path, hint=_near(path)) from None


def _near(path: str) -> str | None:
    folder, name = os.path.split(path)
    try:
        names = run_files.heads([name for name in os.listdir(folder or ".") if name.endswith(".jsonl")])
    except OSError:
        return None
    import difflib

    stems = [each.removesuffix(".jsonl") for each in names]
    near = difflib.get_close_matches(name.removesuffix(".jsonl"), stems, 3, 0.5) or stems[-3:]
    return f"there is {', '.join(stem + '.jsonl' for stem in near)}" if near else None
