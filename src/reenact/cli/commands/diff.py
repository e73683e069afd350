"""``reenact diff``: where two runs differ, why, and what followed."""

from __future__ import annotations

import argparse

from ...compare.diff import diff
from ...compare.report import SAME
from ...errors import UsageError
from ...recording.recording import recording_at
from .. import run_argument
from ..output import Output, Progress
from ..view.comparison import show_comparison, show_headline
from ..view.run_sets import show_run_sets

DESCRIPTION = """\
Compare two runs step by step: where they differ first, why, and what followed from it. A is the left side, B
the right one. Without B, a replay or fork is compared with the run it was made from, any other run with the
one of its name before it, which then is the left side.

With --good and --bad, compare sets of runs: where the bad runs leave the path of the good ones, and what
separates them.

Ignored are clocks, durations, token counts and ids, and what [diff] in reenact.toml or [tool.reenact.diff] in
pyproject.toml names. Exit code 0: the same; 1: different, or nobody can tell; 2: unusable input."""
EXAMPLES = """\
  reenact diff @prev @last               the two newest runs
  reenact diff @fork                     a fork and the run it was made from
  reenact diff good.jsonl bad.jsonl --summary
  reenact diff A B --ignore tool.get_price.result.fetched_at
  reenact diff --good 'runs/ok-*' --bad 'runs/fail-*'
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("left", nargs="?", metavar="A", help=run_argument.RUN_HELP)
    parser.add_argument("right", nargs="?", metavar="B", help="the same (default: see above)")
    parser.add_argument(
        "--good",
        action="append",
        default=[],
        metavar="RUNS",
        help="runs that passed: a pattern, a folder or a run; can be repeated",
    )
    parser.add_argument(
        "--bad", action="append", default=[], metavar="RUNS", help="runs that failed, in the same way"
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="PATH",
        help="ignore a place, such as tool.now.result; can be repeated",
    )
    parser.add_argument("--summary", action="store_true", help="print only where, why and what followed")
    parser.add_argument("--all", action="store_true", help="print every difference and all texts")
    run_argument.add_blobs(parser)
    run_argument.add_json(parser, "print one JSON object, with a verdict")


def run(args: argparse.Namespace, out: Output) -> int:
    progress = Progress(out)
    try:
        if args.good or args.bad:
            return _sets(args, out, progress)
        left = recording_at(args.left, blobs=args.blobs)
        right = recording_at(args.right, blobs=args.blobs) if args.right is not None else None
        found = diff(left, right, ignore=args.ignore, progress=progress.show)
    finally:
        progress.close()
    if args.json:
        out.json_line(found.as_dict())
    elif args.summary:
        show_headline(found, out)
    else:
        show_comparison(found, out, full=args.all)
    return 0 if found.verdict == SAME else 1


def _sets(args: argparse.Namespace, out: Output, progress: Progress) -> int:
    if args.left is not None:
        raise UsageError("--good and --bad name all runs", hint="leave out A and B")
    if not args.good or not args.bad:
        raise UsageError(
            "--good and --bad are used together", hint="name runs that passed and runs that failed"
        )
    found = diff(good=args.good, bad=args.bad, ignore=args.ignore, progress=progress.show)
    progress.close()
    if args.json:
        out.json_line(found.as_dict())
    else:
        show_run_sets(found, out, full=args.all, summary=args.summary)
    return 0 if found.verdict == SAME else 1
