"""What a recorded run comes to as a test: how it is started again, what is asserted, what that proves."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...capture.entries import ASGI, MAIN
from ...errors import UsageError
from ...tracefile.calls import MODEL, TOOL
from ...tracefile.recording import Recording
from ...wire.reading import text
from ..matching.tape import Tape
from ..replay import preflight
from ..replay.entry import Entry
from .blame import MODELS_OWN, OUTSIDE, Blame, blame, failure_text
from .fixture import portable, provenance

CODE, TOOL_KIND, PROMPT = "code", "tool", "prompt"
KINDS = (CODE, TOOL_KIND, PROMPT)
FUNCTION, APP, COMMAND = "function", "app", "command"
"""How a run is started again: a call of a function, a request to an application, a program."""

PROVES = {
    CODE: "Proves that the code still drives this run; not that a model or tool would answer so today.",
    TOOL_KIND: "Proves that the tools still give what they gave; not that a model would still call them.",
    PROMPT: "Shows how often the model does well today, by the lines below; one run proves little.",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One run as a test."""

    recording: Recording
    kind: str
    sort: str
    target: str
    """``module:name`` of a function or an application; the script of a command."""
    folder: str
    """Where its module or script is found."""
    given: Any
    """The recorded input; the arguments of a command."""
    blame: Blame | None
    tools: list[tuple[str, Any]]
    """Name and arguments of all tools that were called."""
    is_parallel: bool
    """True if tools were asked for side by side, so that their order says nothing."""
    turns: int
    final: str
    """The last answer's text."""
    failed: str
    """How it failed, if it did."""
    live: list[str] = field(default_factory=list)
    """Tools that run in the test, because the user allows it."""
    seen: dict[str, Any] = field(default_factory=dict)
    """What happened when it was run again (``look``); empty if it was not."""
    name: str = ""

    @property
    def is_failed(self) -> bool:
        """True if the run failed, and still does when it is run again."""
        return self.blame is not None and ("raised" in self.seen or not self.seen or self.is_bad)

    @property
    def is_bad(self) -> bool:
        """True if it was run again and ended badly without an exception."""
        return (self.seen.get("status") or 0) >= 500 or bool(self.seen.get("exit"))

    @property
    def signature(self) -> tuple[Any, ...]:
        """What two runs have in common that make the same test."""
        error = self.recording.error
        failure = (error.type, (error.frames or [""])[0]) if error is not None else self.recording.status
        names = (
            sorted(name for name, _ in self.tools) if self.is_parallel else [name for name, _ in self.tools]
        )
        route = self.recording.name if self.sort == APP else ""
        return (self.sort, self.target, route, self.kind, failure, self.turns, tuple(names))

    def knowing(self, seen: dict[str, Any]) -> Case:
        """Return the same with what was seen."""
        return replace(self, seen=seen)

    def allowing(self, names: Sequence[str]) -> Case:
        """Return the same with the tools that may run; UsageError if one would run that is not named."""
        return replace(self, live=preflight.live_tools(self.recording, names))

    def named(self, name: str) -> Case:
        return replace(self, name=name)


def case_of(recording: Recording, *, kind: str | None = None, entry: str | None = None) -> Case:
    """Return a run as a test in which no tool is allowed to run; UsageError if it cannot be one."""
    tape = Tape(recording)
    if not tape.calls:
        raise UsageError(
            f"{recording.name} holds no call that could be answered", hint="record it with reenact run"
        )
    fault = blame(recording)
    if fault is not None and fault.who == OUTSIDE:
        raise UsageError(
            f"{recording.name}: {fault.why}, which no test can do again",
            hint="take a run that ended by itself: reenact ls --failed",
        )
    sort, target, folder, given = _start(recording, entry)
    calls = [call for call in recording.calls(derived=True) if call.kind == TOOL]
    asked = [call.parent for call in calls if call.parent is not None]
    made = Case(
        recording=recording,
        kind=kind or (PROMPT if fault is not None and fault.who == MODELS_OWN else CODE),
        sort=sort,
        target=target,
        folder=folder,
        given=given,
        blame=fault,
        tools=_tools(recording),
        is_parallel=len(asked) > len(set(asked)),
        turns=recording.totals.turns,
        final=_final(recording),
        failed=failure_text(recording),
    )
    return made.named(f"test_{slug(_plain_name(made))}")


def told_by(fixture: Recording, case: Case) -> Case:
    """Return a case with all that goes into its text as the fixture has it: redacted."""
    entry = Entry.of(fixture)
    given = entry.input if entry is not None else fixture.input
    if case.sort == COMMAND:
        given = portable(fixture.start._raw().get("command"))[1:] if fixture.start is not None else []
    failed = failure_text(fixture)
    return replace(case, given=given, tools=_tools(fixture), final=_final(fixture), failed=failed)


def _tools(recording: Recording) -> list[tuple[str, Any]]:
    return [(call.tool or "", call.args) for call in recording.calls(derived=True) if call.kind == TOOL]


def _final(recording: Recording) -> str:
    answers = [call.end for call in recording.calls() if call.kind == MODEL and call.end is not None]
    return text(answers[-1].body, answers[-1].provider).strip() if answers else ""


def _start(recording: Recording, entry: str | None) -> tuple[str, str, str, Any]:
    """Return how a run is started again: sort, target, folder and input."""
    start = recording.start._raw() if recording.start is not None else {}
    cwd = start.get("cwd")
    folder = cwd if type(cwd) is str and os.path.isdir(cwd) else os.getcwd()
    found = Entry.of(recording)
    if entry is not None:
        found = Entry(entry, None, found.input if found is not None else recording.input)
    if found is not None:
        module, name = found.place
        _check_names(module, name)
        source = found.source or folder
        if source.endswith(".py"):
            folder = os.path.dirname(source)
            module = os.path.basename(source).removesuffix(".py") if module == MAIN else module
        else:
            folder = source
        if type(found.input) is not dict:
            raise UsageError(
                f"{recording.name} has no recorded input to call {name} with",
                hint="record it with @reenact.run on the function, or with reenact.run(input={…})",
            )
        return (APP if found.is_app else FUNCTION), f"{module}:{name}", folder, found.input
    words = portable(start.get("command"))
    if not words:
        raise UsageError(
            f"{recording.name} does not say what it was a call of",
            hint="name it: --entry module:function; or record with @reenact.run or reenact run",
        )
    return COMMAND, words[0], folder, words[1:]


def _check_names(module: str, name: str) -> None:
    """What stands in a recording becomes source: nothing but names may."""
    parts = [*module.split("."), *name.removesuffix("()").split(".")]
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise UsageError(
            f"{module}:{name} names nothing that could be imported", hint="--entry module:function"
        )


def lossy(recording: Recording) -> tuple[list[str], list[str]]:
    """Return what of a fixture is not as it was: what the code would act upon, and headers."""
    serious = [f"{call.label()}: {', '.join(why)}" for call, why in Tape(recording).lossy()]
    entry = Entry.of(recording)
    headers = [each for each in (entry.lossy if entry is not None else ()) if each.startswith("header ")]
    serious += [
        f"its input: {each}" for each in (entry.lossy if entry is not None else ()) if each not in headers
    ]
    return serious, headers


def comes_from(case: Case) -> str:
    """Return one line on where a test comes from."""
    told = provenance(case.recording)
    parts = [", ".join(told.get(name, ())) for name in ("served", "sdks")]
    parts += [f"Python {told['python']}"] if "python" in told else []
    day = told.get("recorded", "a day unknown")
    return f"run {str(told['of'])[:12]} of {day}: " + "; ".join(part for part in parts if part)


def slug(text: str) -> str:
    """Return a text as a part of a Python name."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()[:50] or "run"


def _plain_name(case: Case) -> str:
    if case.sort == APP:
        return case.recording.name
    if case.sort == FUNCTION:
        return case.target.partition(":")[2].removesuffix("()")
    name = case.recording.name
    return name if not name.endswith(".py") else name.removesuffix(".py")


def entry_text(case: Case) -> str:
    """Return the entry of a function or an application as ``run.start`` has it."""
    return f"{ASGI if case.sort == APP else ''}{case.target}"
