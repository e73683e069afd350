"""``reenact.rerun``: run a recorded agent's own code again, its calls answered by the recording."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from ..capture.ambient.modules import AMBIENT_VARIABLE
from ..capture.seams.install import HOSTS_VARIABLE, HTTP_VARIABLE, TOOLS_VARIABLE
from ..errors import UsageError
from ..recording.recording import Recording
from ..recording.runs_inside import with_inside
from ..schema import MODEL_RESPONSE
from ..supervise.supervisor import NOT_EXECUTABLE, OFF_VARIABLE
from ..tracefile.status import STOPPED
from .launch import TRY_ELSEWHERE, Apart, Finished, Launch, Start, Supervise, recording_of, start_of
from .matching.divergence import Divergence, missing_calls
from .matching.frontier import CHANGED, MISSING_CALL, Frontier
from .matching.modes import KEEP_GOING, REBASE, STRICT
from .matching.processes import Claims, Shared, claims_path
from .matching.tape import Tape
from .permission import NO_PERMISSION, Permission, permission_in_python
from .refusal import refuse
from .replay import preflight
from .replay.recorded_events import server_processes
from .replay.report import (
    Diverged,
    Doubt,
    Inexact,
    Input,
    Note,
    Refused,
    StandIn,
    Unknown,
    Unusable,
    read,
)
from .replay.side_effect_guard import Listening
from .replay.start import VARIABLE, Fork, Plan

NOT_STARTED, DIVERGED, INCOMPLETE, BLOCKED, ENDED_OTHERWISE, DOUBTFUL, AS_RECORDED = (
    "not started", "diverged", "incomplete", "blocked", "ended otherwise", "doubtful", "as recorded",
)  # fmt: skip
"""What a re-run comes to, the most serious first."""

INSTEAD = (
    "reenact fork RUN --at EVENT --one-call --tool-result TEXT runs no code: it sends the model one recorded"
    " request with a result that you write"
)
"""What needs no permission."""

Reported = TypeVar("Reported", bound=Note)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, beside how it had ended when it was recorded."""

    recorded: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunReport:
    """What became of an agent that ran again."""

    of: str | None
    """The id of the recorded run."""
    run_id: str
    path: str
    """The trace file of the new run."""
    exit: int
    """The agent's exit code, or minus the signal that ended it."""
    status: str
    """How the new run ended, as in its trace."""
    reported: tuple[Note, ...] = ()
    """What its processes reported, in order; the properties below sort it."""
    calls_answered: int
    """Calls that the recording answered."""
    missing: tuple[Divergence, ...] = ()
    """Recorded calls that were never made."""
    ended: Ended | None = None
    """How both runs ended, where that can be compared."""
    tools_run: tuple[str, ...] = ()
    """Tools that were allowed to run, and did."""
    stdout: str = ""
    stderr: str = ""
    """What the agent wrote, with ``capture_output=True``."""

    def noted(self, kind: type[Reported]) -> tuple[Reported, ...]:
        """What was reported of one kind."""
        return tuple(note for note in self.reported if isinstance(note, kind))

    @property
    def is_started(self) -> bool:
        """False if the agent ended before any call could be answered."""
        return bool(self.reported)

    @property
    def divergences(self) -> tuple[Divergence, ...]:
        """Calls that are not as recorded, and recorded calls that were never made."""
        return (*(note.divergence for note in self.noted(Diverged)), *self.missing)

    @property
    def refused(self) -> tuple[Refused, ...]:
        """Connections, files and programs that were blocked."""
        return self.noted(Refused)

    @property
    def stand_ins(self) -> tuple[StandIn, ...]:
        """Tool results that were returned, but not exactly as they were."""
        return self.noted(StandIn)

    @property
    def inexact(self) -> tuple[Inexact, ...]:
        """Responses that are not complete in the recording."""
        return self.noted(Inexact)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Calls whose answer the recording does not hold."""
        return tuple(note.why for note in self.noted(Unknown))

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Calls that may have got another call's answer."""
        return self.noted(Doubt)

    @property
    def input(self) -> tuple[str, ...]:
        """Parts of the recorded input that are not as they were."""
        return tuple(note.what for note in self.noted(Input))

    @property
    def is_blocked(self) -> bool:
        """True if the agent itself was blocked, not a library on its own."""
        return any(each.by == "agent" for each in self.refused)

    @property
    def left_recording(self) -> bool:
        """True if this was not the recorded run again."""
        return self.outcome in (NOT_STARTED, DIVERGED, INCOMPLETE, BLOCKED)

    @property
    def outcome(self) -> str:
        """What it comes to in a word or two: ``as recorded``, ``diverged`` …"""
        if not self.is_started:
            return NOT_STARTED
        if self.divergences:
            return DIVERGED
        if self.unknown:
            return INCOMPLETE
        if self.is_blocked:
            return BLOCKED
        if self.ended is not None and self.ended.now != self.ended.recorded:
            return ENDED_OTHERWISE
        return DOUBTFUL if self.doubts else AS_RECORDED

    @property
    def never_made(self) -> tuple[Divergence, ...]:
        """Recorded calls that were not made; not those that a changed call took the place of."""
        replaced = [each.call for each in self.divergences if each.code == CHANGED]
        missing = [each for each in self.divergences if each.code == MISSING_CALL]
        return tuple(each for each in missing if each.call not in replaced)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, the ``--json`` of ``reenact replay``."""
        return {
            **self.common_dict(),
            "live": list(self.tools_run),
            "exit": self.exit,
            "run": self.run_id,
        }

    def common_dict(self) -> dict[str, Any]:
        """Return the part that ``replay`` and ``fork`` have in common."""
        return {
            "answered": self.calls_answered,
            "diverged": [each.as_dict() for each in self.divergences],
            "refused": [each.plain() for each in self.refused],
            "stand_ins": [each.plain() for each in self.stand_ins],
            "inexact": [each.plain() for each in self.inexact],
            "unknown": list(self.unknown),
            "doubts": [each.plain() for each in self.doubts],
            "input": list(self.input),
            "ended": None if self.ended is None else asdict(self.ended),
        }


def rerun(
    run: Recording | str | os.PathLike[str],
    command: Sequence[str] = (),
    *,
    mode: str = STRICT,
    live_tools: Sequence[str] = (),
    yes: bool = False,
    code_folder: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    blobs: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    capture_output: bool = False,
) -> RerunReport:
    """Run a recorded agent again, answered by its recording: the Python form of ``reenact replay``.

    The agent is a process of its own; no model is called. (``reenact.replay`` is something else: it returns
    the messages of a recording, and runs nothing.)

    ``run`` is a path, an address such as ``@last``, or a Recording; ``run_id`` selects one of a shared file.
    ``command`` runs instead of the recorded command, function or request, in the folder ``cwd``. ``mode`` is
    ``strict`` (a call that was not recorded ends the agent), ``keep-going`` or ``rebase``. Tools that the
    recording cannot answer are refused before anything runs, unless ``live_tools`` names them (or ``all``).
    A recorded program that this user has neither recorded nor allowed starts only with ``yes=True``; a
    recorded function is imported from ``code_folder``, by default the current folder.
    The new run is written to ``folder``; ``env`` replaces the environment.

    Raises UsageError, with a hint, if the agent cannot be started or must not be.
    """
    if mode not in (STRICT, KEEP_GOING, REBASE):
        raise UsageError(f"mode={mode!r}", hint=f"mode is one of: {STRICT}, {KEEP_GOING}, {REBASE}")
    prepared = prepare_rerun(
        recording_of(run, run_id, blobs),
        checked_words("command", command),
        mode=mode,
        live_tools=checked_words("live_tools", live_tools),
        permission=permission_in_python(yes, code_folder),
        blobs=blobs,
        cwd=None if cwd is None else os.fspath(cwd),
    )
    folder = None if folder is None else os.fspath(folder)
    return prepared.run(Apart(env=env, folder=folder, is_captured=capture_output))


def checked_words(name: str, words: Sequence[str]) -> list[str]:
    """Return a list of texts; UsageError for anything else, such as a single text."""
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"{name}={words!r}", hint=f"{name} is a list of texts: {name}=['…']")
    return list(words)


def prepare_rerun(
    recording: Recording,
    command: Sequence[str] = (),
    *,
    mode: str = STRICT,
    live_tools: Sequence[str] = (),
    permission: Permission = NO_PERMISSION,
    blobs: str | None = None,
    cwd: str | None = None,
) -> Prepared:
    """Return an agent ready to run again; UsageError if it must not be, before anything has run."""
    recording = with_inside(recording)
    start = start_of(recording, command, "replay", cwd, permission.code_folder)
    live = preflight.live_tools(recording, live_tools)
    tools = preflight.need_of_tools(preflight.unanswered_calls(recording), live)
    refuse([tools, permission.need(recording, start)], instead=INSTEAD if tools else "")
    permission.require(recording, start)
    tape = Tape(recording)
    spans = [name for name in preflight.tools_calling_models(tape) if name not in live]
    return Prepared(
        recording=recording,
        start=start,
        name=f"{recording.name}-replay",
        live=(*live, *spans),
        messages=tuple(preflight.notes_on_tools(tape, live, spans)),
        mode=mode,
        relaxed=bool(live_tools),
        blobs=blobs,
        meta={"replay_of": recording.run_id},
    )


# One run of an agent that a recording answers: from the plan to what was reported.


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An agent that is ready to run again: everything that can be refused before it starts has been."""

    recording: Recording
    start: Start
    name: str
    live: tuple[str, ...] = ()
    """Tools that run instead of being answered."""
    mode: str = STRICT
    relaxed: bool = False
    blobs: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    head: dict[str, Any] = field(default_factory=dict)
    fork: Fork | None = None
    workspace: str | None = None
    restored_from: str | None = None
    messages: tuple[str, ...] = ()
    """What a person should know before it starts."""

    def run(self, supervise: Supervise) -> RerunReport:
        """Run the agent, and return what became of it."""
        return RerunReport(**self._execute(supervise))

    def _execute(self, supervise: Supervise) -> dict[str, Any]:
        """Start the agent, wait for its end, and return the fields of a report."""
        with tempfile.TemporaryDirectory(prefix="reenact-") as scratch:
            plan = self._plan(scratch)
            finished = supervise(self._launch(plan))
            notes = tuple(read(plan.report))
            _raise_if_not_started(finished, notes)
            answered, missing = self._answered(plan, notes) if notes else (0, ())
        is_known = bool(notes) and finished.is_recorded
        now = Recording.load(finished.path) if is_known else None
        return {
            "of": self.recording.run_id,
            "run_id": finished.run_id,
            "path": finished.path,
            "exit": finished.exit,
            "status": finished.status,
            "reported": notes,
            "calls_answered": answered,
            "missing": missing,
            "ended": None if now is None else both_ends(self.recording, now),
            "tools_run": self.live if now is None else _called(now, self.live),
            "stdout": finished.stdout,
            "stderr": finished.stderr,
        }

    def _plan(self, scratch: str) -> Plan:
        recording = self.recording
        return Plan(
            path=os.path.abspath(recording.path),
            run=recording.run_id or "",
            report=os.path.join(scratch, "report.jsonl"),
            scratch=scratch,
            mode=self.mode,
            live=self.live,
            relaxed=self.relaxed,
            models=preflight.model_ports(recording),
            others=Listening.now(scratch),
            blobs=None if self.blobs is None else os.path.abspath(self.blobs),  # the agent runs elsewhere
            inside=tuple((os.path.abspath(path), run) for path, run in recording.inside),
            code_folder=self.start.code_folder,
            fork=self.fork,
        )

    def _launch(self, plan: Plan) -> Launch:
        names = self.recording.start_fields.get("ambient")
        ambient = [name for name in names if type(name) is str] if type(names) is list else []
        return Launch(
            command=self.start.command,
            folder=self.start.folder,
            name=self.name,
            meta=self.meta,
            variables=self._variables(plan, ambient),
            head={**self.start.head, **self.head, **({"ambient": ambient} if ambient else {})},
            workspace=self.workspace,
            restored_from=self.restored_from,
            report=plan.report,
            claims=claims_path(plan.scratch),
            is_watched=plan.mode == STRICT,
        )

    def _variables(self, plan: Plan, ambient: list[str]) -> dict[str, str]:
        temporary = os.path.join(plan.scratch, "tmp")
        os.mkdir(temporary)
        variables = {
            VARIABLE: plan.text(),
            HOSTS_VARIABLE: ",".join(preflight.model_hosts(self.recording)),
            "TMPDIR": temporary,
            OFF_VARIABLE: "0",  # switched off, nobody would answer, and the agent would be live
            HTTP_VARIABLE: preflight.recorded_http(self.recording),
            TOOLS_VARIABLE: preflight.named_functions(self.recording, self.start.folder),
        }
        if ambient:
            variables[AMBIENT_VARIABLE] = ",".join(ambient)
        if not plan.fork:
            variables |= {name: "none" for name in preflight.KEYS if name not in os.environ}
        return variables

    def _answered(self, plan: Plan, notes: Sequence[Note]) -> tuple[int, tuple[Divergence, ...]]:
        """Return how many calls all processes together were answered, and those that none has made."""
        claims, tape = Claims(plan.scratch), Tape(self.recording)
        absent = server_processes(self.recording)
        calls = [
            call for call in tape.calls if call.tool not in plan.live and call.event.writer not in absent
        ]
        frontier = Frontier(calls, mode=plan.mode, inside=tape.inside, shared=Shared(claims, calls))
        missing = missing_calls(frontier, tape)  # reads the claims
        is_over = plan.mode == STRICT and any(isinstance(note, Diverged) for note in notes)
        is_over = is_over or any(isinstance(note, Unknown) for note in notes)
        # After a divergence or in a fork, what was to come could not.
        return len(claims.calls), () if is_over or plan.fork else tuple(missing)


def _raise_if_not_started(finished: Finished, notes: Sequence[Note]) -> None:
    if not notes and finished.exit == NOT_EXECUTABLE:
        raise UsageError(
            f"the run cannot be written to {os.path.dirname(finished.path)}, so nothing was started",
            hint=TRY_ELSEWHERE,
        )
    for note in notes:
        if isinstance(note, Unusable):
            raise UsageError(note.text, hint=note.hint)


def _called(recording: Recording, tools: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of some tools that were called in a run, or requested by its model; all of them if the
    run withholds content."""
    if not tools:
        return ()
    whole = with_inside(recording)
    called = {call.tool for call in whole.calls(derived=True)}
    answers = (repr(event.stored_fields) for event in whole.events if event.event_type == MODEL_RESPONSE)
    if any("'$none'" in answer or "'$hash'" in answer for answer in answers):
        return tools
    return tuple(name for name in tools if name in called)


# How a run ended, beside how it had ended when it was recorded.

_COMPARED = ("http_status", "exit", "error", "status")
_UNSURE = ("unclosed", "unknown", "running")
"""Statuses that say only that nobody knows."""


def both_ends(then: Recording, now: Recording) -> Ended | None:
    """Return how both ended, where that can be compared; None where it cannot."""
    before, after = _end_of(then), _end_of(now)
    known = [name for name in _COMPARED if name in before and name in after]
    if not known:
        return None
    name = next((name for name in known if before[name] != after[name]), known[0])
    return Ended(_end_text(name, before), _end_text(name, after))


def _end_of(recording: Recording) -> dict[str, Any]:
    if recording.status == STOPPED:  # from outside
        return {}
    end = recording.end_fields
    found: dict[str, Any] = {
        name: end[name] for name in ("http_status", "exit") if type(end.get(name)) is int
    }
    if recording.error is not None and recording.error.type:
        found["error"] = recording.error.type
    if recording.status not in _UNSURE:
        found["status"] = recording.status
    return found


def _end_text(name: str, end: dict[str, Any]) -> str:
    if name == "http_status":
        return f"answered {end[name]}"
    if name == "exit":
        return f"exit {end[name]}" if end[name] >= 0 else f"signal {-end[name]}"
    return str(end.get("error") or end[name])
