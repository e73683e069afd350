"""The workspace of a recorded run as it was at each of its calls, and how to make a folder that again.

A trace is not trusted: its snapshots are looked for beside its own file only, of their repository nothing but
objects is read, and what is in the folder is kept before anything in it is changed.
"""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from ...capture.git import SnapshotError
from ...capture.quota import SNAPSHOTS
from ...capture.shadow import Shadow, is_tree_id, way_back
from ...errors import UsageError
from ...lines import new_id
from ...schema import MODEL_REQUEST, TOOL_RESULT
from ...tracefile.event import Event
from ...tracefile.family import member
from ...tracefile.recording import Recording
from ..matching.fingerprint import MODEL
from ..matching.tape import RecordedCall

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
        folder = start._raw().get("workspace_dir") if start is not None else None
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
    tree = event._raw().get(FIELD)
    event._forget()
    return tree if is_tree_id(tree) else None


def _of_run(folder: str, run_id: str | None) -> str | None:
    """Return the snapshots of the run that a run was part of: a keeper serves all runs of a process."""
    if type(run_id) is not str or len(run_id) != 32 or not run_id.isalnum():
        return None
    ending = f"-{run_id[:12]}{SNAPSHOTS}"
    names = [name for name in os.listdir(folder) if name.endswith(ending)]
    return os.path.join(folder, names[0]) if len(names) == 1 else None
