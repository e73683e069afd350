"""``reenact ls``: the runs of a folder, from the two ends of each file."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from ...debugger.suspects.marks import Mark, marks_of
from ...errors import TraceFileError
from ...recording.listing import RunRow, head_and_tail, input_text, list_runs, with_copies
from ...recording.run_addresses import default_folder
from ...stats.run_filters import DEEP, Filter, parse_filter
from ...tracefile.events.text import age, clean, compact, count, cut, plain
from .. import run_argument
from ..output import Cell, Output, Progress

DESCRIPTION = """\
List the runs in a folder, newest first, with their status, turns, steps, tokens and errors, their model, and
what they were started with, or the error they ended with. Replays and forks stand below the run they are
made from. Reads only the two ends of each file. Files that are not traces are listed with the reason.
! marks a run with a suspect (see `reenact show`), among the small runs on the first screen; --suspects reads
all runs whole for that."""
EXAMPLES = """\
  reenact ls                                   the runs in $REENACT_DIR or ./.reenact
  reenact ls runs/ --failed --limit 5          the five newest that failed
  reenact ls --where environment=prod --where name~trip
  reenact ls --json | jq 'select(.errors > 0) | .path'
"""

STYLES = {"ok": "green", "running": "cyan", "error": "red", "killed": "bold red"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="*", metavar="FOLDER", help="folders or files of runs")
    run_argument.add_filters(parser, "name, status, id, path", "runs")
    parser.add_argument("--all", action="store_true", help="list also all replays and forks of a run")
    parser.add_argument(
        "--suspects", action="store_true", help="read all runs whole to mark those with a suspect"
    )
    run_argument.add_json(parser, "print one JSON object per run")


def run(args: argparse.Namespace, out: Output) -> int:
    filters = [parse_filter(text) for text in args.where]
    places_named = args.folder or [default_folder()]
    rows: list[RunRow] = []
    for place in places_named:
        rows += _rows(place, must_exist=bool(args.folder))
    rows.sort(key=lambda row: row.started or 0.0, reverse=True)
    chosen = [row for row in rows if (row.failed or not args.failed) and all(f.holds(row) for f in filters)]
    chosen = chosen[: args.limit]
    progress = Progress(out)
    marks = marks_of(chosen, progress.show if args.suspects else None)
    progress.close()
    if args.json:
        for row in chosen:
            out.json_line(as_dict(row) | {"suspects": _mark_dict(marks.get(id(row)))})
    elif chosen:
        _table(chosen, out, marks, most=len(chosen) if args.all else _MOST_COPIES)
    if not chosen:
        _report_nothing_found(places_named, rows, filters, out)
    damaged = sum(1 for row in chosen if row.findings)
    if damaged:
        files = count(damaged, "run")
        out.say(f"{files} marked ! are damaged; `reenact doctor PATH` shows where", "yellow")
    return 0


def show_rows(path: str, out: Output) -> None:
    """Write the table for one file; the demo uses it too."""
    _table(head_and_tail(path), out, {})


def _rows(place: str, *, must_exist: bool) -> list[RunRow]:
    if os.path.isdir(place):
        return list_runs(place)
    if os.path.exists(place):
        return head_and_tail(place)
    if must_exist:
        raise TraceFileError(f"{place} does not exist", path=place, hint="name a folder of trace files")
    return []


def _report_nothing_found(
    places_named: list[str], rows: list[RunRow], filters: list[Filter], out: Output
) -> None:
    places = clean(", ".join(places_named))
    if rows:
        out.say(f"None of the {count(len(rows), 'run')} in {places} matches.")
        deep = [f.key for f in filters if f.key in DEEP and not any(f.key in row.meta for row in rows)]
        if deep:
            keys = clean(", ".join(deep))
            out.say(f"\nhint: ls reads the ends of files only; `reenact stats --by run` knows {keys}")
    else:
        out.say(f"No run was recorded in {places} yet.")
        out.say("\nhint: `reenact demo` records an example, `reenact run agent.py` your agent")


def as_dict(row: RunRow) -> dict[str, Any]:
    """Return the facts of a run, as ``--json`` prints them."""
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "reason": row.reason,
        "path": row.path,
        "turns": row.turns,
        "steps": row.steps,
        "tokens": {"in": row.tokens_in, "out": row.tokens_out},
        "errors": row.errors,
        "started": row.started,
        "ended": row.ended,
        "bytes": row.size,
        "findings": row.findings,
        "meta": row.meta,
        "parent_run": row.parent_run,
        "made_from": row.made_from,
        "model": row.model,
        "input": row.input,
        "error": row.error,
    }


_MOST_COPIES = 3
"""Replays and forks of one run that are listed, the newest."""


def _mark_dict(mark: Mark | None) -> dict[str, Any] | None:
    return None if mark is None else {"shown": mark.number, "first": mark.first or None}


def _table(rows: list[RunRow], out: Output, marks: dict[int, Mark], *, most: int = _MOST_COPIES) -> None:
    now = time.time()
    head = ["status", "name", ">turns", ">steps", ">tokens", ">errors", ">age", "id", "model", "input"]
    cells: list[list[Cell]] = []
    for row, copies in with_copies(rows):
        cells.append(_cells(row, now, out, marks.get(id(row))))
        cells += [_cells(each, now, out, marks.get(id(each)), below=True) for each in copies[:most]]
        if len(copies) > most:
            left_out = f"… {len(copies) - most:,} more made from it; --all lists them"
            cells.append([("", ""), (left_out, "dim")])
    less = ["steps", "turns", "model", "tokens", "age"]
    out.table(head, cells, flexible=9, less=less, least=_LEAST)


def _cells(row: RunRow, now: float, out: Output, mark: Mark | None, *, below: bool = False) -> list[Cell]:
    damage = " !" if row.findings else ""
    status = (plain(row.status, 20) + damage, STYLES.get(row.status, "yellow"))
    name = cut(plain(row.name, 60), max(out.width // 3, 16)) or "-"
    if row.reason is not None and row.id is None:
        return [status, (name, ""), (_reason(row), "dim")]
    totals = row.totals
    return [
        status,
        (f"└ {name}" if below else name, "bold"),
        (compact(totals.turns), ""),
        (compact(totals.steps), ""),
        (compact(totals.total_tokens), ""),
        (compact(totals.errors), "red" if totals.errors else "dim"),
        (age(row.started, now), ""),
        (plain(row.id or "-", 32)[:8], "dim"),
        (plain(row.model or "", 30), "dim"),
        _what(row, mark),
    ]


def _what(row: RunRow, mark: Mark | None) -> Cell:
    """Return what a run was started with; of one that failed also its error, else its first suspect."""
    started_with = "" if row.input is None else plain(input_text(row), _WIDE)
    if row.error is not None:
        words, style = f"✗ {plain(row.error, _WIDE)}", "red"
    elif mark is not None and mark.number:
        words, style = f"! {plain(mark.first, _WIDE)}", "yellow"
    else:
        return started_with, "dim"
    return "  ".join(part for part in (cut(started_with, _BESIDE), words) if part), style


_WIDE, _LEAST, _BESIDE = 120, 24, 20
"""Columns of what a run was started with, at most, at least, and beside an error."""


def _reason(row: RunRow) -> str:
    """Return why a file is not a run, without its path, which stands beside it already."""
    reason = row.reason or ""
    return plain(reason.removeprefix(f"{row.path} is not a trace: ").removeprefix(f"{row.path} "))
