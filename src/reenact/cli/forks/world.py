"""What is done about the world before a fork, where tools before the cut changed it."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from ...capture.places import default_folder
from ...capture.shadow import named_folder
from ...errors import UsageError
from ...playback.fork.workspace import Snapshots
from ...playback.fork.world import IRREVERSIBLE, Acted, acts_before, must_choose, run_restore_command
from ...playback.matching.tape import RecordedCall, Tape
from ...settings import tool_effects
from ...tracefile.recording import Recording
from ..output import Output
from ..text import clean, count

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
