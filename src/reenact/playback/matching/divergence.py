"""The report of a run that diverged from its recording, as data and as text.

It names the recorded call and the request made now, the first difference, where the differing text came from,
possible causes, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from ...recording.origins import Origins
from ...schema import FOUND, FRAMEWORKS
from ...wire.json_differences import Difference, changed_part, differences, excerpt
from ...wire.json_values import canonical
from ...wire.messages import tool_results
from ...wire.pairing import pairs
from ...wire.reading import conversation_key
from .frontier import (
    AMBIGUOUS,
    CHANGED,
    EXHAUSTED,
    EXTRA,
    MISSING_CALL,
    REORDERED,
    WRONG_KIND,
    Frontier,
    Miss,
    Served,
)
from .likely_causes import (
    ANSWER,
    EQUAL_AT_ONCE,
    LOSSY,
    NOT_NAMED,
    OTHER_FUNCTION,
    PROMPT,
    RACE,
    TOOL_CALL,
    TOOL_RESULT,
    WORDS,
    likely_causes,
)
from .modes import REBASE, STRICT
from .recorded_answers import IN_FLIGHT
from .request import MODEL, TOOL, Request
from .tape import RecordedCall, Tape

SENTENCES = {
    REORDERED: "This call is recorded, but after calls that have not been made yet.",
    CHANGED: "This request differs from the recorded one.",
    WRONG_KIND: "Another kind of call was recorded here.",
    EXTRA: "No call like this was recorded here.",
    EXHAUSTED: "All recorded calls are used up; this is one more.",
    MISSING_CALL: "This recorded call was never made.",
    AMBIGUOUS: "Equal requests made at once got different answers; which of them this one was is unknown.",
}

ADD_KEEP_GOING = "add --keep-going   # see all differences at once"
"""A next step that only ``reenact replay`` offers."""
NAMED = '[tools] {} = {{ function = "module:name" }} in reenact.toml names its function'

_SOUGHT = 400
"""How many earlier answers are searched for a text, the latest first."""
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Divergence:
    """One place where a run left its recording."""

    code: str
    now: str | None
    """The request; None for a call that was not made."""
    number: int | None
    """The number of the request in the run, from 1."""
    recorded: str | None
    """The nearest recorded call."""
    call: str | None
    """Its id."""
    likeness: float | None = None
    path: str | None = None
    """The first place where the two differ."""
    recorded_value: str | None = None
    now_value: str | None = None
    differing: int = 0
    """How many places differ."""
    came_from: str | None = None
    """Where the text in the request came from."""
    recorded_came_from: str | None = None
    hints: tuple[str, ...] = ()
    next: tuple[str, ...] = field(default=())
    process: str | None = None
    """The command of the process, unless it is the first one of the run."""

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Divergence:
        """Read what ``as_dict`` returned."""
        known: dict[str, Any] = {"now": None, "number": None, "recorded": None, "call": None, **plain}
        lists = {name: tuple(known.get(name, ())) for name in ("hints", "next")}
        return cls(**{**known, **lists})

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data; unknown values are left out."""
        return {key: value for key, value in asdict(self).items() if value not in (None, ())}

    def text(self) -> str:
        """Return it as text."""
        lines = [f"{self.code}: {SENTENCES[self.code]}"]
        lines += [f"  process   {self.process}"] if self.process is not None else []
        rows = (("recorded", self.recorded), ("now", self.now and f"call {self.number}: {self.now}"))
        lines += [f"  {name:<9} {value}" for name, value in rows if value]
        if self.path is not None:
            more = f" (the first of {self.differing} places)" if self.differing > 1 else ""
            lines.append(f"  differs at {self.path}{more}")
            lines.append(f"    recorded {self.recorded_value}{_from(self.recorded_came_from)}")
            lines.append(f"    now      {self.now_value}{_from(self.came_from)}")
        lines += [f"  hint: {WORDS[hint]}" for hint in self.hints]
        lines += [f"  next: {command}" for command in self.next]
        return "\n".join(lines)


def explain(
    miss: Miss,
    tape: Tape,
    earlier: Iterable[Served | Miss] = (),
    missing: Iterable[RecordedCall] = (),
    *,
    mode: str = STRICT,
) -> Divergence:
    """Return the report of a miss; ``earlier`` are the results of the requests before it.

    ``missing`` are the recorded calls that were not made so far.
    """
    nearest, request = miss.nearest, miss.request
    is_other_tool_call = request.kind == TOOL and miss.code != REORDERED
    following = _next(miss.code, mode)
    if is_other_tool_call and any(call.tool == request.name for call in tape.calls):
        following += (f"add --live-tools {request.name}   # let the tool run, in all its calls",)
    if nearest is None:
        hint = (TOOL_CALL,) if is_other_tool_call else ()
        return Divergence(miss.code, _label(request), miss.number, None, None, hints=hint, next=following)
    report: dict[str, Any] = {"likeness": round(miss.likeness, 3)}
    hints: list[str] = []
    elsewhere = _run_elsewhere(request, missing)
    if elsewhere:
        hints.append(OTHER_FUNCTION)
        following += tuple(f"{NAMED.format(tool)}   # if that is the tool now" for tool in elsewhere)
    elif miss.code == REORDERED:
        hints.append(RACE)
    if miss.code != REORDERED and nearest.kind == request.kind:
        hints += _compare(nearest, request, tape, earlier, report)
    if is_other_tool_call:
        hints = [TOOL_CALL, *(hint for hint in hints if hint != PROMPT)]
    if nearest.request_lossy:
        hints = [LOSSY]
    return Divergence(
        miss.code, _label(request), miss.number, nearest.label(), nearest.id,
        hints=tuple(dict.fromkeys(hints)), next=following, **report,
    )  # fmt: skip


def out_of_order(call: RecordedCall) -> Divergence:
    """Return the report of a call that was answered although other calls should have come before it."""
    return Divergence(REORDERED, None, None, call.label(), call.id, hints=(RACE,))


def guessed(call: RecordedCall) -> Divergence:
    """Return the report of a call that answers one of several equal requests, maybe not the right one."""
    hint = NOT_NAMED if call.who is None else EQUAL_AT_ONCE
    return Divergence(AMBIGUOUS, None, None, call.label(), call.id, hints=(hint,))


def missing_calls(frontier: Frontier, tape: Tape) -> list[Divergence]:
    """Return a report for each recorded call that was not made.

    A call that was still running when the recorded run ended is not reported: this run may have ended sooner.
    """
    missing = [call for call in frontier.missing() if not is_left_behind(call, tape)]
    return [
        Divergence(MISSING_CALL, None, None, call.label(), call.id, next=_next(MISSING_CALL, frontier.mode))
        for call in missing
    ]


def is_left_behind(call: RecordedCall, tape: Tape) -> bool:
    """True for a call that never ended although its run was not killed: a daemon thread made it."""
    if call.outcome != IN_FLIGHT:
        return False
    end = tape.recording.end
    code = end.stored_fields.get("exit") if end is not None else None
    return type(code) is int and code >= 0


def _run_elsewhere(request: Request, missing: Iterable[RecordedCall]) -> list[str]:
    """Return the watched tools that a request has results of, none of them from the recording."""
    key = conversation_key(request.body) if request.kind == MODEL else None
    if key is None:
        return []
    sent = {result.id for message in request.body[key] for result in tool_results(message)}
    calls = [call for call in missing if call.tool is not None and call.tool_id in sent]
    watched = [call for call in calls if call.event.stored_fields.get("source") in (FOUND, *FRAMEWORKS)]
    return list(dict.fromkeys(str(call.tool) for call in watched))


def _compare(
    nearest: RecordedCall,
    request: Request,
    tape: Tape,
    earlier: Iterable[Served | Miss],
    report: dict[str, Any],
) -> list[str]:
    """Add where two requests differ to ``report``; return hints."""
    before, after = nearest.request.plain(), request.plain()
    found = list(differences(before, after))
    if not found:
        return []
    first = found[0]
    report["path"], report["differing"] = first.pointer, len(found)
    report["recorded_value"] = excerpt(first.recorded, first.now)
    report["now_value"] = excerpt(first.now, first.recorded)
    earlier = list(earlier)
    source = came_from(first, earlier)
    tool = None if source is not None else _tool_of_result(nearest, first)
    code = "your code" if tool is None else f"the result of tool {tool}"
    if tool is not None and any(isinstance(each, Served) and each.call.tool == tool for each in earlier):
        code = f"your code: tool {tool} did not run, its recorded result was returned"
        tool = None
    report["came_from"] = source or code
    report["recorded_came_from"] = code if tool is not None else _recorded_origin(nearest, first, tape)
    hints = likely_causes(first, before, after)
    if source is not None:
        hints.append(ANSWER)
    if tool is not None:
        return [TOOL_RESULT, *(hint for hint in hints if hint != PROMPT)]
    if not hints and type(first.now) is str:
        hints.append(PROMPT)
    return hints


def came_from(difference: Difference, earlier: Iterable[Served | Miss]) -> str | None:
    """Return which earlier answer holds the new text of a difference, None if none does."""
    now, recorded = difference.now, difference.recorded
    text = now if type(now) is str else ""
    if type(recorded) is str and text:
        text = changed_part(recorded, text)[1]
    text = text.strip()
    if len(text) < _SHORTEST:
        return None
    sought = canonical(text)[1:-1]
    for found in list(earlier)[: -_SOUGHT - 1 : -1]:
        if isinstance(found, Served) and sought in canonical(found.call.answer.body):
            return _source(found.call)
    return None


def _source(call: RecordedCall) -> str:
    step = call.event.step
    return (
        f"the result of tool {call.tool}, step {step}" if call.kind == TOOL else f"the answer to step {step}"
    )


def _recorded_origin(call: RecordedCall, difference: Difference, tape: Tape) -> str | None:
    """Return where the recorded message with the difference came from."""
    if call.kind != MODEL or len(difference.path) < 2 or type(difference.path[1]) is not int:
        return None
    if difference.path[0] != conversation_key(call.request.body):
        return None
    with tape.lock:
        origins = Origins(tape.recording).of(call.event)
    if difference.path[1] >= len(origins):
        return None
    origin = origins[difference.path[1]]
    steps = ", ".join(str(event.step) for event in origin.events)
    words = {"answer": "the answer at step", "tool": "the tool result at step"}
    return f"{words[origin.how]} {steps}" if origin.how in words else "your code"


def _tool_of_result(call: RecordedCall, difference: Difference) -> str | None:
    """Return the tool that returned the differing result, None if the difference is elsewhere."""
    body, path = call.request.body, difference.path
    if call.kind != MODEL or len(path) < 3 or path[0] != conversation_key(body) or type(path[1]) is not int:
        return None
    messages, at = body[path[0]], path[1]
    if at >= len(messages) or str(path[-1]).endswith("id") or not tool_results(messages[at]):
        return None
    names = [pair.name for pair in pairs(messages) if pair.result == at]
    if len(names) > 1 and len(path) > 3 and type(path[3]) is int:
        parts = messages[at][path[2]]
        if not tool_results({**messages[at], path[2]: parts[path[3] : path[3] + 1]}):
            return None  # a text beside the results
        before = len(tool_results({**messages[at], path[2]: parts[: path[3]]}))
        names = names[before : before + 1]
    return ", ".join(dict.fromkeys(filter(None, names))) or None


def _label(request: Request) -> str:
    return request.fingerprint.site if request.kind == TOOL else f"{request.kind} {request.fingerprint.site}"


def _from(source: str | None) -> str:
    return f"   from {source}" if source else ""


def _next(code: str, mode: str) -> tuple[str, ...]:
    """Return the next steps that ``mode`` does not take already.

    Flags to add, not whole commands: the rest of the user's command stays as it was.
    """
    flags = []
    if mode == STRICT:
        flags.append(ADD_KEEP_GOING)
    if code == CHANGED and mode != REBASE:
        flags.append("add --rebase   # accept the change; answers stay the recorded ones")
    return tuple(flags)
