"""``reenact.generate_test``: write fixtures of runs, run each again, write a test of them and run it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ..capture.redact.redactor import Redactor
from ..errors import NotATrace, ReenactError, UsageError
from ..playback.permission import Permission, permission_in_python
from ..playback.refusal import ALL, Need, refuse
from ..playback.replay import preflight
from ..playback.rerun import checked_words
from ..recording.listing import list_runs
from ..recording.recording import Recording
from ..recording.run_addresses import default_folder, locate
from ..recording.runs_inside import with_inside
from ..testing.traces import replace_trace
from ..tracefile.events.text import count
from . import files
from .case import CODE, KINDS, PROMPT, TOOL_KIND, Case, case_of, from_fixture, lossy, slug
from .fixture import Fixture
from .test_source import module_text
from .trial import require_pytest, run_again, run_pytest

_NOT_HERE = (
    "start it where the code is, with the Python that has its packages; --entry module:function if it was"
    " renamed; --no-check writes the test without running it"
)
_DIVERGES = (
    "reenact replay shows where; record it again with the current code; --no-check writes the test without"
    " running it"
)

A = TypeVar("A")
B = TypeVar("B")

Run = Recording | str | os.PathLike[str]
Source = Recording | tuple[str, str | None]
"""A run, or its file and its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedTest:
    """The files of a generated test, and the result of running it."""

    paths: tuple[str, ...]
    """The test file, then the recording of each test."""
    cases: tuple[Case, ...]
    """The tests in it."""
    passes: bool | None
    """None if it was not run; a test that fails is not written."""
    verdict: str
    """What pytest reports, in one line."""
    notes: tuple[str, ...]
    skipped: tuple[str, ...]
    """Runs without a test, and why."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data, the ``--json`` of ``reenact test``."""
        return {
            "paths": list(self.paths),
            "tests": [case.as_dict() for case in self.cases],
            "passes": self.passes,
            "verdict": self.verdict,
            "notes": list(self.notes),
            "left_out": list(self.skipped),
        }


def generate_test(
    runs: Run | Iterable[Run] = (),
    *,
    output: str | os.PathLike[str] = "tests",
    kind: str | None = None,
    entry: str | None = None,
    samples: int = 5,
    failed: bool = False,
    live_tools: Sequence[str] = (),
    allow_lossy: bool = False,
    force: bool = False,
    check: bool = True,
    yes: bool = False,
    code_folder: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    blobs: str | None = None,
) -> GeneratedTest:
    """Write a pytest test from a run, and a recording that answers it: the Python form of ``reenact test``.

    ``runs`` is a path, an address such as ``@last`` (the default), a Recording, a folder, or several of
    these; with ``failed=True`` only failed runs of the folders (by default of the usual one) make tests.
    Several runs make one file. ``output`` is a folder or a test file. ``kind`` is ``code``, ``tool`` or
    ``prompt``; ``samples`` counts the runs of a prompt. ``entry`` names the function if the recording does
    not, as ``module:function``. Tools that the recording cannot answer are refused unless ``live_tools``
    names them (or ``all``); ``allow_lossy`` allows answers that are redacted or shortened; ``force``
    overwrites an edited test; ``check=False`` runs neither the agent nor the test. A recorded program that
    this user has neither recorded nor allowed runs only with ``yes=True``; a recorded function is imported
    from ``code_folder``, by default the current folder. ``run_id`` selects one run of a shared file,
    ``blobs`` is another folder of long texts.

    Raises UsageError, with a hint and with nothing written, if no run makes a test that passes.
    """
    return generate(
        runs, output=output, kind=kind, entry=entry, samples=samples, failed=failed, live_tools=live_tools,
        allow_lossy=allow_lossy, force=force, check=check, permission=permission_in_python(yes, code_folder),
        run_id=run_id, blobs=blobs,
    )  # fmt: skip


def generate(
    runs: Run | Iterable[Run],
    *,
    output: str | os.PathLike[str],
    kind: str | None,
    entry: str | None,
    samples: int,
    failed: bool,
    live_tools: Sequence[str],
    allow_lossy: bool,
    force: bool,
    check: bool,
    permission: Permission,
    run_id: str | None,
    blobs: str | None,
) -> GeneratedTest:
    """Like ``generate_test``, with a permission that may ask."""
    if kind is not None and kind not in KINDS:
        raise UsageError(f"kind={kind!r}", hint=f"kind is one of: {', '.join(KINDS)}")
    if samples < 1:
        raise UsageError(f"samples={samples}", hint="at least 1")
    names = checked_words("live_tools", live_tools)
    sources = _sources(runs, failed, run_id)
    generator = _Generator(
        sources, samples, permission, is_checked=check, allows_lossy=allow_lossy, is_forced=force
    )
    cases = generator.cases_of(kind, entry, blobs)
    return generator.write(generator.allowed(cases, names), os.fspath(output))


def _sources(runs: Run | Iterable[Run], failed: bool, run_id: str | None) -> list[Source]:
    """Return each run that is meant: itself, or its file and its id."""
    named = [runs] if isinstance(runs, Recording | str | os.PathLike) else list(runs)
    found: list[Source] = []
    folders = [default_folder()] if failed and not named else []
    for each in named:
        if isinstance(each, Recording):
            found.append(each)
        elif os.path.isdir(each):
            folders.append(os.fspath(each))
        else:
            found.append(locate(os.fspath(each)))
    for folder in folders:
        if not os.path.isdir(folder):
            raise NotATrace(f"there is no folder {folder}, so nothing was recorded yet", path=folder)
        rows = [row for row in list_runs(folder) if row.id is not None and (row.failed or not failed)]
        found += [(row.path, row.id) for row in rows]
    if failed and not found:
        raise UsageError("no run failed", hint="reenact ls shows what there is")
    if folders and not found:
        raise UsageError(f"there is no run in {', '.join(folders)}", hint="nothing was recorded there yet")
    found = found or [locate(None)]
    return [each if isinstance(each, Recording) else (each[0], run_id or each[1]) for each in found]


class _Generator:
    """Generates one test file from some runs. Of several, those that make no test are skipped."""

    def __init__(
        self,
        sources: list[Source],
        samples: int,
        permission: Permission,
        *,
        is_checked: bool,
        allows_lossy: bool,
        is_forced: bool,
    ) -> None:
        self._sources = sources
        self._permission = permission
        self._samples = samples
        self._is_checked = is_checked
        self._allows_lossy = allows_lossy
        self._is_forced = is_forced
        self._is_single = len(sources) == 1
        self._notes: list[str] = []
        self._skipped: list[str] = []

    def _each(self, items: Iterable[A], step: Callable[[A], B]) -> list[B]:
        """Return what a step returns for each; UsageError if it fails for all, or for the only one."""
        found = []
        for item in items:
            try:
                found.append(step(item))
            except ReenactError as why:
                if self._is_single:
                    raise
                self._skipped.append(str(why))
        if not found:
            runs = count(len(self._sources), "run")
            raise UsageError(f"none of {runs} makes a test: {'; '.join(self._skipped)}", hint=_NOT_HERE)
        return found

    def cases_of(self, kind: str | None, entry: str | None, blobs: str | None) -> list[Case]:
        """Return the runs that can be tests, each test once."""
        first: dict[tuple[Any, ...], Case] = {}

        def case_from(source: Source) -> Case:
            alone = source if isinstance(source, Recording) else Recording.load(*source, blobs=blobs)
            recording = with_inside(alone)
            if recording.inside and not alone.calls() and not self._is_single:
                raise UsageError(
                    f"{alone.name} did everything in runs inside it, which get tests of their own"
                )
            code_folder = self._permission.code_folder
            case = case_of(recording, kind=kind, entry=entry, code_folder=code_folder)
            same = first.setdefault(case.signature, case)
            if same is not case:
                id_, id_of_same = str(recording.run_id)[:8], str(same.recording.run_id)[:8]
                raise UsageError(f"{recording.name} {id_} would make the same test as {id_of_same}")
            return case

        return self._each(self._sources, case_from)

    def allowed(self, cases: list[Case], names: Sequence[str]) -> list[Case]:
        """Return the cases whose tools are all answered or may run."""
        known = {name for case in cases for name in preflight.known_tools(case.recording)}
        where = cases[0].recording.name if len(cases) == 1 else count(len(cases), "run")
        preflight.check_names(names, known, where)

        def allowing(case: Case) -> Case:
            own = {ALL, *preflight.known_tools(case.recording)}
            return case.allowing([name for name in names if name in own])

        cases = [allowing(case) for case in cases]
        needs = [case.need() for case in cases]
        if self._is_single or all(needs):
            self._refuse(cases, list(needs))
        for case, need in zip(cases, needs, strict=True):
            if need is not None:
                flag = f"{need.flag} {','.join(need.tools)}"
                self._skipped.append(f"{case.recording.name}: {need.why}; {flag} allows it")
        return [case for case, need in zip(cases, needs, strict=True) if need is None]

    def _refuse(self, cases: list[Case], needs: list[Need | None]) -> None:
        """Raise NotAllowed for all that is needed."""
        if len(cases) > 1:
            pairs = zip(cases, needs, strict=True)
            needs = [need and replace(need, why=f"{case.recording.name}: {need.why}") for case, need in pairs]
        elif self._is_checked:
            needs.append(self._permission.need(cases[0].recording, cases[0].start))
        refuse(needs)

    def write(self, cases: list[Case], output: str) -> GeneratedTest:
        """Write a test that passes; UsageError, with nothing written, if there is none."""
        path = _test_path(output, cases)
        stem, folder = os.path.basename(path).removesuffix(".py"), os.path.dirname(os.path.abspath(path))
        if self._is_checked:
            require_pytest()
        with tempfile.TemporaryDirectory(prefix="reenact-") as scratch:
            cases = self._each(_unique(cases), lambda case: self._try(case, scratch))
            traces = [os.path.join(folder, "traces", stem, f"{case.name}.jsonl") for case in cases]
            try:
                if not self._is_forced:
                    files.check_free(path, _ids(cases))
                with files.restored_on_failure(path, traces, scratch):
                    for case, trace in zip(cases, traces, strict=True):
                        replace_trace(_fixture_path(case, scratch), trace)
                    cases, passes, verdict = self._write_and_check(cases, path, stem, folder)
            except OSError as exc:
                raise UsageError(
                    f"{path} cannot be written: {exc.strerror or exc}", hint="-o names another folder or file"
                ) from exc
        return GeneratedTest(
            paths=(path, *(trace if os.path.isabs(path) else os.path.relpath(trace) for trace in traces)),
            cases=tuple(cases),
            passes=passes,
            verdict=verdict,
            notes=tuple(self._notes),
            skipped=tuple(self._skipped),
        )

    def _try(self, case: Case, scratch: str) -> Case:
        """Write the fixture of a case, run it again and return it as it is then."""
        name = case.recording.name
        if case.kind == TOOL_KIND and not case.tools:
            raise UsageError(f"no tool was called in {name}", hint="--kind code")
        fixture = Fixture(case.recording)
        path = _fixture_path(case, scratch)
        fixture.write(path)
        redacted = Recording.load(path)
        serious, headers = lossy(redacted)
        if serious and not self._allows_lossy:
            raise UsageError(
                f"not all of {name} is recorded exactly: {'; '.join(serious[:5])}",
                hint="the code would get placeholders; --allow-lossy writes the test anyway",
            )
        notes = [f"{count(fixture.secrets, 'secret')} in {name} redacted that had not been"]
        notes = notes if fixture.secrets else []
        notes += [f"not recorded, so a placeholder is sent: {each}" for each in headers]
        case = from_fixture(redacted, case)
        if self._is_checked:
            self._permission.require(case.recording, case.start)
            case = _observed(case, path, notes)
        self._notes += notes
        return case

    def _write_and_check(
        self, cases: list[Case], path: str, stem: str, folder: str
    ) -> tuple[list[Case], bool | None, str]:
        """Write the test and run it; if its output differs each time, write it without asserting that."""

        def write() -> None:
            text = module_text(cases, stem, folder, samples=self._samples)
            files.write(path, files.stamped(text, _ids(cases)))

        write()
        if not self._is_checked:
            return cases, None, "not run: whether it passes is unknown"
        passes, verdict = run_pytest(path)
        if not passes and "\nE       assert" in verdict + "\n":
            cases = [case.with_observed({**case.observed, "volatile": True}) for case in cases]
            self._notes.append("its result differs each time, so it is not asserted")
            write()
            passes, verdict = run_pytest(path)
        if not passes:
            raise UsageError(
                f"the test does not pass as written, so it is not kept; pytest says:\n{verdict}",
                hint="--no-check writes it anyway, to be fixed by hand",
            )
        return cases, passes, verdict


def _ids(cases: list[Case]) -> list[str]:
    return [str(case.recording.run_id) for case in cases]


def _fixture_path(case: Case, scratch: str) -> str:
    return os.path.join(scratch, f"{case.name}.jsonl")


def _test_path(output: str, cases: list[Case]) -> str:
    if output.endswith(".py"):
        return output
    names = {case.name for case in cases}
    targets = {case.target for case in cases}
    name = names.pop() if len(names) == 1 else "test_recorded_runs"
    if name == "test_recorded_runs" and len(targets) == 1:
        name = f"test_{slug(targets.pop())}"
    return os.path.join(output, f"{name}.py")


def _unique(cases: list[Case]) -> list[Case]:
    taken: dict[str, int] = {}
    found = []
    for case in cases:
        name = case.name + {PROMPT: "_prompt", TOOL_KIND: "_tools"}.get(case.kind, "")
        taken[name] = taken.get(name, 0) + 1
        found.append(replace(case, name=name if taken[name] == 1 else f"{name}_{taken[name]}"))
    return found


def _observed(case: Case, fixture: str, notes: list[str]) -> Case:
    """Run a case again from its fixture, return it with the result; UsageError if no test can pass."""
    name, observed = case.recording.name, run_again(case, fixture)
    if "unusable" in observed:
        raise UsageError(f"{name} cannot be run again here: {observed['unusable']}", hint=_NOT_HERE)
    if observed.get("problems"):
        why = _short_reason(observed["problems"][0])
        if case.kind != PROMPT:
            raise UsageError(f"{name} diverges from its recording when it runs: {why}", hint=_DIVERGES)
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
