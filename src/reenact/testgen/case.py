"""A recorded run as a test case: how to start it again, what to assert, what that proves."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..capture.runs.entry_point import ASGI, MAIN
from ..errors import UsageError
from ..messages.whole import read_request
from ..playback.effects import IRREVERSIBLE, WRITE
from ..playback.launch import Start, redacted_argument, start_in
from ..playback.matching.recorded_answers import CUT, EXCEPTION, STATUS, outcome_of
from ..playback.matching.tape import Tape
from ..playback.refusal import Need
from ..playback.replay import preflight
from ..playback.replay.entry import Entry, located
from ..recording.calls import MODEL, TOOL, Call
from ..recording.recording import Recording, final_text
from ..tracefile import status as states
from ..wire.reading import tool_names, tool_uses
from .fixture import portable, provenance

# The cause of a failed run, as far as its recording shows: it decides what a test can prove.

CODE_FAULT, PROVIDER, MODEL_FAULT, OUTSIDE = "code", "provider", "model", "outside"
_ENDS = {
    "max_tokens": "the model's answer was cut by the token limit",
    "refusal": "the model refused",
    "content_filter": "the provider's filter withheld the answer",
}


class Blame(NamedTuple):
    """The cause of a failure: who, and why."""

    who: str
    why: str


def blame(recording: Recording) -> Blame | None:
    """Return the cause of a failure, None for a run that did not fail."""
    status, error = recording.status, recording.error
    if status in (states.KILLED, states.CANCELLED, states.STOPPED, states.RUNNING):
        words = {
            states.KILLED: "it was killed",
            states.CANCELLED: "it was cancelled",
            states.STOPPED: "it was stopped by a signal",
        }
        return Blame(OUTSIDE, words.get(status, "it has not ended yet"))
    if status != states.ERROR:
        return None
    last = next((call for call in reversed(recording.calls()) if call.kind == MODEL), None)
    if last is not None:
        found = _of_provider(last) or _of_model(last)
        if found is not None:
            return found
    return Blame(CODE_FAULT, what_happened(recording) if error is None else failure_text(recording))


def failure_text(recording: Recording) -> str:
    """Return the exception a run ended with, and where: ``KeyError: 'price' at shop.py:31 in order``."""
    error = recording.error
    if error is None:
        return what_happened(recording)
    message = str(error).strip().partition("\n")[0][:120]
    where = f" at {error.frames[0]}" if error.frames else ""
    return f"{error.type or 'an error'}{': ' + message if message and message != error.type else ''}{where}"


def what_happened(recording: Recording) -> str:
    """Return how a run failed without an exception."""
    fields = recording.end_fields
    if type(fields.get("http_status")) is int:
        return f"it answered with status {fields['http_status']}"
    return f"it ended with exit code {fields['exit']}" if "exit" in fields else "it failed"


def _of_provider(last: Call) -> Blame | None:
    outcome = outcome_of(last)
    if last.end is None or outcome not in (STATUS, EXCEPTION, CUT):
        return None
    status = last.end.status
    reason = f"status {status}" if outcome == STATUS else str(last.error or "the connection broke")[:120]
    return Blame(PROVIDER, f"the last call to the model failed: {reason}")


def _of_model(last: Call) -> Blame | None:
    if last.end is None:
        return None
    ended = _ENDS.get(str(last.end.stop_reason))
    if ended is not None:
        return Blame(MODEL_FAULT, ended)
    offered = tool_names(read_request(last).tools) if last.begin is not None else []
    called = [use.name for use in tool_uses(last.end.body, last.end.provider)]
    unknown = [name for name in called if offered and name not in offered]
    if not unknown:
        return None
    return Blame(MODEL_FAULT, f"the model called a tool {unknown[0]!r}, which does not exist")


CODE, TOOL_KIND, PROMPT = "code", "tool", "prompt"
KINDS = (CODE, TOOL_KIND, PROMPT)
FUNCTION, APP, COMMAND = "function", "app", "command"
"""How to start a run again: call a function, send a request to an application, run a program."""

PROVES = {
    CODE: "Proves that the code still drives this run; not that a model or tool would answer so today.",
    TOOL_KIND: "Proves that the tools still return the same results; not that a model would still call them.",
    PROMPT: "Shows how often the model succeeds today, by the lines below; one run proves little.",
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
    """The folder of its module or script."""
    input: Any
    """The recorded input; the arguments of a command."""
    blame: Blame | None
    tools: list[tuple[str, Any]]
    """Name and arguments of all tool calls."""
    is_parallel: bool
    """True if tools were called in parallel, so that their order does not count."""
    turns: int
    final: str
    """The last answer's text."""
    failed: str
    """How it failed, if it did."""
    is_named: bool = False
    """True if the user named the function: it does not come from the recording."""
    code_folder: str | None = None
    """The folder that the function is imported from; None for the current one."""
    live: list[str] = field(default_factory=list)
    """Tools that the user allows to run in the test."""
    observed: dict[str, Any] = field(default_factory=dict)
    """The result of running it again (``look``); empty if it was not run."""
    name: str = ""

    @property
    def start(self) -> Start:
        """What runs when the case is run again."""
        if self.sort == COMMAND:
            return start_in(self.folder, [self.target, *self.input])
        entry, is_recorded = entry_text(self), not self.is_named
        return Start([], self.folder, entry, is_recorded=is_recorded, code_folder=self.code_folder)

    @property
    def is_failed(self) -> bool:
        """True if the run failed, and still fails when run again."""
        return self.blame is not None and ("raised" in self.observed or not self.observed or self.is_bad)

    @property
    def is_bad(self) -> bool:
        """True if it was run again and failed without an exception."""
        return (self.observed.get("status") or 0) >= 500 or bool(self.observed.get("exit"))

    @property
    def signature(self) -> tuple[Any, ...]:
        """Equal for runs that make the same test."""
        error = self.recording.error
        failure = (error.type, (error.frames or [""])[0]) if error is not None else self.recording.status
        names = (
            sorted(name for name, _ in self.tools) if self.is_parallel else [name for name, _ in self.tools]
        )
        route = self.recording.name if self.sort == APP else ""
        return (self.sort, self.target, route, self.kind, failure, self.turns, tuple(names))

    def with_observed(self, observed: dict[str, Any]) -> Case:
        """Return the case with the result of running it again."""
        return replace(self, observed=observed)

    def allowing(self, names: Sequence[str]) -> Case:
        """Return the case with the tools that may run."""
        return replace(self, live=preflight.live_tools(self.recording, names))

    def need(self) -> Need | None:
        """Return what is needed for tools that would run in the test and may not.

        A test of tools runs those that are recorded, too, unless they are declared to change something.
        """
        would_run = preflight.unanswered_calls(self.recording)
        if self.kind == TOOL_KIND:
            calls = (call for call in self.recording.calls() if call.kind == TOOL)
            would_run += [call for call in calls if call.event.effect in (WRITE, IRREVERSIBLE)]
        return preflight.need_of_tools(would_run, self.live)

    @property
    def tools_to_run(self) -> list[str]:
        """The tools that run in the test: those that are allowed to, in a test of tools all that were called.

        Each is named: ``all`` would mean only those that the recording cannot answer.
        """
        called = {name for name, _ in self.tools} if self.kind == TOOL_KIND else set()
        return sorted({*self.live, *(called & preflight.known_tools(self.recording))})

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "run": self.recording.run_id,
            "kind": self.kind,
            "xfail": self.is_failed and self.kind == CODE,
            "blame": self.blame._asdict() if self.blame is not None else None,
            "live_tools": self.live,
        }


def case_of(
    recording: Recording,
    *,
    kind: str | None = None,
    entry: str | None = None,
    code_folder: str | None = None,
) -> Case:
    """Return a run as a test case in which no tool may run; UsageError if it cannot be one.

    A recorded function must be in ``code_folder``, by default the current one.
    """
    tape = Tape(recording)
    if not tape.calls:
        raise UsageError(
            f"{recording.name} has no call that a replay could answer", hint="record it with reenact run"
        )
    fault = blame(recording)
    if fault is not None and fault.who == OUTSIDE:
        raise UsageError(
            f"{recording.name}: {fault.why}, which a test cannot repeat",
            hint="take a run that ended by itself: reenact ls --failed",
        )
    sort, target, folder, recorded_input = _start(recording, entry, code_folder)
    calls = [call for call in recording.calls(derived=True) if call.kind == TOOL]
    parents = [call.parent for call in calls if call.parent is not None]
    case = Case(
        recording=recording,
        kind=kind or (PROMPT if fault is not None and fault.who == MODEL_FAULT else CODE),
        sort=sort,
        target=target,
        folder=folder,
        input=recorded_input,
        blame=fault,
        tools=_tools(recording),
        is_parallel=len(parents) > len(set(parents)),
        turns=recording.totals.turns,
        final=final_text(recording).strip(),
        failed=failure_text(recording),
    )
    return replace(case, name=f"test_{slug(_plain_name(case))}")


def from_fixture(fixture: Recording, case: Case) -> Case:
    """Return a case with the values of its fixture, which are redacted."""
    entry = Entry.of(fixture)
    recorded_input = entry.input if entry is not None else fixture.input
    if case.sort == COMMAND:
        recorded_input = _startable(portable(fixture.start_fields.get("command")))[1:]
    final, failed = final_text(fixture).strip(), failure_text(fixture)
    return replace(case, input=recorded_input, tools=_tools(fixture), final=final, failed=failed)


def _tools(recording: Recording) -> list[tuple[str, Any]]:
    return [(call.tool or "", call.args) for call in recording.calls(derived=True) if call.kind == TOOL]


def _start(recording: Recording, entry: str | None, code_folder: str | None) -> tuple[str, str, str, Any]:
    """Return how to start a run again: sort, target, folder and input."""
    start = recording.start_fields
    cwd = start.get("cwd")
    folder = cwd if type(cwd) is str and os.path.isdir(cwd) else os.getcwd()
    found = Entry.of(recording)
    if entry is not None:
        found = Entry(entry, None, found.input if found is not None else recording.input)
    if found is not None:
        module, name = found.place
        _check_names(module, name)
        found = located(found, code_folder)  # before its name becomes source code
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
            f"{recording.name} does not name the function or command it started with",
            hint="name it: --entry module:function; or record with @reenact.run or reenact run",
        )
    return COMMAND, words[0], folder, _startable(words)[1:]


def _startable(words: list[str]) -> list[str]:
    """Return the words of a command; raise if one of them was a secret."""
    if secret := redacted_argument(words):
        raise UsageError(
            f"the argument {secret} is a secret that was not recorded, so a test cannot start the command",
            hint="record it with the secret in an environment variable, or name its function with --entry",
        )
    return words


def _check_names(module: str, name: str) -> None:
    """Raise UsageError unless these are names: they become source code."""
    parts = [*module.split("."), *name.removesuffix("()").split(".")]
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise UsageError(f"{module}:{name} cannot be imported", hint="--entry module:function")


def lossy(recording: Recording) -> tuple[list[str], list[str]]:
    """Return the inexact parts of a fixture: those that the code acts on, and headers."""
    serious = [f"{call.label()}: {', '.join(why)}" for call, why in Tape(recording).lossy()]
    entry = Entry.of(recording)
    parts = entry.lossy if entry is not None else ()
    headers = [each for each in parts if each.startswith("header ")]
    serious += [f"its input: {each}" for each in parts if each not in headers]
    return serious, headers


def comes_from(case: Case) -> str:
    """Return the origin of a test as one line."""
    origin = provenance(case.recording)
    parts = [", ".join(origin.get(name, ())) for name in ("served", "sdks")]
    parts += [f"Python {origin['python']}"] if "python" in origin else []
    day = origin.get("recorded", "an unknown day")
    return f"run {str(origin['of'])[:12]} of {day}: " + "; ".join(part for part in parts if part)


def slug(text: str) -> str:
    """Return a text as a part of a Python name."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()[:50] or "run"


def _plain_name(case: Case) -> str:
    if case.sort == APP:
        return case.recording.name
    if case.sort == FUNCTION:
        return case.target.partition(":")[2].removesuffix("()")
    return case.recording.name.removesuffix(".py")


def entry_text(case: Case) -> str:
    """Return the entry of a function or an application in the form of ``run.start``."""
    return f"{ASGI if case.sort == APP else ''}{case.target}"
