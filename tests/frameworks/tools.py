"""What is recorded of a framework's tools, and how often they run again: measured on one agent per framework.

Its tools are plain functions of the program. The agent runs bare, is recorded by `reenact run`, replayed, forked at
its last model call, and turned into a test. Each tool writes a line to a file, which is read after every step.

`python -m tests.frameworks.tools` (in one of the environments, with REENACT_FRAMEWORKS set) prints the table that
stands in docs/support.md.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sdk import offline
from support.provider import Provider, plan

from .agents.work import EFFECTS
from .play import AGENTS, BARE, RUN, Played, by_case, play, python
from .replay import requests_of, tools_in
from .table import TOOLS_HERE, Case, Framework

CASE = Case("tools", at_once=True)
AGAIN = ("replay", "fork", "test")
HEADER = """\
| package | version | tool calls recorded | with call id | exceptions recorded | tools run in replay, fork, test | same output |
|---|---|---|---|---|---|---|"""


@dataclass
class Measured:
    """One framework."""

    framework: Framework
    called: int
    """How often tools ran while it was recorded, by the file that they write to."""
    recorded: int
    raised: int
    raised_recorded: int
    """Exceptions in the recording with the text and the frame of where they were raised."""
    ids: int
    """Recorded calls with the id, the name and the arguments of a tool use of the model."""
    bare: int
    """How often tools ran bare."""
    again: dict[str, int] = field(default_factory=dict)
    """How often tools ran in each of AGAIN."""
    same: dict[str, bool] = field(default_factory=dict)
    """Whether the program ended as bare and gave the same answer, in each of AGAIN; recorded, all that it printed."""
    live: dict[str, int] = field(default_factory=dict)
    """Requests that the provider got in each of AGAIN."""
    output: dict[str, str] = field(default_factory=dict)

    def row(self) -> str:
        ran = ", ".join(str(self.again[step]) for step in AGAIN)
        cells = [
            self.framework.package,
            version(self.framework.package),
            f"{self.recorded} of {self.called}",
            f"{self.ids} of {self.called}",
            f"{self.raised_recorded} of {self.raised}",
            ran,
            "yes" if all(self.same.values()) else ", ".join(k for k, same in self.same.items() if not same),
        ]
        return f"| {' | '.join(cells)} |"


def measure(framework: Framework, provider: Provider, home: Path, environment: dict[str, str]) -> Measured:
    framework = dataclasses.replace(framework, cases=(CASE,))
    folders = {way: home / f"{framework}-{way}" for way in (BARE, RUN)}
    for folder in folders.values():  # a test is written where the code is
        shutil.copytree(AGENTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    bare, recorded = (
        play(framework, way, provider, folder, environment, folder) for way, folder in folders.items()
    )
    effects = _effects(folders[RUN])
    measured = Measured(
        framework,
        len(effects),
        recorded=len(_of(recorded, "tool.called")),
        raised=effects.count("burn"),
        raised_recorded=sum(map(_has_cause, _of(recorded, "tool.result"))),
        ids=_with_ids(recorded),
        bare=len(_effects(folders[BARE])),
    )
    measured.same["recorded"] = recorded.exit == bare.exit == 0 and _lines(recorded) == _lines(bare)
    measured.output["recorded"] = "\n".join(recorded.stderr)
    for step in AGAIN:
        before = len(requests_of(provider, recorded))
        done = _again(step, framework, recorded, environment)
        begun = len(tools_in(by_case(done.stdout)))  # also where the guard kept it from writing
        measured.again[step] = max(len(_effects(folders[RUN])), begun)
        measured.live[step] = len(requests_of(provider, recorded)) - before
        measured.output[step] = done.stdout + done.stderr
        measured.same[step] = (
            "1 passed" in done.stdout
            if step == "test"
            else done.returncode == 0 and _answers(by_case(done.stdout)) == _answers(bare.printed)
        )
    return measured


def _again(
    step: str, framework: Framework, recorded: Played, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    trace = str(recorded.traces[0])
    command = ["-m", "reenact", step, trace]
    if step == "fork":
        command += ["--at", f"turn:{len(_of(recorded, 'model.response'))}", "--stale-world"]
    if step == "test":
        command += ["-o", "tests"]
    if framework.own_tools:
        command += ["--live-tools", ",".join(framework.own_tools)]
    done = python(command, recorded.folder, environment)
    if step != "test" or done.returncode:
        return done
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "reenact.pytest_plugin"}
    return python(["-m", "pytest", "-q", "tests"], recorded.folder, environment | alone)


def _effects(folder: Path) -> list[str]:
    """The names of the tools that ran since the last look."""
    path = folder / EFFECTS
    names = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return names


def _of(recorded: Played, kind: str) -> list[dict[str, Any]]:
    (path,) = recorded.traces
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return [event for event in events if event["kind"] == kind]


def _with_ids(recorded: Played) -> int:
    turns = [plan.turn(json.loads(each.body), CASE.name) for each in recorded.log[CASE.name]]
    uses = {use.id: (use.name, use.args) for turn in turns for use in turn.tools}
    called = _of(recorded, "tool.called")
    own = [(str(each.get("tool_id")).removeprefix("toolu_"), each) for each in called]
    return sum(uses.get(id) == (each["tool"], each["args"]) for id, each in own)


def _has_cause(result: dict[str, Any]) -> bool:
    error = result["error"] or {}
    while error and error["type"] != "ValueError":  # what a framework or a tool made of it
        error = error.get("cause") or {}
    return "no room in Porto" in error.get("message", "") and error["frames"][0].startswith("work.py:")


def _lines(played: Played) -> list[str]:
    return sorted(line.replace(str(played.folder), "") for line in played.printed[CASE.name])


def _answers(printed: dict[str, list[str]]) -> list[str]:
    """What the program has to say, without the words of its tools and a framework's log."""
    return [line for line in printed[CASE.name] if line.startswith('{"answer"')]


def main() -> None:
    print(HEADER)
    with Provider() as provider, tempfile.TemporaryDirectory() as home:
        environment = offline.environment(Path(home))
        for framework in TOOLS_HERE:
            measured = measure(framework, provider, Path(home), environment)
            print(measured.row(), flush=True)


if __name__ == "__main__":
    main()
