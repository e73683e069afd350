"""``reenact doctor``: what is damaged in a trace, what still holds, and a clean copy with --repair."""

from __future__ import annotations

import argparse
import os

from ...capture.redact.redactor import Redactor
from ...debugger.checkup import Checkup
from ...errors import ReenactError, TraceFileError, UsageError
from ...tracefile.events.text import clean, count
from ...tracefile.reader import one_of_many
from ...tracefile.repair import repair
from .. import run_argument
from ..main import complain
from ..output import Output

DESCRIPTION = """\
Read a whole trace and report what is damaged, with line and byte, and what is still readable: every request
is rebuilt and verified, and every long text is checked by its digest. Reports secrets, by kind and line, that
the rules of today find in a trace, because it is older or was recorded without redaction. Never changes the
input. Exit code 1 if anything was found, 2 if a file is not a trace."""
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
            run_argument.require_readable(path, args.what)
            with one_of_many(path):
                checked = Checkup(path, args.blobs, Redactor({}))
        except (ReenactError, OSError) as why:
            code = complain(out, why)
            continue
        code = max(code, 1 if checked.findings else 0)
        if args.json:
            out.json_line(checked.as_dict())
        else:
            _print(checked, out, is_repaired=bool(args.repair))
        if args.repair:
            repair(path, args.repair)
            out.say(clean(f"A copy of everything intact is in {args.repair}; {path} is unchanged."))
    return code


def _print(checked: Checkup, out: Output, *, is_repaired: bool) -> None:
    """Write the findings, then what holds."""
    for finding in checked.findings:
        byte = f", byte {finding.byte:,}" if finding.byte is not None else ""
        line = f", line {finding.line:,}" if finding.line is not None else ""
        text = clean(f"{finding.path}{line}{byte}: {finding.message}")
        out.line(f"{text} {out.paint(f'[{finding.code}]', 'dim')}")
    holds = [f"{count(checked.lines, 'event')} can be read"]
    if checked.requests:
        holds.append(f"{checked.proved:,} of {count(checked.requests, 'request')} rebuilt and proved")
    if checked.blobs:
        holds.append(f"{checked.whole_blobs:,} of {count(checked.blobs, 'long text')} whole")
    if len(checked.runs) > 1:
        holds.append(f"{len(checked.runs):,} runs")
    verdict = count(len(checked.findings), "finding") if checked.findings else "nothing is damaged"
    style = "yellow" if checked.findings else "green"
    out.line(f"{clean(checked.path)}: {out.paint(verdict, style)}; {', '.join(holds)}")
    if any(finding.code == "secret" for finding in checked.findings):
        out.say("\nhint: these secrets stay in the file: change them, or delete it")
    is_damaged = any(finding.code != "secret" for finding in checked.findings)
    if is_damaged and checked.lines and not is_repaired:
        out.say(
            clean(f"\nhint: `reenact doctor {checked.path} --repair OUT` writes a copy of everything intact")
        )
