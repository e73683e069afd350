"""What tools did to the world before a cut, so that it may not be what it was then.

Most do not run again there. Those that the recording cannot answer for do, and those that the cut lies in.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ...capture.recorder.quota import SNAPSHOTS
from ...errors import UsageError
from ...lines import new_id
from ...recording.calls import TOOL, Call
from ...recording.recording import Recording
from ...schema import EFFECTS, MODEL_REQUEST, TOOL_RESULT
from ...supervise.workspace.git import SnapshotError
from ...supervise.workspace.snapshots import Shadow, is_tree_id, way_back
from ...tracefile.event import Event
from ...tracefile.run_files import member
from ..matching.request import MODEL
from ..matching.tape import RecordedCall, Tape
from ..replay.preflight import unanswered
from .cut import tools_around

PURE, READ, WRITE, IRREVERSIBLE = EFFECTS
HARMLESS = (PURE, READ)
DONE, RUNNING, UNKNOWN = "done", "running", "unknown"
"""How far a tool was at the cut: over, at work, or begun and never heard of again."""
_LONGEST = 80
_MOST = 20


class Acted(NamedTuple):
    """A tool call before the cut that may have changed something."""

    step: int | None
    tool: str
    args: str
    """The beginning of them, as JSON."""
    effect: str | None
    """``write`` or ``irreversible``; None if nobody has told."""
    state: str
    runs_again: bool
    """True if the fork runs it before the cut: the recording cannot answer for it, or the cut lies in it."""

    def text(self) -> str:
        """Return a line for a person."""
        effect = "effect unknown" if self.effect is None else self.effect
        how = {DONE: "", RUNNING: ", still at work then", UNKNOWN: ", unknown whether it happened"}
        again = "RUNS AGAIN before the cut" if self.runs_again else "does not run again"
        return f"step {self.step}: {self.tool} {self.args} ({effect}{how[self.state]}; {again})"


def effect_of(name: str | None, told: object, settings: Mapping[str, str]) -> str | None:
    """Return what a tool does to the world: by the user's settings, else as it was told; None if nobody has.

    A setting is for one name, or for all that a pattern fits. A word that we do not know tells nothing.
    """
    tool = name or ""
    if tool in settings:
        return settings[tool]
    fitting = next((effect for pattern, effect in settings.items() if fnmatchcase(tool, pattern)), None)
    if fitting is not None:
        return fitting
    return told if type(told) is str and told in EFFECTS else None


def acts_before(tape: Tape, call: RecordedCall, settings: Mapping[str, str] | None = None) -> list[Acted]:
    """Return the tools before a call that may have changed the world, in the order they began."""
    found = []
    would_run = unanswered(tape.recording)
    around = {each.id for each in tools_around(tape, call)}
    for each in tape.recording.calls(derived=True):
        state = _state(each, call) if each.kind == TOOL and each.id != call.id else None
        if state is None:
            continue
        told = None if each.derived else each.event.stored_fields.get("effect")
        effect = effect_of(each.tool, told, settings or {})
        if effect not in HARMLESS:
            tool, runs_again = each.tool or "?", each.id in around
            runs_again = runs_again or (each.derived and tool in would_run)
            found.append(Acted(each.event.step, tool, _excerpt(each.args), effect, state, runs_again))
    return found


def _state(each: Call, call: RecordedCall) -> str | None:
    """Return how far a tool was when a call began, None if it had not begun.

    Of one that only the wire tells of, the end is the request that brings its result: the call itself, maybe.
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


def must_choose(acts: list[Acted], *, snapshots: str | None = None) -> UsageError:
    """Return what a fork stops with where tools have changed the world and nobody said what to do about it.

    ``snapshots`` is the folder that the recording has snapshots of.
    """
    lines = [f"  {act.text()}" for act in acts[:_MOST]]
    if len(acts) > _MOST:
        lines.append(f"  and {len(acts) - _MOST} more")
    folder = f"--workspace {snapshots or 'DIR'} makes that folder what it was at the cut"
    if snapshots is None:
        folder += ", once it is recorded with reenact run --workspace DIR"
    again = ", ".join(dict.fromkeys(act.tool for act in acts if act.runs_again))
    warning = f" Whichever you choose, these tools run again before the cut: {again}." if again else ""
    return UsageError(
        "tools before the cut may have changed the world:\n" + "\n".join(lines),
        hint=f"{folder}; --restore CMD runs a command of yours that puts everything back;"
        f" --stale-world keeps the world as it is.{warning} Declare what a tool does with"
        ' @tap.tool(effect="read") or [effects] in reenact.toml',
    )


def run_restore_command(command: str, env: Mapping[str, str] | None = None) -> None:
    """Run the user's command in a shell, what it says on stderr; UsageError unless it ends well."""
    sys.stdout.flush()
    sys.stderr.flush()
    given = None if env is None else dict(env)
    done = subprocess.run(command, shell=True, stdout=2, check=False, env=given)  # noqa: S602
    if done.returncode:
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise UsageError(
            f"--restore {command}: {how}", hint="nothing was started; the world may be half restored"
        )


# The workspace of a recorded run as it was at each of its calls, and how to make a folder that again.
#
# A trace is not trusted: its snapshots are looked for beside its own file only, of their repository nothing
# but
# objects is read, and what is in the folder is kept before anything in it is changed.

FIELD = "workspace"


class Kept(NamedTuple):
    """What was in a folder before it was changed."""

    tree: str
    changed: list[str]
    """The files that are not what they were."""
    command: str
    """The command line that brings it back."""


class Snapshots:
    """Those of one recording."""

    def __init__(self, recording: Recording, repository: str) -> None:
        self._recording = recording
        self.repository = repository
        start = recording.start
        folder = start.stored_fields.get("workspace_dir") if start is not None else None
        self.folder = folder if type(folder) is str else None
        """Where the workspace was when it was recorded."""

    @classmethod
    def of(cls, recording: Recording) -> Snapshots | None:
        """Return the snapshots that lie beside a recording, None if there are none."""
        stem = os.path.abspath(member(recording.path).stem)
        if os.path.isdir(stem + SNAPSHOTS):
            return cls(recording, stem + SNAPSHOTS)
        around = _of_run(os.path.dirname(stem), recording.parent_run)
        return cls(recording, around) if around is not None else None

    def first(self) -> str | None:
        """Return the workspace as the run found it."""
        start = self._recording.start
        return _tree(start) if start is not None else None

    def tree_at(self, call: RecordedCall) -> str | None:
        """Return the workspace as it was when a call began, None if no snapshot was taken then."""
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
        """Make a folder equal to a snapshot; what is ignored in it, and its own repository, stay.

        What was there before is kept in a new repository in ``keep_in``; None if it was the same.
        """
        shadow = Shadow(os.path.join(keep_in, f"kept-{new_id(6)}{SNAPSHOTS}"), folder, [keep_in])
        kept, changed = None, []
        try:
            shadow.begin()
            shadow.fetch(tree, self.repository)
            kept = shadow.restore(tree)
            changed = shadow.changed(kept, tree)
        except SnapshotError as exc:
            raise UsageError(f"{folder} cannot be made what it was: {exc}", hint=_HINT) from exc
        finally:
            if kept in (None, tree):
                shutil.rmtree(shadow.repository, ignore_errors=True)
        return None if kept == tree else Kept(kept, changed, way_back(shadow.repository, shadow.folder, kept))


_HINT = "nothing that was in it is lost; --restore CMD and --stale-world do without snapshots"


def _tree(event: Event) -> str | None:
    tree = event.stored_fields.get(FIELD)
    return tree if is_tree_id(tree) else None


def _of_run(folder: str, run_id: str | None) -> str | None:
    """Return the snapshots of the run that a run was part of: a keeper serves all runs of a process."""
    if type(run_id) is not str or len(run_id) != 32 or not run_id.isalnum():
        return None
    ending = f"-{run_id[:12]}{SNAPSHOTS}"
    names = [name for name in os.listdir(folder) if name.endswith(ending)]
    return os.path.join(folder, names[0]) if len(names) == 1 else None
