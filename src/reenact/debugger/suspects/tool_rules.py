"""Rules about tool calls: another result than the tool's, errors, empty and partial results, equal calls, no answer."""

from __future__ import annotations

from collections.abc import Iterator

from ...recording.calls import Call
from ...tracefile.events.text import call_text, count, plain, short_json
from ...wire.json_values import as_json, canonical
from ...wire.results import CONTRADICTED, OTHER_FORM, result_text
from .scene import WIDE, Scene, Step, Use
from .suspect import (
    CHANGED_RESULT,
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

_WRITES = frozenset(
    "add apply approve assign book buy cancel charge create debit delete deploy deposit drop insert issue merge notify "
    "order pay payment place post publish purchase refund register remove reserve schedule send submit transfer "
    "withdraw email".split()
)
"""Words in the name of a tool that changes the world: a second equal call does so again."""

_READS = frozenset(
    "check count describe fetch find get list load look lookup query read retrieve scan search select show view".split()
)


def contradiction(call: Call) -> str:
    """Return in words that the model was sent another result than the tool returned."""
    sent = "" if call.sent is None else short_json(result_text(call.sent.value), WIDE)
    returned = short_json(call.result, WIDE)
    return f"{call_text(call.tool, call.args, WIDE)}: the tool returned {returned}, the model was sent {sent}"


def words_of(tool: str) -> list[str]:
    """Return the words of a tool's name.

    >>> words_of("getUser_byId")
    ['get', 'user', 'by', 'id']
    """
    spaced = "".join(f" {char}" if char.isupper() else char for char in tool)
    return [word for word in "".join(c if c.isalnum() else " " for c in spaced).lower().split() if word]


def changed_results(scene: Scene) -> Iterator[Suspect]:
    """A result the model was sent that is not the one the tool returned, or only a part of it."""
    for use in scene.uses:
        call = use.call
        if call.sent is None or call.error is not None:
            continue
        if call.verdict == CONTRADICTED:
            yield scene.suspect(CHANGED_RESULT, 0.95, use.at, contradiction(call))
        elif call.verdict == OTHER_FORM and call.sent.is_certain and call.end is not None:
            returned = call.result if isinstance(call.result, str) else as_json(call.result)
            sent = result_text(call.sent.value)
            if is_cut(returned, sent):
                words = f"{use.words}: the tool returned {len(returned):,} characters, the model was sent {len(sent):,}"
                yield scene.suspect(CHANGED_RESULT, 0.6, use.at, words)


def is_cut(returned: str, sent: str) -> bool:
    """True if a good part of a result was not sent."""
    return len(returned) > 200 and len(sent) < 0.8 * len(returned)


def failures(scene: Scene) -> Iterator[Suspect]:
    """Errors of tools: raised, replaced by a text, or returned like a result."""
    for use in scene.uses:
        if use.failure is None:
            continue
        error = use.call.error
        is_recovered = any(
            other.failure is None and not other.call.is_open for other in scene.others_after(use)
        )
        words = f"{use.words}: {plain(use.failure, 300)}"
        if error is not None and use.call.verdict == OTHER_FORM:
            words += f"; the model was sent {use.sent}"
            yield scene.suspect(HIDDEN_ERROR, 0.3 if is_recovered else 0.85, use.at, words)
        elif error is not None:
            confidence = 0.25 if is_recovered else 0.85 if scene.ended_by(error) else 0.7
            yield scene.suspect(TOOL_ERROR, confidence, use.at, words)
        else:
            yield scene.suspect(ERROR_AS_RESULT, _ignored(use, scene, is_recovered), use.at, words)


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
        if not use.is_empty or use.failure is not None or _READS.isdisjoint(words_of(use.tool)):
            continue
        found_later = any(not other.is_empty and other.failure is None for other in scene.others_after(use))
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
        fetched = any(_is_further(use, other) for other in scene.others_after(use))
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
        is_write = not _WRITES.isdisjoint(words_of(uses[0].tool)) and _READS.isdisjoint(
            words_of(uses[0].tool)
        )
        if len(done) > 1 and is_write:
            words = f"{done[0].words} was called {len(done)} times and changed something each time"
            yield scene.suspect(REPEATED_CALL, 0.7, done[1].call.event, words)


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
        yield scene.suspect(REPEATED_CALL, confidence, first.call.event, times)


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


RULES = (changed_results, failures, empty_results, partial_results, repeated_calls, unanswered)
