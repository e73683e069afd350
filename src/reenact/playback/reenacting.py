"""In the agent's process: its calls are answered by a recording, and what became of it is told at the end.

``reenact replay`` starts the agent with a plan; the first process of the run takes the calls of the first
process that was recorded, every other one those of all others.
"""

from __future__ import annotations

import atexit
import json
import os
from typing import TYPE_CHECKING, Any

from .. import protocols
from ..tracefile.recording import Recording
from .frontier import STRICT
from .guard import Guard
from .plan import Plan
from .player import Player
from .responder import TapeResponder
from .tape import Tape

if TYPE_CHECKING:
    from .divergence import Divergence


def begin_here() -> None:
    """Answer every call of this process from the recording that its plan names, and let none go elsewhere."""
    from ..capture.places import is_main_process, parent_run

    plan = Plan.here()
    report = Report(plan.report, plan.mode)
    _answer(plan, report, is_first=is_main_process())
    stem = parent_run()[2]
    traces = [os.path.dirname(stem)] if stem else []
    guard = Guard(
        [plan.scratch, *traces],
        is_relaxed=plan.relaxed,
        tell=lambda refused: report.note("refused", refused),
    )
    guard.begin()


def _answer(plan: Plan, report: Report, *, is_first: bool) -> None:
    tape = Tape(Recording.load(plan.path, plan.run, blobs=plan.blobs))
    root = next(iter(tape.recording.writers), None)
    calls = [call for call in tape.calls if (call.writer == root) == is_first and call.tool not in plan.live]
    player = Player(tape, calls=calls, mode=plan.mode)
    responder = TapeResponder(player, mode=plan.mode, live=plan.live, tell=report.diverged, note=report.note)
    protocols.responder = responder
    atexit.register(report.end, responder)


class Report:
    """A file of JSON lines that the supervisor reads when all is over."""

    def __init__(self, path: str, mode: str) -> None:
        self._path = path
        self._mode = mode
        self._told = 0

    def diverged(self, divergence: Divergence) -> None:
        """Write it down at once: what raises now may end the process."""
        self._told += 1
        self._write({"diverged": divergence.as_dict(), "text": divergence.text()})

    def note(self, name: str, told: Any) -> None:
        """Write down what else is to be told: ``refused``, ``stand_in``, ``unknown``, ``doubt``."""
        self._write({name: told})

    def end(self, responder: TapeResponder) -> None:
        """Tell how many calls were answered, and which were never made."""
        is_over = self._told and self._mode == STRICT  # what was to come after it could not
        for divergence in [] if is_over else responder.player.report()[self._told :]:
            self.diverged(divergence)
        self._write({"answered": responder.given})

    def _write(self, line: dict[str, Any]) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, json.dumps(line).encode() + b"\n")
        finally:
            os.close(file)
