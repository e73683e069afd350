"""From runs to a test file that passes: a fixture is made, the run looked at, the text written and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from typing import Any

from ..capture.redact import Redactor
from ..errors import Diverged, UsageError
from ..playback.fixtures.driving import replay_command
from ..playback.fixtures.keeping import take_place
from ..playback.generate import written
from ..playback.generate.case import COMMAND, PROMPT, TOOL_KIND, Case, entry_text, lossy, slug, told_by
from ..playback.generate.fixture import Fixture
from ..playback.generate.wording import module_text
from ..tracefile.recording import Recording
from .text import count

LOOK = "reenact.playback.generate.look"
_TIMEOUT = 600
_OUTPUT = 4_000
_FAILED = 1


@dataclass
class Generated:
    """What was written, and whether it passes."""

    cases: list[Case]
    paths: list[str]
    verdict: str = "not run"
    is_passed: bool = True
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        tests = [
            {
                "name": case.name,
                "run": case.recording.run_id,
                "kind": case.kind,
                "xfail": case.is_failed and case.kind == "code",
                "blame": case.blame._asdict() if case.blame is not None else None,
                "live_tools": case.live,
            }
            for case in self.cases
        ]
        return {
            "paths": self.paths,
            "tests": tests,
            "passes": self.is_passed,
            "verdict": self.verdict,
            "notes": self.notes,
        }


@dataclass
class Generator:
    """Makes one test file of some runs."""

    output: str
    samples: int
    is_checked: bool
    is_forced: bool
    allows_lossy: bool

    def make(self, cases: list[Case]) -> Generated:
        """Write it all; UsageError before anything is written if it cannot be."""
        path = self._path(cases)
        stem, folder = os.path.basename(path).removesuffix(".py"), os.path.dirname(os.path.abspath(path))
        cases = _unique(cases)
        ids = [str(case.recording.run_id) for case in cases]
        if not self.is_forced:
            written.check_free(path, ids)
        notes: list[str] = []
        with tempfile.TemporaryDirectory(prefix="reenact-") as scratch:
            for case in cases:
                _refuse_unfit(case)
            fixtures = [self._fixture(case, scratch, notes) for case in cases]
            cases = [told_by(Recording.load(at), case) for at, case in zip(fixtures, cases, strict=True)]
            if self.is_checked:
                cases = [_seen(case, fixture, notes) for case, fixture in zip(cases, fixtures, strict=True)]
            places = [os.path.join(folder, "traces", stem, f"{case.name}.jsonl") for case in cases]
            for fixture, place in zip(fixtures, places, strict=True):
                take_place(fixture, place)
        made = Generated(cases, [path, *(_beside(path, place) for place in places)], notes=notes)
        self._write(made, path, stem, folder, ids)
        if self.is_checked:
            self._check(made, path, stem, folder, ids)
        return made

    def _path(self, cases: list[Case]) -> str:
        if self.output.endswith(".py"):
            return self.output
        names = {case.name for case in cases}
        targets = {case.target for case in cases}
        name = names.pop() if len(names) == 1 else "test_recorded_runs"
        if name == "test_recorded_runs" and len(targets) == 1:
            name = f"test_{slug(targets.pop())}"
        return os.path.join(self.output, f"{name}.py")

    def _fixture(self, case: Case, scratch: str, notes: list[str]) -> str:
        place = os.path.join(scratch, f"{case.name}.jsonl")
        fixture = Fixture(case.recording)
        fixture.write(place)
        if fixture.secrets:
            notes.append(
                f"{count(fixture.secrets, 'secret')} of {case.recording.name} replaced that stood there still"
            )
        serious, headers = lossy(Recording.load(place))
        if serious and not self.allows_lossy:
            raise UsageError(
                f"not all of {case.recording.name} is as it was: {'; '.join(serious[:5])}",
                hint="the code would act upon stand-ins; --allow-lossy writes the test all the same",
            )
        notes += [f"not recorded, so a stand-in is sent: {each}" for each in headers]
        return place

    def _write(self, made: Generated, path: str, stem: str, folder: str, ids: list[str]) -> None:
        text = module_text(made.cases, stem, folder, samples=self.samples)
        written.write(path, written.stamped(text, ids))

    def _check(self, made: Generated, path: str, stem: str, folder: str, ids: list[str]) -> None:
        """Run the test once; what it prints or returns may differ each time, and is then not asserted."""
        made.is_passed, made.verdict = _run_pytest(path)
        if made.is_passed or "\nE       assert" not in made.verdict + "\n":
            return
        cases = made.cases
        made.cases = [case.knowing({**case.seen, "volatile": True}) for case in cases]
        self._write(made, path, stem, folder, ids)
        is_passed, verdict = _run_pytest(path)
        if is_passed:
            made.notes.append("what it comes to differs each time, so that is not asserted")
            made.is_passed, made.verdict = is_passed, verdict
        else:
            made.cases = cases
            self._write(made, path, stem, folder, ids)


def _beside(path: str, place: str) -> str:
    """Return a place as the user named the path: from here, or from the root."""
    return place if os.path.isabs(path) else os.path.relpath(place)


def _unique(cases: list[Case]) -> list[Case]:
    taken: dict[str, int] = {}
    found = []
    for case in cases:
        name = case.name + {PROMPT: "_prompt", TOOL_KIND: "_tools"}.get(case.kind, "")
        taken[name] = taken.get(name, 0) + 1
        found.append(replace(case, name=name if taken[name] == 1 else f"{name}_{taken[name]}"))
    return found


def _refuse_unfit(case: Case) -> None:
    if case.kind == PROMPT and case.sort == COMMAND:
        raise UsageError(
            f"{case.recording.name} is a program, and a test of a prompt calls a function or a handler",
            hint="--entry module:function names one; or --kind code",
        )
    if case.kind == TOOL_KIND and not case.tools:
        raise UsageError(f"no tool was called in {case.recording.name}", hint="--kind code")


def _seen(case: Case, fixture: str, notes: list[str]) -> Case:
    """Return a case with what happens when it is run again from its fixture."""
    if case.kind == PROMPT and case.sort == COMMAND:
        return case
    seen = _look_at_command(case, fixture) if case.sort == COMMAND else _look(case, fixture)
    if "unusable" in seen:
        notes.append(f"it cannot be run again here: {seen['unusable']}")
        return case
    if seen.get("problems"):
        notes.append(f"run again, it leaves its recording: {seen['problems'][0].partition(chr(10))[0]}")
        return case
    clean = Redactor().clean(seen)
    case = case.knowing(seen if clean is seen else {**clean, "volatile": True})
    if case.blame is not None and not case.is_failed and case.kind == "code":
        notes.append(f"{case.recording.name} does not fail any more with the code as it is: no xfail")
    return case


def _look(case: Case, fixture: str) -> dict[str, Any]:
    asked = {
        "trace": fixture,
        "entry": entry_text(case),
        "folder": case.folder,
        "live": ["all"] if case.kind == TOOL_KIND else [],
        "rebase": case.kind == TOOL_KIND,
    }
    done = _python(["-P", "-m", LOOK], json.dumps(asked))
    try:
        told = json.loads(done.stdout)
    except ValueError:
        return {"unusable": done.stderr.strip()[-_OUTPUT:] or f"it ended with exit code {done.returncode}"}
    return told if type(told) is dict else {}


def _look_at_command(case: Case, fixture: str) -> dict[str, Any]:
    live = ["all"] if case.kind == TOOL_KIND else case.live
    try:
        words = [case.target, *case.given]
        done = replay_command(fixture, words, cwd=case.folder, live_tools=live, rebase=case.kind == TOOL_KIND)
    except Diverged as exc:
        return {"problems": [str(exc)]}
    except UsageError as exc:
        return {"unusable": str(exc)}
    return {"exit": done.returncode, "stdout": done.stdout[-_OUTPUT:]}


def _run_pytest(path: str) -> tuple[bool, str]:
    """Return whether a test file passes, and pytest's last words, or all of them if it does not."""
    words = ["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", os.path.abspath(path)]
    done = _python(words, "")
    lines = done.stdout.strip().splitlines()
    if "No module named pytest" in done.stderr:
        return False, "pytest is not installed here, so it was not run; pip install pytest"
    if done.returncode == 0 and lines:
        return True, f"passes as written: {lines[-1].strip('= ')}"
    told = (done.stdout + done.stderr).strip()[-_OUTPUT:]
    return False, f"it does not pass as written:\n{told}"


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
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, _FAILED, "", f"it did not end within {_TIMEOUT} seconds")
