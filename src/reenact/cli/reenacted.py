"""Starts an agent whose calls a recording answers, and waits for its end: for replay and fork."""

from __future__ import annotations

import os
import shlex
import tempfile
from typing import Any

from ..capture.install import HOSTS_VARIABLE
from ..capture.supervise import Supervised
from ..playback.frontier import STRICT
from ..playback.plan import VARIABLE, Plan
from ..tracefile.calls import MODEL
from ..tracefile.recording import Recording
from ..wire.routes import host_of
from .output import Output
from .replayed import Outcome, read_report
from .starting import Start
from .text import clean

_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY", "CO_API_KEY")
"""SDKs want one even though nobody will see it."""


class Reenacted:
    """One agent that runs again."""

    def __init__(
        self,
        recording: Recording,
        start: Start,
        out: Output,
        *,
        name: str,
        live: tuple[str, ...] = (),
        mode: str = STRICT,
        relaxed: bool = False,
        blobs: str | None = None,
        meta: dict[str, Any] | None = None,
        head: dict[str, Any] | None = None,
        fork: dict[str, Any] | None = None,
    ) -> None:
        self._recording = recording
        self._start = start
        self._out = out
        self._name = name
        self._meta = meta or {}
        self._head = head or {}
        self._live = live
        self._plan: dict[str, Any] = {"mode": mode, "relaxed": relaxed, "blobs": blobs, "fork": fork or {}}

    def run(self) -> tuple[Supervised, Outcome]:
        """Start it, and return how it ended and what it told."""
        recording, start = self._recording, self._start
        with tempfile.TemporaryDirectory(prefix="reenact-") as scratch:
            plan = Plan(
                path=os.path.abspath(recording.path),
                run=recording.run_id or "",
                report=os.path.join(scratch, "report.jsonl"),
                scratch=scratch,
                live=self._live,
                **self._plan,
            )
            agent = Supervised(start.command, self._name, self._meta, self._variables(plan), self._head)
            if start.folder is not None:
                os.chdir(start.folder)
                words = f"{shlex.join(start.command)} in {start.folder}"
                self._out.say(clean(f"reenact: runs {words}, as the recording says"))
            agent.run()
            told = read_report(plan.report)
        return agent, Outcome(told, self._live)

    def _variables(self, plan: Plan) -> dict[str, str]:
        temporary = os.path.join(plan.scratch, "tmp")
        os.mkdir(temporary)
        made = {VARIABLE: plan.text(), HOSTS_VARIABLE: _hosts(self._recording), "TMPDIR": temporary}
        if not plan.fork:
            made |= {name: "none" for name in _KEYS if name not in os.environ}
        return made


def _hosts(recording: Recording) -> str:
    """Return where the recorded model calls went, so that they are known again."""
    urls = [call.begin.url for call in recording.calls() if call.kind == MODEL and call.begin is not None]
    return ",".join(sorted({host_of(url) for url in urls if type(url) is str}))
