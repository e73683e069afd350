"""In the agent's process: its calls are answered by a recording, and what became of it is told at the end.

``reenact replay`` starts the agent with a plan; the first process of the run takes the calls of the first
process that was recorded, every other one those of all others.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from .. import protocols
from ..errors import Diverged
from ..tracefile.recording import Recording
from .frontier import STRICT
from .player import Player
from .responder import TapeResponder
from .tape import Tape

if TYPE_CHECKING:
    from .divergence import Divergence

VARIABLE = "REENACT_REPLAY"
"""The plan, as JSON: ``path run mode report``."""


def begin_here() -> None:
    """Answer every call of this process from the recording that its plan names, and let none go elsewhere."""
    from ..capture.places import is_main_process

    told: dict[str, Any] = json.loads(os.environ[VARIABLE])
    _answer(told, is_first=is_main_process())
    sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    """Let no connection leave this machine: what the recording does not answer must not happen."""
    if event != "socket.connect" or not isinstance(args[1], tuple):
        return
    host = str(args[1][0])
    if not host.startswith("127.") and host not in ("::1", "localhost", "0.0.0.0"):  # noqa: S104
        raise Diverged(f"a connection to {host} was refused: a run that is re-enacted calls nobody")


def _answer(told: dict[str, Any], *, is_first: bool) -> None:
    tape = Tape(Recording.load(told["path"], told["run"]))
    root = next(iter(tape.recording.writers), None)
    calls = [call for call in tape.calls if (call.writer == root) == is_first and call.kind != "tool"]
    mode = told.get("mode", STRICT)
    report = Report(told["report"], mode)
    responder = TapeResponder(Player(tape, calls=calls, mode=mode), mode=mode, tell=report.diverged)
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
