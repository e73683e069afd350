"""For pytest: a test's model calls and tools are answered by a recording.

``@pytest.mark.reenact("trace.jsonl")`` and the fixture ``reenact_run``. pytest loads this in every project
that has reenact installed, so nothing else is loaded before a test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .testing.reenactment import Reenactment

MODE_VARIABLE = "REENACT_MODE"
MODES = ("replay", "record-missing", "rerecord", "live")
"""As in ``testing.reenactment``."""
_FIXTURE = "reenact_run"
_MARKER = (
    "reenact(path=None, *, guard='connections', hosts=(), record_http='models', live_tools=(),"
    " allow_unused=False, rebase=False): "
    "answer the test's model calls and tools from a recording"
)

_mode = pytest.StashKey[str]()
_run = pytest.StashKey["Reenactment"]()
_has_failed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--reenact`` and ``reenact_mode``."""
    parser.getgroup("reenact").addoption(
        "--reenact", metavar="MODE", help=f"how recorded tests are answered: {', '.join(MODES)}"
    )
    parser.addini("reenact_mode", "what --reenact is by default", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Find out the mode; one that does not exist, or must not be here, is reported before anything runs."""
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line(
        "markers", "live: asks a model; such tests of `reenact test` wait for --reenact=live"
    )
    modes = {
        "--reenact": config.getoption("--reenact"),
        MODE_VARIABLE: os.environ.get(MODE_VARIABLE),
        "reenact_mode": config.getini("reenact_mode"),
    }
    source, mode = next(((source, mode) for source, mode in modes.items() if mode), ("", MODES[0]))
    if mode not in MODES:
        raise pytest.UsageError(f"{source}={mode}: the mode of reenact is one of: {', '.join(MODES)}")
    if mode == "record-missing":
        from .testing.reenactment import in_ci

        if in_ci():
            raise pytest.UsageError(
                f"{source}={mode} is refused where CI is set: record on your own machine, commit the traces"
            )
    config.stash[_mode] = mode


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marked test has the fixture, named or not: before its other fixtures, after those of wider scope."""
    names = getattr(item, "fixturenames", None)
    if names is None or _FIXTURE in names or item.get_closest_marker("reenact") is None:
        return
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    own = (at for at, name in enumerate(names) if name in known and known[name][-1].scope == "function")
    at = next(own, len(names))
    item.fixturenames = [*names[:at], _FIXTURE, *names[at:]]  # type: ignore[attr-defined]


@pytest.fixture
def reenact_run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reenactment]:
    """The run of this test, answered by its recording: see ``pytest.mark.reenact``."""
    from .errors import ReenactError

    unfit = ""
    __tracebackhide__ = True
    try:
        run = _reenactment(request.node, str(tmp_path_factory.mktemp("reenact")))
        run.begin()
    except ReenactError as exc:
        unfit = f"{exc}\nhint: {exc.hint}" if exc.hint else str(exc)
    if unfit:
        raise _missed_kind()(unfit)
    request.node.stash[_run] = run
    request.node.stash[_has_failed] = False
    try:
        yield run
    finally:
        run.end()


@pytest.fixture
def reenact_live(request: pytest.FixtureRequest) -> Any:
    """A function that runs a test's work several times with the model live; skips without --reenact=live."""
    if request.config.stash[_mode] != "live":
        pytest.skip("it asks a model: --reenact=live")
    from .testing.drive import passes

    def several(
        path: str, once: Any, *, samples: int = 5, at_least: int = 4, live_tools: Sequence[str] = ()
    ) -> None:
        trace = request.path.parent / path
        passes(trace, once, samples=samples, at_least=at_least, live_tools=live_tools)

    return several


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that left its recording, though somebody caught the miss, or made less than all calls."""
    run = item.stash.get(_run, None)
    __tracebackhide__ = True
    try:
        yield
    except (KeyboardInterrupt, pytest.exit.Exception, pytest.skip.Exception):
        raise
    except BaseException as exc:
        if run is None:
            raise
        run.finish(exc)
        _add_section(item, run)
        missed = run.missed()
        if not missed or isinstance(exc, _missed_kind()):
            raise
        failure = f"{type(exc).__name__}: {exc}".partition("\n")[0]
        after = (
            [] if any(str(exc) in each for each in missed) else [f"after that the test failed with {failure}"]
        )
        raise _missed_kind()("\n\n".join([*missed, *after])) from None
    if run is not None:
        run.finish()
        problems = run.problems()
        if problems:
            _add_section(item, run)
            raise _missed_kind()("\n\n".join(problems))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Once all of a test has passed, what it recorded takes the trace's place.

    A failure that is expected of the test is not that its recording does not fit: ``xfail`` hides no miss.
    """
    report = yield
    if call.excinfo is not None and _kinds and call.excinfo.errisinstance(_kinds[0]):
        report.outcome = "failed"
        report.longrepr = str(call.excinfo.value)
        vars(report).pop("wasxfail", None)
    run = item.stash.get(_run, None)
    if run is None:
        return report
    item.stash[_has_failed] |= not report.passed or hasattr(report, "wasxfail")
    if report.when == "teardown":
        del item.stash[_run]
        try:
            if not item.stash[_has_failed] and run.keep():
                report.sections.append(("reenact", f"recorded {run.path}"))
        except OSError as exc:
            report.outcome = "failed"
            report.longrepr = f"the recording could not be written to {run.path}: {exc}"
    return report


def _reenactment(item: pytest.Item, folder: str) -> Reenactment:
    from .errors import UsageError
    from .testing.reenactment import Reenactment

    marker = item.get_closest_marker("reenact")
    if sum(each.name == "reenact" for each in item.own_markers) > 1:
        raise UsageError(
            "pytest.mark.reenact stands twice at this test", hint="a test has one recording: leave one out"
        )
    args, options = (marker.args, marker.kwargs) if marker is not None else ((), {})
    unknown = set(options) - {"path", "guard", "hosts", "record_http", "live_tools", "allow_unused", "rebase"}
    path = (*args, options.get("path"))[0]
    is_path = path is None or isinstance(path, str | os.PathLike)
    if unknown or len(args) > 1 or (args and "path" in options) or not is_path:
        raise UsageError(f"pytest.mark.reenact does not take this: {args} {options}", hint=f"it is {_MARKER}")
    options = {name: value for name, value in options.items() if name != "path"}
    return Reenactment(
        item.path.parent / (_default_path(item) if path is None else path),
        mode=item.config.stash[_mode],
        name=item.name,
        folder=folder,
        advice=f'pytest "{item.nodeid}" --reenact=rerecord   # calls go out, and the run is recorded anew',
        line=lambda names: _marker_line(args, {**(marker.kwargs if marker else {}), "live_tools": names}),
        raised=_missed_kind(),
        **options,
    )


def _marker_line(args: tuple[Any, ...], options: dict[str, Any]) -> str:
    """Return the source of a test's mark."""
    words = [*map(_source, args), *(f"{name}={_source(value)}" for name, value in options.items())]
    return f"@pytest.mark.reenact({', '.join(words)})"


def _source(value: Any) -> str:
    return repr(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _default_path(item: pytest.Item) -> str:
    """Return where a test's trace is, seen from its file: ``traces/test_trip/test_plan-rome.jsonl``."""
    owner = getattr(item, "cls", None)
    name = getattr(item, "originalname", None) or item.name
    parameters = getattr(getattr(item, "callspec", None), "id", None)
    if parameters is not None:
        plain = "".join(char if char.isalnum() or char in "-_." else "-" for char in parameters)[:40]
        if plain != parameters:
            from hashlib import sha256

            plain += f"-{sha256(parameters.encode()).hexdigest()[:8]}"
        name = f"{name}-{plain}"
    return os.path.join(
        "traces", item.path.stem, f"{owner.__qualname__}.{name}.jsonl" if owner else f"{name}.jsonl"
    )


def _add_section(item: pytest.Item, run: Reenactment) -> None:
    lines = [f"this run: {run.run_path}", f"the recording: {run.path}"]
    lines += [f"{name}: {words}" for name, words in run.notes]
    item.add_report_section("call", "reenact", "\n".join(lines))


_kinds: list[type[BaseException]] = []


def _missed_kind() -> Any:
    """Return what a miss raises: no SDK takes it for a failed call, and for pytest it is a failed test."""
    if not _kinds:
        from .errors import Diverged

        failed: Any = pytest.fail.Exception

        class Missed(failed, Diverged):  # type: ignore[misc]
            """The test made a request that its recording does not answer."""

            def __init__(self, message: str) -> None:
                super().__init__(message, pytrace=False)  # type: ignore[call-arg]

        Missed.__module__, Missed.__qualname__ = "builtins", "Missed"  # as pytest's own: shown by its name
        _kinds.append(Missed)
    return _kinds[0]
