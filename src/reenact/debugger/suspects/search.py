"""The search for suspects: every rule over one run, what belongs together as one, the likeliest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...recording.recording import Recording
from ..story import Story, story_of
from . import model_rules, result_rules, tool_rules, value_rules
from .passing_run import first_root
from .scene import Scene
from .suspect import Suspect

_AGAIN = 0.85
"""What is left of the confidence in each further suspect of one kind."""

_RULES = (*result_rules.RULES, *tool_rules.RULES, *model_rules.RULES, *value_rules.RULES)


def all_suspects(recording: Recording) -> list[Suspect]:
    """Return the suspects of a run read whole, and where it first differs from the last one that passed."""
    root = first_root(recording)
    return sorted([*suspects_of(recording), *([] if root is None else [root])], key=_rank)


def suspects_of(recording: Recording, story: Story | None = None) -> list[Suspect]:
    """Return the suspects of a run, the likeliest first, of equal ones the earlier; equal texts as one.

    ``story`` is the part of a large run to look at; without one it is read whole. No other run is read.
    """
    scene = Scene(story_of(recording, everything=True) if story is None else story, recording)
    equal: dict[tuple[str, str], Suspect] = {}
    for rule in _RULES:
        for each in rule(scene):
            before = equal.setdefault((each.kind, each.evidence), each)
            if before is not each:
                equal[each.kind, each.evidence] = replace(before, times=before.times + 1)
    return sorted(_less_each_time(sorted(equal.values(), key=_rank)), key=_rank)


def _rank(suspect: Suspect) -> tuple[float, int]:
    return -suspect.confidence, suspect.event.index or 0


def _less_each_time(found: Iterable[Suspect]) -> Iterator[Suspect]:
    """Yield the suspects; of several of one kind the first counts most, since others often follow from it."""
    times: Counter[str] = Counter()
    for each in found:
        yield replace(each, confidence=round(each.confidence * _AGAIN ** times[each.kind], 2))
        times[each.kind] += 1
