"""``reenact cat``: a run's events as written, or whole, or without what differs between equal runs."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ... import lines, schema
from ...debugger.stable_events import Stable
from ...recording.listing import head_and_tail
from ...recording.recording import Recording, recording_at
from ...recording.run_addresses import locate
from ...tracefile import run_files
from ...tracefile.events.event import Event
from ...tracefile.events.text import count, dump
from ...tracefile.file_ends import read_ends
from ...tracefile.findings import Finding, Findings, Note
from ...tracefile.reader import check_version, read_events
from ...tracefile.records import raw_lines
from .. import run_argument
from ..output import Output

DESCRIPTION = """\
Print the events of a run, by default the lines exactly as stored. --full rebuilds every request with its
whole conversation and every long text. --stable leaves out times, ids, durations and process details.
With addresses (12, p77aa:12, turn:3, call:a1b2, @error), print only those events."""
EXAMPLES = """\
  reenact cat @last --kind tool.result              the lines of one kind
  reenact cat trip.jsonl --full --json turn:3       a request as the model saw it
  diff <(reenact cat --stable a.jsonl) <(reenact cat --stable b.jsonl)
"""

_ADDRESS = re.compile(r"\d{1,7}|turn:.*|call:.*|p[0-9a-f]+:\d+|@error")
_PIECE = 1 << 20
Write = Callable[[bytes], object]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="*",
        metavar="RUN ADDRESS",
        help=f"RUN: {run_argument.RUN_HELP}; then addresses of events",
    )
    parser.add_argument("--full", action="store_true", help="print requests and long texts in full")
    parser.add_argument(
        "--stable", action="store_true", help="leave out times, ids, durations and process details"
    )
    run_argument.add_json(parser, "print indented JSON, one document per event")
    run_argument.add_kind(parser)
    run_argument.add_run_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    address, wanted = _split(args.what)
    write = out.raw()
    findings = Findings()
    if wanted:
        recording = recording_at(address, run=args.run, blobs=args.blobs)
        findings = recording.findings  # type: ignore[assignment]
        events: Iterable[Event] = _addressed(recording, wanted)
    else:
        path, found = locate(address)
        chosen = args.run or found
        plain = not (args.full or args.stable or args.json or args.kind)
        if plain and _is_one_run(path, chosen):
            run_argument.report(_copy(path, write), out)
            return 0
        events = read_events(
            path, run=_run_id(path, chosen, findings), blobs=args.blobs, on_finding=findings.add
        )
    try:
        _print(events, args, write, out)
    finally:
        run_argument.report(findings, out)
    return 0


def _split(words: list[str]) -> tuple[str | None, list[str]]:
    """Return the run and the events: a first word that reads like an event is one, of the newest run."""
    if words and (os.path.exists(words[0]) or not _ADDRESS.fullmatch(words[0])):
        return words[0], words[1:]
    return None, words


def _addressed(recording: Recording, wanted: list[str]) -> Iterator[Event]:
    for text in wanted:
        yield recording.event(text)


def _run_id(path: str, chosen: str | None, findings: Findings) -> str | None:
    """Return which run of a shared file is meant; None if it holds one only, or all are wanted."""
    if chosen == "*":
        return None
    if chosen is not None:
        return chosen
    rows = head_and_tail(path)
    ids = {row.id for row in rows}
    if len(ids) > 1:
        message = (
            f"the file holds {len(ids)} runs; this is the newest. --run selects another, --run '*' takes all"
        )
        findings.add(Finding("several-runs", message, path))
        return rows[-1].id
    return None


def _is_one_run(path: str, chosen: str | None) -> bool:
    """True if the lines are one writer's work on one run, so that they can be passed on as they are."""
    files = run_files.streams(path)
    if len(files) > 1 or len(files[0]) > 1:
        return False
    ends = read_ends(path)
    only = ends.last[1] if ends is not None else _only_run(path)
    return only is not None and (chosen is None or chosen == "*" or only.startswith(chosen))


def _only_run(path: str) -> str | None:
    """Return the id of the one run in a file; None if there are several. Reads all of it."""
    heads = (lines.peek(data) for _, _, _, data, _ in raw_lines(path))
    found: set[str] = set()
    for head in heads:
        if head is not None:
            found.add(head[1])
            if len(found) > 1:
                return None
    return found.pop() if found else None


def _copy(path: str, write: Write) -> list[Finding]:
    """Pass on the lines of a file, of any length; return whether some of them are not events."""
    odd, first = 0, None
    with open(path, "rb", buffering=0) as file:
        for number, offset, size, data, ended in raw_lines(path):
            head = lines.peek(data)
            if head is None or data[-1:] != b"}":
                odd += 1
                first = first or number
            elif head[4] in schema.HEADS and len(data) == size:
                _check_version(data, path)
            if len(data) == size:
                write(data + b"\n" if ended else data)
                continue
            at, end = offset, offset + size + ended
            while at < end and (piece := os.pread(file.fileno(), min(_PIECE, end - at), at)):
                write(piece)
                at += len(piece)
    if not odd:
        return []
    message = (
        f"{count(odd, 'line')} from here on cannot be read as events of ours; `reenact doctor` says more"
    )
    return [Finding("odd-lines", message, path, first)]


def _check_version(data: bytes, path: str) -> None:
    try:
        check_version(lines.parse(data).get("v"), Note(path, None))
    except ValueError:  # damaged, which is counted elsewhere
        pass


def _print(events: Iterable[Event], args: argparse.Namespace, write: Write, out: Output) -> None:
    stable = Stable() if args.stable else None
    for event in events:
        if args.kind and event.kind not in args.kind and event.event_type not in args.kind:
            continue
        if not (args.full or args.stable or args.json):
            for piece in _stored_line(event):
                write(piece)
            write(b"\n")
            continue
        fields = event.payload if args.full else event.stored_fields
        if stable is not None:
            fields = stable.event(fields)
        if args.json:
            out.pretty(fields)
        else:
            write(line_of(fields) + b"\n")


def _stored_line(event: Event) -> Iterable[bytes]:
    """Return the bytes of an event in pieces; written anew if they share their line with something else."""
    source, offset = event.stored_in.at(event.stored_at)
    if event.is_partial:
        return source.pieces(offset)
    data = source.line(offset).rstrip(b"\r\0")
    fields = event.stored_fields
    try:
        return [data if lines.parse(data) == fields else line_of(fields)]
    except ValueError:
        return [line_of(fields)]


def line_of(fields: dict[str, Any]) -> bytes:
    """Return fields as a line in the spelling of the format."""
    items = ((str(key), _compact(value)) for key, value in fields.items())
    return lines.rewritten(None, items).rstrip("\n").encode("ascii")


def _compact(value: Any) -> str:
    return dump(value, separators=(",", ":"))
