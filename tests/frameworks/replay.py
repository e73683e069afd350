"""Run recorded agents again with `reenact replay`, as the programs they are, and keep what they did.

`python -m tests.frameworks.replay` (in one of the environments, with REENACT_FRAMEWORKS set) prints the first table
of docs/support.md.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sdk import offline
from sdk.observe import Plain
from support.provider import Provider

from .agents.work import TOOLS
from .play import RUN, SPANS, Played, by_case, play, python
from .table import HERE, Case, Framework

HEADER = """\
| package | version | agents | as recorded | model calls answered | tool calls answered | live calls |
|---|---|---|---|---|---|---|"""
UNUSABLE = 2
AGENTS = {"find", "reserve"}
"""Tools that call a model: they are part of the agent and run."""
DID = re.compile(r'\{"tool": "(\w+)", "args": ')
ANSWERED = re.compile(rf'\{{"tool": "({"|".join((*TOOLS, "insist"))})", "args": .*\n')
"""What a tool says, which some frameworks' own output stands before in the line."""


def tools_in(printed: dict[str, list[str]]) -> list[str]:
    """The names of the tools that say they did something."""
    return [name for lines in printed.values() for line in lines for name in DID.findall(line)]


@dataclass(frozen=True)
class Replayed:
    """One replay of a script, and the one before it that was given no leave for tools."""

    refused: subprocess.CompletedProcess[str] | None
    """The replay without `--live-tools`, if it was not begun."""
    allowed: tuple[str, ...]
    """The tools that it named, which then got leave to run."""
    exit: int
    printed: dict[str, list[str]]
    stderr: list[str]
    report: dict[str, Any]
    live_calls: int
    """What the provider received meanwhile, the frameworks' own reports apart."""
    port: int

    def went_as(self, recorded: Played, case: Case) -> bool:
        """True if a case said the same; what a tool would say that was answered is left out."""
        first, again = recorded.printed[case.name], self.printed.get(case.name, [])
        first = ANSWERED.sub("", "".join(f"{line}\n" for line in first)).splitlines()
        both = [[Plain(self.port).text(line) for line in lines] for lines in (first, again)]
        return sorted(both[0]) == sorted(both[1]) if case.at_once else both[0] == both[1]

    @property
    def tools_executed(self) -> list[str]:
        """The names of the tools that did their work again."""
        return tools_in(self.printed)

    def is_as(self, recorded: Played, framework: Framework) -> bool:
        """True if it ended as the recorded program did, every case said the same, and every call was answered."""
        equal = [self.went_as(recorded, case) for case in framework.cases]
        refused = [each for each in self.report["refused"] if each["by"] == "agent"]
        clean = not refused and not any(self.report[name] for name in ("diverged", "unknown", "doubts"))
        return (
            self.exit == recorded.exit
            and all(equal)
            and clean
            and self.report["answered"] == len(to_answer(recorded))
            and not self.live_calls
        )

    def row(self, recorded: Played, framework: Framework) -> str:
        """The row of the table in docs/support.md."""
        kinds = [call.kind for call in to_answer(recorded)]
        same = sum(self.went_as(recorded, case) for case in framework.cases)
        missed = len(kinds) - self.report["answered"]
        cells = [
            framework.package,
            version(framework.package),
            len(framework.cases),
            same,
            kinds.count("model"),
            kinds.count("tool") if not missed else f"{kinds.count('tool')}, {missed} calls not answered",
            self.live_calls,
        ]
        return f"| {' | '.join(map(str, cells))} |"


def to_answer(recorded: Played) -> list[Any]:
    """The recorded calls that a replay answers: not the own work of a tool that does not run."""
    calls = [call for call in recorded.calls if not call.derived and call.tool not in AGENTS]
    answered = {call.id for call in calls if call.kind == "tool"}
    return [call for call in calls if answered.isdisjoint((call.parent, call.begin.within))]


def replay(played: Played, provider: Provider, environment: dict[str, str]) -> Replayed:
    before = len(requests_of(provider, played))
    words = ["-m", "reenact", "replay", str(played.traces[0]), "--json"]
    done = first = python(words, played.folder, environment)
    refused, allowed = None, ()
    if first.returncode == UNUSABLE:
        refused, allowed = first, tuple(first.stderr.rpartition("--live-tools ")[2].split()[0].split(","))
        done = python([*words, "--live-tools", ",".join(allowed)], played.folder, environment)
    stderr = done.stderr.splitlines()
    report = json.loads(stderr[-1])
    live = len(requests_of(provider, played)) - before
    return Replayed(
        refused, allowed, done.returncode, by_case(done.stdout), stderr, report, live, provider.port
    )


def requests_of(provider: Provider, played: Played) -> list[str]:
    targets = [each.target for each in list(provider.log)]
    return [target for target in targets if f"@{played.name}." in target and SPANS not in target]


def main() -> None:
    print(HEADER)
    with Provider() as provider, tempfile.TemporaryDirectory() as home:
        environment = offline.environment(Path(home))
        for framework in HERE:
            folder = Path(home, f"{framework}")
            folder.mkdir()
            recorded = play(framework, RUN, provider, folder, environment)
            again = replay(recorded, provider, environment)
            print(again.row(recorded, framework), flush=True)


if __name__ == "__main__":
    main()
