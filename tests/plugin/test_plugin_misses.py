"""A test that leaves its recording fails by itself and alone, and says where, however the miss was met."""

from __future__ import annotations

import re

import pytest

from reenact.testing import write_trace

MISSES = """
import asyncio, os, threading
import pytest
from light import ask
from agent import ask as ask_sdk

now = os.environ.get("NOW", "Hills?")

@pytest.fixture
def undone():
    yield
    print("undone")

def test_plain(reenact_run):
    ask_sdk(now)

def test_caught(reenact_run):
    try:
        ask_sdk(now)
    except BaseException:
        pass

def test_thread(reenact_run):
    threads = [threading.Thread(target=ask, args=(now,))]
    for each in threads: each.start()
    for each in threads: each.join()

def test_group(reenact_run):
    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(ask, now))
    asyncio.run(main())

@pytest.fixture
def before(reenact_run, undone):
    return ask(now)

def test_set_up(before):
    pass

@pytest.mark.xfail("EXPECTED" in os.environ, strict=True, reason="a bug")
def test_expected(reenact_run):
    ask(now)
    assert "EXPECTED" not in os.environ

@pytest.mark.xfail("EXPECTED" in os.environ, strict=True, reason="a bug")
@pytest.mark.reenact("not-there.jsonl")
def test_not_recorded():
    pytest.skip("only looked for") if "EXPECTED" not in os.environ else None

def test_own_failure(reenact_run):
    ask(now)
    assert os.environ.get("NOW") is None, "for a reason of its own"

@pytest.fixture
def after(reenact_run, undone):
    yield
    if "NOW" in os.environ:
        ask("a call too late")

def test_torn_down(undone, after):
    pass

def test_last(reenact_run):
    ask("this one is the same")
"""


def test_a_miss_fails_its_test_and_no_other(project) -> None:
    project.write("test_misses.py", MISSES)
    assert project("--reenact=rerecord") == {"passed": 9, "skipped": 1}, project.printed
    assert project("-k", "expected", EXPECTED="1") == {"xfailed": 1, "deselected": 9}
    counts = {"failed": 6, "errors": 3, "passed": 2}
    assert project("-rA", NOW="Mountains?", EXPECTED="1") == counts, project.printed
    printed = project.printed
    assert project.called == 0 and "INTERNALERROR" not in printed
    assert printed.count("changed-request: This request differs from the recorded one.") >= 6
    assert "made at   light.py:8 in ask" in printed and "made at   agent.py:9 in ask" in printed
    assert "differs at messages[0].content\n    recorded 'Hills?'   from your code" in printed
    assert 'next: pytest "test_misses.py::test_plain" --reenact=rerecord' in printed
    assert "for a reason of its own" not in printed and "there is no recording" in printed
    assert "after that the test failed with BaseExceptionGroup" in printed
    assert "exhausted: All recorded calls are used up" in printed  # the one that came too late
    assert (
        "Captured stdout teardown ---------------------------\nundone" in printed
        and "FAILED test_misses.py::test_plain - changed-request" in printed
    )


UNUSED = """
import os, pytest
from light import ask

@pytest.mark.reenact(allow_unused="ALLOWED" in os.environ)
def test_calls():
    for number in range(int(os.environ.get("TIMES", 3))):
        ask(f"call {number}")

@pytest.mark.reenact
def test_fails_before_the_end():
    ask("one")
    assert "TIMES" not in os.environ
    ask("two")
"""


@pytest.mark.long
def test_recorded_calls_that_were_not_made_fail_the_test(project) -> None:
    project.write("test_unused.py", UNUSED)
    project("--reenact=rerecord")
    assert project(TIMES="1") == {"failed": 2}
    assert "missing-call: 2 recorded calls were never made:\n  step 4: model POST" in project.printed
    assert (
        project.printed.count("missing-call") == 2
    )  # its text, and its line in the summary: the other failed itself
    assert project("-k", "calls", TIMES="1", ALLOWED="1") == {"passed": 1, "deselected": 1}
    assert (
        project("-k", "calls", TIMES="4") == {"failed": 1, "deselected": 1} and "exhausted" in project.printed
    )


GUARDED = """
import os, socket, subprocess, pytest

@pytest.mark.reenact(guard=os.environ.get("GUARD", "connections"))
def test_acts(tmp_path):
    (tmp_path / "mine").write_text("x")
    for act in os.environ.get("ACTS", "").split():
        try:
            if act == "connect": socket.create_connection(("models.invalid", 443), 0.01)
            if act == "write": open("outside", "w").close()
            if act == "start": subprocess.run(["true"])
        except Exception as exc:
            print("caught", exc)
"""


def test_connections_are_refused_and_with_guard_all_files_and_programs_too(project) -> None:
    project.write("test_guarded.py", GUARDED)
    project("--reenact=rerecord")
    assert project(ACTS="write start") == {"passed": 1}
    assert project(ACTS="connect") == {"failed": 1}
    assert "refused to connect to models.invalid (test_guarded.py:9 in test_acts)" in project.printed
    assert project(ACTS="write start", GUARD="all") == {"failed": 1}
    assert "refused to write outside at test_guarded.py:10" in project.printed
    assert "refused to run true at test_guarded.py:11" in project.printed
    assert 'open files and programs to this test with guard="connections"' in project.printed
    assert project(ACTS="connect", GUARD="none") == {"passed": 1}


@pytest.mark.parametrize(
    ("marker", "reported"),
    [
        ("'none.jsonl'", "there is no recording .*none.jsonl\nhint: record it: pytest .*--reenact=rerecord"),
        ("'test_bad.py'", "test_bad.py"),
        ("'ok.jsonl', guard='some'", "guard='some'\nhint: guard is one of: connections, all, none"),
        (
            "'ok.jsonl', live_tools=['nobody']",
            "no tool 'nobody' is known from .*\\nhint: its tools: none; or all",
        ),
        ("'ok.jsonl', hosts='one'", "hosts='one'\nhint: hosts is a list"),
        ("'ok.jsonl', retries=3", "does not take this: .*retries"),
        ("'empty.jsonl'", "empty.jsonl is empty: nothing was recorded in it\nhint: record it: pytest "),
        ("'folder.jsonl'", "folder.jsonl is a folder"),
        ("'later.jsonl'", "version 9.1 of the format.*\nhint: .*remove it to record it again: pytest "),
        (
            "'ok.jsonl')\n@pytest.mark.reenact('other.jsonl'",
            "stands twice at this test\nhint: a test has one",
        ),
        ("5", "does not take this: .*5"),
    ],
)
def test_what_cannot_be_answered_is_reported(
    project, pytester: pytest.Pytester, marker: str, reported: str
) -> None:
    write_trace(project.folder / "ok.jsonl", [])
    project.write("later.jsonl", (project.folder / "ok.jsonl").read_text().replace('"v": "1.', '"v": "9.'))
    project.write("empty.jsonl", "")
    (project.folder / "folder.jsonl").mkdir()
    project.write("test_bad.py", f"import pytest\n@pytest.mark.reenact({marker})\ndef test_bad(): pass\n")
    assert project() == {"errors": 1}
    assert re.search(reported, project.printed), project.printed
    assert "Traceback" not in project.printed and "During handling" not in project.printed
