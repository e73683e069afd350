"""Rules about how tool calls went: errors, empty and partial results, equal calls, calls without an end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...tracefile.events.text import plain, short_json
from ...wire.json_values import canonical
from ...wire.results import OTHER_FORM, result_text
from .scene import WIDE, Scene, Step, Use, words_of
from .suspect import (
    EMPTY_RESULT,
    ERROR_AS_RESULT,
    HIDDEN_ERROR,
    NO_ANSWER,
    PARTIAL_RESULT,
    REPEATED_CALL,
    RETRIES,
    TOOL_ERROR,
    Suspect,
)

_REPEATED = 3
"""Equal calls with equal results in one lane from which they are a suspect."""

_MOST_PAGES = 20
"""Later calls of a tool among which the one that fetches the rest is sought."""


def failures(scene: Scene) -> Iterator[Suspect]:
    """Errors of tools: raised, replaced by a text, or returned like a result."""
    for use in scene.uses:
        if use.failure is None:
            continue
        error = use.call.error
        is_recovered = scene.recovers(use)
        words = f"{use.words}: {plain(use.failure, 300)}"
        if error is not None and use.call.verdict == OTHER_FORM:
            words += f"; the model was sent {use.sent}"
            yield scene.suspect(HIDDEN_ERROR, 0.3 if is_recovered else 0.85, use.at, words)
        elif error is not None:
            confidence = 0.25 if is_recovered else 0.85 if scene.ended_by(error) else _raised(use, scene)
            yield scene.suspect(TOOL_ERROR, confidence, use.at, words)
        else:
            yield scene.suspect(ERROR_AS_RESULT, _ignored(use, scene, is_recovered), use.at, words)


def _raised(use: Use, scene: Scene) -> float:
    """Return how likely an error that the model saw, and that nothing made up for, did harm."""
    after = use.step.next
    handled = after is not None and (after.admits or any(each.tool != use.tool for each in after.uses))
    return 0.45 if handled and scene.ended_with is None and not scene.is_dead else 0.7


def _ignored(use: Use, scene: Scene, is_recovered: bool) -> float:
    """Return how likely a result that reads like an error was taken for a fine one."""
    if is_recovered:
        return 0.2
    after = use.step.next
    if after is None:
        return 0.6  # the last thing that happened
    if not after.admits and not after.uses:
        return 0.75  # the model answers as if nothing had happened
    return 0.35 if after.admits else 0.4


def empty_results(scene: Scene) -> Iterator[Suspect]:
    """A search or a reading that found nothing, and a model that goes on as if it had."""
    for use in scene.uses:
        if not use.is_empty or use.failure is not None or not use.reads:
            continue
        found_later = scene.recovers(use)
        after = use.step.next
        is_fine = after is not None and not after.admits and not after.uses and bool(after.text)
        confidence = 0.2 if found_later else 0.7 if is_fine else 0.3
        result = short_json(use.call.result, 40)
        yield scene.suspect(EMPTY_RESULT, confidence, use.at, f"{use.words} returned {result}")


def partial_results(scene: Scene) -> Iterator[Suspect]:
    """A result that says that there is more, which nobody fetched."""
    for use in scene.uses:
        if use.rest is None:
            continue
        fetched = any(_is_further(use, other) for other in scene.others_after(use, _MOST_PAGES))
        after = use.step.next
        admits = after is not None and after.admits
        confidence = 0.15 if fetched else 0.35 if admits or after is None else 0.6
        words = f"{use.words}: the result is a part, {plain(use.rest, 80)}; the rest was not fetched"
        yield scene.suspect(PARTIAL_RESULT, confidence, use.at, words)


def _is_further(use: Use, other: Use) -> bool:
    return use.failure is None and canonical(use.args) != canonical(other.args)


def repeated_calls(scene: Scene) -> Iterator[Suspect]:
    """Equal calls with equal results again and again; a change of the world that was made twice."""
    alike: dict[tuple[str, str, str], list[Use]] = {}
    for use in scene.uses:
        alike.setdefault((use.step.block.lane, use.tool, canonical(use.args)), []).append(use)
    for uses in alike.values():
        if len(uses) < 2:
            continue
        groups: dict[object, list[Use]] = {}
        for use in uses:
            groups.setdefault(use.key, []).append(use)
        yield from _same_result(scene, uses, groups)
        done = [use for use in uses if use.failure is None and not use.call.is_open]
        lost = [use for use in uses[:-1] if use.failure is not None and _LOST.search(use.failure[:200])]
        if lost and uses[-1].writes and not any("key" in words_of(str(name)) for name in _names(uses[-1])):
            before = plain(lost[0].failure or "", 80)
            words = f"{uses[-1].words} was repeated after {before}: it may be done twice"
            yield scene.suspect(REPEATED_CALL, 0.7, uses[uses.index(lost[0]) + 1].call.event, words)
        if len(done) > 1 and done[0].writes:
            words = f"{done[0].words} was called {len(done)} times and changed something each time"
            yield scene.suspect(REPEATED_CALL, 0.7, done[1].call.event, words)


_LOST = re.compile(
    r"time-?d? ?-?out|timeout|connection|reset by|no (?:answer|response)|gateway", re.IGNORECASE
)


def _names(use: Use) -> list[str]:
    return list(use.args) if isinstance(use.args, dict) else []


def _same_result(scene: Scene, uses: list[Use], groups: dict[object, list[Use]]) -> Iterator[Suspect]:
    for same in groups.values():
        if len(same) < _REPEATED:
            continue
        first, changed_at_last = same[0], uses[-1].key != same[-1].key
        if first.failure is not None:
            times = f"{first.words} × {len(same)}, each time {plain(first.failure, WIDE)}"
            yield scene.suspect(RETRIES, 0.3 if changed_at_last else 0.8, first.at, times)
            continue
        result = result_text(first.call.result) if first.call.derived else first.call.result
        times = f"{first.words} × {len(same)}, each time {short_json(result, WIDE)}"
        confidence = 0.25 if changed_at_last else 0.8 if len(same) > _REPEATED else 0.5
        yield scene.suspect(REPEATED_CALL, confidence, same[1].call.event, times)


def unanswered(scene: Scene) -> Iterator[Suspect]:
    """Calls without an end: the process died in them, or the agent never sent a result."""
    for step in scene.steps:
        for use in step.uses:
            if use.call.is_open:
                yield from _open_tool(scene, step, use)
        call = step.turn.call if step.turn is not None else None
        if call is not None and call.is_open and scene.recording.status != "running":
            yield scene.suspect(NO_ANSWER, 0.85, call.event, "the model call has no answer: it had not ended")


def _open_tool(scene: Scene, step: Step, use: Use) -> Iterator[Suspect]:
    if scene.recording.status == "running":
        return
    if use.call.derived:
        is_left_out = step.next is not None
        words = "the conversation continues without a result" if is_left_out else "no result was sent"
        confidence = 0.7 if is_left_out else 0.6 if scene.is_dead or scene.ended_with is not None else 0.25
        yield scene.suspect(NO_ANSWER, confidence, use.call.event, f"{use.words}: {words}")
    else:
        yield scene.suspect(NO_ANSWER, 0.85, use.call.event, f"{use.words} has no result: it had not ended")


RULES = (failures, empty_results, partial_results, repeated_calls, unanswered)
