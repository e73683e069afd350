"""``reenact.experiment``: several forks of one or many runs, side by side, and a verdict on each change.

Models vary, so what a changed run does is compared with what unchanged ones do: those of the control arm,
else the recording alone. What counts is whether it ends well and which tools it calls; texts always differ.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from ..errors import NoSuchRun, UsageError
from ..recording.calls import TOOL
from ..recording.recording import Recording, final_text
from ..recording.runs_inside import with_inside
from ..tracefile.events.text import dump
from .edits.edits import Edits
from .edits.request_settings import settings_of
from .fork.one_call import OneCallReport, fork_one_call, require_host
from .forks import ForkOptions, ForkReport, prepare_fork, require_permission
from .launch import Apart, is_part, recording_of, start_of
from .permission import Permission, permission_in_python
from .rerun import checked_words

# Arms: what is changed in the forks of each.

CONTROL, EDITED, AGAIN = "control", "edited", "again"
OK, FAILED, STOPPED, DIVERGED = "ok", "failed", "stopped", "diverged"
"""How a fork ended: well, with a failure of its own, because it was stopped, or it never reached the cut."""


class Arm(NamedTuple):
    """What is changed in the forks of one arm."""

    name: str
    edits: Edits


def arms_of(edits: Edits, varied: Mapping[str, Edits], *, is_controlled: bool) -> list[Arm]:
    """Return the arms of an experiment, the control first; ``varied`` has further edits for each of
    several arms."""
    arms = [Arm(CONTROL, Edits())] if is_controlled else []
    if varied:
        return arms + [
            Arm(name, replace(edits, sets=(*edits.sets, *more.sets))) for name, more in varied.items()
        ]
    return [*arms, Arm(EDITED if edits else AGAIN, edits)]


@dataclass(frozen=True, slots=True)
class Sample:
    """What one fork came to, or a recording as if it were one."""

    arm: str
    ended: str
    why: str = ""
    path: str | None = None
    run: str | None = None
    world: str | None = None
    calls: int = 0
    tokens: int = 0
    usd: float | None = None
    verified: bool | None = None
    steps: Sequence[str] = ()
    """The tools that were called, with their arguments."""
    final: str = ""
    """The text of the last response."""

    @property
    def is_well(self) -> bool:
        return self.ended == OK and self.verified is not False

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def behaviour(recording: Recording) -> tuple[list[str], str]:
    """Return the tools that a run called, runs inside it too, and the text of its last response."""
    recording = with_inside(recording)
    steps = [f"{call.tool}({dump(call.args)})" for call in recording.calls(derived=True) if call.kind == TOOL]
    return steps, final_text(recording)


def recorded_sample(recording: Recording) -> Sample:
    """Return a recording as the sample that others are compared with, where there is no control."""
    steps, final = behaviour(recording)
    ended = FAILED if recording.status in ("error", "died", "killed") else OK
    return Sample("recorded", ended, path=recording.path, run=recording.run_id, steps=steps, final=final)


def sample_of(arm: str, report: ForkReport | OneCallReport) -> Sample:
    """Return what a fork came to."""
    steps, final = list[str](), ""
    if os.path.exists(report.path):
        steps, final = behaviour(Recording.load(report.path, report.run_id))
    sample = Sample(arm, OK, path=report.path, run=report.run_id, steps=steps, final=final)
    if isinstance(report, ForkReport):
        sample = replace(sample, ended=_ended(report), why=_why(report), world=report.point.world)
    elif report.is_failed:
        sample = replace(sample, ended=FAILED)
    live = report.live
    if live is None:
        return sample
    tokens = live.tokens_in + live.tokens_out
    return replace(sample, calls=live.calls, tokens=tokens, usd=live.bill.as_dict().get("usd"))


def _ended(report: ForkReport) -> str:
    if not report.is_cut_reached:
        return DIVERGED
    return STOPPED if report.is_stopped else FAILED if report.exit else OK


def _why(report: ForkReport) -> str:
    if report.halted:
        return report.halted[0].why
    if report.refused:
        return f"refused to {report.refused[0].what}"
    if report.divergences:
        first = report.divergences[0]
        return f"{first.code} at {first.path or first.recorded}"
    return f"exit {report.exit}" if report.exit else ""


# Verdicts: nothing that counts, the intended effect, something else, or harm.

UNCHANGED, INTENDED, CHANGED, BROKEN, NO_ANSWER = (
    "unchanged", "changed as intended", "changed", "broken", "not comparable",
)  # fmt: skip
WELL = (UNCHANGED, INTENDED)


class Expected(NamedTuple):
    """One effect that the change should have."""

    text: str
    kind: str
    value: str

    def holds(self, sample: Sample) -> bool:
        """True if a run shows it."""
        if self.kind == "text":
            return re.search(self.value, sample.final) is not None
        called = any(step.partition("(")[0] == self.value for step in sample.steps)
        return called == (self.kind == "tool")


def expected_of(texts: Sequence[str]) -> list[Expected]:
    """Read what the user expects: ``tool:NAME``, ``no-tool:NAME``, ``text~REGEX``; UsageError otherwise."""
    return [_expected(text) for text in texts]


def _expected(text: str) -> Expected:
    if text.startswith("text~"):
        try:
            re.compile(text[5:])
        except re.error as exc:
            raise UsageError(f"--expect {text}: {exc}", hint="a regular expression of Python") from exc
        return Expected(text, "text", text[5:])
    kind, colon, name = text.partition(":")
    if kind not in ("tool", "no-tool") or not colon or not name:
        raise UsageError(
            f"--expect {text} is not an expectation", hint="tool:NAME, no-tool:NAME or text~REGEX"
        )
    return Expected(text, kind, name)


class Verdict(NamedTuple):
    """What a change did to one run."""

    word: str
    why: str
    diff: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return self._asdict()


def judge(before: list[Sample], after: list[Sample], expected: list[Expected]) -> Verdict:
    """Return the verdict on the forks of one arm."""
    if all(sample.ended == DIVERGED for sample in after):
        return Verdict(NO_ANSWER, after[0].why or "the cut was never reached", [])
    is_well, was_well = _share(after), _share(before)
    diff = difference(before, after)
    if not is_well and not was_well:
        why = next((sample.why for sample in after if sample.why), after[0].ended)
        return Verdict(NO_ANSWER, f"none ends well, changed or not: {why}", diff)
    if is_well < was_well:
        worst = next(sample for sample in after if not sample.is_well)
        why = worst.why or ("--verify failed" if worst.verified is False else worst.ended)
        return Verdict(BROKEN, f"{is_well:.0%} end well, {was_well:.0%} did: {why}", diff)
    known = {_tools(sample) for sample in before}
    changed = [sample for sample in after if _tools(sample) not in known]
    missed = [each.text for each in expected for sample in after if not each.holds(sample)]
    brought = [each for each in expected if not all(each.holds(sample) for sample in before)]
    if expected and not missed and (brought or changed):
        return Verdict(INTENDED, ", ".join(each.text for each in expected), diff)
    if missed and brought:
        return Verdict(
            CHANGED if changed else UNCHANGED, f"not as expected: {', '.join(dict.fromkeys(missed))}", diff
        )
    if changed:
        return Verdict(CHANGED, f"{len(changed)} of {len(after)} call other tools", diff)
    return Verdict(UNCHANGED, "", diff)


def _share(samples: list[Sample]) -> float:
    return sum(sample.is_well for sample in samples) / len(samples)


def _tools(sample: Sample) -> tuple[str, ...]:
    return tuple(step.partition("(")[0] for step in sample.steps)


def difference(before: list[Sample], after: list[Sample]) -> list[str]:
    """Return a diff of a changed run and the unchanged one that is most like it."""
    known = {_tools(sample) for sample in before}
    shown = next((sample for sample in after if _tools(sample) not in known), after[0])
    pairs = (
        (difflib.SequenceMatcher(None, _lines(one), _lines(shown), autojunk=False).ratio(), one)
        for one in before
    )
    nearest = max(pairs, key=lambda pair: pair[0])[1]
    lines = difflib.unified_diff(
        _lines(nearest), _lines(shown), nearest.run or nearest.arm, shown.run or shown.arm, lineterm="", n=1
    )
    return list(lines)


def _lines(sample: Sample) -> list[str]:
    return [*sample.steps, *(f"says: {line}" for line in sample.final.splitlines()), f"ended: {sample.ended}"]


# Many runs, many arms, many samples.


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """What the arms of an experiment did to one run."""

    recording: Recording
    samples: dict[str, list[Sample]]
    """By the name of their arm."""
    verdicts: dict[str, Verdict]
    """By the name of the arm; the control has none."""

    @property
    def is_well(self) -> bool:
        """True if no change did anything but what was intended."""
        return all(verdict.word in WELL for verdict in self.verdicts.values())

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        arms = {
            name: {
                "samples": [sample.as_dict() for sample in each],
                "verdict": self.verdicts[name].as_dict() if name in self.verdicts else None,
            }
            for name, each in self.samples.items()
        }
        recording = self.recording
        return {"run": recording.run_id, "path": recording.path, "name": recording.name, "arms": arms}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Arms, how often each is sampled, and what is expected of them."""

    arms: Sequence[Arm]
    options: ForkOptions
    command: Sequence[str] = ()
    samples: int = 1
    is_one_call: bool = False
    verify: str | None = None
    """A shell command that must exit with 0 for a fork to count as passed."""
    expected: Sequence[Expected] = ()
    env: Mapping[str, str] | None = None
    on_sample: Callable[[Recording, Arm, int], None] | None = None
    """Called before each fork."""
    on_result: Callable[[Recording, Sample, int], None] | None = None
    """Called after each fork."""
    on_message: Callable[[str], None] | None = None
    """Called with what a person should know before the first fork."""

    def run(self, recordings: Sequence[Recording]) -> list[ExperimentReport]:
        """Fork each recording in each arm, and return what came of it."""
        if self.samples < 1:
            raise UsageError(f"--samples {self.samples}", hint="at least 1")
        permission = self.options.permission  # for each run once, before the first of them starts
        if not self.is_one_call:
            for message in require_permission(recordings, self.options, self.command):
                if self.on_message is not None:
                    self.on_message(message)
        for recording in recordings:
            if self.is_one_call:
                require_host(recording, self.options.at, permission)
                continue
            start = start_of(recording, self.command, "fork", self.options.cwd, permission.code_folder)
            permission.require(recording, start)
        allowed = Permission(yes=True, code_folder=permission.code_folder)
        permitted = replace(self, options=replace(self.options, permission=allowed))
        own = permitted.options.naming
        return [replace(permitted, options=own(recording))._of(recording) for recording in recordings]

    def _of(self, recording: Recording) -> ExperimentReport:
        samples = {
            arm.name: [self._sample(recording, arm, number) for number in range(1, self.samples + 1)]
            for arm in self.arms
        }
        before = samples.get(CONTROL) or [recorded_sample(recording)]
        verdicts = {
            name: judge(before, each, list(self.expected))
            for name, each in samples.items()
            if name != CONTROL
        }
        return ExperimentReport(recording, samples, verdicts)

    def _sample(self, recording: Recording, arm: Arm, number: int) -> Sample:
        if self.on_sample is not None:
            self.on_sample(recording, arm, number)
        try:
            report = self._fork(recording, arm, f"{recording.name}-{arm.name.replace(os.sep, '-')}-{number}")
        except UsageError as exc:
            raise UsageError(f"{arm.name}: {exc}", hint=exc.hint) from exc
        sample = sample_of(arm.name, report)
        sample = _verified(self.verify, sample) if self.verify else sample
        if self.on_result is not None:
            self.on_result(recording, sample, number)
        return sample

    def _fork(self, recording: Recording, arm: Arm, name: str) -> ForkReport | OneCallReport:
        if self.is_one_call:
            return fork_one_call(recording, arm.edits, self.options.at, name, self.options.permission)
        prepared = prepare_fork(recording, arm.edits, self.options, self.command, name)
        return prepared.run(Apart(env=self.env, folder=self.options.folder, is_captured=True))


def _verified(command: str, sample: Sample) -> Sample:
    """Run the user's command, which finds the fork's file in ``REENACT_FORK``; it must exit with 0.

    If it does not, its last line is the reason.
    """
    env = {**os.environ, "REENACT_FORK": sample.path or "", "REENACT_ARM": sample.arm}
    done = subprocess.run(command, shell=True, env=env, capture_output=True, check=False)  # noqa: S602
    why = sample.why
    if done.returncode and not why:
        output = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
        why = f"--verify failed with {done.returncode}" + (f": {output[-1]}" if output else "")
    return replace(sample, verified=done.returncode == 0, why=why)


def originals(found: Sequence[Recording], where: str) -> list[Recording]:
    """Return the runs that are worth forking; NoSuchRun if there is none.

    Left out: forks and replays and what is inside them, blocks of another run that is forked anyway, and
    runs that did everything in runs inside them, which are forked themselves.
    """
    again = {each.run_id for each in found if "fork" in each.start_fields or "replay_of" in each.meta}
    while inside := {each.run_id for each in found if each.parent_run in again} - again:
        again |= inside
    there = {each.run_id for each in found}
    kept = [
        each
        for each in found
        if each.run_id not in again and not (is_part(each) and each.parent_run in there)
    ]
    around = {each.parent_run for each in kept}
    kept = [each for each in kept if each.run_id not in around or each.calls()]
    if not kept:
        hint = "name the run that they were made from"
        raise NoSuchRun(f"all runs in {where} are forks and replays", asked=where, hint=hint)
    return kept


def experiment(
    runs: Sequence[Recording | str | os.PathLike[str]],
    command: Sequence[str] = (),
    *,
    at: str | int | None = None,
    changes: Mapping[str, Any] | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    samples: int = 1,
    control: bool = False,
    verify: str | None = None,
    expect: Sequence[str] = (),
    one_call: bool = False,
    live_tools: Sequence[str] = (),
    stale_world: bool = False,
    yes: bool = False,
    code_folder: str | os.PathLike[str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> list[ExperimentReport]:
    """Fork runs several times and compare: the Python form of ``reenact fork`` with arms and samples.

    ``vary={"model": ["a", "b"]}`` makes one arm per value; ``control=True`` adds an arm without changes.
    ``expect`` lists effects that are intended: ``tool:NAME``, ``no-tool:NAME``, ``text~REGEX``. The other
    arguments are those of ``fork``. Returns one report per run.
    """
    if isinstance(runs, str | os.PathLike | Recording):
        raise UsageError(f"runs={runs!r}", hint="runs is a list: experiment(['trip.jsonl'], …)")
    if vary is not None and len(vary) != 1:
        raise UsageError(f"vary={vary!r}", hint="one field and its values: vary={'model': ['a', 'b']}")
    varied = {
        f"{name}={value}": Edits(sets=settings_of({name: value}))
        for name, values in (vary or {}).items()
        for value in values
    }
    found = [recording_of(run) for run in runs]
    if not found:
        raise UsageError("there is no run to fork", hint="experiment(['trip.jsonl'], …)")
    return Experiment(
        arms=arms_of(Edits(sets=settings_of(changes)), varied, is_controlled=control),
        options=ForkOptions(
            at=None if at is None else str(at),
            live_tools=tuple(checked_words("live_tools", live_tools)),
            stale_world=stale_world,
            permission=permission_in_python(yes, code_folder),
            cwd=None if cwd is None else os.fspath(cwd),
            folder=None if folder is None else os.path.abspath(folder),
        ),
        command=checked_words("command", command),
        samples=samples,
        is_one_call=one_call,
        verify=verify,
        expected=expected_of(expect),
        env=env,
    ).run(originals(found, "the list"))
