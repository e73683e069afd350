"""Starts an agent whose calls a recording answers, and waits for its end: for replay and fork."""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import chdir
from typing import Any

from ...capture.ambient.modules import AMBIENT_VARIABLE
from ...capture.seams.install import HOSTS_VARIABLE, HTTP_VARIABLE
from ...errors import UsageError
from ...playback.matching.processes import what_was_made
from ...playback.matching.rules import STRICT
from ...playback.replay import preflight
from ...playback.replay.deferred import claims_path
from ...playback.replay.plan import VARIABLE, Plan
from ...recording.recording import Recording
from ...recording.runs_inside import with_inside
from ...schema import MODEL_RESPONSE
from ...supervise.supervisor import NOT_EXECUTABLE, OFF_VARIABLE, Supervised
from ...tracefile.text import clean
from .. import runs
from ..output import Output
from .report import Outcome, both_ends, read_report
from .start import Start

# A run that left its recording is over; what waits for a process that ended there is not left to wait.
#
# ``multiprocessing.Pool`` does: it starts another worker, and nobody brings the result that is missing. Nor
# is
# code left to itself that catches whatever is raised and asks again for ever.

_QUIET = 10.0
"""Seconds in which nothing is given, after a divergence, until an agent is interrupted."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_OVER = ("diverged", "unknown", "halted")
"""What is told by a process that must not go on: that it is told again is no sign of life."""


class Overseer:
    """Looks at what the processes of a replay write, and says when and how they are to be ended."""

    def __init__(self, report: str, others: Sequence[str] = ()) -> None:
        self._report = report
        self._others = others
        self._done: list[int] = []
        self._since = time.monotonic()
        self._sent = 0

    def __call__(self) -> int | None:
        """Return the signal to send now: as Ctrl-C does, so that pools are taken down; then for good."""
        told = read_report(self._report)
        over = sum(any(name in each for name in _OVER) for each in told)
        done = [len(told) - over, *map(_size, self._others)]
        if done != self._done:
            self._done, self._since = done, time.monotonic()
        if self._sent == len(_SIGNALS) or time.monotonic() - self._since < _QUIET:
            return None
        self._since = time.monotonic()
        if not over:
            return None
        self._sent += 1
        return _SIGNALS[self._sent - 1]


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


TRY_ELSEWHERE = "name another folder, and the run by its path: REENACT_DIR=DIR reenact …"


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
        workspace: str | None = None,
        restored_from: str | None = None,
    ) -> None:
        self._recording = recording
        self._start = start
        self._out = out
        self._name = name
        self._meta = meta or {}
        self._head = {**(head or {}), **_ambient(recording)}
        self._live = live
        self._workspace = {"workspace": workspace, "restored_from": restored_from}
        blobs = None if blobs is None else os.path.abspath(blobs)  # the agent runs elsewhere
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
                models=preflight.model_ports(recording),
                inside=tuple((os.path.abspath(path), run) for path, run in recording.inside),
                **self._plan,
            )
            head = {**start.head, **self._head}
            variables = self._variables(plan)
            runs.tell(recording.findings, self._out)
            agent = Supervised(
                start.command, self._name, self._meta, variables, head, **self._workspace, must_join=True
            )
            if plan.mode == STRICT:
                agent.overseer = Overseer(plan.report, [claims_path(scratch)])
            if start.folder is not None:
                words = f"{start.entry or shlex.join(start.command)} in {start.folder}"
                self._out.say(clean(f"reenact: runs {words}, as the recording says"))
            with chdir(start.folder or os.curdir):
                agent.run()
            told = read_report(plan.report)
            if not told and agent.exit == NOT_EXECUTABLE:
                raise UsageError(
                    f"the run cannot be written to {os.path.dirname(agent.path)}, so nothing was started",
                    hint=TRY_ELSEWHERE,
                )
            for each in told:
                if "unusable" in each:
                    raise UsageError(each["unusable"]["text"], hint=each["unusable"]["hint"])
            if told:
                told += self._in_the_end(plan, told)
            if not told or not agent.is_recorded:
                return agent, Outcome(told, self._live)
            now = Recording.load(agent.path)
            ended = both_ends(recording, now)
            if ended is not None:
                told.append({"ended": ended})
        return agent, Outcome(told, _called(now, self._live))

    def _in_the_end(self, plan: Plan, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what no process could tell by itself: what all were given, and what none has asked for."""
        answered, missing = what_was_made(self._recording, plan.scratch, plan.live, plan.mode)
        is_over = plan.mode == STRICT and any("diverged" in each for each in told)
        is_over = is_over or any("unknown" in each for each in told)
        if is_over or plan.fork:  # what was to come after it could not
            missing = []
        return [
            *({"diverged": each.as_dict(), "text": each.text()} for each in missing),
            {"answered": answered},
        ]

    def _variables(self, plan: Plan) -> dict[str, str]:
        temporary = os.path.join(plan.scratch, "tmp")
        os.mkdir(temporary)
        hosts = ",".join(preflight.model_hosts(self._recording))
        made = {VARIABLE: plan.text(), HOSTS_VARIABLE: hosts, "TMPDIR": temporary}
        made[OFF_VARIABLE] = "0"  # switched off, nobody would answer, and the agent would be live
        made[HTTP_VARIABLE] = preflight.recorded_http(self._recording)
        if "ambient" in self._head:
            made[AMBIENT_VARIABLE] = ",".join(self._head["ambient"])
        if not plan.fork:
            made |= {name: "none" for name in preflight.KEYS if name not in os.environ}
        return made


def _called(recording: Recording, tools: tuple[str, ...]) -> list[str]:
    """Return those of some tools that were called in a run, or asked for by its model; all of them if the
    run withholds what was said."""
    if not tools:
        return []
    whole = with_inside(recording)
    called = {call.tool for call in whole.calls(derived=True)}
    answers = (repr(event.stored_fields) for event in whole.events if event.event_type == MODEL_RESPONSE)
    if any("'$none'" in answer or "'$hash'" in answer for answer in answers):
        return list(tools)
    return [name for name in tools if name in called]


def _ambient(recording: Recording) -> dict[str, list[str]]:
    """Return the modules whose clock and chance were recorded, as ``run.start`` tells it."""
    told = recording.start.stored_fields.get("ambient") if recording.start is not None else None
    names = [name for name in told if type(name) is str] if type(told) is list else []
    return {"ambient": names} if names else {}
