"""What a change did to a run: nothing that counts, what was intended, something else, or harm.

Models vary, so what a changed run does is held against what unchanged ones do: those of the control arm, else
the recording alone. What counts is whether it ends well and which tools it calls; words differ every time.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import UsageError
from .arms import DIVERGED, Sample

UNCHANGED, INTENDED, CHANGED, BROKEN, NO_ANSWER = (
    "unchanged", "changed as intended", "changed", "broken", "not comparable",
)  # fmt: skip
WELL = (UNCHANGED, INTENDED)


class Expected(NamedTuple):
    """One thing that the change is to bring about."""

    text: str
    kind: str
    value: str

    def holds(self, sample: Sample) -> bool:
        """True if a run did it."""
        if self.kind == "text":
            return re.search(self.value, sample.final) is not None
        called = any(step.partition("(")[0] == self.value for step in sample.steps)
        return called == (self.kind == "tool")


def expected_of(texts: Sequence[str]) -> list[Expected]:
    """Read what the user expects; UsageError for what is no expectation."""
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
            f"--expect {text} is nothing to expect", hint="tool:NAME, no-tool:NAME or text~REGEX"
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
    other = [sample for sample in after if _tools(sample) not in known]
    missed = [each.text for each in expected for sample in after if not each.holds(sample)]
    brought = [each for each in expected if not all(each.holds(sample) for sample in before)]
    if expected and not missed and (brought or other):
        return Verdict(INTENDED, ", ".join(each.text for each in expected), diff)
    if missed and brought:
        return Verdict(
            CHANGED if other else UNCHANGED, f"not as expected: {', '.join(dict.fromkeys(missed))}", diff
        )
    if other:
        return Verdict(CHANGED, f"{len(other)} of {len(after)} call other tools", diff)
    return Verdict(UNCHANGED, "", diff)


def _share(samples: list[Sample]) -> float:
    return sum(sample.is_well for sample in samples) / len(samples)


def _tools(sample: Sample) -> tuple[str, ...]:
    return tuple(step.partition("(")[0] for step in sample.steps)


def difference(before: list[Sample], after: list[Sample]) -> list[str]:
    """Return the lines that tell a changed run from the unchanged one that is most like it."""
    known = {_tools(sample) for sample in before}
    other = next((sample for sample in after if _tools(sample) not in known), after[0])
    pairs = (
        (difflib.SequenceMatcher(None, _told(one), _told(other), autojunk=False).ratio(), one)
        for one in before
    )
    nearest = max(pairs, key=lambda pair: pair[0])[1]
    lines = difflib.unified_diff(
        _told(nearest), _told(other), nearest.run or nearest.arm, other.run or other.arm, lineterm="", n=1
    )
    return list(lines)


def _told(sample: Sample) -> list[str]:
    return [*sample.steps, *(f"says: {line}" for line in sample.final.splitlines()), f"ended: {sample.ended}"]
