"""reenact replay of agents of several processes: one recording answers them all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.examples import LONG, long
from support.forked import type_in
from support.provider import Provider

AGENT = Path(__file__).with_name("processes_agent.py")
METHODS = ("fork", "spawn", "forkserver")
QUICK = ("by_hand", "killed")
ALL = [
    *QUICK,
    *map(
        long,
        (
            "pair",
            "nested",
            "pool-fork",
            "pool-spawn",
            "pool-forkserver",
            *(f"executor-{method}" for method in METHODS),
        ),
    ),
]
TIMES = 20 if LONG else 1
CALLS = {"pair": 6, "by_hand": 6, "nested": 10, "killed": 5, "pool": 12, "executor": 8}
LIVE = ("--live-tools", "lookup")


class Typed:
    """Types commands in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        shutil.copy(AGENT, folder / "agent.py")
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env["MODEL_URL"] = url

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, self.env)


@pytest.mark.parametrize("shape", ALL)
def test_every_process_gets_its_own_answers(shape: str, tmp_path: Path, provider: Provider) -> None:
    typed = Typed(tmp_path, provider.url("plan"))
    first = typed("run", "--name", "first", "agent.py", shape)
    assert first.returncode == 0 and "chatcmpl-" in first.stdout, first.stderr
    before = len(provider.settled())
    for _ in range(TIMES):
        again = typed("replay", "first", *LIVE)
        assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
        reported = f"replayed as recorded: {CALLS[shape.partition('-')[0]]} calls answered"
        assert reported in again.stderr and "Traceback" not in again.stderr
    assert len(provider.settled()) == before
    if shape == "pair":
        _an_edited_prompt_of_one_child_is_named(typed)
    if shape == "pool-fork":
        _a_pool_that_lost_a_worker_does_not_hang(typed)


def _an_edited_prompt_of_one_child_is_named(typed: Typed) -> None:
    agent = typed.folder / "agent.py"
    agent.write_text(agent.read_text().replace('EXTRA = ""', 'EXTRA = "Quickly. "'))
    other = typed("replay", "first", *LIVE, "--keep-going", "--json")
    assert other.returncode == 3
    reported = json.loads(other.stderr.splitlines()[-1])
    changed = [each for each in reported["diverged"] if each["code"] == "changed-request"]
    assert [each["process"].split()[-2:] for each in changed] == [["talk", "b"]]
    never = [each for each in reported["diverged"] if each["code"] == "missing-call"]
    assert len(never) == 2 and reported["answered"] == 4  # both calls of that child, told once
    assert "process   " in typed("replay", "first", *LIVE).stderr


def _a_pool_that_lost_a_worker_does_not_hang(typed: Typed) -> None:
    agent = typed.folder / "agent.py"
    agent.write_text(agent.read_text().replace("Question {name}", "Query {name}"))
    other = typed("replay", "first", *LIVE)  # multiprocessing.Pool would wait for ever for the result
    assert other.returncode == 3 and "changed-request" in other.stderr
