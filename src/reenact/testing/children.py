"""Processes that a test starts: they join its run, and are answered by its recording as the test itself is.

They find in their environment what ``reenact run`` and ``reenact replay`` tell theirs. One that is forked has
all of the test's process, and is told anew. A Python that would not hear of it is refused (``Guard``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..capture.runs.location import RUN_VARIABLE, announcement
from ..capture.seams.install import ALL, HOSTS_VARIABLE, HTTP_VARIABLE, MODELS
from ..playback.matching.claims import Claims
from ..playback.matching.processes import Shared
from ..playback.replay import preflight
from ..playback.replay.deferred import claims_path
from ..playback.replay.guard import Guard
from ..playback.replay.plan import VARIABLE, Plan
from ..playback.replay.report import Began, Diverged, Note, Refused, Report, read
from ..playback.replay.start import prepare_later_answers
from ..supervise.supervisor import BOOTSTRAP

if TYPE_CHECKING:
    from ..capture.recorder.recorder import Recorder
    from ..playback.matching.tape import RecordedCall, Tape


Undo = Callable[[], None]


def set_environment(wanted: dict[str, str]) -> Undo:
    """Have variables in the environment, of this process and those that it starts."""
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
    """Of one test; ``folder`` is where they tell of what happens to them."""

    def __init__(self, folder: str) -> None:
        self.open_to_test = (folder, os.path.dirname(folder))
        """Folders that all of them may write to."""
        self._scratch = os.path.join(folder, "children")
        self._report = os.path.join(self._scratch, "report.jsonl")

    def shared(self, tape: Tape, calls: list[RecordedCall]) -> Shared | None:
        """Return how the test knows which calls others have made, None if all were made in one process."""
        if len(tape.recording.writers) < 2:
            return None
        os.makedirs(self._scratch, exist_ok=True)
        return Shared(Claims(claims_path(self._scratch)), calls, None, tape.recording.first_writer)

    def plan(self, tape: Tape, **given: Any) -> Plan:
        """Return what they are told of the recording."""
        recording = tape.recording
        return Plan(
            path=os.path.abspath(recording.path),
            run=recording.run_id or "",
            report=self._report,
            scratch=self._scratch,
            open=self.open_to_test,
            models=preflight.model_ports(recording),
            inside=tuple(recording.inside),
            **given,
        )

    def begin(self, recorder: Recorder, plan: Plan | None, hosts: Iterable[str], *, everything: bool) -> Undo:
        """Have processes that are started from now on join a run; answered, if there is a plan."""
        os.makedirs(self._scratch, exist_ok=True)
        old = os.environ.get("PYTHONPATH")
        told = {
            "PYTHONPATH": f"{BOOTSTRAP}{os.pathsep}{old}" if old else BOOTSTRAP,
            RUN_VARIABLE: announcement(recorder.run_id, recorder.w, recorder.run_stem),
            HOSTS_VARIABLE: ",".join(hosts),
            HTTP_VARIABLE: ALL if everything else MODELS,
        }
        if plan is not None:
            told[VARIABLE] = plan.text()
        undo = set_environment(told)
        if plan is not None:
            _when_forked(lambda: _join(plan))

        def end() -> None:
            _when_forked(None)
            undo()

        return end

    def reported(self) -> tuple[list[Diverged], list[Refused], list[Note]]:
        """Return what they have reported so far: divergences, what was refused, other notes."""
        notes = read(self._report, is_growing=True)
        diverged = [note for note in notes if isinstance(note, Diverged)]
        refused = [note for note in notes if isinstance(note, Refused)]
        others = [note for note in notes if not isinstance(note, Diverged | Refused | Began)]
        return diverged, refused, others


def _join(plan: Plan) -> None:
    """In a forked process: be answered as a further one, and tell of it where the test will look."""
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
"""What is registered for forks stays so: it is one, and asks what there is to do."""


def _when_forked(join: Callable[[], None] | None) -> None:
    global _joining, _is_hooked
    _joining = join
    if not _is_hooked:
        _is_hooked = True
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    if _joining is not None:
        _joining()
