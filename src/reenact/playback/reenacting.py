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
from .player import Player
from .responder import TapeResponder
from .tape import Tape

if TYPE_CHECKING:
    from .divergence import Divergence

VARIABLE = "REENACT_REPLAY"
"""The plan, as JSON: ``path run mode report``."""


def begin(plan: str, *, is_first: bool) -> None:
    """Answer every call of this process from the recording that a plan names."""
    told: dict[str, Any] = json.loads(plan)
    tape = Tape(Recording.load(told["path"], told["run"]))
    root = next(iter(tape.recording.writers), None)
    calls = [call for call in tape.calls if (call.writer == root) == is_first and call.kind != "tool"]
    mode = told.get("mode", STRICT)
    report = Report(told["report"])
    responder = TapeResponder(Player(tape, calls=calls, mode=mode), mode=mode, tell=report.diverged)
    protocols.responder = responder
    atexit.register(report.end, responder)


class Report:
    """A file of JSON lines that the supervisor reads when all is over."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._told = 0

    def diverged(self, divergence: Divergence) -> None:
        """Write it down at once: what raises now may end the process."""
        self._told += 1
        self._write({"diverged": divergence.as_dict(), "text": divergence.text()})

    def end(self, responder: TapeResponder) -> None:
        """Tell how many calls were answered, and which were never made."""
        for divergence in responder.player.report()[self._told :]:
            self.diverged(divergence)
        self._write({"answered": responder.given})

    def _write(self, line: dict[str, Any]) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, json.dumps(line).encode() + b"\n")
        finally:
            os.close(file)
