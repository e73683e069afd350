"""What became of a run that was executed again, for a person: the lines of ``replay`` and ``fork``."""

from __future__ import annotations

import os
from collections import Counter
from decimal import Decimal

from ...money.prices import money
from ...playback.experiment import BROKEN, UNCHANGED, ExperimentReport, Sample, Verdict
from ...playback.fork.one_call import OneCallReport
from ...playback.forks import ForkReport
from ...playback.matching.divergence import SENTENCES
from ...playback.matching.frontier import MISSING_CALL
from ...playback.rerun import (
    BLOCKED,
    DIVERGED,
    DOUBTFUL,
    ENDED_OTHERWISE,
    INCOMPLETE,
    NOT_STARTED,
    RerunReport,
)
from ...tracefile.events.text import clean, compact, count
from ...wire import reading
from ..output import Cell, Output

_MOST_SHOWN = 5
"""Calls that were never made, each in a line of its own."""
_LONGEST_TEXT = 2_000

_DOUBTS = {
    "drift": ", its request is not the one that was recorded there",
    "reordered": ", other calls were made before it when it was recorded",
}
"""What the words for a doubt mean."""
_ALLOWING = (
    "what changes something goes into a tool: @tap.tool(effect=…), which --live-tools NAME allows to run"
)


# ``reenact replay``


def say_rerun(report: RerunReport, out: Output) -> None:
    """Write the report of a re-run, the verdict last."""
    tools = f"tools that ran: {', '.join(report.tools_run)}" if report.tools_run else "0 live"
    verdict = f"reenact: {_verdict(report)}: {count(report.calls_answered, 'call')} answered, {tools}"
    for line in [*_details(report), verdict]:
        out.say(clean(line))


def _verdict(report: RerunReport) -> str:
    outcome = report.outcome
    if outcome == NOT_STARTED:
        return "nothing was replayed"
    if outcome == DIVERGED:
        others = [each for each in report.divergences if each.code != MISSING_CALL]
        return f"diverged from the recording in {count(len(others) + len(report.never_made), 'place')}"
    if outcome == INCOMPLETE:
        return "replayed as recorded as far as the recording goes"
    if outcome == BLOCKED:
        return "blocked from something that it did when it was recorded"
    if outcome == ENDED_OTHERWISE and report.ended is not None:
        return f"ended differently (now {report.ended.now}, recorded {report.ended.recorded})"
    doubts = count(len(report.doubts), "doubt")
    return f"replayed with {doubts}" if outcome == DOUBTFUL else "replayed as recorded"


def _details(report: RerunReport) -> list[str]:
    """Return all but the verdict."""
    lines = [each.text() + "\n" for each in report.divergences if each.code != MISSING_CALL]
    if report.never_made:
        lines.append(_missing_calls([str(each.recorded) for each in report.never_made]))
    for (what, where), times in Counter((each.what, each.where) for each in report.refused).items():
        place = f" at {where}" if where else ""
        often = f", {times} times" if times > 1 else ""
        lines.append(f"reenact: refused to {what}{place}{often}")
    if report.input:
        lines.append(f"reenact: input that is not exactly as recorded: {', '.join(report.input)}")
    for (tool, why), times in Counter((each.tool, ", ".join(each.why)) for each in report.stand_ins).items():
        lines.append(f"reenact: {count(times, 'result')} of tool {tool} not exactly as recorded: {why}")
    ended = report.ended
    if ended is not None and ended.now == ended.recorded and ended.now.startswith("answered"):
        lines.append(f"reenact: {ended.now}, as recorded")
    lines += [
        f"reenact: {each.call}: the recorded response is not complete: {', '.join(each.why)}"
        for each in report.inexact
    ]
    doubted: dict[str, list[str]] = {}
    for doubt in report.doubts:
        doubted.setdefault(doubt.why, []).append(doubt.call)
    for why, calls in doubted.items():
        more = "" if len(calls) == 1 else f" and {count(len(calls) - 1, 'more call')}"
        lines.append(f"reenact: {calls[0]}{more} answered, but uncertain: {why}{_DOUBTS.get(why, '')}")
    return lines + [f"reenact: {each}" for each in report.unknown]


def _missing_calls(calls: list[str]) -> str:
    """Return one report for all of them."""
    if len(calls) == 1:
        return f"{MISSING_CALL}: {SENTENCES[MISSING_CALL]}\n  recorded  {calls[0]}\n"
    shown = [f"  recorded  {label}" for label in calls[:_MOST_SHOWN]]
    more = [f"  … and {len(calls) - _MOST_SHOWN} more"] if len(calls) > _MOST_SHOWN else []
    head = f"{MISSING_CALL}: {len(calls)} recorded calls were never made."
    return "\n".join([head, *shown, *more]) + "\n"


# ``reenact fork``


def say_fork(report: ForkReport, out: Output) -> None:
    """Write the report of a fork, the verdict last."""
    lines = _details(report)
    lines += [f"reenact: {note}" for note in dict.fromkeys(report.notes)]
    for each in report.halted:
        lines.append(f"reenact: stopped: {each.why}")
        lines += [f"hint: {each.hint}"] if each.hint else []
    if report.is_blocked and not report.halted:
        lines.append(f"hint: {_ALLOWING}")
    lines += [f"hint: {report.hint}"] if report.hint else []
    for line in [*lines, f"reenact: {_fork_verdict(report)}"]:
        out.say(clean(line))


def _fork_verdict(report: ForkReport) -> str:
    answered = count(report.calls_answered, "call")
    if not report.is_cut_reached:
        return f"the call at the cut was never made: {answered} answered, 0 live"
    spent = f", {report.live.text()}" if report.live is not None else ""
    path = os.path.relpath(report.path)
    status = "stopped" if report.is_stopped else report.status
    return f"{path}  {status}, {answered} answered{spent}, world: {report.point.world}"


def say_one_call(report: OneCallReport, out: Output) -> None:
    """Write both responses, and what the new one cost."""
    for note in report.notes:
        out.say(clean(f"reenact: {note}"))
    out.line(clean("recorded: " + reading.text(report.recorded, report.provider)[:_LONGEST_TEXT]))
    out.line(clean("now:      " + reading.text(report.answer, report.provider)[:_LONGEST_TEXT]))
    out.say(clean(f"reenact: {os.path.relpath(report.path)}  {report.live.text()}"))


# ``reenact fork`` with arms, samples or several runs


def show_experiment(reports: list[ExperimentReport], out: Output) -> None:
    """Write a table of all arms, and what each change did."""
    rows = [
        _row(report.recording.name, name, samples, report.verdicts.get(name))
        for report in reports
        for name, samples in report.samples.items()
    ]
    head = ["RUN", "ARM", ">WELL", ">VERIFIED", ">CALLS", ">TOKENS", ">COST", "WORLD", "VERDICT"]
    out.table(head, rows, flexible=8, less=("CALLS", "TOKENS", "VERIFIED"))
    for report in reports:
        for name, verdict in report.verdicts.items():
            if verdict.word != UNCHANGED:
                why = f" ({verdict.why})" if verdict.why else ""
                out.line()
                out.line(clean(f"{report.recording.name}, {name}: {verdict.word}{why}"))
                for line in verdict.diff:
                    out.line(clean("  " + line))
    words = Counter(verdict.word for report in reports for verdict in report.verdicts.values())
    verdicts = ", ".join(f"{number} {word}" for word, number in words.items())
    out.say(f"reenact: {count(len(reports), 'run')}: {verdicts}")


def _row(run: str, arm: str, samples: list[Sample], verdict: Verdict | None) -> list[Cell]:
    number = len(samples)
    verified = [sample.verified for sample in samples if sample.verified is not None]
    costs = [Decimal(str(sample.usd)) for sample in samples if sample.usd is not None]
    word = verdict.word if verdict is not None else ""
    texts = [
        clean(run),
        clean(arm),
        f"{sum(sample.is_well for sample in samples)}/{number}",
        f"{sum(verified)}/{len(verified)}" if verified else "",
        f"{sum(sample.calls for sample in samples) / number:.1f}",
        compact(sum(sample.tokens for sample in samples)),
        money(sum(costs, Decimal(0))) if costs else "unknown",
        ", ".join(sorted({sample.world or "" for sample in samples})),
    ]
    return [*((text, "") for text in texts), (word, "red" if word == BROKEN else "")]
