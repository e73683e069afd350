"""Processes that a test starts are part of its run: recorded with it, answered with it, and never live."""

from __future__ import annotations

import concurrent.futures.process  # noqa: F401  (as in project.py: a session forgets what it has imported)
import multiprocessing.popen_fork  # noqa: F401
import multiprocessing.popen_spawn_posix  # noqa: F401
import multiprocessing.resource_tracker  # noqa: F401

import pytest

from reenact import Debugger
from support.examples import LONG

METHODS = ["fork", "spawn"] if LONG else ["fork"]
TESTS = (
    f"METHODS = {METHODS}"
    + """
import multiprocessing, os, subprocess, sys
from concurrent.futures import ProcessPoolExecutor

import light, pytest, requests
from light import ask

now = os.environ.get("NOW", "hills")
PROGRAM = "import sys; from light import ask; print(ask(sys.argv[1]))"


def program(*options, **more):
    words = [sys.executable, *options, "-c", PROGRAM, now + " of a program"]
    return subprocess.run(words, capture_output=True, text=True, **more)


def ask_in_worker(text):
    light.session = requests.Session()  # a connection is not to be shared with the process that was forked
    return ask(text)


def test_subprocess(reenact_run):
    assert ask("hills of the test")
    done = program()
    assert done.stdout or "NOW" in os.environ


@pytest.mark.parametrize("method", METHODS)
def test_pool(reenact_run, method):
    ask("hills of the test")
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        assert all(pool.map(ask_in_worker, [f"{now} {number}" for number in range(4)]))
    ask("the test goes on")


@pytest.mark.parametrize("how", ["-I", "other", "none"])
def test_escapes(reenact_run, how):
    ask("hills of the test")
    if "ESCAPES" in os.environ:
        options = {"-I": {}, "other": {"env": {"MODEL_URL": os.environ["MODEL_URL"], "PYTHONPATH": "."}}}
        with pytest.raises(PermissionError) if how != "none" else open(os.devnull):
            program(*[how] if how == "-I" else [], **options.get(how, {}))
"""
)


def contents(project, name: str) -> set[str]:
    events = Debugger.load(project.folder / f"traces/test_children/{name}.jsonl").where(
        event_type="model.request"
    )
    return {event.body["messages"][0]["content"] for event in events}


@pytest.mark.long
def test_processes_of_a_test_are_recorded_answered_and_reported(project) -> None:
    project.write("test_children.py", TESTS)
    count = 4 + len(METHODS)
    assert project("--reenact=rerecord") == {"passed": count}, project.printed
    assert project.called == 2 + 6 * len(METHODS) + 3
    assert contents(project, "test_subprocess") == {"hills of the test", "hills of a program"}
    assert all(len(contents(project, f"test_pool-{method}")) == 6 for method in METHODS)
    before = project.files()

    assert project() == {"passed": count}, project.printed
    assert project.called == 0
    only = ("-k", "subprocess")
    one = {"passed": 1, "deselected": count - 1}
    assert project("--reenact=record-missing", *only) == one
    assert project.called == 0 and project.files() == before

    # A child that asks something else fails the test that started it, though that may not see it.
    assert project("-k", "subprocess or fork", NOW="mountains") == {"failed": 2, "deselected": count - 2}
    assert project.called == 0
    assert "process   " in project.printed and "'hills of a program'" in project.printed
    assert "mountains 0" in project.printed
    # So does one that nothing answers: it asks what was never recorded, or does not load us and is not started.
    assert project("-k", "escapes", ESCAPES="1") == {"failed": 3, "deselected": count - 3}, project.printed
    assert project.called == 0
    assert project.printed.count("refused to run ") >= 2 and "-I -c import sys" in project.printed
    assert "exhausted" in project.printed

    # What is missing goes out, and is kept.
    assert project("--reenact=record-missing", *only, NOW="mountains") == one, project.printed
    assert project.called == 1
    assert contents(project, "test_subprocess") == {"hills of the test", "mountains of a program"}
    assert project(*only, NOW="mountains") == one and project.called == 0
