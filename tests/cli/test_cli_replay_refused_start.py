"""A replay that nothing could answer is not started: the agent would call its model for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.forked import type_in
from support.posting import POST
from support.provider import Provider

AGENT = (
    POST
    + """
import os, pathlib
from reenact import Tap

tap = Tap()

@tap.tool
def act():
    with open(os.environ["DONE"], "a") as file:
        file.write("done ")

ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
post(os.environ["MODEL_URL"] + "/v1/messages", ask)
act()
"""
)


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory, provider: Provider):
    """Types commands in the folder of a recorded agent."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("text"), "ANTHROPIC_API_KEY": "k", "DONE": str(folder / "done")}

    def here(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, folder, env | more)

    here.folder = folder  # type: ignore[attr-defined]
    assert here("run", "--name", "first", "agent.py").returncode == 0
    return here


def untouched(typed, provider: Provider, calls: int) -> bool:
    return (typed.folder / "done").read_text() == "done " and len(provider.settled()) == calls


@pytest.mark.parametrize("verb", [["replay"], ["fork", "--set", "system=x"]])
def test_where_no_run_can_be_written_nothing_is_started(typed, verb, provider: Provider) -> None:
    calls = len(provider.settled())
    trace = min((typed.folder / ".reenact").glob("*-first-*.jsonl"))
    (typed.folder / "file").touch()
    reported = typed(*verb, str(trace), REENACT_DIR=str(typed.folder / "file" / "folder"))
    assert (
        reported.returncode == 2
        and "so nothing was started" in reported.stderr
        and "REENACT_DIR" in reported.stderr
    )
    assert untouched(typed, provider, calls)


def test_a_python_that_passes_us_by_is_not_started(typed, provider: Provider) -> None:
    calls = len(provider.settled())
    for option in ("-I", "-uE"):
        reported = typed("replay", "first", "--", sys.executable, option, "agent.py")
        assert reported.returncode == 2 and f"python {option} does not load reenact" in reported.stderr
    assert untouched(typed, provider, calls)


def test_switched_off_a_replay_is_answered_all_the_same(typed, provider: Provider) -> None:
    calls = len(provider.settled())
    reported = typed("replay", "first", REENACT_OFF="1")
    assert reported.returncode == 0 and "replayed as recorded: 2 calls answered" in reported.stderr
    assert untouched(typed, provider, calls)


def test_a_script_that_is_gone_is_reported_before_anything_runs(typed, tmp_path: Path) -> None:
    trace = min((typed.folder / ".reenact").glob("*-first-*.jsonl"))
    first, rest = trace.read_text().split("\n", 1)
    moved = tmp_path / "moved.jsonl"
    moved.write_text(json.dumps(json.loads(first) | {"cwd": str(tmp_path)}) + "\n" + rest)
    reported = typed("replay", str(moved))
    assert reported.returncode == 2 and reported.stderr.startswith(f"agent.py is not in {tmp_path} any more")


def test_a_trace_with_nonsense_in_its_fields_makes_no_fault_of_ours(typed, tmp_path: Path) -> None:
    trace = min((typed.folder / ".reenact").glob("*-first-*.jsonl"))
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    lines[0]["ts"] = 1e308
    for line in lines[1:]:
        line["headers"] = 5
    bad = tmp_path / "bad.jsonl"
    bad.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reported = typed("test", str(bad), "--no-check", "-o", str(tmp_path))
    assert reported.returncode == 0 and "fault" not in reported.stderr
    assert str(tmp_path / "traces") in reported.stdout
