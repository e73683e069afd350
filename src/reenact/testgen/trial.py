"""Try a test before it is kept: run its case again from the fixture, then the test itself.

A function or an application is called in a process of its own, ``python -m reenact.testgen.trial``: it reads
the case as JSON from stdin and writes one line of JSON to stdout; the agent's output goes to stderr.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import subprocess
import sys
from typing import Any

from ..capture.calls.error_fields import is_agents
from ..capture.recorder.jsonable import jsonable
from ..capture.runs.entry_point import ASGI
from ..errors import Diverged, ReenactError, UsageError
from ..playback.replay.entry import Entry, arguments, call_of, resolve
from ..playback.replay.web_app import Response
from ..testing.drive import replay_command
from ..testing.reenactment import Reenactment
from .case import COMMAND, TOOL_KIND, Case, entry_text
from .literals import is_plain

_TIMEOUT = 600
_LONGEST = 4_000
_FAILED = 1


def run_again(case: Case, fixture: str) -> dict[str, Any]:
    """Run a case again and return the result.

    ``unusable`` says why it cannot run, ``problems`` where it diverges from its recording.
    """
    return _command_again(case, fixture) if case.sort == COMMAND else _call_again(case, fixture)


def _call_again(case: Case, fixture: str) -> dict[str, Any]:
    options = {
        "trace": fixture,
        "entry": entry_text(case),
        "folder": case.folder,
        "live": case.tools_to_run,
        "rebase": case.kind == TOOL_KIND,
    }
    done = _python(["-P", "-m", __spec__.name], json.dumps(options))
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return {"unusable": _last_line(done.stderr) or f"it ended with exit code {done.returncode}"}
    return report if type(report) is dict else {}


def _command_again(case: Case, fixture: str) -> dict[str, Any]:
    words = [case.target, *case.input]
    try:
        done = replay_command(
            fixture, words, cwd=case.folder, live_tools=case.tools_to_run, rebase=case.kind == TOOL_KIND
        )
    except Diverged as exc:
        return {"problems": [str(exc)]}
    except UsageError as exc:
        return {"unusable": str(exc)}
    return {"exit": done.returncode, "stdout": done.stdout[-_LONGEST:]}


def require_pytest() -> None:
    """Raise UsageError without pytest."""
    if importlib.util.find_spec("pytest") is None:
        raise UsageError(
            "pytest is not installed here, so the test cannot be run",
            hint="pip install 'reenact[pytest]'; --no-check writes it without running it",
        )


def run_pytest(path: str) -> tuple[bool, str]:
    """Return whether a test file passes, and pytest's last line, or its whole output if it fails."""
    words = ["-P", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", os.path.abspath(path)]
    done = _python(words, "")
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        return True, f"passes as written: {lines[-1].strip('= ')}"
    return False, (done.stdout + done.stderr).strip()[-_LONGEST:]


def _python(words: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("REENACT", "PYTEST_XDIST"))
    }
    try:
        return subprocess.run(  # noqa: S603
            [sys.executable, *words],
            input=stdin,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, _FAILED, "", f"it did not end within {_TIMEOUT} seconds")


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2].strip()


# In the process of its own.


def main() -> None:
    case = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module = case["entry"].removeprefix(ASGI).partition(":")[0]
    is_installed = importlib.util.find_spec(module.partition(".")[0]) is not None
    sys.path.insert(0, case["folder"])
    json.dump({"installed": is_installed, **_run(case)}, out)
    out.flush()


def _run(case: dict[str, Any]) -> dict[str, Any]:
    run = Reenactment(case["trace"], live_tools=case["live"], rebase=case["rebase"])
    report: dict[str, Any] = {}
    try:
        run.begin()
        recording = run.recorded.recording
        found = Entry.of(recording)
        folder = os.path.realpath(case["folder"])
        entry = Entry(
            case["entry"], folder, found.input if found is not None else recording.input, folder=folder
        )
        report |= _form(entry)
        _call(entry, report)
        run.finish()
        report["problems"] = run.problems()
    except Diverged as exc:
        report["problems"] = run.problems() or [str(exc)]
    except ReenactError as exc:
        report["unusable"] = str(exc)
    finally:
        run.end()
    return report


def _form(entry: Entry) -> dict[str, Any]:
    """Return how to call the function."""
    found = resolve(entry)
    if entry.is_app:
        return {}
    beneath = inspect.unwrap(found) if callable(found) else found
    form = "plain"
    if inspect.iscoroutinefunction(beneath):
        form = "async"
    elif inspect.isgeneratorfunction(beneath):
        form = "generator"
    return {"form": form, "direct": not inspect.isasyncgenfunction(beneath) and _takes_plain(beneath, entry)}


def _takes_plain(function: Any, entry: Entry) -> bool:
    """True if the recorded input can be written as arguments of a call."""
    args, kwargs = arguments(function, entry.input, entry.place[1])
    recorded_input = dict(entry.input)
    kinds = {each.kind for each in inspect.signature(function).parameters.values()}
    odd = kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}
    return not odd and all(is_plain(value) for value in [*args, *kwargs.values(), *recorded_input.values()])


def _call(entry: Entry, report: dict[str, Any]) -> None:
    try:
        result = call_of(entry)()
    except Exception as exc:
        if isinstance(exc, ReenactError):
            raise
        report["raised"] = _raised(exc)
        return
    if isinstance(result, Response):
        report["status"] = result.status
        report["text"] = result.text[:_LONGEST]
        if result.exception is not None:
            report["raised"] = _raised(result.exception)
        return
    if type(result) in (str, int, float, bool, dict, list, type(None)):
        plain = jsonable(result)
        if plain == result and len(json.dumps(plain)) <= _LONGEST:
            report["result"] = plain


def _raised(exc: Exception) -> dict[str, str]:
    """Return the import of an exception's class; for a class of the agent, that of the nearest builtin."""
    for kind in type(exc).__mro__:
        top = kind.__module__.partition(".")[0]
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if kind.__module__ == "builtins" or ("." not in kind.__qualname__ and file and not is_agents(file)):
            is_public = getattr(sys.modules.get(top), kind.__name__, None) is kind
            return {"module": top if is_public else kind.__module__, "name": kind.__name__}
    return {"module": "builtins", "name": "Exception"}


if __name__ == "__main__":
    main()
