"""What a test comes to before it is one: the run is started again from its fixture, then the test is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from ..errors import Diverged, UsageError
from ..playback.fixtures.driving import replay_command
from ..playback.generate.case import COMMAND, TOOL_KIND, Case, entry_text

LOOK = "reenact.playback.generate.look"
_TIMEOUT = 600
_OUTPUT = 4_000
_FAILED = 1


def look(case: Case, fixture: str) -> dict[str, Any]:
    """Return what happens when a case is run again: ``unusable`` if it cannot be, ``problems`` if it goes
    another way than its recording."""
    return _look_at_command(case, fixture) if case.sort == COMMAND else _look_at_call(case, fixture)


def _look_at_call(case: Case, fixture: str) -> dict[str, Any]:
    asked = {
        "trace": fixture,
        "entry": entry_text(case),
        "folder": case.folder,
        "live": ["all"] if case.kind == TOOL_KIND else case.live,
        "rebase": case.kind == TOOL_KIND,
    }
    done = _python(["-P", "-m", LOOK], json.dumps(asked))
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return {"unusable": _last_line(done.stderr) or f"it ended with exit code {done.returncode}"}
    return told if type(told) is dict else {}


def _look_at_command(case: Case, fixture: str) -> dict[str, Any]:
    live = ["all"] if case.kind == TOOL_KIND else case.live
    words = [case.target, *case.given]
    if case.target.endswith(".py") and not os.path.exists(os.path.join(case.folder, case.target)):
        return {"unusable": f"{case.target} is not in {case.folder} any more"}
    try:
        done = replay_command(fixture, words, cwd=case.folder, live_tools=live, rebase=case.kind == TOOL_KIND)
    except Diverged as exc:
        return {"problems": [str(exc)]}
    except UsageError as exc:
        return {"unusable": str(exc)}
    return {"exit": done.returncode, "stdout": done.stdout[-_OUTPUT:]}


def require_pytest() -> None:
    """UsageError where no test can be run."""
    if find_spec("pytest") is None:
        raise UsageError(
            "pytest is not installed here, so what is written could not be tried",
            hint="pip install 'reenact[pytest]'; --no-check writes it untried",
        )


def run_pytest(path: str) -> tuple[bool, str]:
    """Return whether a test file passes, and pytest's last words, or all of them if it does not."""
    words = ["-P", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", os.path.abspath(path)]
    done = _python(words, "")
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        return True, f"passes as written: {lines[-1].strip('= ')}"
    return False, (done.stdout + done.stderr).strip()[-_OUTPUT:]


def _python(words: list[str], given: str) -> subprocess.CompletedProcess[str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("REENACT", "PYTEST_XDIST"))
    }
    try:
        return subprocess.run(  # noqa: S603
            [sys.executable, *words],
            input=given,
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
