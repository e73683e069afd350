"""Running a recorded agent again: what it costs, and what it answers when the agent has changed; beside rivals."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..harness import Table, interleave
from ..wire.provider import provider

AGENT = Path(__file__).resolve().parents[1] / "wire" / "replayed.py"
TAPE = Path(sys.executable).parent / "tape"
TEST = """
import os, sys
import pytest
sys.path.insert(0, {folder!r})
import replayed

@pytest.mark.vcr
def test_agent():
    replayed.main(os.environ["TASK"])
"""
NEEDS = {"reeltime": "reeltime", "vcrpy": "vcr", "pytest-recording": "pytest_recording"}
BUDGET = 1.3
TURNS, FEW_TURNS = 200, 30
"""Rivals that compare and write whole bodies take minutes for the same work."""


class Way:
    """One tool: how it records an agent's program, and how it runs that again."""

    def __init__(self, name: str, url: str, home: Path) -> None:
        self.name = name
        self.url = url
        self.home = home
        self.turns = 200
        home.mkdir()
        (home / "test_agent.py").write_text(TEST.format(folder=str(AGENT.parent)), "utf-8")

    def record(self, task: str, scenario: str = "plan") -> dict[str, Any] | None:
        return self._run(task, scenario, self._command(task, again=False), again=False)

    def replay(self, task: str, scenario: str = "plan", twist: str = "") -> dict[str, Any] | None:
        return self._run(task, scenario, self._command(task, again=True), again=True, twist=twist)

    def _command(self, task: str, *, again: bool) -> list[str]:
        program = [sys.executable, str(AGENT), task]
        if self.name == "reenact":
            if again:
                return [*program[:1], "-m", "reenact", "replay", task, "--keep-going", "--live-tools", "all"]
            return [*program[:1], "-m", "reenact", "run", "--name", task, *program[1:]]
        if self.name == "reeltime":
            tape = [str(TAPE), "--tape-dir", str(self.home / f"tape-{task}")]
            return [*tape, "replay", "last"] if again else [*tape, "run", *program]
        if self.name == "pytest-recording":
            mode = "none" if again else "once"
            return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".",
                    "-c", os.devnull, "test_agent.py", f"--record-mode={mode}"]  # fmt: skip
        return program

    def environment(self, task: str, scenario: str, *, again: bool, twist: str = "") -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        told = {
            "TURNS": str(self.turns),
            "MODEL_URL": f"{self.url}/s/{scenario}",
            "TASK": task,
            "TWIST": twist,
        }
        told |= {"RESULT": str(self.home / "result.json"), "REENACT_DIR": str(self.home / "runs")}
        if self.name == "vcrpy":
            told |= {"VCR": str(self.home / f"{task}.yaml"), "VCR_MODE": "none" if again else "once"}
        return {**kept, **told}

    def _run(
        self, task: str, scenario: str, command: list[str], *, again: bool, twist: str = ""
    ) -> dict[str, Any] | None:
        result = self.home / "result.json"
        result.unlink(missing_ok=True)
        if self.name == "pytest-recording" and not again:  # its cassette has the name of the test
            self._forget_cassettes()
        done = subprocess.run(
            command, cwd=self.home, env=self.environment(task, scenario, again=again, twist=twist),
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        told = json.loads(result.read_text("utf-8")) if result.exists() else None
        return None if told is None else {**told, "exit": done.returncode, "said": done.stdout + done.stderr}

    def _forget_cassettes(self) -> None:
        for old in (self.home / "cassettes").rglob("*.yaml"):
            old.unlink()

    def kept_after_kill(self) -> int:
        """Record three calls, kill the program, and return how many are in what is on disk."""
        self._forget_cassettes()
        result = self.home / "result.json"
        result.unlink(missing_ok=True)
        env = self.environment("killed", "plan", again=False)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        child = subprocess.Popen(
            self._command("killed", again=False), cwd=self.home, env=env, start_new_session=True, **quiet
        )
        while not result.exists() and child.poll() is None:
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        files = [each for each in self.home.rglob("*") if each.is_file() and "killed" in str(each)]
        if self.name == "pytest-recording":
            files = list((self.home / "cassettes").rglob("*.yaml"))
        texts = [each.read_text("utf-8", "replace") for each in files]
        marks = ('"kind": "model.response"', '"type": "llm_response"', '"status"', "status:")
        return min(3, max((text.count(mark) for text in texts for mark in marks), default=0))


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    names = [
        name for name in ("reenact", *NEEDS) if name not in NEEDS or importlib.util.find_spec(NEEDS[name])
    ]
    table.notes += [f"{name} is not installed" for name in NEEDS if name not in names]
    with provider() as url:
        ways = {name: Way(name, url, folder / name) for name in ["bare", *names]}
        _speed(table, ways, ["reenact"], TURNS, 2 if quick else 4)
        _speed(table, ways, names, FEW_TURNS, 1 if quick else 2)
        for name in names:
            _first_event(table, ways[name])
            _changed(table, ways[name])
            table.add(f"{name}: of 3 calls, on disk after SIGKILL", ways[name].kept_after_kill(), unit="")
    table.notes += [
        "CPU time of the agent's process for its turns, without its start; bare is the SDK against the loopback provider",
        "a first event is that of six streams whose events come 20 ms apart: the median, in ms after the request",
        "kept: of six calls those that got their own answers again; wrong: those that got another one's",
    ]
    return table


def _speed(table: Table, ways: dict[str, Way], names: list[str], turns: int, rounds: int) -> None:
    for name in ["bare", *names]:
        ways[name].turns = turns
        if name != "bare":
            ways[name].record("loop", "tools-1000")
    found = interleave({name: lambda name=name: _looped(ways[name]) for name in ["bare", *names]}, rounds)
    least = {name: min((told["cpu"] for told in each if told), default=None) for name, each in found.items()}
    for name in names:
        cpu, bare = least[name], least["bare"]
        table.add(
            f"{name}: {turns} turns replayed, CPU",
            None if cpu is None else cpu / bare,
            budget=BUDGET if name == "reenact" and turns == TURNS else None,
            ours="" if cpu is None else f"{cpu:.2f} s",
            against="bare",
            theirs=f"{bare:.2f} s",
        )


def _looped(way: Way) -> dict[str, Any] | None:
    return (way.record if way.name == "bare" else way.replay)("loop", "tools-1000")


def _first_event(table: Table, way: Way) -> None:
    for what, told in (
        ("recording", way.record("streamed", "plan,drip-20")),
        ("replaying", way.replay("streamed", "plan,drip-20")),
    ):
        value = sorted(told["first_ms"])[3] if told else None
        table.add(f"{way.name}: first event of a stream, {what}", value, unit="ms")


def _changed(table: Table, way: Way) -> None:
    recorded = way.record("six")
    true = recorded["answers"] if recorded else {}
    for twist, new in (("edit", "another question"), ("insert", "one more question")):
        told = way.replay("six", twist=twist)
        got = told["answers"] if told else {}
        kept = sum(got.get(question) == answer for question, answer in true.items())
        wrong = [q for q, answer in got.items() if answer is not None and answer != true.get(q)]
        noticed = "noticed" if told is None or told["exit"] else "exit 0"
        note = f"wrong {len(wrong)}, the new call {'answered' if got.get(new) else 'refused'}, {noticed}"
        table.add(
            f"{way.name}: one {twist}, answers kept", kept, unit=f"of {6 - (twist == 'edit')}", note=note
        )
