"""``reenact.fork``: run a recorded agent up to a call, change something there, and continue live."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import UsageError
from ..recording.calls import Call
from ..recording.recording import Recording
from ..recording.runs_inside import with_inside
from ..settings import tool_effects
from .edits.edits import Edits
from .edits.request_settings import settings_of
from .effects import HARMLESS, effect_of
from .fork.api_keys import why_failed
from .fork.cut import call_at, tools_around
from .fork.tool_policy import ASK, CALLS, RECORDED, STEPS, USD, Spent, by_settings
from .fork.world import Snapshots, WorldChange, need_of_world, prepare_world, world_changes_before
from .launch import Apart, Start, Supervise, recording_of, start_of
from .matching.modes import REBASE, STRICT
from .matching.request import MODEL, tools_of
from .matching.tape import RecordedCall, Tape
from .permission import NO_PERMISSION, Permission, permission_in_python
from .refusal import ALL, LIVE_TOOLS, Need, refuse
from .refusal import REBASE as REBASE_FLAG
from .replay import preflight
from .replay.report import Decided, Edited, Halted, Passed
from .replay.start import Fork
from .rerun import Prepared, RerunReport, checked_words


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """Where a fork leaves its recording, and what was done about the world before that."""

    of: str | None
    """The id of the recorded run."""
    at: int | None
    """The step of the call at the cut."""
    call: str
    """Its id."""
    world: str
    """``untouched``, ``stale``, ``restored`` or ``workspace``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkReport(RerunReport):
    """What became of a fork: a run that was answered up to its cut, and live from there."""

    point: ForkPoint
    live: Spent | None = None
    """Calls, tokens and money of the live calls; None if the new run has no trace."""
    hint: str | None = None
    """Why the model could not be reached, if that is why it failed."""

    @property
    def is_cut_reached(self) -> bool:
        """False if the call at the cut was never made: nothing was live."""
        return bool(self.noted(Passed))

    @property
    def halted(self) -> tuple[Halted, ...]:
        """Why it was stopped: a tool that may not run, a limit that was reached."""
        return tuple(dict.fromkeys(self.noted(Halted)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the edits could not do to a request, or removed from it; tools that ran by the settings."""
        return tuple(note.note for note in self.reported if isinstance(note, Edited | Decided))

    @property
    def is_stopped(self) -> bool:
        """True if it was stopped or blocked, whatever the agent made of that."""
        return bool(self.halted) or self.is_blocked

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, the ``--json`` of ``reenact fork``."""
        return {
            **self.common_dict(),
            "run": self.run_id,
            "path": self.path,
            "fork": asdict(self.point),
            "passed": self.is_cut_reached,
            "halted": [each.plain() for each in self.halted],
            "hint": self.hint,
            "notes": list(self.notes),
            "live": self.live.as_dict() if self.live is not None else None,
            "status": self.status,
            "exit": self.exit,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkOptions:
    """How a fork continues, and what is done about the world; the flags of ``reenact fork``."""

    at: str | None = None
    tools: str = ASK
    live_tools: tuple[str, ...] = ()
    max_calls: int = CALLS
    max_usd: float = USD
    max_steps: int = STEPS
    restore: str | None = None
    workspace: str | None = None
    stale_world: bool = False
    mode: str = STRICT
    permission: Permission = NO_PERMISSION
    blobs: str | None = None
    cwd: str | None = None
    """Where the caller's own command runs; settings are looked for from there."""
    folder: str | None = None
    """Where runs are written; None for the default folder."""

    def naming(self, recording: Recording) -> ForkOptions:
        """Return the options for one of several runs: with the tools that it knows."""
        known = {ALL, *tools_known_from(recording)} if self.live_tools else ()
        return replace(self, live_tools=tuple(name for name in self.live_tools if name in known))


def fork(
    run: Recording | str | os.PathLike[str],
    command: Sequence[str] = (),
    *,
    at: str | int | None = None,
    changes: Mapping[str, Any] | None = None,
    inject_user: str | None = None,
    drop: Sequence[int] = (),
    tool_result: str | None = None,
    tool: str | None = None,
    response: str | None = None,
    once: bool = False,
    tools: str = ASK,
    live_tools: Sequence[str] = (),
    max_calls: int = CALLS,
    max_usd: float = USD,
    max_steps: int = STEPS,
    restore: str | None = None,
    workspace: str | None = None,
    stale_world: bool = False,
    rebase: bool = False,
    yes: bool = False,
    code_folder: str | os.PathLike[str] | None = None,
    name: str | None = None,
    run_id: str | None = None,
    blobs: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    capture_output: bool = False,
) -> ForkReport:
    """Run a recorded agent up to a call and continue live from there: the Python form of ``reenact fork``.

    ``at`` is the first live call (``12``, ``"turn:3"``, ``"call:a1b2"``); by default the whole run is live.
    ``changes`` sets fields of the requests from there on (``{"system": …, "model": …}``), and
    ``inject_user``, ``drop``, ``tool_result``, ``response`` change messages and answers; ``once`` limits that
    to the call at the cut. Tools after the cut run by their declared effect; nobody is asked, so those that
    write need ``live_tools`` (names, or ``all``). Tools before the cut that the recording cannot answer are
    refused before anything runs. If tools before the cut changed the world, choose ``restore`` (a shell
    command), ``workspace`` (a folder with snapshots) or ``stale_world=True``. The other arguments are those
    of ``rerun``.

    Raises UsageError, with a hint, if the fork must not start.
    """
    edits = Edits(
        sets=settings_of(changes),
        inject_user=inject_user,
        drop=tuple(drop),
        tool_result=tool_result,
        tool=tool,
        response=response,
        once=once,
    )
    options = ForkOptions(
        at=None if at is None else str(at),
        tools=_checked_tools(tools),
        live_tools=tuple(checked_words("live_tools", live_tools)),
        max_calls=max_calls,
        max_usd=max_usd,
        max_steps=max_steps,
        restore=restore,
        workspace=workspace,
        stale_world=stale_world,
        mode=REBASE if rebase else STRICT,
        permission=permission_in_python(yes, code_folder),
        blobs=blobs,
        cwd=None if cwd is None else os.fspath(cwd),
        folder=None if folder is None else os.path.abspath(folder),
    )
    recording = recording_of(run, run_id, blobs)
    prepared = prepare_fork(recording, edits, options, checked_words("command", command), name=name)
    return prepared.run(Apart(env=env, folder=options.folder, is_captured=capture_output))


def _checked_tools(tools: str) -> str:
    if tools not in (ASK, RECORDED):
        raise UsageError(f"tools={tools!r}", hint=f"tools is one of: {ASK}, {RECORDED}")
    return tools


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFork(Prepared):
    """A fork that is ready to run."""

    point: ForkPoint
    provider: str | None

    def run(self, supervise: Supervise) -> ForkReport:
        """Run the agent, and return what became of it."""
        report = ForkReport(**self._execute(supervise), point=self.point)
        if not os.path.exists(report.path):
            return report
        recording = with_inside(Recording.load(report.path, report.run_id))
        is_explained = bool(report.halted or report.divergences)
        hint = why_failed(recording, self.provider) if report.exit and not is_explained else None
        return replace(report, live=Spent(recording), hint=hint)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of a fork before anything is done."""

    recording: Recording
    tape: Tape
    call: RecordedCall
    """The call at the cut."""
    effects: dict[str, str]
    """Of tools, from the user's settings."""
    live: list[str]
    """Tools that the user allows to run."""
    before: list[Call]
    """Calls that the recording cannot answer, of tools that were called before the cut."""
    after: list[Call]
    """The same of tools that were called only after the cut."""
    spans: list[str]
    """Tools that call models: their code runs."""
    acts: list[WorldChange]
    start: Start

    @classmethod
    def of(cls, alone: Recording, options: ForkOptions, command: Sequence[str]) -> _Facts:
        """Return the facts; UsageError if there is no such cut, no such tool, or no program to start."""
        recording = with_inside(alone)
        tape = Tape(recording)
        call = call_at(tape, options.at, alone)
        effects = tool_effects(options.cwd)
        live = preflight.live_tools(recording, options.live_tools, offered=_declared(tape))
        would_run = preflight.unanswered_calls(recording)
        begun = {each.tool for each in would_run if (each.event.index or 0) < call.begin}
        calling_models = preflight.tools_calling_models(tape, effects)
        return cls(
            recording,
            tape,
            call,
            effects,
            live,
            before=[each for each in would_run if each.tool in begun],
            after=[each for each in would_run if each.tool not in begun],
            spans=[name for name in calling_models if name not in live],
            acts=world_changes_before(tape, call, effects),
            start=start_of(recording, command, "fork", options.cwd, options.permission.code_folder),
        )

    def needs(self, options: ForkOptions) -> list[Need | None]:
        """Return what the user has to allow."""
        unsure = [each for each in self.after if not self._is_harmless(each.tool)]
        world = None
        if not (options.workspace or options.restore or options.stale_world):
            snapshots = Snapshots.of(self.recording)
            world = need_of_world(self.acts, snapshots=snapshots.folder if snapshots is not None else None)
        tools = preflight.need_of_tools([*self.before, *unsure], options.live_tools)
        return [tools, self._need_around(options), world, options.permission.need(self.recording, self.start)]

    def also(self, options: ForkOptions) -> list[str]:
        """Return the flags without which a tool that runs again before the cut probably ends the fork."""
        return [REBASE_FLAG] if self.before and options.mode != REBASE else []

    def messages(self) -> list[str]:
        """Return what a person should know before the start."""
        others = dict.fromkeys(each.tool or "?" for each in self.after if each.tool not in self.live)
        decided = [name for name in others if self._is_harmless(name)]
        return [
            *preflight.notes_on_tools(self.tape, self.live, self.spans, before=self.call.begin),
            *(by_settings(name, effect_of(name, None, self.effects), "may run") for name in decided),
        ]

    def _is_harmless(self, name: str | None) -> bool:
        return effect_of(name, None, self.effects) in HARMLESS

    def _need_around(self, options: ForkOptions) -> Need | None:
        """Return what is needed if the cut is inside a tool that would have to run and may not."""
        allowed = {*options.live_tools, *self.spans}
        for each in tools_around(self.tape, self.call):
            is_harmless = effect_of(each.tool, each.event.effect, self.effects) in HARMLESS
            if not is_harmless and each.tool not in allowed and ALL not in allowed:
                return Need(
                    f"the cut lies in {each.label()}, so that would have to run again",
                    LIVE_TOOLS,
                    (each.tool or "?",),
                    f"or cut before it, at step {each.event.step}",
                )
        return None


def require_permission(
    recordings: Sequence[Recording], options: ForkOptions, command: Sequence[str] = ()
) -> list[str]:
    """Raise NotAllowed, with what all of them need, if one of the runs must not be forked; return what a
    person should know before the first of them starts."""
    needs: list[Need | None] = []
    also: list[str] = []
    messages: list[str] = []
    if options.live_tools:
        known = {name for recording in recordings for name in tools_known_from(recording)}
        where = recordings[0].name if len(recordings) == 1 else f"{len(recordings)} runs"
        preflight.check_names(options.live_tools, known, where)
    for recording in recordings:
        facts = _Facts.of(recording, options.naming(recording), command)
        found = [need for need in facts.needs(options) if need is not None]
        name = f"{recording.name}: " if len(recordings) > 1 else ""
        needs += [replace(need, why=f"{name}{need.why}") for need in found]
        also += facts.also(options) if found else []
        messages += [f"{name}{message}" for message in facts.messages()]
    refuse(needs, instead=_ONE_CALL, also=also)
    return messages


_ONE_CALL = (
    "--one-call --tool-result TEXT, in place of all that, runs no code: it sends only the request at the cut,"
    " with a result that you write"
)


def prepare_fork(
    alone: Recording, edits: Edits, options: ForkOptions, command: Sequence[str] = (), name: str | None = None
) -> PreparedFork:
    """Return a fork ready to run; UsageError if it must not, before the agent has started."""
    facts = _Facts.of(alone, options, command)
    recording, tape, call = facts.recording, facts.tape, facts.call
    edits.check(call, tape)
    refuse(facts.needs(options), instead=_ONE_CALL, also=facts.also(options))
    options.permission.require(recording, facts.start)
    world = prepare_world(
        tape,
        call,
        facts.acts,
        workspace=options.workspace,
        restore=options.restore,
        folder=options.folder,
    )
    point = ForkPoint(recording.run_id, call.event.step, call.id, world.name)
    before = {each.tool for each in facts.before}
    live = [each for each in facts.live if each in before]
    unwatched = before | {each.tool for each in facts.after}
    return PreparedFork(
        recording=recording,
        start=facts.start,
        name=name or f"{recording.name}-fork",
        live=(*live, *facts.spans),
        mode=options.mode,
        relaxed=not unwatched.isdisjoint(facts.live),
        blobs=options.blobs,
        head={"parent_run": recording.run_id, "fork": {**asdict(point), "edits": edits.as_json()}},
        fork=Fork(
            call=call.id,
            is_whole=options.at is None,
            edits=edits.as_json(),
            tools=options.tools,
            allowed=options.live_tools,
            effects=facts.effects,
            max_calls=options.max_calls,
            max_usd=options.max_usd,
            max_steps=options.max_steps,
            tree=world.tree,
        ),
        workspace=world.folder,
        restored_from=world.source,
        point=point,
        provider=call.provider,
        messages=(*facts.messages(), *world.messages),
    )


def tools_known_from(recording: Recording) -> set[str]:
    """Return the tools of a run, and those that were offered to its model."""
    tape = Tape(with_inside(recording))
    return preflight.known_tools(tape.recording) | _declared(tape)


def _declared(tape: Tape) -> set[str]:
    """Return the tools that the last model call offered: after the cut any of them may be called."""
    last = next((call for call in reversed(tape.calls) if call.kind == MODEL), None)
    return set(tools_of(last.request.body)) if last is not None else set()
