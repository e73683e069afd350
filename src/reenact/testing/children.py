"""Processes that a test starts: they join its run, and its recording answers them like the test itself.

They get the environment variables of ``reenact run`` and ``reenact replay``. A forked process inherits the
state of the test and gets a new responder. A Python that would not load reenact is refused (``Guard``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..capture.seams.install import ALL, HOSTS_VARIABLE, HTTP_VARIABLE, MODELS
from ..playback.matching.processes import Claims, Shared
from ..playback.replay import preflight
from ..playback.replay.report import Began, Diverged, Growing, Note, Refused, Report
from ..playback.replay.side_effect_guard import Guard
from ..playback.replay.start import VARIABLE, Plan, prepare_later_answers
from ..supervise.supervisor import variables_to_join

if TYPE_CHECKING:
    from ..capture.recorder.recorder import Recorder
    from ..playback.matching.tape import RecordedCall, Tape


Undo = Callable[[], None]


def set_environment(wanted: dict[str, str]) -> Undo:
    """Set environment variables for this process and those it starts; return a function that undoes it."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)

    def undo() -> None:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    return undo


class Children:
    """The processes of one test; ``folder`` is where they write their report."""

    def __init__(self, folder: str) -> None:
        self.open_to_test = (folder, os.path.dirname(folder))
        """Folders that all of them may write to."""
        self._scratch = os.path.join(folder, "children")
        self._report = os.path.join(self._scratch, "report.jsonl")

    def shared(self, tape: Tape, calls: list[RecordedCall]) -> Shared | None:
        """Return the calls shared with other processes, None if one process made all recorded calls."""
        if len(tape.recording.writers) < 2:
            return None
        os.makedirs(self._scratch, exist_ok=True)
        return Shared(Claims(self._scratch), calls, None, tape.recording.first_writer)

    def plan(self, tape: Tape, **options: Any) -> Plan:
        """Return the plan of their replay."""
        recording = tape.recording
        return Plan(
            path=os.path.abspath(recording.path),
            run=recording.run_id or "",
            report=self._report,
            scratch=self._scratch,
            open=self.open_to_test,
            models=preflight.model_ports(recording),
            inside=tuple(recording.inside),
            **options,
        )

    def begin(self, recorder: Recorder, plan: Plan | None, hosts: Iterable[str], *, everything: bool) -> Undo:
        """Let new processes join a run, answered if there is a plan; return a function that undoes it."""
        os.makedirs(self._scratch, exist_ok=True)
        variables = {
            **variables_to_join(recorder),
            HOSTS_VARIABLE: ",".join(hosts),
            HTTP_VARIABLE: ALL if everything else MODELS,
        }
        if plan is not None:
            variables[VARIABLE] = plan.text()
        undo = set_environment(variables)
        if plan is not None:
            _when_forked(lambda: _join(plan))

        def end() -> None:
            _when_forked(None)
            undo()

        return end

    def reported(self) -> tuple[list[Diverged], list[Refused], list[Note]]:
        """Return their reports so far: divergences, refusals, other notes."""
        notes = Growing(self._report).new()
        diverged = [note for note in notes if isinstance(note, Diverged)]
        refused = [note for note in notes if isinstance(note, Refused)]
        others = [note for note in notes if not isinstance(note, Diverged | Refused | Began)]
        return diverged, refused, others


def _join(plan: Plan) -> None:
    """Set up a forked process: answer it like any further one, and report to the test."""
    report = Report(plan.report)
    guard = Guard(
        [plan.scratch, *plan.open],
        is_relaxed=plan.relaxed,
        report=report.note,
        models=plan.models,
    )
    prepare_later_answers(plan, guard, is_forked=True)
    if plan.guarded:
        guard.begin()


_joining: Callable[[], None] | None = None
_is_hooked = False
"""A fork hook cannot be removed: there is one, and it calls ``_joining``."""


def _when_forked(join: Callable[[], None] | None) -> None:
    global _joining, _is_hooked
    _joining = join
    if not _is_hooked:
        _is_hooked = True
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    if _joining is not None:
        _joining()
