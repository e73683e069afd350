"""One fork: everything that can be told before the start is, then the agent runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from ...capture.runs.location import default_folder
from ...errors import UsageError
from ...playback.edits.edits import Edits
from ...playback.fork.cut import tools_around
from ...playback.fork.live import Fork
from ...playback.fork.policy import ALL
from ...playback.fork.world import (
    HARMLESS,
    IRREVERSIBLE,
    Acted,
    Snapshots,
    acts_before,
    effect_of,
    must_choose,
    run_restore_command,
)
from ...playback.matching.tape import RecordedCall, Tape
from ...playback.replay import preflight
from ...recording.recording import Recording
from ...recording.runs_inside import with_inside
from ...settings import tool_effects
from ...supervise.supervisor import Supervised, end_like
from ...supervise.workspace.snapshots import named_folder
from ...tracefile.event import Event
from ...tracefile.text import clean, count, dump
from ..output import Output
from ..rerun.launch import Reenacted
from ..rerun.start import start_of
from .outcome import ForkOutcome

# What is done about the world before a fork, where tools before the cut changed it.

UNTOUCHED, STALE, RESTORED, WORKSPACE = "untouched", "stale", "restored", "workspace"
"""No tool before the cut changed anything; it is as it is now; the user's command put it back; the workspace
is made what it was."""
_FEW = 5


class Choice(NamedTuple):
    """What was chosen."""

    name: str
    tree: str | None = None
    """The state that the workspace is brought to at the cut."""
    folder: str | None = None
    """The workspace."""
    source: str | None = None
    """The repository that holds its states."""


def prepare(
    args: argparse.Namespace, recording: Recording, tape: Tape, call: RecordedCall, out: Output
) -> Choice:
    """Return what is done, and do what is to be done before the start; UsageError if nothing was chosen."""
    acts = acts_before(tape, call, tool_effects())
    if args.workspace is not None:
        return _workspace(args.workspace, recording, call, acts, out)
    if args.restore is not None:
        run_restore_command(args.restore)
        return Choice(RESTORED)
    if not acts:
        return Choice(UNTOUCHED)
    if args.stale_world:
        return Choice(STALE)
    snapshots = Snapshots.of(recording)
    raise must_choose(acts, snapshots=snapshots.folder if snapshots is not None else None)


def _workspace(text: str, recording: Recording, call: RecordedCall, acts: list[Acted], out: Output) -> Choice:
    """Make the folder what it was when the run began; at the cut it is made what it was then."""
    folder = named_folder(text, default_folder())
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
            hint="another --at has one, maybe; or --restore CMD, or --stale-world",
        )
    kept = snapshots.restore(first or tree, folder, default_folder())
    if kept is not None:
        names = ", ".join(kept.changed[:_FEW]) + (", …" if len(kept.changed) > _FEW else "")
        changed = f"{count(len(kept.changed), 'file')} changed: {names}"
        out.say(clean(f"reenact: {folder} is again what it was: {changed}"))
        out.say(clean(f"reenact: to have it back: {kept.command}"))
    undone = [act.text() for act in acts if act.effect == IRREVERSIBLE]
    if undone:
        out.say(clean(f"reenact: no snapshot undoes {'; '.join(undone[:_FEW])}"))
    return Choice(WORKSPACE, tree, folder, snapshots.repository)


STOPPED, DIVERGED = 1, 3


def run(args: argparse.Namespace, alone: Recording, out: Output) -> int:
    recording = with_inside(alone)
    tape = Tape(recording)
    call = call_at(tape, args.at, alone)
    edits = edits_of(args)
    edits.check(call, tape)
    would_run = preflight.unanswered(recording)
    allowed = preflight.live_tools(recording, args.live_tools, offered=_declared(tape))
    live = tuple(name for name in allowed if name in would_run)
    _check_around(tape, call, args.live_tools)
    start = start_of(recording, args.command, "fork")
    choice = prepare(args, recording, tape, call, out)
    fork = Fork(
        call=call.id,
        is_whole=args.at is None,
        edits=edits.as_json(),
        tools=args.tools,
        allowed=tuple(args.live_tools),
        effects=tool_effects(),
        max_calls=args.max_calls,
        max_usd=args.max_usd,
        max_steps=args.max_steps,
        tree=choice.tree,
    )
    told = {"of": recording.run_id, "at": call.event.step, "call": call.id, "world": choice.name}
    agent, outcome = Reenacted(
        recording,
        start,
        out,
        name=args.name or f"{recording.name}-fork",
        live=live,
        mode=args.mode,
        relaxed=bool(live),
        blobs=args.blobs,
        head={"parent_run": recording.run_id, "fork": {**told, "edits": edits.as_json()}},
        fork=asdict(fork),
        workspace=choice.folder,
        restored_from=choice.source,
    ).run()
    return _tell(args, ForkOutcome(outcome, agent, told, call.event.provider), agent, out)


def _tell(args: argparse.Namespace, result: ForkOutcome, agent: Supervised, out: Output) -> int:
    if args.json:
        out.say(dump(result.as_dict()))
    else:
        for line in result.lines():
            out.say(clean(line))
    if not result.is_passed:
        return DIVERGED
    return STOPPED if result.is_stopped else end_like(agent.exit)


def edits_of(args: argparse.Namespace) -> Edits:
    """Return what the user wants changed."""
    return Edits.given(
        sets=args.sets,
        inject_user=args.inject_user,
        drop=args.drop,
        tool_result=args.tool_result,
        tool=args.tool,
        response=args.response,
        once=args.once,
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
    """True if a call began after an event; where a process begins or ends is no event, but a line of its."""
    if event.index is not None:
        return call.begin > event.index
    return call.event.writer == event.writer and (call.event.step or 0) > (event.step or 0)


def _check_around(tape: Tape, call: RecordedCall, allowed: Sequence[str]) -> None:
    """UsageError if the cut lies in a tool that would have to run and may not."""
    settings = tool_effects()
    for each in tools_around(tape, call):
        is_harmless = effect_of(each.tool, each.event.effect, settings) in HARMLESS
        if not is_harmless and each.tool not in allowed and ALL not in allowed:
            raise UsageError(
                f"the cut lies in {each.label()}, so that would have to run again",
                hint=f"--live-tools {each.tool} allows it; or cut before it, at step {each.event.step}",
            )


def _declared(tape: Tape) -> set[str]:
    """Return the tools that the last model call offered: after the cut any of them may be called."""
    last = next((call for call in reversed(tape.calls) if call.kind == "model"), None)
    return set(last.shape.tools) if last is not None else set()
