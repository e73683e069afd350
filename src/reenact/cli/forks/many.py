"""Several forks in a table: arms side by side, or many runs and what a change does to each."""

from __future__ import annotations

import argparse
import glob
import os
import signal
import subprocess
import time
from decimal import Decimal
from typing import Any

from ...errors import NoSuchRun, UsageError
from ...money.prices import money
from ...recording.recording import Recording
from ...tracefile.text import clean, compact, count
from .. import runs
from ..output import Cell, Output
from ..rerun.start import is_part
from .arms import CONTROL, Arm, Sample, arms_of, flags_for_all, fork, recorded_sample
from .verdict import BROKEN, WELL, Verdict, expected_of, judge

NOT_WELL = 1


def run(args: argparse.Namespace, out: Output) -> int:
    if args.samples < 1:
        raise UsageError(f"--samples {args.samples}", hint="at least 1")
    expected, arms = expected_of(args.expect), arms_of(args)
    recordings = _recordings(args)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _end)  # a fork has a session of its own, and would go on alone
    told = _Telling(out, len(recordings) * len(arms) * args.samples)
    results, is_well = [], True
    for recording in recordings:
        samples = _samples(args, recording, arms, told)
        before = samples.get(CONTROL) or [recorded_sample(recording)]
        verdicts = {
            arm.name: judge(before, samples[arm.name], expected) for arm in arms if arm.name != CONTROL
        }
        results.append((recording, samples, verdicts))
        is_well = is_well and all(verdict.word in WELL for verdict in verdicts.values())
    told.done()
    if args.json:
        for result in results:
            out.json_line(_as_dict(*result))
    else:
        _print(results, out)
    return 0 if is_well else NOT_WELL


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _recordings(args: argparse.Namespace) -> list[Recording]:
    """Return the runs that are meant: addresses, folders, patterns of file names."""
    found: list[Recording] = []
    for text in args.run_addresses or [None]:
        if text is not None and any(char in text for char in "*?["):
            paths = [path for path in sorted(glob.glob(text)) if os.path.isfile(path)]
            files = runs.files_of([path for path in paths if path.endswith(".jsonl")]) if paths else []
        elif text is not None and os.path.isdir(text):
            files = runs.files_of([text])
        else:
            found.append(runs.load(text, run=args.run, blobs=args.blobs))
            continue
        found += [
            Recording.load(path, blobs=args.blobs) for path in files if ".p" not in os.path.basename(path)
        ]
    asked = " ".join(args.run_addresses)
    if not found:
        raise NoSuchRun(f"there is no run in {asked}", asked=asked, hint="`reenact ls` shows what there is")
    found = _recorded(found)
    around = {each.parent_run for each in found}  # what did everything in runs inside it is forked by these
    found = [each for each in found if each.run_id not in around or each.calls()]
    if not found:
        hint = "name the run that they were made from"
        raise NoSuchRun(f"all runs in {asked} are forks and replays", asked=asked, hint=hint)
    return found


def _recorded(found: list[Recording]) -> list[Recording]:
    """Return the runs that are no fork or replay, nor inside one, nor a block of another one that is forked
    anyway: these would only be paid for twice."""
    again = {each.run_id for each in found if each.start is not None and _is_again(each.start.stored_fields)}
    while inside := {each.run_id for each in found if each.parent_run in again} - again:
        again |= inside
    there = {each.run_id for each in found}
    return [
        each
        for each in found
        if each.run_id not in again and not (is_part(each) and each.parent_run in there)
    ]


def _is_again(head: dict[str, Any]) -> bool:
    meta = head.get("meta")
    return "fork" in head or (type(meta) is dict and "replay_of" in meta)


def _samples(
    args: argparse.Namespace, recording: Recording, arms: list[Arm], told: _Telling
) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for arm in arms:
        for number in range(1, args.samples + 1):
            told.next(f"{recording.name}, {arm.name} {number}")
            sample = fork(recording, arm, number, flags_for_all(args), args.command)
            if args.verify:
                sample.verified = _verify(args.verify, sample)
            found.setdefault(arm.name, []).append(sample)
    return found


def _verify(command: str, sample: Sample) -> bool:
    """Run the user's command, which finds the fork's file in ``REENACT_FORK``; True if it ends well.

    What it said last is why it did not.
    """
    env = {**os.environ, "REENACT_FORK": sample.path or "", "REENACT_ARM": sample.arm}
    done = subprocess.run(command, shell=True, env=env, capture_output=True, check=False)  # noqa: S602
    if done.returncode and not sample.why:
        said = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
        sample.why = f"--verify failed with {done.returncode}" + (f": {said[-1]}" if said else "")
    return done.returncode == 0


class _Telling:
    """Says which fork is under way: on a terminal in one line, else not at all."""

    def __init__(self, out: Output, forks: int) -> None:
        self._out = out
        self._forks = forks
        self._done = 0
        self._began = time.monotonic()
        self._is_terminal = out.stderr.isatty()

    def next(self, what: str) -> None:
        self._done += 1
        if self._is_terminal:
            seconds = time.monotonic() - self._began
            text = clean(f"fork {self._done} of {self._forks}: {what} ({seconds:.0f} s)")
            self._out.stderr.write(f"\r\x1b[K{text}")
            self._out.stderr.flush()

    def done(self) -> None:
        if self._is_terminal:
            self._out.stderr.write("\r\x1b[K")
            self._out.stderr.flush()


def _as_dict(
    recording: Recording, samples: dict[str, list[Sample]], verdicts: dict[str, Verdict]
) -> dict[str, Any]:
    arms = {
        name: {
            "samples": [sample.as_dict() for sample in each],
            "verdict": verdicts[name].as_dict() if name in verdicts else None,
        }
        for name, each in samples.items()
    }
    return {"run": recording.run_id, "path": recording.path, "name": recording.name, "arms": arms}


def _print(results: list[tuple[Recording, dict[str, list[Sample]], dict[str, Verdict]]], out: Output) -> None:
    rows = [
        _row(recording, name, each, verdicts.get(name))
        for recording, samples, verdicts in results
        for name, each in samples.items()
    ]
    head = ["RUN", "ARM", ">WELL", ">VERIFIED", ">CALLS", ">TOKENS", ">COST", "WORLD", "VERDICT"]
    out.table(head, rows, flexible=8, less=("CALLS", "TOKENS", "VERIFIED"))
    for recording, _, verdicts in results:
        for name, verdict in verdicts.items():
            if verdict.word not in WELL[:1]:
                out.line()
                out.line(
                    clean(
                        f"{recording.name}, {name}: {verdict.word}"
                        + (f" ({verdict.why})" if verdict.why else "")
                    )
                )
                for line in verdict.diff:
                    out.line(clean("  " + line))
    words = [verdict.word for _, _, verdicts in results for verdict in verdicts.values()]
    told = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    out.say(f"reenact: {count(len(results), 'run')}: {told}")


def _row(recording: Recording, arm: str, samples: list[Sample], verdict: Verdict | None) -> list[Cell]:
    number = len(samples)
    verified = [sample.verified for sample in samples if sample.verified is not None]
    costs = [Decimal(str(sample.usd)) for sample in samples if sample.usd is not None]
    word = verdict.word if verdict is not None else ""
    texts = [
        clean(recording.name),
        clean(arm),
        f"{sum(sample.is_well for sample in samples)}/{number}",
        f"{sum(verified)}/{len(verified)}" if verified else "",
        f"{sum(sample.calls for sample in samples) / number:.1f}",
        compact(sum(sample.tokens for sample in samples)),
        money(sum(costs, Decimal(0))) if costs else "unknown",
        ", ".join(sorted({sample.world or "" for sample in samples})),
    ]
    return [*((text, "") for text in texts), (word, "red" if word == BROKEN else "")]
