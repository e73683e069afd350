"""Differences as a report shows them: steps in words, and each place in which two steps differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..recording.calls import MODEL, TOOL
from ..tracefile.events.event_text import address, error_text
from ..tracefile.events.text import call_text, count, plain, short_json
from ..wire import reading
from ..wire.json_differences import MISSING, changed_part, differences, volatile_parts
from ..wire.json_values import as_text, mapping
from . import report
from .causes import Found
from .masks import from_json
from .report import Change, Difference, Step
from .steps import END, INPUT, RunSteps, StepFacts
from .texts import Texts, args_of, request_body, response_parts

MOST_CHANGES = 40
"""Places shown of one difference."""

_LONGEST = 20_000
"""Characters of a text in a change; of a longer one the part that differs."""

_WIDE = 200

_HINTS = {
    "clock": "only a time or date differs",
    "random-id": "only a random id differs",
    "address": "only the address of an object differs",
    "temp-path": "only the path of a temporary file differs",
}


def step_of(step: StepFacts, run: RunSteps) -> Step:
    """Return a step in words."""
    title, outcome = _words(step, run)
    event = step.event
    place = None
    if event is not None and step.kind not in (INPUT, END):
        place = address(event, run.recording.first_writer)
        number = getattr(step.call, "order", None)
        place += "" if number is None else f".{number + 1}"
    return Step(step.number, step.kind, title, outcome, place, step.turn, plain(step.lane, 60))


def _words(step: StepFacts, run: RunSteps) -> tuple[str, str]:
    if step.kind == MODEL:
        end = step.call.end if step.call is not None else None
        if end is None:
            return "model", "no response"
        return "model", f"✗ {error_text(end.error)}" if end.error is not None else plain(
            end.content or "", _WIDE
        )
    if step.kind == TOOL and step.call is not None:
        call = step.call
        title = call_text(step.name, call.args, 80)
        if call.error is not None:
            return title, f"✗ {error_text(call.error)}"
        return title, _short(call.result) if call.end is not None else "no result"
    if step.kind == INPUT:
        return "input", _short(run.recording.input)
    if step.kind == END:
        error = run.recording.error
        text = "" if error is None else f": {error_text(error)}"
        return "end", plain(f"{run.recording.status}{text}", _WIDE)
    error = step.event.error if step.event is not None else None
    text = error_text(error) if error is not None else short_json(args_of(step), _WIDE)
    return plain(step.name, 60), plain(text, _WIDE)


def _short(value: Any) -> str:
    return plain(value, _WIDE) if type(value) is str else short_json(value, _WIDE)


class Details:
    """Fills in what the differences of two runs consist of."""

    def __init__(self, left: RunSteps, right: RunSteps, texts: Texts) -> None:
        self._runs, self._texts = (left, right), texts

    def difference(self, found: Found) -> Difference:
        """Return a difference with its steps in words and its changes."""
        changes = tuple(self._changes(found))[:MOST_CHANGES]
        return Difference(
            number=found.number,
            cause=found.cause,
            because=_sentence(found, changes),
            left=tuple(step_of(step, self._runs[0]) for step in found.left),
            right=tuple(step_of(step, self._runs[1]) for step in found.right),
            changes=changes,
            detail=found.detail,
            follows=found.follows,
            hint=_hint(changes),
        )

    def _changes(self, found: Found) -> Iterator[Change]:
        if not found.left or not found.right:
            return
        left, right = found.left[0], found.right[0]
        for part in found.parts:
            if part == "args":
                yield from self._values("args", args_of(left), args_of(right))
            elif part in ("result", "error") and left.kind == TOOL:
                yield from self.outputs(left, right)
            elif part == "attempts":
                yield Change("attempts", "", left.attempts, right.attempts)
            elif part in ("messages", "history"):
                yield from self._messages(left, right, found, part)
            elif part in ("system", "tools", "settings", "model"):
                yield from self._settings(left, right, part)
            elif part in ("decision", "text", "stop", "error", "served", "reasoning"):
                yield from self._response(left, right, part)
            elif part == "end":
                yield from self._end()
            else:
                yield from self._values(part, args_of(left), args_of(right))

    def outputs(self, left: StepFacts, right: StepFacts) -> Iterator[Change]:
        """Yield where the results or errors of two tool calls differ."""
        if left.call is None or right.call is None:
            return
        one, other = left.call, right.call
        if one.error is not None or other.error is not None or one.is_open or other.is_open:
            yield _change(
                "error" if one.error or other.error else "result", "", _end_of(left), _end_of(right)
            )
            return
        yield from self._values("result", one.result, other.result, left.name)

    def _values(self, part: str, left: Any, right: Any, tool: str | None = None) -> Iterator[Change]:
        parsed = from_json(left), from_json(right)
        if str not in map(type, parsed):
            left, right = parsed
        if tool is not None:
            left, right = (self._texts.masks.masked(each, "tool", tool, part) for each in (left, right))
        if type(left) is str and type(right) is str:
            yield _change(part, "", left, right)
            return
        for found in differences(left, right):
            path = "" if found.pointer == "(all of it)" else found.pointer
            yield _change(part, path, found.recorded, found.now)

    def _messages(self, left: StepFacts, right: StepFacts, found: Found, part: str) -> Iterator[Change]:
        sides = []
        for step, digests in ((left, found.pieces[0]), (right, found.pieces[1])):
            sides.append([each for each in self._texts.messages(step) if each.piece.digest in digests])
        roles = list(dict.fromkeys(each.piece.role for side in sides for each in side))
        for role in roles:
            ours, theirs = ([each for each in side if each.piece.role == role] for side in sides)
            for number in range(max(len(ours), len(theirs))):
                one = ours[number] if number < len(ours) else None
                other = theirs[number] if number < len(theirs) else None
                place = (one or other).place  # type: ignore[union-attr]
                name = {"user": "input", "tool": "result in the prompt"}.get(role, role)
                yield _change(
                    part if part == "history" else name,
                    f"messages[{place}]",
                    MISSING if one is None else one.text,
                    MISSING if other is None else other.text,
                )
        if not roles and part == "history":
            lengths = [len({each.place for each in self._texts.messages(step)}) for step in (left, right)]
            yield _sides("history", *(count(length, "message") for length in lengths))

    def _settings(self, left: StepFacts, right: StepFacts, part: str) -> Iterator[Change]:
        one, other = mapping(request_body(left)), mapping(request_body(right))
        for key in {**one, **other}:
            sort = "system" if key in reading.SYSTEM else "tools" if key in reading.TOOLS else key
            sort = sort if sort in ("system", "tools", "model") else "settings"
            if sort != part or key in ("messages", "input", "contents", "prompt", *reading.KEPT_BY):
                continue
            before, after = one.get(key, MISSING), other.get(key, MISSING)
            if before == after:
                continue
            if part == "system":
                yield _change(part, "", *map(_system, (before, after)))
            else:
                for found in differences({key: before}, {key: after}):
                    yield _change(part, found.pointer, found.recorded, found.now)
        if part == "model" and "model" not in one:
            yield _sides("model", *map(_model_of, (left, right)))

    def _response(self, left: StepFacts, right: StepFacts, part: str) -> Iterator[Change]:
        if part == "error":
            texts = [self._texts.output(step) or "no response" for step in (left, right)]
            yield _change("response", "", *texts)
            return
        if part == "stop":
            yield _sides("stop", *(step.answered and step.answered.stop for step in (left, right)))
            return
        if part == "served":
            yield _sides("served model", *(step.answered and step.answered.model for step in (left, right)))
            return
        (text, uses), (other_text, other_uses) = response_parts(left), response_parts(right)
        if part == "text":
            yield _change("response", "text", text, other_text)
        elif part == "decision":
            yield from _decisions(uses, other_uses)
        else:
            yield Change("reasoning", "", "(thoughts)", "(other thoughts)")

    def _end(self) -> Iterator[Change]:
        one, other = (run.recording for run in self._runs)
        if one.status != other.status:
            yield Change("end", "status", one.status, other.status)
        errors = [None if run.error is None else error_text(run.error) for run in (one, other)]
        if errors[0] != errors[1]:
            yield _change("end", "error", *(MISSING if each is None else each for each in errors))


def _decisions(left: list[Any], right: list[Any]) -> Iterator[Change]:
    """Yield which tools the model requested otherwise; equal ones, wherever they stand, are left out."""
    ours = [(use.name, use.args) for use in left]
    theirs = [(use.name, use.args) for use in right]
    for use in list(ours):
        if use in theirs:
            ours.remove(use)
            theirs.remove(use)
    for name, args in list(ours):
        other = next((each for each in theirs if each[0] == name), None)
        if other is not None:
            ours.remove((name, args))
            theirs.remove(other)
            for found in differences({name: args}, {name: other[1]}):
                yield _change("response", found.pointer, found.recorded, found.now)
    for number in range(max(len(ours), len(theirs))):
        one = call_text(*ours[number], 400) if number < len(ours) else MISSING
        two = call_text(*theirs[number], 400) if number < len(theirs) else MISSING
        yield _change("response", "tool", one, two)


def _model_of(step: StepFacts) -> str | None:
    return reading.model_of(request_body(step), step.event.url if step.event is not None else None)


def _sides(part: str, left: Any, right: Any) -> Change:
    return Change(part, "", left, right)


def _system(value: Any) -> Any:
    return value if value is MISSING else reading.system_text(value)


def _end_of(step: StepFacts) -> Any:
    call = step.call
    if call is None or call.is_open:
        return "no result"
    return f"✗ {error_text(call.error)}" if call.error is not None else as_text(call.result)


def _change(part: str, path: str, left: Any, right: Any) -> Change:
    has_left, has_right = left is not MISSING, right is not MISSING
    if type(left) is str and type(right) is str and max(len(left), len(right)) > _LONGEST:
        before, after = changed_part(left[: 1 << 20], right[: 1 << 20])
        left, right = f"…{before[:_LONGEST]}…", f"…{after[:_LONGEST]}…"
    return Change(part, path, left if has_left else None, right if has_right else None, has_left, has_right)


def _hint(changes: tuple[Change, ...]) -> str | None:
    """Return what all changes have in common that often differs from run to run."""
    common: set[str] | None = None
    for change in changes:
        if type(change.left) is not str or type(change.right) is not str:
            return None
        found = set(volatile_parts(*changed_part(change.left[:_LONGEST], change.right[:_LONGEST])))
        common = found if common is None else common & found
    return next((text for name, text in _HINTS.items() if common and name in common), None)


def _sentence(found: Found, changes: tuple[Change, ...]) -> str:
    number = len(found.left or found.right)
    if found.cause in (report.EXTRA, report.MISSING, report.LOOP) and not (found.left and found.right):
        which = "first" if found.left else "second"
        if found.cause == report.LOOP:
            return f"only the {which} run makes this call again"
        return found.why if number == 1 else f"only the {which} run has these {number} steps"
    if found.cause == report.LOOP and changes:
        return (
            f"the call took {changes[0].left} attempts in the first run and {changes[0].right} in the second"
        )
    if found.follows is not None:
        return f"it follows from difference {found.follows}"
    if found.cause == report.UNKNOWN:
        return f"{found.why}: a part of them is {found.detail}"
    return found.why
