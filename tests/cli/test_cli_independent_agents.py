"""Hand-written agents, ten of them by somebody who had not seen how tools are found, and our own.

docs/support.md has the tables, and each row is true.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.examples import long
from support.forked import type_in
from support.pages import DOCS
from support.provider import Provider

OWN = Path(__file__).parents[1] / "support" / "tool_agents"
AGENTS = OWN / "independent"
SHORT = ("shop", "tickets", "retried")
ENDS = {"as recorded": 0, "goes live": 0, "passes": 0, "refused": 2, "diverges": 3}
"""Words of the table, and exit codes."""
ANSWER = "Lisbon has seven hills."


def rows(heading: str) -> dict[str, list[str]]:
    """A table: by agent the cells after its description."""
    section = (DOCS / "support.md").read_text().partition(f"### {heading}\n")[2].partition("\n## ")[0]
    lines = [
        line.strip("| ").split(" | ")
        for line in section.partition("\n### ")[0].splitlines()
        if line.startswith("|")
    ]
    return {cells[0]: cells[2:] for cells in lines[2:]}


ROWS = rows("Hand-written agents") | rows("Our own agents")
LEFT_OUT = ("agent_loop", "looks_around")
"""The loop of the others, and one that prints its stack: that of a replay has frames of ours."""
RAISES = re.compile(r"(ConnectionError)(\(f\"no route)|({})(\[hotel\])")


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


class Place:
    """A folder with one of the agents."""

    def __init__(self, agent: str, folder: Path, provider: Provider) -> None:
        for path in AGENTS.glob(f"{agent}*.py"):
            shutil.copy(path, folder)
        if (OWN / f"{agent}.py").exists():  # its tool book writes a line, too
            counted = r"""(open("effects.txt", "a").write("book\\n") and \1\3)\2\4"""
            (folder / f"{agent}.py").write_text(RAISES.sub(counted, (OWN / f"{agent}.py").read_text()))
            shutil.copy(OWN / "agent_loop.py", folder)
        self.agent, self.folder = agent, folder
        env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "reenact.pytest_plugin"}
        self.env = env | alone | {"MODEL_URL": provider.url("plan")}

    def bare(self) -> str:
        command = [sys.executable, f"{self.agent}.py"]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        done = type_in(words, self.folder, self.env)
        assert "reenact has a bug" not in done.stderr and "could not" not in done.stderr, done.stderr
        return done

    def ran(self) -> int:
        """How many tools ran since the last look."""
        path = self.folder / "effects.txt"
        names = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return len(names)


def test_each_agent_is_in_the_table() -> None:
    theirs = [path.stem for path in AGENTS.glob("*.py") if not path.stem.endswith("_tools")]
    ours = [path.stem for path in OWN.glob("*.py") if path.stem not in LEFT_OUT]
    assert sorted(rows("Hand-written agents")) == sorted(theirs)
    assert sorted(rows("Our own agents")) == sorted(ours)


@pytest.mark.parametrize("agent", [agent if agent in SHORT else long(agent) for agent in ROWS])
def test_an_agent_is_recorded_and_no_tool_runs_again(agent: str, tmp_path: Path, provider: Provider) -> None:
    recorded, raised, *ends, again = ROWS[agent]
    place = Place(agent, tmp_path, provider)
    bare, ran = place.bare(), place.ran()
    first = place.type("run", "--name", "first", f"{agent}.py")
    assert (first.returncode, first.stdout, place.ran()) == (0, bare, ran), first.stderr
    assert f"{recorded} tool uses recorded" in first.stderr
    (path,) = tmp_path.glob(".reenact/*.jsonl")
    events = [json.loads(line) for line in path.read_text().splitlines()]
    called = [each for each in events if each["kind"] == "tool.called"]
    assert len({(each["parent"], each["tool_id"]) for each in called}) == int(recorded.split()[0])
    assert sum("attempt" in each for each in called) == {"trips": 1, "retried": 2}.get(agent, 0)
    errors = [each["error"] for each in events if each["kind"] == "tool.result" and each["error"]]
    assert len(errors) == int(raised) and all(each["frames"][0].startswith(agent) for each in errors)
    turns = sum(each["kind"] == "model.response" for each in events)
    before = len(provider.settled())
    replayed = place.type("replay", "first")
    if replayed.returncode == 0:
        agents = [each for each in called if any(inner.get("within") == each["call"] for inner in called)]
        answered = f"replayed as recorded: {len(called) - len(agents) + turns} calls answered, "
        assert answered + ("tools that ran" if agents else "0 live") in replayed.stderr
        assert replayed.stdout.partition(ANSWER)[0] == bare.partition(ANSWER)[0]
    assert len(provider.settled()) == before
    forked = place.type("fork", "first", "--at", f"turn:{turns}", "--stale-world")
    assert len(provider.settled()) - before == (forked.returncode == 0)  # the request at the cut
    tested = place.type("test", "first", "-o", "tests")
    codes = [done.returncode for done in (replayed, forked, tested)]
    assert codes == [ENDS[end] for end in ends], replayed.stderr + forked.stderr + tested.stderr
    assert place.ran() == int(again)
