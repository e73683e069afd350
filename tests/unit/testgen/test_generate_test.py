"""reenact.generate_test: tests from recorded runs, from Python, with a real agent and the scripted provider."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import reenact
from reenact.errors import NoSuchRun, UsageError
from reenact.testgen import literals
from support.forked import type_in
from support.provider import Provider

AGENT = """
import json, os, sys, urllib.request
import reenact

@reenact.run
def plan(city):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"Plan {city}"}]}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as found:
        text = json.load(found)["content"][0]["text"]
    if city == "Atlantis":
        raise LookupError(city)
    return text

for city in sys.argv[1:] if __name__ == "__main__" else ():
    try:
        plan(city)
    except LookupError:
        pass
"""


@pytest.fixture
def recorded(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an agent and two runs of its function, one of them failed."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REENACT")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MODEL_URL", provider.url("text"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "reenact.pytest_plugin")
    (tmp_path / "trip.py").write_text(AGENT)
    done = type_in(("run", "--name", "all", "trip.py", "Rome", "Atlantis"), tmp_path, dict(os.environ))
    assert done.returncode == 0, done.stderr
    return tmp_path


def _run_of(city: str) -> Path:
    return next(path for path in Path(".reenact").glob("*plan*.jsonl") if f"Plan {city}" in path.read_text())


def test_a_test_is_written_and_reported_and_nothing_is_printed(
    recorded: Path, capfd: pytest.CaptureFixture[str], provider: Provider
) -> None:
    before = len(provider.settled())
    test = reenact.generate_test(_run_of("Rome"), output=Path("tests"))
    assert test.passes is True and "1 passed" in test.verdict
    assert test.paths == ("tests/test_plan.py", "tests/traces/test_plan/test_plan.jsonl")
    assert [(case.name, case.kind, case.blame, case.live) for case in test.cases] == [
        ("test_plan", "code", None, [])
    ]
    assert (test.notes, test.skipped) == ((), ())
    assert capfd.readouterr() == ("", "") and len(provider.settled()) == before
    assert 'plan(city="Rome")' in Path(test.paths[0]).read_text()
    with pytest.raises(dataclasses.FrozenInstanceError):
        test.passes = False  # type: ignore[misc]
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", test.paths[0]]
    assert "1 passed" in subprocess.run(command, capture_output=True, text=True, check=True).stdout

    same = type_in(("test", str(_run_of("Rome")), "--json"), recorded, dict(os.environ))
    assert json.loads(same.stdout) | {"verdict": ""} == test.as_dict() | {"verdict": ""}


def test_recordings_addresses_and_folders_make_one_file(recorded: Path) -> None:
    runs = [reenact.Recording.load(_run_of("Rome")), "plan"]  # the newest plan is the failed one
    test = reenact.generate_test(runs, output="tests/test_both.py", check=False)
    assert [case.name for case in test.cases] == ["test_plan", "test_plan_2"] and test.passes is None
    folder = reenact.generate_test(".reenact", output="tests/test_folder.py", check=False)
    assert {case.name for case in folder.cases} == {"test_plan", "test_plan_2"}
    assert folder.skipped == ("all did everything in runs inside it, which get tests of their own",)
    [failed] = reenact.generate_test(failed=True, output="tests/test_failed.py", check=False).cases
    assert failed.blame is not None and failed.blame.who == "code" and "LookupError" in failed.blame.why


def test_what_makes_no_test_raises_and_writes_nothing(recorded: Path) -> None:
    with pytest.raises(NoSuchRun):
        reenact.generate_test("nobody")
    with pytest.raises(UsageError, match="kind='codes'"):
        reenact.generate_test("plan", kind="codes")
    with pytest.raises(UsageError, match="samples=0"):
        reenact.generate_test("plan", samples=0)
    with pytest.raises(UsageError, match="live_tools"):
        reenact.generate_test("plan", live_tools="all")
    with pytest.raises(UsageError, match="no tool was called in plan"):
        reenact.generate_test("plan", kind="tool")
    with pytest.raises(UsageError, match="none of 2 runs makes a test: no tool was called in plan; no tool"):
        reenact.generate_test([_run_of("Rome"), _run_of("Atlantis")], kind="tool")
    (recorded / "trip.py").write_text(AGENT.replace("Plan {city}", "Visit {city}"))
    with pytest.raises(UsageError, match="diverges from its recording") as caught:
        reenact.generate_test(_run_of("Rome"))
    assert "reenact replay" in str(caught.value.hint)
    assert not (recorded / "tests").exists()


@pytest.mark.parametrize("city", ["Rome')\n    open('executed', 'w'", "__import__('os')", "(lambda: 0)()"])
def test_a_module_that_would_hold_code_of_a_trace_is_not_written(recorded, city, monkeypatch) -> None:
    """The escaping is broken on purpose: what is written is looked at once more."""
    path = _run_of("Rome")
    path.write_text(path.read_text().replace('{"city":"Rome"}', json.dumps({"city": city})))
    done = reenact.generate_test(path, check=False, output="tests/test_escaped.py")
    assert repr(city)[1:-1] in Path(done.paths[0]).read_text().replace('\\"', '"')
    monkeypatch.setattr(literals, "quoted", lambda text: text if text == city else json.dumps(text))
    with pytest.raises(UsageError, match="the test would (hold code that comes from|not be Python)"):
        reenact.generate_test(path, check=False, output="tests/test_broken.py")
    assert not Path("tests/test_broken.py").exists()
