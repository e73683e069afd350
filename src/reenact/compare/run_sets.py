"""Two sets of runs: where the bad ones leave the path of the good ones, and what separates them.

The good run that has most in common with the other good ones is the reference. Every other run is compared
with it; the first root is where it leaves the path. What a run has, calls, arguments, outputs, prompts, are
its features. A feature counts by how many bad and good runs have it (Fisher's exact test), corrected for the
number of splits of the runs that were looked at (Tarone's form of Bonferroni's): noise among the good runs
makes more splits, and weighs against each.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, lgamma
from typing import Any

from ..errors import NoSuchRun, ReenactError, UsageError
from ..recording.listing import list_runs
from ..recording.recording import Recording, recording_at
from ..tracefile.events.text import clean, count, plain
from .causes import Found
from .comparison import Comparison, Progress
from .details import step_of
from .digests import Digest
from .masks import Masks
from .report import CANNOT_TELL, DIFFERENT, SAME, Step, plain_data
from .steps import RunSteps, StepFacts

Run = str | os.PathLike[str] | Recording

LEAST_GOOD, LEAST_BAD = 2, 2
"""Runs without which nothing can be told apart from noise."""

SIGNIFICANT = 0.05
_MOST = 40
"""Separating features in a report."""

_UNSURE = 5
"""The same where none is sure."""


@dataclass(frozen=True)
class Departure:
    """A step of the reference at which runs leave its path for the first time."""

    step: Step | None
    """Of the reference; None: after its last step."""
    cause: str
    bad: int
    good: int


@dataclass(frozen=True)
class Separator:
    """Something that bad runs have and good runs do not, or the other way round."""

    what: str
    """In words: ``tool output: get_price(hotel="casa")``."""
    sort: str
    """``step argument output prompt response end``."""
    bad: int
    """Bad runs that have it."""
    good: int
    p_value: float
    """How likely such a split is by chance."""
    confidence: float
    """1 - p after correction for the number of features, 0 to 1."""
    example: str
    """The path of a run that has it."""
    address: str | None = None
    """Of an event in that run."""


@dataclass(frozen=True)
class SetDiff:
    """What separates bad runs from good ones."""

    good: tuple[str, ...]
    bad: tuple[str, ...]
    verdict: str
    """``different`` if something separates them, ``same`` if no run differs, else ``cannot tell``."""
    headline: tuple[str, str, str]
    """Where the bad runs leave the path, what separates them, how sure that is."""
    reference: str | None = None
    departures: tuple[Departure, ...] = ()
    separators: tuple[Separator, ...] = ()
    tested: int = 0
    """How many different splits of the runs were looked at."""
    noise: int = 0
    """Good runs that differ from the reference."""
    left_out: tuple[str, ...] = ()
    """Runs that could not be compared, with the reason."""

    @property
    def is_enough(self) -> bool:
        """False if there are too few runs to be sure of anything."""
        return fisher(len(self.bad), 0, len(self.bad), len(self.good)) <= SIGNIFICANT

    def __bool__(self) -> bool:
        """True unless no run differs."""
        return self.verdict != SAME

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return dict(plain_data(self)) | {"is_enough": self.is_enough}


def runs_of(patterns: Iterable[str]) -> list[str]:
    """Return the paths that patterns, folders and addresses of runs lead to."""
    found: dict[str, None] = {}
    for pattern in patterns:
        if os.path.isdir(pattern):
            paths = [row.path for row in list_runs(pattern) if row.id is not None]
        elif glob.has_magic(pattern) and not os.path.exists(pattern):
            names = sorted(glob.glob(pattern, recursive=True))
            paths = [path for path in names if path.endswith(".jsonl")]
            paths += [row.path for name in names if os.path.isdir(name) for row in list_runs(name) if row.id]
        else:
            paths = [recording_at(pattern).path]
        if not paths:
            raise NoSuchRun(
                f"no run is at {pattern}", asked=pattern, hint="`reenact ls` lists the runs of a folder"
            )
        found |= dict.fromkeys(paths)
    return list(found)


def diff_sets(
    good: Iterable[Run], bad: Iterable[Run], masks: Masks, progress: Progress | None = None
) -> SetDiff:
    """Compare runs that passed with runs that failed: what do only the bad ones have?"""
    good, bad = (_listed(runs) for runs in (good, bad))
    return _Sets(good, bad, masks, progress).report()


def _listed(runs: Iterable[Run]) -> list[Run]:
    """Return each run; a text may be a pattern or a folder."""
    if isinstance(runs, str | os.PathLike):
        runs = [runs]
    found: list[Run] = []
    for run in runs:
        found += [run] if isinstance(run, Recording) else runs_of([os.fspath(run)])
    return found


Feature = tuple[str, ...]


class _Sets:
    def __init__(self, good: list[Run], bad: list[Run], masks: Masks, progress: Progress | None) -> None:
        self._masks = masks
        self._progress = progress or (lambda text: None)
        self._left_out: list[str] = []
        self._total = len(good) + len(bad)
        self._read = 0
        self._good, self._bad = self._steps(good), self._steps(bad)
        same = {run.recording.run_id for run in self._good} & {run.recording.run_id for run in self._bad}
        if same - {None}:
            raise UsageError(
                f"{count(len(same), 'run')} are both good and bad", hint="each run belongs to one set"
            )

    def _steps(self, runs: list[Run]) -> list[RunSteps]:
        found = []
        for run in runs:
            self._read += 1
            self._progress(f"reading run {self._read:,} of {self._total:,}")
            name = str(getattr(run, "path", run))
            try:
                recording = run if isinstance(run, Recording) else recording_at(os.fspath(run))
                if recording.count():
                    found.append(RunSteps(recording, self._masks))
                else:
                    self._left_out.append(clean(f"{name}: it has no events"))
            except (ReenactError, OSError) as why:
                self._left_out.append(clean(f"{name}: {why}"))
        return found

    def report(self) -> SetDiff:
        good, bad = (tuple(clean(run.recording.path) for run in runs) for runs in (self._good, self._bad))
        if len(good) < LEAST_GOOD or len(bad) < LEAST_BAD:
            line = f"not enough runs: {len(good)} good and {len(bad)} bad"
            need = f"at least {LEAST_GOOD} of each are needed to tell a cause from noise"
            lines = line, need, "nothing was compared"
            return SetDiff(good, bad, CANNOT_TELL, lines, left_out=tuple(self._left_out))
        reference = self._reference()
        first: dict[int, tuple[int | None, str] | None] = {}
        for number, run in enumerate([*self._good, *self._bad]):
            self._progress(f"comparing run {number + 1:,} of {self._total:,}")
            first[id(run)] = None if run is reference else _first_root(reference, run, self._masks)
        departures = self._departures(reference, first)
        noise = sum(first[id(run)] is not None for run in self._good)
        separators, tested = self._separators()
        is_same = not noise and all(first[id(run)] is None for run in self._bad)
        is_sure = bool(separators) and separators[0].confidence >= 1 - SIGNIFICANT
        verdict = DIFFERENT if is_sure else SAME if is_same else CANNOT_TELL
        return SetDiff(
            good,
            bad,
            verdict,
            self._headline(departures, separators, noise, tested, is_same),
            reference=clean(reference.recording.path),
            departures=tuple(departures),
            separators=tuple(separators[:_MOST]),
            tested=tested,
            noise=noise,
            left_out=tuple(self._left_out),
        )

    def _reference(self) -> RunSteps:
        """Return the good run that shares most steps with the other good ones."""
        often = Counter(key for run in self._good for key in {step.key for step in run.steps})
        return max(
            self._good,
            key=lambda run: sum(often[step.key] - 1 for step in run.steps) / max(1, len(run.steps)),
        )

    def _departures(
        self, reference: RunSteps, first: dict[int, tuple[int | None, str] | None]
    ) -> list[Departure]:
        bad = Counter(first[id(run)] for run in self._bad)
        good = Counter(first[id(run)] for run in self._good)
        found = []
        for place, number in bad.most_common():
            if place is not None:
                at, cause = place
                step = None if at is None else step_of(reference.steps[at - 1], reference)
                found.append(Departure(step, cause, number, good[place]))
        return found

    def _separators(self) -> tuple[list[Separator], int]:
        """Return what separates the sets, the surest first, and how many splits were looked at."""
        having: dict[Feature, list[int]] = {}
        examples: dict[Feature, tuple[RunSteps, StepFacts]] = {}
        for number, run in enumerate([*self._bad, *self._good]):
            for feature, step in _features(run).items():
                having.setdefault(feature, []).append(number)
                examples.setdefault(feature, (run, step))
        bad, good = len(self._bad), len(self._good)
        splits: dict[frozenset[int], list[Feature]] = {}
        for feature, runs in having.items():
            rest = frozenset(range(bad + good)).difference(runs)
            if rest:  # what all runs have separates nothing; to have it and to lack it is one split
                splits.setdefault(rest if 0 in runs else frozenset(runs), []).append(feature)
        p_values = {split: _p_value(split, bad, good) for split in splits}
        factor = tarone([min(len(split), bad + good - len(split)) for split in splits], bad, good)
        order = sorted(splits, key=lambda split: (p_values[split], sorted(split)))
        found: list[Separator] = []
        for split in order:
            sure = max(0.0, 1 - p_values[split] * factor)
            is_unsure = not found or found[0].confidence < 1 - SIGNIFICANT
            if len(found) >= _MOST or (sure < 1 - SIGNIFICANT and not (is_unsure and len(found) < _UNSURE)):
                break
            features = sorted(
                splits[split],
                key=lambda each: (examples[each][1].number, having[each][0] >= bad, _RANK[each[0]], each),
            )
            for feature in features[:_MOST]:
                own = sum(number < bad for number in having[feature])
                numbers = own, len(having[feature]) - own
                found.append(self._separator(feature, *examples[feature], *numbers, p_values[split], sure))
        return found, len(splits)

    def _separator(
        self, feature: Feature, run: RunSteps, step: StepFacts, bad: int, good: int, p: float, sure: float
    ) -> Separator:
        shown = step_of(step, run)
        outcome = f" → {shown.outcome}" if shown.outcome else ""
        words = {
            "step": f"step: {shown.title}",
            "argument": f"argument: {shown.title}",
            "output": f"tool output: {shown.title}{outcome}",
            "prompt": f"prompt: {shown.title}",
            "response": f"response: {shown.title}{outcome}",
            "count": f"count: {feature[1]} called {feature[-1]} times" if feature[0] == "count" else "",
            "end": f"end: {shown.outcome}",
            "event": f"event: {shown.title}{outcome}",
        }
        return Separator(
            plain(words[feature[0]], 300), feature[0], bad, good, p, round(sure, 6),
            clean(run.recording.path), shown.address,
        )  # fmt: skip

    def _headline(
        self, departures: list[Departure], separators: list[Separator], noise: int, tested: int, is_same: bool
    ) -> tuple[str, str, str]:
        bad, good = len(self._bad), len(self._good)
        if is_same:
            both = f"{bad} bad and {good} good runs are the same"
            return "no run differs from the others", "nothing to explain", both
        if departures:
            first = departures[0]
            at = f"step {first.step.number}, {first.step.title}" if first.step is not None else "the end"
            where = f"{first.bad} of {bad} bad runs leave the common path at {at} ({first.cause})"
            where += f"; so do {first.good} of {good} good ones" if first.good else "; no good run does"
        else:
            where = "no bad run leaves the path of the good ones"
        noisy = f"{noise} of {good - 1} other good runs differ from the reference, too"
        if not separators:
            return where, "nothing separates them", noisy
        best = separators[0]
        what = f"{best.what}: in {best.bad} of {bad} bad and {best.good} of {good} good runs"
        sure = (
            f"confidence {best.confidence:.1%}, corrected for {count(tested, 'split')} of the runs; {noisy}"
        )
        if best.confidence < 1 - SIGNIFICANT:
            chance = fisher(bad, 0, bad, good)
            more = (
                f"even a perfect split has a chance of {chance:.0%}"
                if chance > SIGNIFICANT
                else "it may be noise"
            )
            return where, f"not enough runs to be sure ({more}); the best guess is {what}", sure
        return where, what, sure


_RANK = {"output": 0, "prompt": 1, "argument": 2, "step": 3, "event": 4, "count": 5, "response": 6, "end": 7}


def _first_root(reference: RunSteps, run: RunSteps, masks: Masks) -> tuple[int | None, str] | None:
    """Return at which step of the reference a run leaves its path, and why; None if it does not."""
    comparison = Comparison(reference, run, masks)
    found: Found | None = next((each for each in comparison.walk.found if each.follows is None), None)
    if found is None:
        return None
    if found.left:
        return found.left[0].number, found.cause
    before = None
    for (one, other), _ in comparison.pairs:
        if other is not None and other.number == found.right[0].number:
            break
        before = one.number if one is not None else before
    return (before or 0) + 1 if (before or 0) < len(reference.steps) else None, found.cause


def _features(run: RunSteps) -> dict[Feature, StepFacts]:
    """Return what a run has that others may lack, each with a step that shows it."""
    found: dict[Feature, StepFacts] = {}
    tools: Counter[str] = Counter()
    for step in run.steps:
        if step.kind == "tool":
            tools[step.name] += 1
            found.setdefault(("step", step.name), step)
            found.setdefault(("argument", step.name, _hex(step.args)), step)
            found.setdefault(
                ("output", step.name, _hex(step.args), _hex(step.output), _hex(step.error)), step
            )
        elif step.kind == "model":
            if step.request is not None:
                for piece in step.request.added:
                    if piece.role in ("system", "user"):
                        found.setdefault(("prompt", piece.role, piece.digest.hex()), step)
                for name, value in step.request.settings.items():
                    found.setdefault(("prompt", name, value.hex()), step)
            if step.answered is not None:
                found.setdefault(("response", step.key.hex()), step)
        elif step.kind in ("event", "input"):
            sort = "prompt" if step.kind == "input" else "event"
            found.setdefault((sort, step.name, _hex(step.args)), step)
    for name, number in tools.items():
        if number > 1:
            last = run.tools[name][-1]
            found.setdefault(("count", name, str(number)), last)
    return found


def _hex(value: Digest | None) -> str:
    return "" if value is None else value.hex()


def _p_value(split: frozenset[int], bad: int, good: int) -> float:
    own = sum(number < bad for number in split)
    return fisher(own, len(split) - own, bad, good)


def tarone(sizes: Sequence[int], bad: int, good: int) -> int:
    """Return for how many tests to correct: splits so uneven that they cannot be significant do not count.

    ``sizes``: of the smaller part of each split.
    """
    best = sorted(_least_p(size, bad, good) for size in sizes)
    for factor in range(1, len(best) + 1):
        if sum(p <= SIGNIFICANT / factor for p in best) <= factor:
            return factor
    return max(1, len(best))


def _least_p(having: int, bad: int, good: int) -> float:
    """Return the smallest chance that a feature of so many runs can have."""
    in_bad = fisher(min(having, bad), max(0, having - bad), bad, good)
    return min(in_bad, fisher(max(0, having - good), min(having, good), bad, good))


def fisher(bad: int, good: int, all_bad: int, all_good: int) -> float:
    """Return the chance of so uneven a split of a feature (Fisher's exact test, both sides).

    >>> round(fisher(5, 0, 5, 5), 4)
    0.0079
    """
    having, total = bad + good, all_bad + all_good

    def chance(some: int) -> float:
        return exp(_choose(all_bad, some) + _choose(all_good, having - some) - _choose(total, having))

    seen = chance(bad)
    low, high = max(0, having - all_good), min(all_bad, having)
    return min(1.0, sum(each for each in map(chance, range(low, high + 1)) if each <= seen * (1 + 1e-9)))


def _choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
