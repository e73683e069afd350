"""The modes: what goes out, what is written, and when."""

from __future__ import annotations

import os

import pytest

from reenact import Debugger
from support.examples import long

TESTS = """
import os, pytest
from light import ask

def test_ask(reenact_run):
    for text in os.environ.get("TEXTS", "one two three").split():
        assert ask(text)
    assert "FAILS" not in os.environ
    print("final", reenact_run.final)
"""
TRACE = "traces/test_asking/test_ask.jsonl"


def questions(project) -> list[str]:
    events = Debugger.load(project.folder / TRACE).where(event_type="model.request")
    return [event.body["messages"][0]["content"] for event in events]


@pytest.fixture
def recorded(project):
    project.write("test_asking.py", TESTS)
    assert project("--reenact=rerecord") == {"passed": 1} and project.called == 3
    return project


@pytest.mark.parametrize("how", ["--reenact", "REENACT_MODE", "reenact_mode"])
def test_an_unknown_mode_is_reported_at_the_start(project, how: str) -> None:
    project.write("test_asking.py", TESTS)
    if how == "reenact_mode":
        project.write("pytest.ini", "[pytest]\nreenact_mode = once\n")
    project(*(["--reenact=once"] if how == "--reenact" else []), **({how: "once"} if how.isupper() else {}))
    assert project.exit == 4
    assert (
        f"{how}=once: the mode of reenact is one of: replay, record-missing, rerecord, live"
        in project.printed
    )


@pytest.mark.long
def test_an_option_goes_before_the_environment_and_that_before_the_file(recorded) -> None:
    recorded.write("pytest.ini", "[pytest]\nreenact_mode = live\n")
    assert recorded() == {"passed": 1} and recorded.called == 3
    assert recorded(REENACT_MODE="replay") == {"passed": 1} and recorded.called == 0
    assert recorded("--reenact=live", REENACT_MODE="replay") == {"passed": 1} and recorded.called == 3


def test_live_answers_and_writes_nothing(recorded) -> None:
    before = recorded.files()
    assert recorded("--reenact=live", "-s", TEXTS="four five") == {"passed": 1} and recorded.called == 2
    assert "final " in recorded.printed and recorded.files() == before


def test_record_missing_lets_out_what_is_missing_and_then_has_it(recorded) -> None:
    before = recorded.files()
    assert recorded("--reenact=record-missing") == {"passed": 1} and recorded.called == 0
    assert recorded.files() == before
    more = {"TEXTS": "one three four one four"}
    assert recorded("--reenact=record-missing", **more) == {"passed": 1}
    assert (
        recorded.called == 3 and questions(recorded) == more["TEXTS"].split()
    )  # the second one is a call of its own
    assert recorded(**more) == {"passed": 1} and recorded.called == 0
    (recorded.folder / TRACE).unlink()
    assert recorded("--reenact=record-missing") == {"passed": 1} and recorded.called == 3
    assert recorded() == {"passed": 1} and recorded.called == 0


@pytest.mark.parametrize("mode", ["rerecord", long("record-missing")])
def test_a_test_that_fails_leaves_its_trace_alone(recorded, mode: str) -> None:
    before = recorded.files()
    assert recorded(f"--reenact={mode}", TEXTS="four", FAILS="1") == {"failed": 1} and recorded.called == 1
    assert recorded.files() == before


@pytest.mark.long
def test_record_missing_is_refused_in_ci(recorded) -> None:
    recorded("--reenact=record-missing", CI="true")
    assert recorded.exit == 4 and recorded.called == 0
    assert "--reenact=record-missing is refused where CI is set" in recorded.printed
    assert recorded(CI="true") == {"passed": 1} and recorded("--reenact=record-missing", CI="false") == {
        "passed": 1
    }


def test_a_trace_without_content_is_not_written(recorded) -> None:
    before = recorded.files()
    assert recorded("--reenact=rerecord", REENACT_CONTENT="hash") == {"errors": 1}
    assert "REENACT_CONTENT=hash: a trace without content answers nothing" in recorded.printed
    assert recorded.files() == before


LONG = """
import os
import pytest
from light import ask

@pytest.mark.reenact("long.jsonl")
def test_long():
    ask(os.environ["TEXT"] * 20_000, headers={"authorization": "Bearer sk-ant-api03-" + "s3cret" * 12})
    ask("my key is sk-ant-api03-" + "s3cret" * 12)
"""


@pytest.mark.long
def test_blobs_come_and_go_with_the_trace_and_secrets_stay_out(project) -> None:
    project.write("test_long.py", LONG)
    first, second = ({"TEXT": text} for text in ("Rome. ", "Oslo. "))
    assert project("--reenact=rerecord", **first) == {"passed": 1}
    blobs = {name for name in project.files() if ".blobs/" in name}
    assert blobs and project(**first) == {"passed": 1} and project.called == 0
    assert project("--reenact=rerecord", **second) == {"passed": 1}
    assert blobs.isdisjoint(name for name in project.files() if ".blobs/" in name)
    assert project(**second) == {"passed": 1} and project.called == 0, project.printed
    assert not [name for name, data in project.files().items() if b"s3cret" in data]
    assert os.listdir(project.folder / "long.blobs") and not [
        name for name in project.files() if name.endswith(".tmp")
    ]
