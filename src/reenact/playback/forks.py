"""``reenact.fork``: run a recorded agent up to a call, change something there, and continue live."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

from ..capture.runs.location import default_folder
from ..capture.runs.run import RunContext
from ..capture.seams.install import Seams, swap
from ..errors import UsageError
from ..money.ledger import Ledger
from ..money.prices import Bill
from ..recording.calls import MODEL, Call, tokens_of
from ..recording.recording import Recording
from ..recording.runs_inside import with_inside
from ..schema import ERROR
from ..settings import tool_effects
from ..supervise.workspace.snapshots import named_folder
from ..tracefile.event import Event
from ..tracefile.text import compact, count
from ..wire.routes import host_of
from .edits.edits import CutRequest, Edits
from .edits.request_settings import Setting
from .fork.cut import tools_around
from .fork.live import Fork
from .fork.send_request import key_variables, plain_request, send
from .fork.tool_policy import ALL, ASK, CALLS, RECORDED, STEPS, USD
from .fork.world import (
    HARMLESS,
    IRREVERSIBLE,
    Snapshots,
    WorldChange,
    effect_of,
    must_choose,
    run_restore_command,
    world_changes_before,
)
from .launch import TRY_ELSEWHERE, Apart, Execution, Prepared, recording_of, start_of
from .matching.equality_rules import REBASE, STRICT
from .matching.request import Request, tools_of
from .matching.tape import RecordedCall, Tape
from .replay import preflight
from .replay.report import Edited, Halted, Passed
from .rerun import RerunReport, checked_words, report_fields

# What live calls cost.


class Spent:
    """What the live calls of a run used."""

    def __init__(self, recording: Recording) -> None:
        live = [
            call
            for call in recording.calls()
            if call.kind == MODEL
            and call.begin is not None
            and (call.end is None or call.end.replayed is None)
        ]
        self.calls = len(live)
        totals = tokens_of(live)
        self.tokens_in, self.tokens_out = totals.tokens_in, totals.tokens_out
        self.bill: Bill = Ledger().bill(live)

    @property
    def usd(self) -> Decimal:
        """What the calls of known price cost."""
        return self.bill.usd

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        tokens = {"in": self.tokens_in, "out": self.tokens_out}
        return {"calls": self.calls, "tokens": tokens, "cost": self.bill.as_dict()}

    def text(self) -> str:
        """Return it in a few words."""
        tokens = f"{compact(self.tokens_in + self.tokens_out)} tokens"
        return f"{count(self.calls, 'live call')}, {tokens}, cost {self.bill.text()}"


# Reports.


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
    is_cut_reached: bool
    """False if the call at the cut was never made: nothing was live."""
    halted: tuple[Halted, ...] = ()
    """Why it was stopped: a tool that may not run, a limit that was reached."""
    notes: tuple[str, ...] = ()
    """What the edits could not do to a request, or removed from it."""
    live: Spent | None = None
    """Calls, tokens and money of the live calls; None if the new run has no trace."""
    hint: str | None = None
    """Why the model could not be reached, if that is why it failed."""

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
class OneCallReport:
    """What one request, changed and sent by itself, came to."""

    run_id: str
    path: str
    """The trace file of the new run, which holds that call."""
    fork: dict[str, Any]
    status: int
    """Of HTTP."""
    notes: tuple[str, ...]
    provider: str | None
    recorded: Any
    """The recorded response."""
    answer: Any
    """The response now."""
    live: Spent

    @property
    def is_failed(self) -> bool:
        """True if the provider answered with an error."""
        return self.status >= 400

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "run": self.run_id, "path": self.path, "fork": self.fork, "status": self.status,
            "notes": list(self.notes), "recorded": self.recorded, "answer": self.answer,
            "live": self.live.as_dict(),
        }  # fmt: skip


# What is done about the world before a fork, where tools before the cut changed it.

UNTOUCHED, STALE, RESTORED, WORKSPACE = "untouched", "stale", "restored", "workspace"
"""No tool before the cut changed anything; it is as it is now; the user's command restored it; the workspace
is restored from snapshots."""
_FEW = 5


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
    blobs: str | None = None
    cwd: str | None = None
    """Where the caller's own command runs; settings are looked for from there."""
    folder: str | None = None
    """Where runs are written; None for the default folder."""


class _World(NamedTuple):
    """What was chosen, and done."""

    name: str
    tree: str | None = None
    """The state that the workspace is brought to at the cut."""
    folder: str | None = None
    """The workspace."""
    source: str | None = None
    """The repository that holds its states."""
    messages: tuple[str, ...] = ()


def _prepare_world(
    options: ForkOptions, recording: Recording, tape: Tape, call: RecordedCall, effects: dict[str, str]
) -> _World:
    """Restore what was chosen; UsageError if tools changed the world and nothing was chosen."""
    acts = world_changes_before(tape, call, effects)
    if options.workspace is not None:
        return _restore_workspace(options, recording, call, acts)
    if options.restore is not None:
        run_restore_command(options.restore)
        return _World(RESTORED)
    if not acts:
        return _World(UNTOUCHED)
    if options.stale_world:
        return _World(STALE)
    snapshots = Snapshots.of(recording)
    raise must_choose(acts, snapshots=snapshots.folder if snapshots is not None else None)


def _restore_workspace(
    options: ForkOptions, recording: Recording, call: RecordedCall, acts: list[WorldChange]
) -> _World:
    """Make the folder what it was when the run began; at the cut it is made what it was then."""
    runs_folder = options.folder or default_folder()
    folder = named_folder(options.workspace or "", runs_folder)
    snapshots = Snapshots.of(recording)
    if snapshots is None:
        raise UsageError(
            f"there are no snapshots of a workspace beside {recording.path}",
            hint="record it with reenact run --workspace DIR; or --restore CMD, or --stale-world",
        )
    first, tree = snapshots.first(), snapshots.tree_at(call)
    if tree is None:
        raise UsageError(
            f"no snapshot was taken before {call.label()}",
            hint="another --at may have one; or --restore CMD, or --stale-world",
        )
    kept = snapshots.restore(first or tree, folder, runs_folder)
    messages = []
    if kept is not None:
        names = ", ".join(kept.changed[:_FEW]) + (", …" if len(kept.changed) > _FEW else "")
        messages.append(f"{folder} is restored: {count(len(kept.changed), 'file')} changed: {names}")
        messages.append(f"to undo that: {kept.command}")
    undone = [act.text() for act in acts if act.effect == IRREVERSIBLE]
    if undone:
        messages.append(f"no snapshot undoes {'; '.join(undone[:_FEW])}")
    return _World(WORKSPACE, tree, folder, snapshots.repository, tuple(messages))


# One fork.


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
    made = edits(
        changes, inject_user=inject_user, drop=drop, tool_result=tool_result, tool=tool, response=response,
        once=once,
    )  # fmt: skip
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
        blobs=blobs,
        cwd=None if cwd is None else os.fspath(cwd),
        folder=None if folder is None else os.path.abspath(folder),
    )
    recording = recording_of(run, run_id, blobs)
    prepared = prepare_fork(recording, made, options, checked_words("command", command), name=name)
    return prepared.run(Apart(env=env, folder=options.folder, is_captured=capture_output))


def edits(
    changes: Mapping[str, Any] | None = None,
    *,
    inject_user: str | None = None,
    drop: Sequence[int] = (),
    tool_result: str | None = None,
    tool: str | None = None,
    response: str | None = None,
    once: bool = False,
) -> Edits:
    """Return what a fork changes; texts are taken as they are."""
    if tool is not None and tool_result is None:
        raise UsageError("tool= without tool_result=", hint="tool_result='…' is the result to return")
    return Edits(
        sets=tuple(Setting(name, value) for name, value in (changes or {}).items()),
        inject_user=inject_user,
        drop=tuple(drop),
        tool_result=tool_result,
        tool=tool,
        response=response,
        once=once,
    )


def _checked_tools(tools: str) -> str:
    if tools not in (ASK, RECORDED):
        raise UsageError(f"tools={tools!r}", hint=f"tools is one of: {ASK}, {RECORDED}")
    return tools


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedFork:
    """A fork that is ready to run."""

    launch: Prepared
    point: ForkPoint
    provider: str | None
    messages: tuple[str, ...] = field(default=())
    """What was done to the world, for a person."""

    def run(self, supervise: Any) -> ForkReport:
        """Run the agent, and return what became of it."""
        execution: Execution = self.launch.execute(supervise)
        fields = report_fields(self.launch, execution)
        halted = tuple(dict.fromkeys(note for note in execution.notes if isinstance(note, Halted)))
        path, run_id = execution.finished.path, execution.finished.run_id
        spent, hint = None, None
        if os.path.exists(path):
            recording = with_inside(Recording.load(path, run_id))
            spent = Spent(recording)
            is_explained = bool(halted or fields["divergences"])
            hint = why_failed(recording, self.provider) if fields["exit"] and not is_explained else None
        return ForkReport(
            **fields,
            point=self.point,
            is_cut_reached=any(isinstance(note, Passed) for note in execution.notes),
            halted=halted,
            notes=tuple(note.note for note in execution.notes if isinstance(note, Edited)),
            live=spent,
            hint=hint,
        )


def prepare_fork(
    alone: Recording, made: Edits, options: ForkOptions, command: Sequence[str] = (), name: str | None = None
) -> PreparedFork:
    """Return a fork ready to run; UsageError if it must not, before the agent has started."""
    recording = with_inside(alone)
    tape = Tape(recording)
    call = call_at(tape, options.at, alone)
    made.check(call, tape)
    would_run = preflight.unanswered(recording)
    allowed = preflight.live_tools(recording, options.live_tools, offered=_declared(tape))
    live = tuple(name for name in allowed if name in would_run)
    effects = tool_effects(options.cwd)
    _check_around(tape, call, options.live_tools, effects)
    start = start_of(recording, command, "fork", options.cwd)
    world = _prepare_world(options, recording, tape, call, effects)
    continued = Fork(
        call=call.id,
        is_whole=options.at is None,
        edits=made.as_json(),
        tools=options.tools,
        allowed=options.live_tools,
        effects=effects,
        max_calls=options.max_calls,
        max_usd=options.max_usd,
        max_steps=options.max_steps,
        tree=world.tree,
    )
    point = ForkPoint(recording.run_id, call.event.step, call.id, world.name)
    launch = Prepared(
        recording=recording,
        start=start,
        name=name or f"{recording.name}-fork",
        live=live,
        mode=options.mode,
        relaxed=bool(live),
        blobs=options.blobs,
        head={"parent_run": recording.run_id, "fork": {**asdict(point), "edits": made.as_json()}},
        fork=asdict(continued),
        workspace=world.folder,
        restored_from=world.source,
    )
    provider = call.event.provider
    return PreparedFork(
        launch=launch,
        point=point,
        provider=provider if type(provider) is str else None,
        messages=world.messages,
    )


def call_at(tape: Tape, address: str | None, recording: Recording) -> RecordedCall:
    """Return the call at an address of a recording, or the first that began after what is there.

    The tape may hold the runs inside it, too.
    """
    if not tape.calls:
        raise UsageError(
            f"{recording.name} holds no call that could be answered", hint="record it with reenact run"
        )
    if address is None:
        return next((call for call in tape.calls if call.kind == "model"), tape.calls[0])
    is_inside = address.startswith("call:")  # ids are the same in all runs, numbers of turns are not
    event = (tape.recording if is_inside else recording).event(address)
    event = tape.recording.at_step(event.step or 0, event.writer) or event
    for call in tape.calls:
        if event in (call.event, call.end_event):
            return call
    later = next((call for call in tape.calls if _is_after(call, event)), None)
    if later is None:
        raise UsageError(
            f"no call was made at {address} or after it", hint=f"the last one is {tape.calls[-1].label()}"
        )
    return later


def _is_after(call: RecordedCall, event: Event) -> bool:
    """True if a call began after an event; the first and last line of a process have no index."""
    if event.index is not None:
        return call.begin > event.index
    return call.event.writer == event.writer and (call.event.step or 0) > (event.step or 0)


def _check_around(tape: Tape, call: RecordedCall, allowed: Sequence[str], effects: Mapping[str, str]) -> None:
    """UsageError if the cut is inside a tool that would have to run and may not."""
    for each in tools_around(tape, call):
        is_harmless = effect_of(each.tool, each.event.effect, effects) in HARMLESS
        if not is_harmless and each.tool not in allowed and ALL not in allowed:
            raise UsageError(
                f"the cut lies in {each.label()}, so that would have to run again",
                hint=f"--live-tools {each.tool} allows it; or cut before it, at step {each.event.step}",
            )


def _declared(tape: Tape) -> set[str]:
    """Return the tools that the last model call offered: after the cut any of them may be called."""
    last = next((call for call in reversed(tape.calls) if call.kind == "model"), None)
    return set(tools_of(last.request.body)) if last is not None else set()


# One request at the cut, changed and sent, and nothing else.


def fork_one_call(
    recording: Recording, made: Edits, at: str | None = None, name: str | None = None
) -> OneCallReport:
    """Send the request at a cut with changes; no agent runs. UsageError if it cannot be sent."""
    tape = Tape(recording)
    call = call_at(tape, at, recording)
    if made.replaces_answer:
        raise UsageError(
            "--one-call asks the model, and --response says what it answered: nothing is left to send",
            hint="leave --one-call out to see what the agent makes of that answer",
        )
    made.check(call, tape)
    request = plain_request(call)
    changed = made.request(request.body, request.url or "", CutRequest(request.body, request.url))
    point = {"of": recording.run_id, "at": call.event.step, "call": call.id, "edits": made.as_json()}
    live = Request(request.kind, request.name, changed.body, url=changed.url)
    run_name = name or f"{recording.name}-fork"
    run, answer = copy_context().run(_send_recorded, live, call, run_name, point)
    provider = call.event.provider
    return OneCallReport(
        run_id=run.run_id,
        path=run.path or "",
        fork=point,
        status=answer.status,
        notes=tuple(changed.notes),
        provider=provider if type(provider) is str else None,
        recorded=call.answer.body,
        answer=answer.body,
        live=Spent(Recording.load(run.path or "", run.run_id)),
    )


def _send_recorded(
    request: Request, call: RecordedCall, name: str, point: dict[str, Any]
) -> tuple[RunContext, Any]:
    """Send a request as a run of its own; in a context of its own, so that no other run is affected."""
    run = RunContext.start(name, fork=point, parent_run=point["of"])
    run.recorder().start()
    if not os.path.exists(run.path or ""):
        raise UsageError("the run cannot be written, so nothing was sent", hint=TRY_ELSEWHERE)
    seams = swap(Seams((host_of(request.url or ""),), everything=False, is_supervised=False))
    try:
        answer = send(request, call)
    except BaseException:
        run.close("error")
        raise
    finally:
        swap(seams)
    run.close("error" if answer.status >= 400 else "ok")
    return run, answer


# Why a fork failed where it went live: no key, a key that is refused, nobody at the other end.

_WANTS_KEY = re.compile(r"api[ _-]?key|authenticat|credential|key inputs", re.IGNORECASE)
_REFUSED = (401, 403)


def why_failed(recording: Recording, provider: object) -> str | None:
    """Return a hint on why a run failed, None if it is not about reaching the model."""
    live = [call for call in recording.calls() if call.kind == MODEL and not _is_replayed(call)]
    ends = [call.end.whole_fields for call in live if call.end is not None]
    if any(type(end.get("status")) is int and end["status"] < 400 for end in ends):
        return None
    variables = " or ".join(key_variables(provider)) or "its key"
    if not live:
        is_set = any(os.environ.get(name) for name in key_variables(provider))
        needs = "so it needs a key" if is_set else f"and {variables} is not set"
        return f"a fork calls the model, {needs}" if _lacks_key(recording, provider) else None
    statuses = [end.get("status") for end in ends]
    host = host_of(live[-1].event.url or "") or "the provider"
    if any(status in _REFUSED for status in statuses):
        return f"{host} refuses the key: is {variables} the right one?"
    if statuses and all(status is None for status in statuses):
        return f"{host} does not answer: is it up, and reachable from here?"
    return None


def _lacks_key(recording: Recording, provider: object) -> bool:
    """True if it died for the lack of a key; before it did anything, it may have if there is none."""
    errors = _errors(recording)
    if errors or any(recording.calls()):
        return any(_WANTS_KEY.search(text) for text in errors)
    variables = key_variables(provider)
    return bool(variables) and not any(os.environ.get(name) for name in variables)


def _is_replayed(call: Call) -> bool:
    return call.end is not None and call.end.whole_fields.get("replayed") is not None


def _errors(recording: Recording) -> list[str]:
    return [str(event.error) for event in recording.events if event.kind == ERROR and event.error is not None]
