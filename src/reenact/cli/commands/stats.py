"""``reenact stats``: runs, calls, tokens, money, durations and errors over one or many runs."""

from __future__ import annotations

import argparse
import csv
import gc
from typing import Any

from ...errors import UsageError
from ...recording.run_addresses import default_folder
from ...stats.groups import Group
from ...stats.many_runs import Runs, collect
from ...tracefile.events.text import clean, count, plain
from .. import run_argument
from ..output import Output, Progress
from ..view.stats_tables import overview, show_groups, show_overview

DESCRIPTION = """\
Summarize runs: how they ended, model and tool calls, tokens, money, percentiles of durations (nearest rank),
stop reasons and errors. Reads the trace files directly, each once. Calls of unknown cost are counted
separately."""
EXAMPLES = """\
  reenact stats                                     all runs in $REENACT_DIR or ./.reenact
  reenact stats logs/ --by model --since 7d         what each model did and cost in a week
  reenact stats logs/ --by tool --sort p95_ms       the slowest tools first
  reenact stats logs/ --where stop_reason=max_tokens --by run
  reenact stats logs/ --by day --csv > days.csv
"""

_MOST_NAMED = 5
"""Skipped files that are named."""

_BY = "model, tool, stop_reason, day, name, status, run or meta.KEY"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files, folders, or runs by name or id")
    parser.add_argument("--by", metavar="KEY", help=f"one row for each {_BY}")
    run_argument.add_filters(parser, "name, status, model, tool …", "rows")
    parser.add_argument(
        "--since", metavar="WHEN", help="only runs started since: 2h, 7d, 2026-11-01, 2026-11-01T08:30"
    )
    parser.add_argument(
        "--sort", metavar="COLUMN", help="sort by a column (names as in --json), largest first"
    )
    run_argument.add_json(parser, "print one JSON object; with --by, one per row")
    parser.add_argument("--csv", action="store_true", help="print CSV rows; without --by, one per run")


def run(args: argparse.Namespace, out: Output) -> int:
    if args.json and args.csv:
        raise UsageError("--json and --csv exclude each other")
    by = args.by or ("run" if args.csv else None)
    if by is None and (args.sort or args.limit):
        raise UsageError("--sort and --limit are about rows", hint=f"add --by: {_BY}")
    runs = _collect(args, out)
    if by is not None:
        rows = _ordered(runs.by(by), args.sort)[: args.limit]
        _write_rows(rows, by, args, runs, out)
    elif args.json:
        out.json_line(overview(runs))
    elif len(runs):
        show_overview(runs, out)
    _report_problems(runs, args, out)
    return 0


def _collect(args: argparse.Namespace, out: Output) -> Runs:
    progress = Progress(out)

    def tick(files: int, of: int, events: int) -> None:
        progress.show(f"reading … {files:,} of {of:,} files, {events:,} events")

    # Parsed lines are freed as we go, so collecting garbage would only walk what is kept anyway.
    gc.freeze()
    gc.set_threshold(100_000)
    try:
        runs = collect(args.paths, where=args.where, since=args.since, tick=tick)
    finally:
        progress.close()
    return runs.where(lambda row: row.failed) if args.failed else runs


def _ordered(groups: list[Group], column: str | None) -> list[Group]:
    """Return the rows by a column, largest or first letter first; unknown figures last."""
    if column is None or not groups:
        return groups
    known = groups[0].as_dict()
    if column not in known:
        raise UsageError(f"there is no column {column!r}", hint=f"the columns are {', '.join(known)}")
    rows = [(group.as_dict()[column], group) for group in groups]
    valued = [row for row in rows if row[0] is not None]
    if all(isinstance(value, int | float) for value, _ in valued):
        valued.sort(key=lambda row: -row[0])
    else:
        valued.sort(key=lambda row: str(row[0]))
    return [group for _, group in valued] + [group for value, group in rows if value is None]


def _write_rows(rows: list[Group], by: str, args: argparse.Namespace, runs: Runs, out: Output) -> None:
    if args.json:
        for row in rows:
            out.json_line(row.as_dict())
    elif args.csv:
        _write_csv(rows, out)
    elif rows:
        show_groups(rows, by, runs, out)
    elif len(runs):
        out.say(f"None of the {count(len(runs), 'run')} has a {clean(by)}.")


def _write_csv(rows: list[Group], out: Output) -> None:
    writer = csv.writer(out.stdout, lineterminator="\n")
    for number, row in enumerate(rows):
        facts = row.as_dict()
        if number == 0:
            writer.writerow([_cell(name) for name in facts])
        writer.writerow([_cell(value) for value in facts.values()])


def _cell(value: Any) -> Any:
    """Return a text that neither a terminal nor a spreadsheet takes for a command."""
    if type(value) is not str:
        return value
    text = plain(value, 500)
    return "'" + text if len(text) > 1 and text[0] in "=+-@" else text


def _report_problems(runs: Runs, args: argparse.Namespace, out: Output) -> None:
    if not len(runs):
        places = clean(", ".join(args.paths or [default_folder()]))
        chosen = args.where or args.since or args.failed
        out.say(f"No run in {places} matches." if chosen else f"No run was recorded in {places} yet.")
        if not chosen:
            out.say("\nhint: `reenact demo` records one; trace files end in .jsonl")
    for finding in runs.skipped[:_MOST_NAMED]:
        out.say(clean(f"left out: {finding}"), "yellow")
    if len(runs.skipped) > _MOST_NAMED:
        more = count(len(runs.skipped) - _MOST_NAMED, "more file")
        out.say(f"left out: {more}; `reenact ls` names them", "yellow")
    damaged = sorted({row.path for row in runs if row.findings})
    if damaged:
        out.say(
            f"damage was found in {count(len(damaged), 'file')}, for instance {clean(damaged[0])}; "
            "`reenact doctor PATH` shows where",
            "yellow",
        )
