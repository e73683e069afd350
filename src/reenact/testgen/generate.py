"""Generate a test file from runs: write fixtures, run each case again, write the test and run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from ..capture.redact.redactor import Redactor
from ..errors import Diverged, UsageError
from ..recording.recording import Recording
from ..testing.drive import replay_command
from ..testing.traces import replace_trace
from ..tracefile.text import count
from . import files
from .case import CODE, COMMAND, PROMPT, TOOL_KIND, Case, entry_text, from_fixture, lossy, slug
from .fixture import Fixture
from .test_source import module_text

# Try a test first: run the case again from its fixture, then run the test.

LOOK = "reenact.testgen.observe"
_TIMEOUT = 600
_OUTPUT = 4_000
_FAILED = 1


def look(case: Case, fixture: str) -> dict[str, Any]:
    """Run a case again and return the result.

    ``unusable`` says why it cannot run, ``problems`` where it diverges from its recording.
    """
    return _look_at_command(case, fixture) if case.sort == COMMAND else _look_at_call(case, fixture)


def _look_at_call(case: Case, fixture: str) -> dict[str, Any]:
    options = {
        "trace": fixture,
        "entry": entry_text(case),
        "folder": case.folder,
        "live": case.tools_to_run,
        "rebase": case.kind == TOOL_KIND,
    }
    done = _python(["-P", "-m", LOOK], json.dumps(options))
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return {"unusable": _last_line(done.stderr) or f"it ended with exit code {done.returncode}"}
    return report if type(report) is dict else {}


def _look_at_command(case: Case, fixture: str) -> dict[str, Any]:
    words = [case.target, *case.input]
    if case.target.endswith(".py") and not os.path.exists(os.path.join(case.folder, case.target)):
        return {"unusable": f"{case.target} is not in {case.folder} any more"}
    try:
        done = replay_command(
            fixture, words, cwd=case.folder, live_tools=case.tools_to_run, rebase=case.kind == TOOL_KIND
        )
    except Diverged as exc:
        return {"problems": [str(exc)]}
    except UsageError as exc:
        return {"unusable": str(exc)}
    return {"exit": done.returncode, "stdout": done.stdout[-_OUTPUT:]}


def require_pytest() -> None:
    """Raise UsageError without pytest."""
    if find_spec("pytest") is None:
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
    return False, (done.stdout + done.stderr).strip()[-_OUTPUT:]


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


_NOT_HERE = (
    "start it where the code is, with the Python that has its packages; --entry module:function if it was"
    " renamed; --no-check writes the test without running it"
)
_OTHER = (
    "reenact replay shows where; record it again with the current code; --no-check writes the test without"
    " running it"
)


@dataclass
class Generated:
    """The written files, and the result of running the test."""

    cases: list[Case]
    paths: list[str]
    verdict: str = "not run: whether it passes is unknown"
    is_passed: bool | None = None
    """None if it was not run; a test that fails is not written."""
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Runs without a test, and why."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        tests = [
            {
                "name": case.name,
                "run": case.recording.run_id,
                "kind": case.kind,
                "xfail": case.is_failed and case.kind == CODE,
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
            "left_out": self.left_out,
        }


@dataclass
class Generator:
    """Generates one test file from some runs."""

    output: str
    samples: int
    is_checked: bool
    is_forced: bool
    allows_lossy: bool

    def make(self, cases: list[Case]) -> Generated:
        """Write a test that passes; UsageError, with nothing written, if there is none."""
        path = self._path(cases)
        stem, folder = os.path.basename(path).removesuffix(".py"), os.path.dirname(os.path.abspath(path))
        cases = _unique(cases)
        if self.is_checked:
            require_pytest()
        generated = Generated([], [])
        with tempfile.TemporaryDirectory(prefix="reenact-") as scratch:
            fixtures = self._fixtures(cases, generated, scratch)
            places = [os.path.join(folder, "traces", stem, f"{case.name}.jsonl") for case in generated.cases]
            generated.paths = [path, *(_beside(path, place) for place in places)]
            try:
                if not self.is_forced:
                    files.check_free(path, _ids(generated.cases))
                with files.restored_on_failure(path, places, scratch):
                    for fixture, place in zip(fixtures, places, strict=True):
                        replace_trace(fixture, place)
                    self._write(generated, path, stem, folder)
                    if self.is_checked:
                        self._check(generated, path, stem, folder)
            except OSError as exc:
                raise UsageError(
                    f"{path} cannot be written: {exc.strerror or exc}", hint="-o names another folder or file"
                ) from exc
        return generated

    def _fixtures(self, cases: list[Case], generated: Generated, scratch: str) -> list[str]:
        """Return the fixtures of the usable runs; add their cases, and why others fail, to ``generated``."""
        fixtures = []
        for case in cases:
            notes: list[str] = []
            try:
                _refuse_unfit(case)
                fixture = self._fixture(case, scratch, notes)
                case = from_fixture(Recording.load(fixture), case)
                case = _run_again(case, fixture, notes) if self.is_checked else case
            except UsageError as why:
                if len(cases) == 1:
                    raise
                generated.left_out.append(str(why))
                continue
            fixtures.append(fixture)
            generated.cases.append(case)
            generated.notes += notes
        if not fixtures:
            raise UsageError(
                f"no test can be generated from these runs: {'; '.join(generated.left_out)}", hint=_NOT_HERE
            )
        return fixtures

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
                f"{count(fixture.secrets, 'secret')} in {case.recording.name} redacted that had not been"
            )
        serious, headers = lossy(Recording.load(place))
        if serious and not self.allows_lossy:
            raise UsageError(
                f"not all of {case.recording.name} is recorded exactly: {'; '.join(serious[:5])}",
                hint="the code would get placeholders; --allow-lossy writes the test anyway",
            )
        notes += [f"not recorded, so a placeholder is sent: {each}" for each in headers]
        return place

    def _write(self, generated: Generated, path: str, stem: str, folder: str) -> None:
        text = module_text(generated.cases, stem, folder, samples=self.samples)
        files.write(path, files.stamped(text, _ids(generated.cases)))

    def _check(self, generated: Generated, path: str, stem: str, folder: str) -> None:
        """Run the test; if its output differs each time, write it again without asserting that."""
        generated.is_passed, generated.verdict = run_pytest(path)
        if not generated.is_passed and "\nE       assert" in generated.verdict + "\n":
            generated.cases = [
                case.with_observed({**case.observed, "volatile": True}) for case in generated.cases
            ]
            generated.notes.append("its result differs each time, so it is not asserted")
            self._write(generated, path, stem, folder)
            generated.is_passed, generated.verdict = run_pytest(path)
        if not generated.is_passed:
            raise UsageError(
                f"the test does not pass as written, so it is not kept; pytest says:\n{generated.verdict}",
                hint="--no-check writes it anyway, to be fixed by hand",
            )


def _ids(cases: list[Case]) -> list[str]:
    return [str(case.recording.run_id) for case in cases]


def _beside(path: str, place: str) -> str:
    """Return a place in the form of the user's path: relative or absolute."""
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
    if case.kind == TOOL_KIND and not case.tools:
        raise UsageError(f"no tool was called in {case.recording.name}", hint="--kind code")


def _run_again(case: Case, fixture: str, notes: list[str]) -> Case:
    """Run a case again from its fixture, return it with the result; UsageError if no test can pass."""
    name, observed = case.recording.name, look(case, fixture)
    if "unusable" in observed:
        raise UsageError(f"{name} cannot be run again here: {observed['unusable']}", hint=_NOT_HERE)
    if observed.get("problems"):
        why = _short_reason(observed["problems"][0])
        if case.kind != PROMPT:
            raise UsageError(f"{name} diverges from its recording when it runs: {why}", hint=_OTHER)
        notes.append(f"run again, it diverges from its recording: {why}")
        return case
    clean = Redactor().clean(observed)
    case = case.with_observed(observed if clean is observed else {**clean, "volatile": True})
    if case.blame is not None and not case.is_failed and case.kind == CODE:
        notes.append(f"{name} does not fail any more with the current code: no xfail")
    return case


def _short_reason(problem: str) -> str:
    """Return the first line of a report, and the last line the program wrote if it ended by itself."""
    first, _, rest = problem.partition("\n")
    output = rest.partition("it wrote on stderr:\n")[2].strip().rpartition("\n")[2]
    return f"{first} {output}" if output and not output.startswith("reenact") else first
