"""Effects of tools before a cut: what may have changed since, and how to restore the workspace.

Most tools before the cut do not run again. Those without a recorded answer do, and those that contain the
cut.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...capture.recorder.disk_space import SNAPSHOTS
from ...capture.runs.location import default_folder
from ...errors import UsageError
from ...lines import new_id
from ...recording.calls import TOOL, Call
from ...recording.recording import Recording
from ...schema import MODEL_REQUEST, TOOL_RESULT
from ...supervise.workspace.git import SnapshotError
from ...supervise.workspace.snapshots import Shadow, is_tree_id, named_folder, way_back
from ...tracefile.events.event import Event
from ...tracefile.events.text import count
from ...tracefile.run_files import member
from ...wire.json_values import string
from ..effects import HARMLESS, IRREVERSIBLE, effect_of
from ..matching.request import MODEL
from ..matching.tape import RecordedCall, Tape
from ..refusal import STALE_WORLD, Need
from ..replay.preflight import tools_calling_models, unanswered_calls
from .cut import tools_around

DONE, RUNNING, UNKNOWN = "done", "running", "unknown"
"""The state of a tool at the cut: finished, running, or started without a recorded end."""
_LONGEST = 80
_MOST = 20


class WorldChange(NamedTuple):
    """A tool call before the cut that may have changed something."""

    step: int | None
    tool: str
    args: str
    """The beginning of the arguments, as JSON."""
    effect: str | None
    """``write`` or ``irreversible``; None if unknown."""
    state: str
    runs_again: bool
    """True if the fork runs it before the cut: it has no recorded answer, or it contains the cut."""

    def text(self) -> str:
        """Return it as one line of text."""
        effect = "effect unknown" if self.effect is None else self.effect
        how = {DONE: "", RUNNING: ", still running then", UNKNOWN: ", unknown whether it happened"}
        again = "RUNS AGAIN before the cut" if self.runs_again else "does not run again"
        return f"step {self.step}: {self.tool} {self.args} ({effect}{how[self.state]}; {again})"


def world_changes_before(
    tape: Tape, call: RecordedCall, settings: Mapping[str, str] | None = None
) -> list[WorldChange]:
    """Return the tool calls before a call that may have changed something, in the order they began."""
    found = []
    unanswered = unanswered_calls(tape.recording)
    would_run = {each.tool for each in unanswered if (each.event.index or 0) < call.begin}
    spans = tools_calling_models(tape, settings)
    around = {each.id for each in tools_around(tape, call)}
    for each in tape.recording.calls(derived=True):
        state = _state(each, call) if each.kind == TOOL and each.id != call.id else None
        if state is None:
            continue
        declared = None if each.derived else each.event.stored_fields.get("effect")
        effect = effect_of(each.tool, declared, settings or {})
        if effect not in HARMLESS:
            tool, runs_again = each.tool or "?", each.id in around
            runs_again = runs_again or tool in spans or tool in would_run
            found.append(WorldChange(each.event.step, tool, _excerpt(each.args), effect, state, runs_again))
    return found


def _state(each: Call, call: RecordedCall) -> str | None:
    """Return the state of a tool when a call began, None if it had not started.

    A tool known only from requests ends with the request that carries its result: perhaps this very call.
    """
    begin = each.event.index
    if begin is None or begin >= call.begin:
        return None
    if each.end is None:
        return UNKNOWN
    end = each.end.index
    return DONE if end is None or end <= call.begin else RUNNING


def _excerpt(args: Any) -> str:
    try:
        text = json.dumps(args, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(args)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def need_of_world(acts: list[WorldChange], *, snapshots: str | None = None) -> Need | None:
    """Return what a fork after tools with effects needs, if the user has not chosen how to handle them.

    ``snapshots`` is the folder with recorded snapshots.
    """
    if not acts:
        return None
    lines = [f"  {act.text()}" for act in acts[:_MOST]]
    if len(acts) > _MOST:
        lines.append(f"  and {len(acts) - _MOST} more")
    folder = f"--workspace {snapshots or 'DIR'} restores that folder to its state at the cut"
    if snapshots is None:
        folder += ", once it is recorded with reenact run --workspace DIR"
    again = ", ".join(dict.fromkeys(act.tool for act in acts if act.runs_again))
    warning = f"; whichever you choose, these tools run again before the cut: {again}" if again else ""
    return Need(
        "tools before the cut may have changed the world:\n" + "\n".join(lines),
        STALE_WORLD,
        hint=f"{STALE_WORLD} keeps the world as it is; {folder}; --restore CMD runs your command to restore"
        f" everything{warning}; declare what a tool does with"
        ' @tap.tool(effect="read") or [tools] in reenact.toml',
    )


def run_restore_command(command: str, env: Mapping[str, str] | None = None) -> None:
    """Run the user's command in a shell, its output on stderr; UsageError if it fails."""
    sys.stdout.flush()
    sys.stderr.flush()
    variables = None if env is None else dict(env)
    done = subprocess.run(command, shell=True, stdout=2, check=False, env=variables)  # noqa: S602
    if done.returncode:
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise UsageError(
            f"--restore {command}: {how}", hint="nothing was started; the world may be half restored"
        )


# The workspace of a recorded run at each of its calls, and how to restore a folder to it.
#
# A trace is not trusted: only snapshots beside its own file are used, only objects are read from their
# repository, and the folder's content is saved before anything in it is changed.

FIELD = "workspace"


class Kept(NamedTuple):
    """The saved state of a folder before it was changed."""

    tree: str
    changed: list[str]
    """The changed files."""
    command: str
    """The command line that restores it."""


class Snapshots:
    """The workspace snapshots of one recording."""

    def __init__(self, recording: Recording, repository: str) -> None:
        self._recording = recording
        self.repository = repository
        self.folder = string(recording.start_fields.get("workspace_dir"))
        """The recorded path of the workspace."""

    @classmethod
    def of(cls, recording: Recording) -> Snapshots | None:
        """Return the snapshots beside a recording, None if there are none."""
        stem = os.path.abspath(member(recording.path).stem)
        if os.path.isdir(stem + SNAPSHOTS):
            return cls(recording, stem + SNAPSHOTS)
        around = _of_run(os.path.dirname(stem), recording.parent_run)
        return cls(recording, around) if around is not None else None

    def first(self) -> str | None:
        """Return the snapshot at the start of the run."""
        start = self._recording.start
        return _tree(start) if start is not None else None

    def tree_at(self, call: RecordedCall) -> str | None:
        """Return the snapshot at the begin of a call, None if there is none."""
        if call.kind == MODEL:
            return _tree(call.event)
        latest = self._recording.start
        for event in self._recording.events:
            if (event.index or 0) >= call.begin:
                break
            if event.event_type in (MODEL_REQUEST, TOOL_RESULT):
                latest = event
        return _tree(latest) if latest is not None else None

    def restore(self, tree: str, folder: str, keep_in: str) -> Kept | None:
        """Restore a folder to a snapshot; ignored files and its own repository stay.

        The previous content is saved in a new repository in ``keep_in``; returns None if it was the same.
        """
        shadow = Shadow(os.path.join(keep_in, f"kept-{new_id(6)}{SNAPSHOTS}"), folder, [keep_in])
        kept, changed = None, []
        try:
            shadow.begin()
            shadow.fetch(tree, self.repository)
            kept = shadow.restore(tree)
            changed = shadow.changed(kept, tree)
        except SnapshotError as exc:
            raise UsageError(f"{folder} cannot be restored: {exc}", hint=_HINT) from exc
        finally:
            if kept in (None, tree):
                shutil.rmtree(shadow.repository, ignore_errors=True)
        return None if kept == tree else Kept(kept, changed, way_back(shadow.repository, shadow.folder, kept))


_HINT = "nothing in it is lost; --restore CMD and --stale-world work without snapshots"


def _tree(event: Event) -> str | None:
    tree = event.stored_fields.get(FIELD)
    return tree if is_tree_id(tree) else None


def _of_run(folder: str, run_id: str | None) -> str | None:
    """Return the snapshots of the enclosing run: all runs of a process share one keeper."""
    if type(run_id) is not str or len(run_id) != 32 or not run_id.isalnum():
        return None
    ending = f"-{run_id[:12]}{SNAPSHOTS}"
    names = [name for name in os.listdir(folder) if name.endswith(ending)]
    return os.path.join(folder, names[0]) if len(names) == 1 else None


# What is done about the world before a fork, where tools before the cut changed it.

UNTOUCHED, STALE, RESTORED, WORKSPACE = "untouched", "stale", "restored", "workspace"
"""No tool before the cut changed anything; it is as it is now; the user's command restored it; the workspace
is restored from snapshots."""
_FEW = 5


class World(NamedTuple):
    """What was chosen, and done."""

    name: str
    tree: str | None = None
    """The state that the workspace is brought to at the cut."""
    folder: str | None = None
    """The workspace."""
    source: str | None = None
    """The repository that holds its states."""
    messages: tuple[str, ...] = ()


def prepare_world(
    tape: Tape,
    call: RecordedCall,
    acts: list[WorldChange],
    *,
    workspace: str | None,
    restore: str | None,
    folder: str | None,
) -> World:
    """Restore what was chosen. ``acts`` are the changes before the cut; ``folder`` is where runs are
    written, and what was in the workspace before."""
    if workspace is not None:
        return _restore_workspace(workspace, folder or default_folder(), tape.recording, call, acts)
    if restore is not None:
        run_restore_command(restore)
        return World(RESTORED)
    return World(STALE if acts else UNTOUCHED)


def _restore_workspace(
    workspace: str, runs_folder: str, recording: Recording, call: RecordedCall, acts: list[WorldChange]
) -> World:
    """Make the folder what it was when the run began; at the cut it is made what it was then."""
    folder = named_folder(workspace, runs_folder)
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
    return World(WORKSPACE, tree, folder, snapshots.repository, tuple(messages))
