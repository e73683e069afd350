"""Two runs compared: their steps aligned, the differences explained, and all of it as a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from ..errors import UsageError
from ..recording.recording import Recording
from ..tracefile.events.event_text import error_text
from ..tracefile.events.text import clean, count, plain, short_json
from ..wire.json_differences import changed_part
from . import report
from .alignment import Alignment, Pair, match_lanes
from .causes import Walk
from .details import Details, step_of
from .equal_lines import Stretch, equal_stretches
from .masks import Masks, Proposals
from .report import CANNOT_TELL, DIFFERENT, SAME, Difference, Row, RunDiff, Side, Unknown
from .steps import END, EQUAL, INPUT, RunSteps, StepFacts
from .texts import Texts

Progress = Callable[[str], None]

MOST_DIFFERENCES = 500
"""Differences with all their details; more are counted only."""

_AROUND = 2
"""Equal steps shown before and after a difference."""

_UNRELATED = 0.1
"""Share of the steps that two runs have in common below which they hardly belong together."""


class Comparison:
    """Two runs on their way to a report."""

    def __init__(
        self, left: RunSteps, right: RunSteps, masks: Masks, progress: Progress | None = None
    ) -> None:
        self._progress = progress or (lambda text: None)
        self.left, self.right = left, right
        self.is_one_run = left is right
        self._texts = Texts(masks)
        self._alignment = Alignment(self._texts.similarity)
        self.pairs: list[tuple[Pair, str]] = []
        """All steps in order, each with its lane on the left."""
        self._align()
        self.walk = Walk(self.left, self.right, self._texts)
        for number, ((one, other), lane) in enumerate(self.pairs):
            if number % 1000 == 0:
                self._progress(f"comparing step {number:,} of {len(self.pairs):,}")
            self.walk.step(one, other, lane)

    @classmethod
    def of(
        cls, left: Recording, right: Recording, masks: Masks, progress: Progress | None = None
    ) -> Comparison:
        """Compare two recordings."""
        for recording in (left, right):
            if not recording.count():
                raise UsageError(
                    f"{recording.path} has no events of a run, so there is nothing to compare",
                    hint="`reenact doctor` shows what can be read of it",
                )
        if left.run_id == right.run_id and os.path.realpath(left.path) == os.path.realpath(right.path):
            one = RunSteps(left, masks, progress)
            return cls(one, one, masks, progress)
        if progress is not None:
            progress("looking for equal stretches")
        equal: tuple[Sequence[Stretch], Sequence[Stretch]] = (
            ((), ()) if masks else equal_stretches(left, right)
        )
        ours, theirs = RunSteps(left, masks, progress, equal[0]), RunSteps(right, masks, progress, equal[1])
        return cls(ours, theirs, masks, progress)

    def _align(self) -> None:
        ours, theirs = self.left.lanes, self.right.lanes
        placed: list[tuple[int, Pair, str]] = []
        for lane, other in match_lanes(ours, theirs):
            self._progress("aligning the steps")
            at = 0
            for pair in self._aligned(ours.get(lane or "", []), theirs.get(other or "", [])):
                at = max(at, pair[0].number) if pair[0] is not None else at
                if lane is None and pair[1] is not None:
                    at = pair[1].number
                placed.append((at, pair, lane or f"+{other}"))
        placed.sort(key=lambda each: each[0])  # stable: what only the right run has stays where it was
        first, last = ((self.left.only(kind), self.right.only(kind)) for kind in (INPUT, END))
        lane = self.left.steps[0].lane
        self.pairs = [(pair, lane) for _, pair, lane in placed]
        self.pairs = [*([(first, lane)] if any(first) else []), *self.pairs, (last, lane)]

    def _aligned(self, left: list[StepFacts], right: list[StepFacts]) -> list[Pair]:
        """Align what lies between the stretches that were not read."""
        pairs: list[Pair] = []
        i = j = 0
        for one, other in zip(_unread(left), _unread(right), strict=True):
            pairs += [*self._alignment.align(left[i:one], right[j:other]), (left[one], right[other])]
            i, j = one + 1, other + 1
        return [*pairs, *self._alignment.align(left[i:], right[j:])]

    def report(self) -> RunDiff:
        """Return what was found."""
        details = Details(self.left, self.right, self._texts)
        found = self.walk.found
        shown = [details.difference(each) for each in found[:MOST_DIFFERENCES]]
        unknown = tuple(self._unknown()) if not self.is_one_run else ()
        verdict = DIFFERENT if found else CANNOT_TELL if unknown else SAME
        return RunDiff(
            left=_side(self.left),
            right=_side(self.right),
            verdict=verdict,
            differences=tuple(shown),
            rows=tuple(self._rows()),
            same_again=self._same_again(),
            unknown=unknown[:MOST_DIFFERENCES],
            notes=tuple(self._notes()),
            masks=tuple(self._proposals(details)),
            left_out=len(found) - len(shown),
            headline=self._headline(shown),
        )

    def _unknown(self) -> list[Unknown]:
        return [
            Unknown(step_of(each.left, self.left), step_of(each.right, self.right), each.part, each.why)
            for each in self.walk.hidden[: MOST_DIFFERENCES + 1]
        ]

    def _number(self, one: StepFacts | None, other: StepFacts | None) -> int | None:
        left, right = self.walk.of_step
        found = left.get(one.number) if one is not None else None
        found = found or (right.get(other.number) if other is not None else None)
        return None if found is None else found.number

    def _rows(self) -> list[Row]:
        pairs = _as_they_ran(self.pairs)
        numbers = [self._number(*pair) for pair in pairs]
        differing = [
            at for at, number in enumerate(numbers) if number is not None and number <= MOST_DIFFERENCES
        ]
        wanted = {
            near
            for at in differing
            for near in range(max(0, at - _AROUND), min(len(numbers), at + _AROUND + 1))
        }
        rows: list[Row] = []
        last = -1
        for at in sorted(wanted):
            if at > last + 1:
                rows.append(Row(skipped=_steps_in(pairs[last + 1 : at])))
            one, other = pairs[at]
            rows.append(
                Row(
                    None if one is None else step_of(one, self.left),
                    None if other is None else step_of(other, self.right),
                    numbers[at],
                )
            )
            last = at
        if len(numbers) > last + 1:
            rows.append(Row(skipped=_steps_in(pairs[last + 1 :])))
        return rows

    def _same_again(self) -> tuple[int, int] | None:
        """Return from which steps on everything that was done is equal again; the end is not looked at."""
        again: tuple[int, int] | None = None
        for one, other in reversed(_as_they_ran(self.pairs)):
            if self._number(one, other) is not None:
                if (one or other).kind == "end":  # type: ignore[union-attr]
                    continue
                return again
            assert one is not None and other is not None
            if one.kind != "end":
                again = one.number, other.number
        return None

    def _notes(self) -> list[str]:
        notes = []
        left, right = self.left.recording, self.right.recording
        if self.is_one_run:
            notes.append("both are the same run")
        for key, what in (("git", "git commit"), ("python", "Python")):
            one, other = left.start_fields.get(key), right.start_fields.get(key)
            if type(one) is str and type(other) is str and one != other:
                notes.append(f"the {what} differs: {plain(one, 12)} and {plain(other, 12)}")
        if self._alignment.by_position:
            notes.append(
                f"{count(self._alignment.by_position, 'step')} in large gaps are compared by position only, "
                "since comparing each with each would take too long"
            )
        pairs = [pair for pair, _ in self.pairs if None not in pair]
        same = _steps_in([(one, other) for one, other in pairs if one and other and one.key == other.key])
        steps = _steps_in([pair for pair, _ in self.pairs])
        if steps > 8 and same / steps < _UNRELATED:
            notes.append("the runs have hardly a step in common: are these two the ones to compare?")
        for run in (left, right):
            if run.findings:
                number = count(len(run.findings), "finding")
                notes.append(plain(f"{run.name}: {number} while reading; `reenact doctor` lists all", 200))
        return notes

    def _proposals(self, details: Details) -> list[str]:
        differing = {
            one.name for one, other in self.walk.equal_outputs if one.output != other.output and not one.error
        }
        differing -= {tool for stretch in self.left.equal for tool in stretch.tools}  # not every time
        proposals = Proposals()
        for one, other in self.walk.equal_outputs[: 20 * MOST_DIFFERENCES]:
            if one.name in differing:
                same = one.output == other.output
                proposals.add(
                    one.name, "result", () if same else (c.path for c in details.outputs(one, other))
                )
        return proposals.found()

    def _headline(self, shown: list[Difference]) -> tuple[str, str, str]:
        roots = [each for each in shown if each.is_root]
        if not shown:
            if self.walk.hidden and not self.is_one_run:
                why = sorted({each.why for each in self.walk.hidden})
                places = count(len(self.walk.hidden), "place")
                return (
                    "no difference in what is recorded",
                    f"cannot tell: {places} of both runs are {' or '.join(why)}",
                    "the runs may be equal or not",
                )
            steps = count(self.left.count, "step")
            return f"no difference in {steps}", "nothing to explain", "the runs are the same"
        first = roots[0]
        return where(first), cause_line(first) + _first_change(first), self._consequence(shown, roots)

    def _consequence(self, shown: list[Difference], roots: list[Difference]) -> str:
        later = [each for each in self.walk.found if each.follows is not None and each.cause != report.END]
        parts = [
            f"{count(len(later), 'later difference')} because of it"
            if later
            else "no later difference because of it"
        ]
        if len(roots) > 1:
            parts.append(f"{count(len(roots) - 1, 'more root')}")
        again = self._same_again()
        if again is not None:
            place = f"step {again[0]}" if again[0] == again[1] else f"step {again[0]} (right: {again[1]})"
            parts.append(f"the same again from {place}")
        one, other = (self._end(run) for run in (self.left, self.right))
        parts.append(f"both ended {one}" if one == other else f"left ended {one}, right ended {other}")
        return "; ".join(parts)

    def _end(self, run: RunSteps) -> str:
        error = run.recording.error
        return plain(run.recording.status + ("" if error is None else f" ({error_text(error)})"), 120)


def where(difference: Difference) -> str:
    """Return at which steps a difference stands, and what they are."""
    left, right = difference.left, difference.right
    steps = left or right
    step = next((each for each in steps if each.kind == "tool"), steps[0])
    turn = f"turn {step.turn}, " if step.turn is not None else ""
    numbers = (
        f"step {steps[0].number}" if len(steps) == 1 else f"steps {steps[0].number} to {steps[-1].number}"
    )
    if not left or not right:
        numbers += f" of the {'left' if left else 'right'} run only"
    elif left[0].number != right[0].number:
        numbers += f" (right: {right[0].number})"
    outcome = f" → {plain(step.outcome, 60)}" if step.kind != "tool" and step.outcome else ""
    return f"{turn}{numbers}: {step.title}{outcome}"


def cause_line(difference: Difference) -> str:
    """Return the cause of a difference, and why it is that one."""
    detail = f" ({difference.detail})" if difference.detail else ""
    return f"{difference.cause}{detail}: {difference.because}"


def _first_change(difference: Difference) -> str:
    if not difference.changes:
        return ""
    change = difference.changes[0]
    left, right = change.left, change.right
    if type(left) is str and type(right) is str:
        left, right = changed_part(left, right)
    sides = [
        (plain(each, 40) if type(each) is str else short_json(each, 40))
        if is_there and each != ""
        else "(nothing)"
        for each, is_there in ((left, change.has_left), (right, change.has_right))
    ]
    more = len(difference.changes) - 1
    path = plain(change.path or change.part, 60)
    rest = f", and {count(more, 'other place')}" if more else ""
    return f" ({path}: {sides[0]} → {sides[1]}{rest})"


def _as_they_ran(pairs: Sequence[tuple[Pair, str]]) -> list[Pair]:
    """Return aligned steps as they are shown: the tools of one response in the order of their calls."""
    found: list[Pair] = []
    for block, group in groupby(pairs, lambda each: (each[1], _first(each[0]).block or None)):
        steps = [pair for pair, _ in group]
        found += steps if block[1] is None else sorted(steps, key=lambda pair: _first(pair).number)
    return found


def _unread(steps: Sequence[StepFacts]) -> list[int]:
    return [place for place, step in enumerate(steps) if step.kind == EQUAL]


def _steps_in(pairs: Iterable[Pair]) -> int:
    return sum(_first(pair).count for pair in pairs)


def _first(pair: Pair) -> StepFacts:
    step = pair[0] or pair[1]
    assert step is not None
    return step


def _side(run: RunSteps) -> Side:
    recording = run.recording
    error = recording.error
    return Side(
        path=recording.path,
        run=recording.run_id,
        name=clean(recording.name),
        status=recording.status,
        steps=run.count,
        error=None if error is None else error_text(error),
    )
