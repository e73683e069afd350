"""``reenact.rerun``: run a recorded agent's own code again, its calls answered by the recording."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..recording.recording import Recording
from ..recording.runs_inside import with_inside
from .launch import Apart, Ended, Execution, Prepared, recording_of, start_of
from .matching.divergence import Divergence
from .matching.equality_rules import KEEP_GOING, REBASE, STRICT
from .matching.frontier import CHANGED, MISSING_CALL
from .replay import preflight
from .replay.report import Diverged, Doubt, Inexact, Input, Note, Refused, StandIn, Unknown

NOT_STARTED, DIVERGED, INCOMPLETE, BLOCKED, ENDED_OTHERWISE, DOUBTFUL, AS_RECORDED = (
    "not started", "diverged", "incomplete", "blocked", "ended otherwise", "doubtful", "as recorded",
)  # fmt: skip
"""What a re-run comes to, the most serious first."""


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
    is_started: bool
    """False if the agent ended before any call could be answered."""
    calls_answered: int
    """Calls that the recording answered."""
    divergences: tuple[Divergence, ...] = ()
    """Calls that are not as recorded, and recorded calls that were never made."""
    refused: tuple[Refused, ...] = ()
    """Connections, files and programs that were blocked."""
    stand_ins: tuple[StandIn, ...] = ()
    """Tool results that were returned, but not exactly as they were."""
    inexact: tuple[Inexact, ...] = ()
    """Responses that are not complete in the recording."""
    unknown: tuple[str, ...] = ()
    """Calls whose answer the recording does not hold."""
    doubts: tuple[Doubt, ...] = ()
    """Calls that may have got another call's answer."""
    input: tuple[str, ...] = ()
    """Parts of the recorded input that are not as they were."""
    ended: Ended | None = None
    """How both runs ended, where that can be compared."""
    tools_run: tuple[str, ...] = ()
    """Tools that were allowed to run, and did."""
    stdout: str = ""
    stderr: str = ""
    """What the agent wrote, with ``capture_output=True``."""

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
        ended = {"recorded": self.ended.recorded, "now": self.ended.now} if self.ended is not None else None
        return {
            "answered": self.calls_answered,
            "diverged": [each.as_dict() for each in self.divergences],
            "refused": [each.plain() for each in self.refused],
            "stand_ins": [each.plain() for each in self.stand_ins],
            "inexact": [each.plain() for each in self.inexact],
            "unknown": list(self.unknown),
            "doubts": [each.plain() for each in self.doubts],
            "input": list(self.input),
            "ended": ended,
        }


def rerun(
    run: Recording | str | os.PathLike[str],
    command: Sequence[str] = (),
    *,
    mode: str = STRICT,
    live_tools: Sequence[str] = (),
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
        blobs=blobs,
        cwd=None if cwd is None else os.fspath(cwd),
    )
    folder = None if folder is None else os.fspath(folder)
    return report_of(prepared, prepared.execute(Apart(env=env, folder=folder, is_captured=capture_output)))


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
    blobs: str | None = None,
    cwd: str | None = None,
) -> Prepared:
    """Return an agent ready to run again; UsageError if it must not be, before anything has run."""
    recording = with_inside(recording)
    return Prepared(
        recording=recording,
        start=start_of(recording, command, "replay", cwd),
        name=f"{recording.name}-replay",
        live=tuple(preflight.live_tools(recording, live_tools)),
        mode=mode,
        relaxed=bool(live_tools),
        blobs=blobs,
        meta={"replay_of": recording.run_id},
    )


def report_of(prepared: Prepared, execution: Execution) -> RerunReport:
    """Return the report of an agent that ran again."""
    return RerunReport(**report_fields(prepared, execution))


def report_fields(prepared: Prepared, execution: Execution) -> dict[str, Any]:
    """Return the fields that the reports of a re-run and of a fork have in common."""
    finished, notes = execution.finished, execution.notes
    diverged = [note.divergence for note in notes if isinstance(note, Diverged)]
    return {
        "of": prepared.recording.run_id,
        "run_id": finished.run_id,
        "path": finished.path,
        "exit": finished.exit,
        "status": finished.status,
        "is_started": bool(notes),
        "calls_answered": execution.answered,
        "divergences": (*diverged, *execution.missing),
        "refused": _of_kind(notes, Refused),
        "stand_ins": _of_kind(notes, StandIn),
        "inexact": _of_kind(notes, Inexact),
        "unknown": tuple(note.why for note in notes if isinstance(note, Unknown)),
        "doubts": _of_kind(notes, Doubt),
        "input": tuple(note.what for note in notes if isinstance(note, Input)),
        "ended": execution.ended,
        "tools_run": execution.tools_run,
        "stdout": finished.stdout,
        "stderr": finished.stderr,
    }


def _of_kind(notes: list[Note], kind: type[Note]) -> tuple[Note, ...]:
    return tuple(note for note in notes if isinstance(note, kind))
