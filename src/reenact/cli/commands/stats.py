"""``reenact stats``: runs, calls, tokens, money, durations and errors over one or many runs."""

from __future__ import annotations

import argparse
import csv
from typing import Any

from ...errors import UsageError
from ...recording.run_addresses import default_folder
from ...stats.groups import Group
from ...stats.many_runs import SAMPLES, Runs, collect
from ...stats.rows import summed
from ...tracefile.events.text import clean, compact, count, milliseconds, plain
from .. import run_argument
from ..output import Cell, Output, Progress

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

_MAX_TOOLS = 10
_MAX_NAMES = 12
_PERCENTILES = (50, 95, 99)

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
        out.json_line(_overview(runs))
    elif len(runs):
        _show_overview(runs, out)
    _report_problems(runs, args, out)
    return 2 if _is_unreadable(runs, args) else 0


def _collect(args: argparse.Namespace, out: Output) -> Runs:
    progress = Progress(out)

    def tick(files: int, of: int, events: int) -> None:
        progress.show(f"reading … {files:,} of {of:,} files, {events:,} events")

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
        _show_groups(rows, by, runs, out)
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


def _is_unreadable(runs: Runs, args: argparse.Namespace) -> bool:
    """True if there are files, and none of them is a trace."""
    return not len(runs) and bool(runs.skipped) and not (args.where or args.since or args.failed)


def _report_problems(runs: Runs, args: argparse.Namespace, out: Output) -> None:
    if not len(runs) and not _is_unreadable(runs, args):
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


# All runs as one, or a table of groups.


def _overview(runs: Runs) -> dict[str, Any]:
    """Return everything about some runs as plain values."""
    totals = runs.totals
    tools = summed(runs.tools.values())
    return {
        "runs": len(runs),
        "statuses": runs.statuses,
        "started": runs[0].started if len(runs) else None,
        "ended": max((row.ended for row in runs if row.ended is not None), default=None),
        "turns": totals.turns,
        "llm_calls": totals.llm_calls,
        "tool_calls": totals.tool_calls,
        "failed_calls": {"model": runs.calls.failed, "tool": tools.failed},
        "open_calls": {"model": runs.calls.open, "tool": tools.open},
        "tokens": {
            "in": totals.tokens_in,
            "out": totals.tokens_out,
            "cache_read": totals.cache_read,
            "cache_write": totals.cache_write,
            "reasoning": totals.reasoning,
        },
        "cost": runs.cost.as_dict(),
        "durations_ms": {what: _percentiles(runs, what) for what in SAMPLES},
        "models": {name: stats.calls for name, stats in runs.models.items()},
        "tools": {name: stats.calls for name, stats in runs.tools.items()},
        "stop_reasons": runs.stop_reasons,
        "errors": totals.errors,
        "error_types": runs.error_types,
        "retried": sum(row.retried for row in runs),
        "skipped": [{"path": found.path, "reason": found.message} for found in runs.skipped],
        "findings": len(runs.findings),
    }


def _percentiles(runs: Runs, what: str) -> dict[str, float | None]:
    values = {f"p{q}": runs.percentile(q, what) for q in _PERCENTILES}
    return {name: None if value is None else round(value, 3) for name, value in values.items()}


def _show_overview(runs: Runs, out: Output) -> None:
    """Write all runs as one, the totals first."""
    totals, calls, tools = runs.totals, runs.calls, summed(runs.tools.values())
    ended = ", ".join(f"{number:,} {plain(word, 20)}" for word, number in runs.statuses.items())
    out.line(out.paint(f"{count(len(runs), 'run')}: {ended}", "bold") + _when(runs))
    _fact(
        "calls",
        f"{count(totals.turns, 'turn')}, {count(totals.llm_calls, 'model call')}"
        f"{_aside(calls.failed, calls.open)}, {count(totals.tool_calls, 'tool call')}"
        f"{_aside(tools.failed, tools.open)}",
        out,
    )
    _fact("tokens", _tokens(runs), out)
    _fact("cost", runs.cost.text(), out)
    _fact("prices", runs.cost.source, out)
    _fact("stopped", _names(runs.stop_reasons), out)
    retried = sum(row.retried for row in runs)
    recovered = f"; {retried:,} recovered by a retry" if retried else ""
    _fact("errors", f"{totals.errors:,} {_in_brackets(_names(runs.error_types))}".strip() + recovered, out)
    out.line()
    _show_durations(runs, out)
    _show_parts(runs, "model", out)
    _show_parts(runs, "tool", out)


def _when(runs: Runs) -> str:
    days = [group.key for group in runs.by("day")]
    if not days or days[0] == "-":
        return ""
    return f"  {days[0]}" if len(days) == 1 else f"  {days[0]} to {days[-1]}"


def _fact(name: str, text: str, out: Output) -> None:
    out.paragraph([(f"  {name:8} ", "dim"), (text or "-", "")])


def _aside(failed: int, still_open: int) -> str:
    parts = [f"{failed:,} failed"] if failed else []
    parts += [f"{still_open:,} open"] if still_open else []
    return f" ({', '.join(parts)})" if parts else ""


def _tokens(runs: Runs) -> str:
    totals = runs.totals
    parts = f"{totals.tokens_in:,} in"
    if totals.cache_read or totals.cache_write:
        parts += f" ({totals.cache_read:,} read from cache, {totals.cache_write:,} written to it)"
    parts += f", {totals.tokens_out:,} out"
    return parts + (f" ({totals.reasoning:,} reasoning)" if totals.reasoning else "")


def _names(counts: dict[str, int]) -> str:
    shown = [f"{plain(name, 60)} {number:,}" for name, number in list(counts.items())[:_MAX_NAMES]]
    if len(counts) > _MAX_NAMES:
        shown.append(f"{len(counts) - _MAX_NAMES:,} more")
    return ", ".join(shown)


def _in_brackets(text: str) -> str:
    return f"({text})" if text else ""


def _show_durations(runs: Runs, out: Output) -> None:
    head = ["how long", *(f">P{q}" for q in _PERCENTILES), ">longest"]
    rows: list[list[Cell]] = []
    for what, name in (("run", "runs"), ("model", "model calls"), ("tool", "tool calls")):
        values = [runs.percentile(q, what) for q in (*_PERCENTILES, 100)]
        rows.append([(name, ""), *((milliseconds(value) or "-", "") for value in values)])
    out.table(head, rows, flexible=0, less=["P99", "P50"])


def _show_parts(runs: Runs, by: str, out: Output) -> None:
    groups = runs.by(by)
    if not groups:
        return
    if by == "tool":
        groups.sort(key=lambda group: -(group.percentile(95) or 0.0))
    else:
        groups.sort(key=lambda group: (-group.cost.usd, -group.totals.total_tokens))
    out.line()
    _show_groups(groups[:_MAX_TOOLS], by, runs, out, money=False)
    if len(groups) > _MAX_TOOLS:
        out.line(out.paint(f"{len(groups) - _MAX_TOOLS:,} more; --by {by} shows all", "dim"))


def _show_groups(groups: list[Group], by: str, runs: Runs, out: Output, *, money: bool = True) -> None:
    """Write one row for each group, as many columns as the terminal has room for."""
    columns = _columns(groups, by)
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    out.table([name for name, _ in columns], rows, flexible=0, less=_GIVES_WAY)
    if money and by != "tool":
        out.line(out.paint(f"prices: {runs.cost.source}", "dim"))


_GIVES_WAY = ["id", "total", "P99", "P50", "open", "turns", "runs", "out", "in", "failed", "errors", "tokens",
              "calls", "status", "P95", "time"]  # fmt: skip
"""To a narrow terminal, in this order. Never ``cost`` nor ``unknown``: the calls that are not in it."""


def _columns(groups: list[Group], by: str) -> list[tuple[str, list[Cell]]]:
    columns: list[tuple[str, list[Cell]]] = []

    def add(name: str, texts: list[str], style: str = "") -> None:
        columns.append((name, [(text, style) for text in texts]))

    def figures(name: str, numbers: list[int]) -> None:
        columns.append((">" + name, [(compact(number), "" if number else "dim") for number in numbers]))

    if by == "run":
        add("run", [plain(group.runs[0].name, 60) or "-" for group in groups], "bold")
        add("status", [plain(group.runs[0].status, 20) for group in groups])
    else:
        add(by, [plain(group.key, 60) or "-" for group in groups], "bold")
        figures("runs", [len(group.runs) for group in groups])
    if groups[0].calls is not None:
        parts = [group.calls for group in groups if group.calls is not None]
        figures("calls", [part.calls for part in parts])
        figures("failed", [part.failed for part in parts])
        figures("open", [part.open for part in parts])
    else:
        figures("turns", [group.totals.turns for group in groups])
        figures("errors", [group.totals.errors for group in groups])
    if by in ("model", "stop_reason"):
        figures("in", [group.totals.tokens_in for group in groups])
        figures("out", [group.totals.tokens_out for group in groups])
    elif by != "tool":
        figures("tokens", [group.totals.total_tokens for group in groups])
    if by != "tool":
        add(">cost", [group.cost.text().partition(" + ")[0] for group in groups])
        if any(group.cost.unknown_calls for group in groups):
            figures("unknown", [group.cost.unknown_calls for group in groups])
    if by == "run":
        add(">time", [milliseconds(group.runs[0].duration_ms) or "-" for group in groups])
        add("id", [plain(group.key, 32)[:8] for group in groups], "dim")
    else:
        for q in _PERCENTILES:
            add(f">P{q}", [milliseconds(group.percentile(q)) or "-" for group in groups])
    if by == "tool":
        add(">total", [milliseconds(group.total_ms or None) or "-" for group in groups])
    return columns
