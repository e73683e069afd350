"""A test recorded once and answered ever after: any SDK, any kind of test, nothing left behind."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

import reenact
from reenact.capture import replay_hook
from reenact.capture.runs import current, location
from reenact.capture.seams import install
from reenact.playback.replay import side_effect_guard
from support.project import QUICK

KINDS = """
import asyncio, os, threading, unittest
import openai, pytest, reenact
from agent import agent, ask
from light import ask as ask_lightly
from reenact.testing import assert_trajectory

other = openai.AsyncOpenAI(base_url=os.environ["MODEL_URL"] + "/v1", api_key="k", max_retries=0)

@pytest.mark.reenact("trip.jsonl", live_tools=["lookup"])
def test_agent(reenact_run):
    text = agent("Hills?")
    assert reenact_run.final == text
    assert reenact_run.tools == ["lookup", "lookup"]
    assert_trajectory(reenact_run, ["lookup", "lookup"])
    assert reenact_run.run.count(event_type="model.response") == 3
    if reenact_run.mode == "replay":
        assert reenact_run.recorded.count() == reenact_run.run.count()
    assert reenact_run.divergences == []

async def streamed(number):
    messages = [{"role": "user", "content": f"Hill {number}?"}]
    async for _ in await other.chat.completions.create(model="m", messages=messages, stream=True):
        pass

@pytest.fixture
def anyio_backend():
    return "asyncio"

@pytest.mark.anyio
async def test_async(reenact_run):
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(streamed(number))

@pytest.mark.parametrize("city", ["rome", "a b/c"])
@pytest.mark.reenact
def test_each(city):
    thread = threading.Thread(target=ask, args=(city,))
    thread.start()
    thread.join()

@pytest.mark.reenact
class TestOld(unittest.TestCase):
    def test_it(self):
        assert ask_lightly("old")

class TestOuter:
    class TestOld:  # another one of that name
        def test_it(self, reenact_run):
            assert ask_lightly("new")

@pytest.fixture
def answer():
    return ask("from a fixture")

@pytest.mark.reenact
def test_fixture_of_its_own(answer):
    assert answer.content

@reenact.run
def inner():
    return ask("a run of its own")

def test_run_inside(reenact_run):
    inner()
    assert reenact_run.final
"""


def test_tests_of_every_kind_are_answered(project) -> None:
    project.write("test_kinds.py", KINDS)
    assert project("--reenact=rerecord") == {"passed": 8} and project.called == 12
    traces = {str(path.relative_to(project.folder)) for path in project.folder.rglob("*.jsonl")}
    assert {
        "trip.jsonl",
        "traces/test_kinds/test_each-rome.jsonl",
        "traces/test_kinds/TestOld.test_it.jsonl",
        "traces/test_kinds/TestOuter.TestOld.test_it.jsonl",
    } < traces
    assert len(traces) == 8 and not (project.folder / ".reenact").exists()
    before = project.files()
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens there
        gone = f"http://127.0.0.1:{held.getsockname()[1]}/s/tools-2"
        assert project("-W", "error", MODEL_URL=gone) == {"passed": 8}, project.printed
    assert project.called == 0
    assert project.files() == before


LEFT = """
import os, pytest
from light import ask

def test_one(reenact_run):
    assert ask("one")

def test_two(reenact_run):
    assert ask("two")
"""


WEATHER = """
import os, pytest, requests

@pytest.mark.reenact(record_http="all")
def test_weather():
    answer = requests.post(os.environ["MODEL_URL"] + "/weather?city=rome", data=b"today")
    assert answer.status_code == 404 and answer.content
"""


def test_other_servers_are_answered_if_they_were_recorded(project) -> None:
    project.write("test_weather.py", WEATHER)
    assert project("--reenact=rerecord") == {"passed": 1}, project.printed
    assert project.called == 1
    assert project() == {"passed": 1} and project.called == 0, project.printed


def test_nothing_is_left_of_it(project) -> None:
    project.write("test_left.py", LEFT)
    project("--reenact=rerecord")
    environment = dict(os.environ)
    assert project() == {"passed": 2}
    assert replay_hook.responder is None and current.only is None and install.seams is None
    assert side_effect_guard._active is None and not location.replaying
    assert dict(os.environ) == environment


def test_seams_that_were_there_before_go_on(project) -> None:
    project.write("test_left.py", LEFT)
    project("--reenact=rerecord")
    reenact.install()
    try:
        seams = install.seams
        with reenact.run("around", path=str(project.folder / "around.jsonl")):
            assert project() == {"passed": 2} and project.called == 0
            assert install.seams is seams
            sys.modules.pop("light", None)
            from light import ask

            assert ask("afterwards")
    finally:
        reenact.uninstall()
    requests = reenact.Debugger.load(project.folder / "around.jsonl").where(event_type="model.request")
    assert [event.body["messages"][0]["content"] for event in requests] == ["afterwards"]


@pytest.mark.long
def test_below_reenact_run_with_two_workers(project) -> None:
    project.write(
        "test_left.py",
        LEFT
        + "\n@pytest.mark.reenact('traces/test_left/test_one.jsonl')\ndef test_same():\n    ask('one')\n",
    )
    assert project("--reenact=rerecord") == {"passed": 3}
    done = project.apart(
        "reenact", "run", "--out", "runs", sys.executable, "-m", "pytest", "-q", "-n", "2", *QUICK
    )
    assert "3 passed" in done.stdout and done.returncode == 0, done.stdout + done.stderr
    assert project.called == 0 and "warning" not in done.stdout


def test_without_the_plugin_there_is_none(project) -> None:
    project.write("test_off.py", "def test_off(reenact_run): pass")
    assert project("-p", "no:reenact") == {"errors": 1}
    assert "fixture 'reenact_run' not found" in project.printed


def test_loading_the_plugin_loads_nothing_else() -> None:
    code = "import sys, pytest; import reenact.pytest_plugin; print(*[n for n in sys.modules if n.startswith('reenact')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["reenact", "reenact.pytest_plugin"]


def test_the_modes_are_those_there_are() -> None:
    from reenact.pytest_plugin import MODES
    from reenact.testing import reenactment

    assert MODES == reenactment.MODES


@pytest.mark.parametrize("name", ["guard", "hosts", "record_http", "live_tools", "allow_unused"])
def test_every_argument_of_the_marker_is_listed_by_pytest_markers(name: str) -> None:
    from reenact.pytest_plugin import _MARKER

    assert name in _MARKER
