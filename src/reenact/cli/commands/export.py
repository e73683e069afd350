"""``reenact export``: a run as one HTML file to send to a colleague."""

from __future__ import annotations

import argparse
import os

from ...pages.document import write_page
from ...pages.run.run_file_page import run_file_page
from ...recording.recording import recording_at
from ...tracefile.events.text import clean
from .. import run_argument
from ..output import Output

DESCRIPTION = """\
Write a run as one HTML file that opens from disk: how it ended, its suspects, and turn by turn what was new
in the prompt, the responses, the tools and their results. It loads nothing; the turns of a large run are
unpacked when they are opened. It is redacted like the trace, and its end says what was left out. An
existing file that is not such a page needs --force."""
EXAMPLES = """\
  reenact export @failed --html failed.html
  reenact export trip.jsonl --html trip.html --force
"""


def configure(parser: argparse.ArgumentParser) -> None:
    run_argument.add_run(parser)
    parser.add_argument("--html", required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace a file that is not a page of reenact")
    run_argument.add_json(parser, "print the path and the size as a JSON object")
    run_argument.add_run_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    recording = recording_at(args.run_address, run=args.run, blobs=args.blobs)
    write_page(args.html, run_file_page(recording), force=args.force)
    run_argument.report(recording.findings, out)
    size = os.path.getsize(args.html)
    if args.json:
        out.json_line({"path": args.html, "bytes": size})
    else:
        out.line(clean(f"{args.html}  {size:,} bytes"))
    return 0
