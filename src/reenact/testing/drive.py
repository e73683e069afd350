"""Drive an agent in a generated test: send a recorded request, call a function, run a program."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from shutil import rmtree
from typing import Any

from ..capture.runs.run import BENEATH
from ..debugger.debugger import Debugger
from ..errors import Diverged, UsageError
from ..playback.fork.tool_policy import RECORDED
from ..playback.forks import fork
from ..playback.matching.modes import REBASE, STRICT
from ..playback.replay.entry import call_with
from ..playback.replay.web_app import Response, call_asgi
from ..playback.rerun import RerunReport, rerun
from ..recording.recording import Recording, final_text
from ..recording.runs_inside import with_inside
from .reenactment import LIVE, NONE, Reenactment

_LONGEST = 2_000
_NOTHING = object()


def send(
    app: Any,
    method: str = "GET",
    url: str = "/",
    *,
    json: Any = _NOTHING,
    body: str | bytes | None = None,
    headers: dict[str, str] | None = None,
    root_path: str = "",
    recorded: dict[str, Any] | None = None,
) -> Response:
    """Send a web application one request, without a socket, and return the response.

    ``recorded`` is the whole input of a recorded run and replaces all other arguments. An exception of the
    application is raised here unchanged.
    """
    request: dict[str, Any] = {"method": method, "url": url, "root_path": root_path, "headers": headers or {}}
    if recorded is not None:
        request = recorded
    if json is not _NOTHING:
        request["body"] = json
        request["headers"] = {"content-type": "application/json", **request["headers"]}
    elif body is not None:
        request["sent"] = {"body": body}
    response = call_asgi(app, request)
    if response.exception is not None:
        raise response.exception
    return response


def call(function: Callable[..., Any], **recorded: Any) -> Any:
    """Call a function with recorded arguments, each converted to its annotation, and return the result.

    A coroutine is run, a generator consumed into a list.
    """
    beneath = getattr(function, BENEATH, function)
    return call_with(beneath, recorded, getattr(function, "__qualname__", "the function"))()


@dataclass(slots=True, weakref_slot=True)
class Rerun:
    """A program that was run again from its recording."""

    returncode: int
    stdout: str
    stderr: str
    path: str
    """Its own trace."""

    @property
    def run(self) -> Debugger:
        """The new run, with the runs inside it."""
        return Debugger(with_inside(Recording.load(self.path)))

    @property
    def final(self) -> str:
        """The text of the last answer, "" if there is none."""
        return final_text(self.run.recording)


def replay_command(
    trace: str | os.PathLike[str],
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    live_tools: Collection[str] = (),
    rebase: bool = False,
) -> Rerun:
    """Run a program again, answered by a recording, like ``reenact.rerun``; raise Diverged if it diverges."""

    def run(place: dict[str, Any]) -> RerunReport:
        report = rerun(
            trace, command, mode=REBASE if rebase else STRICT, live_tools=list(live_tools), **place
        )
        problems = [each.text() for each in report.divergences] + list(report.unknown) + _refused(report)
        if problems:
            raise Diverged("\n\n".join(problems) + _printed(report.stderr))
        return report

    return _kept(run, command, cwd)


def fork_command(
    trace: str | os.PathLike[str],
    command: Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    live_tools: Collection[str] = (),
) -> Rerun:
    """Run a program again with the model live and tools answered by the recording, like ``reenact.fork``.

    Raises AssertionError if it was stopped: a tool call is not recorded, or a limit was reached.
    """

    def run(place: dict[str, Any]) -> RerunReport:
        report = fork(trace, command, tools=RECORDED, live_tools=list(live_tools), **place)
        problems = [f"stopped: {each.why}" for each in report.halted] + _refused(report)
        problems += [report.hint] if report.hint else []
        if not report.is_cut_reached:
            problems.append(f"it ended with exit code {report.exit} before it called a model")
        if problems:
            raise AssertionError("\n".join(problems) + _printed(report.stderr))
        return report

    return _kept(run, command, cwd)


def _kept(
    run: Callable[[dict[str, Any]], RerunReport], command: Sequence[str], cwd: str | os.PathLike[str] | None
) -> Rerun:
    """Run a program again, and keep its trace in a folder that lives as long as the result."""
    folder = tempfile.mkdtemp(prefix="reenact-test-")
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    try:
        report = run({"cwd": cwd, "folder": folder, "env": env, "capture_output": True})
        if not report.is_started:
            raise UsageError(f"{' '.join(command)} was not run again:\n{report.stderr.strip()[-_LONGEST:]}")
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    done = Rerun(report.exit, report.stdout, report.stderr, report.path)
    weakref.finalize(done, rmtree, folder, ignore_errors=True)
    return done


def _refused(report: RerunReport) -> list[str]:
    return [f"refused to {each.what}" for each in report.refused if each.by == "agent"]


def passes(
    trace: str | os.PathLike[str],
    once: Callable[[Reenactment], object],
    *,
    samples: int,
    at_least: int,
    live_tools: Collection[str] = (),
) -> None:
    """Run a test's work several times, with the model live and recorded tool results; ``live_tools`` run.

    Raises AssertionError if fewer than ``at_least`` runs pass.
    """
    if not 0 < at_least <= samples:
        raise UsageError(
            f"at_least={at_least} of samples={samples}", hint="at least 1, at most as many as samples"
        )
    failures = []
    for number in range(1, samples + 1):
        run = Reenactment(
            trace,
            mode=LIVE,
            recorded_tools=True,
            guard=NONE,
            live_tools=live_tools,
            line=lambda names: f"reenact_live(…, live_tools={names!r})",
        )
        run.begin()
        try:
            once(run)
        except UsageError:  # a mistake in the test, not a failed sample
            raise
        except Exception as exc:
            run.finish(exc)
            failures.append(f"{number}: {type(exc).__name__}: {exc}"[:_LONGEST])
        finally:
            run.end()
    passed = samples - len(failures)
    if passed < at_least:
        listed = "\n  ".join(failures)
        raise AssertionError(f"{passed} of {samples} runs passed, {at_least} required:\n  {listed}")


def _printed(text: str) -> str:
    return f"\n\nit wrote on stderr:\n{text[-_LONGEST:]}" if text.strip() else ""
