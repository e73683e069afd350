"""``reenact doctor``: what is damaged in a trace, what still holds, and a clean copy if asked for."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator
from typing import Any

from ... import schema
from ...errors import ReenactError, TraceFileError, UsageError
from ...recording.run_addresses import require_plain
from ...totals import Totals
from ...tracefile.event import Event
from ...tracefile.findings import Finding, Findings
from ...tracefile.reader import read_events
from ...tracefile.repair import repair
from ...tracefile.text import clean, count
from .. import run_argument
from ..main import complain
from ..output import Output

DESCRIPTION = """\
Read a whole trace and report what is damaged, with line and byte, and what is still readable: every request
is rebuilt and verified, and every long text is checked by its digest. Never changes the input. Exit code 1 if
anything was found, 2 if a file is not a trace."""
EXAMPLES = """\
  reenact doctor trip.jsonl                       check one file
  reenact doctor runs/                            check all files in a folder
  reenact doctor trip.jsonl --repair clean.jsonl  write a copy of everything that is intact
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", metavar="RUN", help="runs, files or folders (default: @last)")
    parser.add_argument("--repair", metavar="OUT", help="write a clean copy to this new file or folder")
    run_argument.add_blobs(parser)
    run_argument.add_json(parser, "print one JSON object per file")


def run(args: argparse.Namespace, out: Output) -> int:
    paths = run_argument.files_of(args.what or ["@last"])
    if not paths:
        raise TraceFileError(f"{', '.join(args.what)} holds no trace file", hint="trace files end in .jsonl")
    if args.repair and len(paths) > 1 and not os.path.isdir(args.repair) and not args.repair.endswith("/"):
        raise UsageError(f"{len(paths)} files cannot be repaired into one", hint="name a folder: OUT/")
    code = 0
    for path in paths:
        try:
            require_plain(path)
            checked = Checkup(path, args.blobs)
        except (ReenactError, OSError) as why:
            code = complain(out, why)
            continue
        code = max(code, 1 if checked.findings else 0)
        if args.json:
            out.json_line(checked.as_dict())
        else:
            checked.report(out, is_repaired=bool(args.repair))
        if args.repair:
            repair(path, args.repair)
            out.say(clean(f"A copy of everything intact is in {args.repair}; {path} is unchanged."))
    return code


class Checkup:
    """What a whole pass over one file finds, with its segments, processes and long texts."""

    def __init__(self, path: str, blobs: str | None) -> None:
        self.path = path
        self.findings = Findings()
        self.totals = Totals()
        self.lines = self.requests = self.proved = self.blobs = self.whole_blobs = 0
        self._seen: set[str] = set()
        self._runs: set[str | None] = set()
        for event in read_events(path, on_finding=self.findings.add, blobs=blobs):
            self._check(event)

    def _check(self, event: Event) -> None:
        self.lines += 1
        self._runs.add(event.run_id)
        if event.is_partial:  # longer than a line is ever held in memory
            return
        fields = event.stored_fields
        self.totals.add(event.kind, fields)
        if event.kind == schema.MODEL_REQUEST and event.is_ours:
            self.requests += 1
            self.proved += event.stored_in.history.proves(fields)
        for reference in _references(fields):
            if reference not in self._seen:
                self._seen.add(reference)
                self._check_blob(event, reference)

    def _check_blob(self, event: Event, reference: str) -> None:
        self.blobs += 1
        path = event.stored_in.blobs.path(reference)
        short = reference[:15] + "…"
        if path is None:
            message = f"the long text {short} of step {event.step} is not beside the file; its beginning is"
            self.findings.add(Finding("blob-missing", message, self.path))
        elif _digest(path) != os.path.basename(path):
            message = f"the long text {short} of step {event.step} is not what was written"
            self.findings.add(Finding("blob-damaged", message, self.path))
        else:
            self.whole_blobs += 1

    def report(self, out: Output, *, is_repaired: bool) -> None:
        """Write the findings, then what holds."""
        for finding in self.findings:
            byte = f", byte {finding.byte:,}" if finding.byte is not None else ""
            line = f", line {finding.line:,}" if finding.line is not None else ""
            text = clean(f"{finding.path}{line}{byte}: {finding.message}")
            out.line(f"{text} {out.paint(f'[{finding.code}]', 'dim')}")
        holds = [f"{count(self.lines, 'event')} can be read"]
        if self.requests:
            holds.append(f"{self.proved:,} of {count(self.requests, 'request')} rebuilt and proved")
        if self.blobs:
            holds.append(f"{self.whole_blobs:,} of {count(self.blobs, 'long text')} whole")
        if len(self._runs) > 1:
            holds.append(f"{len(self._runs):,} runs")
        verdict = count(len(self.findings), "finding") if self.findings else "nothing is damaged"
        style = "yellow" if self.findings else "green"
        out.line(f"{clean(self.path)}: {out.paint(verdict, style)}; {', '.join(holds)}")
        if self.findings and self.lines and not is_repaired:
            out.say(
                clean(f"\nhint: `reenact doctor {self.path} --repair OUT` writes a copy of everything intact")
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the same for programs."""
        return {
            "path": self.path,
            "findings": [finding._asdict() for finding in self.findings],
            "lines": self.lines,
            "runs": len(self._runs),
            "tot": self.totals.as_tot(),
            "requests": {"all": self.requests, "proved": self.proved},
            "blobs": {"all": self.blobs, "whole": self.whole_blobs},
        }


def _references(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            if type(value.get("$blob")) is str:
                yield value["$blob"]
            waiting.extend(value.values())
        elif type(value) is list:
            waiting.extend(value)


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
