"""reenact replay of agents of several processes: one recording answers them all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import reenact
from support.examples import LONG, long
from support.forked import type_in
from support.posting import POST
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


PARENT = (
    POST
    + """
import os, subprocess, sys
ask = {"model": "m", "messages": [{"role": "user", "content": "hello from " + sys.argv[-1]}]}
print(post(os.environ["MODEL_URL"] + "/v1/chat/completions", ask)["id"], flush=True)
if sys.argv[-1] != "child":
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""
)
FROM_ELSEWHERE = """
import sys
sys.path.insert(0, sys.argv[1])
from reenact.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


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


def test_a_child_is_answered_if_the_command_is_of_another_installation(
    tmp_path: Path, provider: Provider
) -> None:
    """As a command that pipx has installed is, for an agent whose environment has reenact too."""
    typed = Typed(tmp_path, provider.url("text"))
    (tmp_path / "agent.py").write_text(PARENT)
    first = typed("run", "--name", "first", "agent.py")
    assert first.returncode == 0 and first.stdout.count("chatcmpl-") == 2, first.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "reenact").symlink_to(Path(reenact.__file__).parent)
    command = [sys.executable, "-c", FROM_ELSEWHERE, str(elsewhere), "replay", "first"]
    again = subprocess.run(command, cwd=tmp_path, env=typed.env, capture_output=True, text=True)
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
