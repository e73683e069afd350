"""The report of a run that went another way than its recording, as data and as text.

It tells what was recorded and what is asked now, the first difference, where the differing text came from,
what may be the cause, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from ...recording.origins import Origins
from ...wire.json_values import canonical
from ...wire.messages import tool_results
from ...wire.pairing import pairs
from ...wire.reading import conversation_key
from . import differences as suspects
from .differences import Difference, differences
from .frontier import CHANGED, EXHAUSTED, EXTRA, MISSING_CALL, REORDERED, WRONG_KIND, Frontier, Miss, Served
from .recorded_answers import IN_FLIGHT
from .request import MODEL, TOOL, Request
from .rules import REBASE, STRICT
from .tape import RecordedCall, Tape

EXIT_CODE = 3
"""Of a replay that diverged."""

SENTENCES = {
    REORDERED: "This call is recorded, but other calls were made before it that have not been made now.",
    CHANGED: "This call asks for something else than the recorded one.",
    WRONG_KIND: "Another kind of call was recorded here.",
    EXTRA: "No call like this was recorded here.",
    EXHAUSTED: "All recorded calls have been made already; this is one more.",
    MISSING_CALL: "This recorded call was never made.",
}

ADD_KEEP_GOING = "add --keep-going   # see all differences at once"
"""What to do next, which only ``reenact replay`` can."""

_SOUGHT = 400
"""Answers given so far that are searched for a text, the latest first."""
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Divergence:
    """One place where a run left its recording."""

    code: str
    now: str | None
    """What was asked; None for a call that was not made."""
    number: int | None
    """Which request of the run it was, from 1."""
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
    """Where the text came from that is there now."""
    recorded_came_from: str | None = None
    hints: tuple[str, ...] = ()
    next: tuple[str, ...] = field(default=())
    process: str | None = None
    """The command of the process it happened in, if that is not the first one of the run."""

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Divergence:
        """Return what ``as_dict`` made plain."""
        known: dict[str, Any] = {"now": None, "number": None, "recorded": None, "call": None, **plain}
        lists = {name: tuple(known.get(name, ())) for name in ("hints", "next")}
        return cls(**{**known, **lists})

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data; what is not known is left out."""
        return {key: value for key, value in asdict(self).items() if value not in (None, ())}

    def text(self) -> str:
        """Return it for a person."""
        lines = [f"{self.code}: {SENTENCES[self.code]}"]
        lines += [f"  process   {self.process}"] if self.process is not None else []
        rows = (("recorded", self.recorded), ("now", self.now and f"call {self.number}: {self.now}"))
        lines += [f"  {name:<9} {value}" for name, value in rows if value]
        if self.path is not None:
            more = f" (the first of {self.differing} places)" if self.differing > 1 else ""
            lines.append(f"  differs at {self.path}{more}")
            lines.append(f"    recorded {self.recorded_value}{_from(self.recorded_came_from)}")
            lines.append(f"    now      {self.now_value}{_from(self.came_from)}")
        lines += [f"  hint: {suspects.WORDS[hint]}" for hint in self.hints]
        lines += [f"  next: {command}" for command in self.next]
        return "\n".join(lines)


def explain(
    miss: Miss,
    tape: Tape,
    given: Iterable[Served | Miss] = (),
    *,
    mode: str = STRICT,
    user_agent: str | None = None,
) -> Divergence:
    """Return the report of a miss.

    ``given`` is what became of the requests before it (``Frontier.log``), ``user_agent`` names the SDK now.
    """
    following = _next(miss.code, mode)
    nearest, request = miss.nearest, miss.request
    if nearest is None:
        return Divergence(miss.code, _label(request), miss.number, None, None, next=following)
    report: dict[str, Any] = {"likeness": round(miss.likeness, 3)}
    hints: list[str] = []
    if miss.code == REORDERED:
        hints.append(suspects.RACE)
    elif nearest.kind == request.kind:
        hints += _compare(nearest, request, tape, given, report)
    if user_agent is not None and user_agent != (nearest.event.headers or {}).get("user-agent", user_agent):
        hints.append(suspects.SDK)
    if nearest.request_lossy:
        hints = [suspects.LOSSY]
    return Divergence(
        miss.code, _label(request), miss.number, nearest.label(), nearest.id,
        hints=tuple(dict.fromkeys(hints)), next=following, **report,
    )  # fmt: skip


def out_of_turn(call: RecordedCall) -> Divergence:
    """Return the report of a call that got its answer all the same, where a run goes on after a miss."""
    return Divergence(REORDERED, None, None, call.label(), call.id, hints=(suspects.RACE,))


def never_made(frontier: Frontier, tape: Tape) -> list[Divergence]:
    """Return a report for each recorded call that nobody asked for.

    One that a run had left behind may have been on its way when this one ended.
    """
    missing = [call for call in frontier.missing() if not is_left_behind(call, tape)]
    return [
        Divergence(MISSING_CALL, None, None, call.label(), call.id, next=_next(MISSING_CALL, frontier.mode))
        for call in missing
    ]


def is_left_behind(call: RecordedCall, tape: Tape) -> bool:
    """True for a call that never ended although its run was not killed: a thread of a daemon had made it."""
    if call.outcome != IN_FLIGHT:
        return False
    end = tape.recording.end
    code = end.stored_fields.get("exit") if end is not None else None
    return type(code) is int and code >= 0


def _compare(
    nearest: RecordedCall,
    request: Request,
    tape: Tape,
    given: Iterable[Served | Miss],
    report: dict[str, Any],
) -> list[str]:
    """Fill in where two requests differ; returns hints."""
    before, after = nearest.request.plain(), request.plain()
    found = list(differences(before, after))
    if not found:
        return []
    first = found[0]
    report["path"], report["differing"] = first.pointer, len(found)
    report["recorded_value"] = suspects.excerpt(first.recorded, first.now)
    report["now_value"] = suspects.excerpt(first.now, first.recorded)
    given = list(given)
    source = came_from(first, given)
    tool = None if source is not None else _tool_of_result(nearest, first)
    if any(isinstance(each, Served) and each.call.tool == tool for each in given):
        tool = None  # it was answered and did not run, so the code words its result in another way
    code = "your code" if tool is None else f"the result of tool {tool}"
    report["came_from"] = source or code
    recorded_source = _recorded_origin(nearest, first, tape)
    report["recorded_came_from"] = code if recorded_source == "your code" else recorded_source
    hints = suspects.suspects(first, before, after)
    if source is not None:
        hints.append(suspects.ANSWER)
    if tool is not None:
        return [suspects.TOOL_RESULT, *(hint for hint in hints if hint != suspects.PROMPT)]
    if not hints and type(first.now) is str:
        hints.append(suspects.PROMPT)
    return hints


def came_from(difference: Difference, given: Iterable[Served | Miss]) -> str | None:
    """Return which answer given so far holds the text that stands in one place now, None if none does."""
    now, recorded = difference.now, difference.recorded
    text = now if type(now) is str else ""
    if type(recorded) is str and text:
        text = suspects.changed_part(recorded, text)[1]
    text = text.strip()
    if len(text) < _SHORTEST:
        return None
    sought = canonical(text)[1:-1]
    for found in list(given)[: -_SOUGHT - 1 : -1]:
        if isinstance(found, Served) and sought in canonical(found.call.answer.body):
            return _source(found.call)
    return None


def _source(call: RecordedCall) -> str:
    step = call.event.step
    return (
        f"the result of tool {call.tool}, step {step}" if call.kind == TOOL else f"the answer to step {step}"
    )


def _recorded_origin(call: RecordedCall, difference: Difference, tape: Tape) -> str | None:
    """Return where the recorded message came from in which the difference is."""
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
    """Return the tool in whose result a difference is, None if it is elsewhere."""
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
    """Return what to do now that is not being done already.

    Flags, not commands: what else was said, and which program was named, is to stay as it was.
    """
    flags = []
    if mode == STRICT:
        flags.append(ADD_KEEP_GOING)
    if code == CHANGED and mode != REBASE:
        flags.append("add --rebase   # accept the change; answers stay the recorded ones")
    return tuple(flags)
