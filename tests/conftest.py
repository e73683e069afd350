"""What every test begins with."""

from __future__ import annotations

import gc
import os
import random
import signal
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from reenact.capture.recorder import file
from reenact.capture.runs import crashes
from reenact.capture.runs import run as capture_run
from support.examples import LONG
from support.provider import Provider

pytest_plugins = ["pytester"]

collect_ignore = [] if os.environ.get("REENACT_FRAMEWORKS") else ["frameworks"]
"""Frameworks have environments of their own: `make test-frameworks`."""


# How long an example takes says something of the machine only, and a commit is not to fail for the example of a
# day: `make test` tries the same ones each time, `make test-long` others.
settings.register_profile(
    "suite",
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(
    prefix="reenact-state-"
)  # what tests record is not allowed for good

OTHER_PLUGINS = ("hypothesispytest", "langsmith_plugin", "respx", "platformdirs", "timeout", "anyio")
"""Plugins of pytest that are here for other reasons. A test that starts pytest would wait longer for them than for its own tests."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: what we start would never hear a Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="the seed of the order of the tests; a random one by default")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected: nothing that they are made of is garbage
    if not getattr(config.option, "numprocesses", None):  # its children are not workers of this suite
        os.environ["PYTEST_ADDOPTS"] = " ".join(f"-p no:{name}" for name in OTHER_PLUGINS)
    if config.option.seed is None:
        config.option.seed = getattr(config, "workerinput", {}).get("seed", random.randrange(1_000_000))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["seed"] = node.config.option.seed  # workers of xdist must agree on the order


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files in random order, and the tests in each: fixtures of a file are set up once all the same."""
    if not LONG:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("long")])
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    rng = random.Random(config.option.seed)
    places = {path: rng.random() for path in dict.fromkeys(item.path for item in items)}
    items.sort(key=lambda item: (places[item.path], rng.random()))


def pytest_collection_finish() -> None:
    """Half a million objects are there for good; to look at them in each collection costs half a second."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: tests wait for processes and sockets now and then."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = len(terminalreporter.stats.get("skipped", ()))
    terminalreporter.write_line(
        f"{skipped} skipped; the order of this run again: --seed {config.option.seed}"
    )


@pytest.fixture(autouse=True)
def a_young_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker of the suite begins more runs than a process may announce to its children.

    Hooks that a test set are taken out before its patches are undone, or they would never be set again.
    """
    monkeypatch.setattr(capture_run, "_count_of_runs", 0)
    crashes.remove()  # a fixture of a whole module may have set them before this test
    crashes._previous.clear()
    yield
    crashes.remove()
    crashes._previous.clear()
    if os.path.isdir("/proc/self/fd") and len(os.listdir("/proc/self/fd")) > 300:
        gc.collect()  # recordings that tests have dropped: select() takes no descriptor beyond 1,023


@pytest.fixture(autouse=True)
def a_device_that_never_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine writes slowly now and then, and the note on that would be a step more in a trace.

    Devices that do stall are tried in processes of their own, by tests/crash.
    """
    monkeypatch.setattr(file, "STALL_S", 60.0)


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """The scripted provider, one for each worker of the suite."""
    with Provider() as serving:
        yield serving
