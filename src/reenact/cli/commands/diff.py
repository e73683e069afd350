"""``reenact diff``: where two runs differ, why, and what followed."""

from __future__ import annotations

import argparse

from ...compare.diff import diff
from ...compare.moments import MomentsDiff, diff_turns
from ...compare.report import SAME, RunDiff
from ...errors import UsageError
from ...pages.comparison.comparison_pages import write_html
from ...pages.document import check_free
from ...recording.recording import recording_at
from ...tracefile.events.text import clean
from .. import run_argument
from ..output import Output, Progress
from ..view.comparison import show_comparison, show_headline
from ..view.moments import show_moments, show_moments_headline
from ..view.run_sets import show_run_sets

DESCRIPTION = """\
Compare two runs step by step: where they differ first, why, and what followed from it. A is the left side, B
the right one. Without B, a replay or fork is compared with the run it was made from, any other run with the
one of its name before it, which then is the left side.

With --good and --bad, compare sets of runs: where the bad runs leave the path of the good ones, and what
separates them.

--turns compares what the model saw in two turns of one run: messages that are gone, edited or new. After a
compaction that is with the conversation that was replaced, not with the call that summarised it.

Ignored are clocks, durations, token counts and ids, and what [diff] in reenact.toml or [tool.reenact.diff] in
pyproject.toml names. Exit code 0: the same; 1: different, or nobody can tell; 2: unusable input."""
EXAMPLES = """\
  reenact diff @prev @last               the two newest runs
  reenact diff @fork                     a fork and the run it was made from
  reenact diff good.jsonl bad.jsonl --summary
  reenact diff @last --turns 5 7         what the model saw in turn 5 and not in turn 7
  reenact diff A B --html diff.html      the same as one page for the browser
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
    parser.add_argument(
        "--turns",
        nargs="+",
        type=int,
        metavar="N",
        help="two turns of the run A (one: compared with the last)",
    )
    parser.add_argument("--html", metavar="FILE", help="write one self-contained HTML page and print where")
    parser.add_argument("--force", action="store_true", help="replace a FILE that reenact did not write")
    run_argument.add_blobs(parser)
    run_argument.add_json(parser, "print one JSON object, with a verdict")


def run(args: argparse.Namespace, out: Output) -> int:
    if args.good or args.bad:
        return _sets(args, out)
    if args.html is not None:
        check_free(args.html, force=args.force)  # before the work, not after it
    found = _of_turns(args) if args.turns else _of_runs(args, out)
    if args.json:
        out.json_line(found.as_dict())
    else:
        _show(found, out, is_short=args.summary or args.html is not None, full=args.all)
    if args.html is not None:
        write_html(found, args.html, force=args.force)
        out.say(f"page: {clean(args.html)}")
    return 0 if found.verdict == SAME else 1


def _show(found: RunDiff | MomentsDiff, out: Output, *, is_short: bool, full: bool) -> None:
    if isinstance(found, RunDiff):
        if is_short:
            show_headline(found, out)
        else:
            show_comparison(found, out, full=full)
    elif is_short:
        show_moments_headline(found, out)
    else:
        show_moments(found, out, full=full)


def _of_turns(args: argparse.Namespace) -> MomentsDiff:
    if args.right is not None:
        raise UsageError("--turns compares two turns of one run", hint="reenact diff RUN --turns 5 7")
    if len(args.turns) > 2:
        raise UsageError("--turns takes one turn or two", hint="reenact diff RUN --turns 5 7")
    return diff_turns(recording_at(args.left, blobs=args.blobs), *args.turns)


def _of_runs(args: argparse.Namespace, out: Output) -> RunDiff:
    progress = Progress(out)
    try:
        left = recording_at(args.left, blobs=args.blobs)
        right = recording_at(args.right, blobs=args.blobs) if args.right is not None else None
        return diff(left, right, ignore=args.ignore, progress=progress.show)
    finally:
        progress.close()


def _sets(args: argparse.Namespace, out: Output) -> int:
    if args.left is not None:
        raise UsageError("--good and --bad name all runs", hint="leave out A and B")
    if args.turns or args.html is not None:
        raise UsageError("--turns and --html are for two runs", hint="leave out --good and --bad")
    if not args.good or not args.bad:
        raise UsageError(
            "--good and --bad are used together", hint="name runs that passed and runs that failed"
        )
    progress = Progress(out)
    try:
        found = diff(good=args.good, bad=args.bad, ignore=args.ignore, progress=progress.show)
    finally:
        progress.close()
    if args.json:
        out.json_line(found.as_dict())
    else:
        show_run_sets(found, out, full=args.all, summary=args.summary)
    return 0 if found.verdict == SAME else 1
