"""Run the agents of a script as the program they are, and keep what they printed, sent and left behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reenact import Debugger
from sdk.observe import Plain
from support.provider import Provider, Received

from .table import Case, Framework

AGENTS = Path(__file__).parent / "agents"
WRAPPING = Path(__file__).parent / "wrapping.py"
DECORATING = Path(__file__).parent / "decorating.py"
SPANS = "/traces/ingest"
"""Where a framework sends reports of its own, full of times."""
BARE, RUN, WRAPPED, DECORATED = "bare", "run", "wrapped", "decorated"
QUIET = {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}
"""What keeps the frameworks' own reports on this machine."""


@dataclass(frozen=True)
class Played:
    """One run of a script: all its cases, one after another."""

    exit: int
    printed: dict[str, list[str]]
    """The lines of each case on standard output."""
    stderr: list[str]
    """The lines on standard error."""
    log: dict[str, list[Received]]
    """What the provider received, by case."""
    port: int
    traces: list[Path]

    name: str
    """Of this play, as it stands in its URLs."""
    folder: Path
    """Where it was played."""

    def requests(self, case: Case) -> list[dict[str, Any]]:
        """What a case sent, as JSON; which connection took it is left to the pool."""
        sent = Plain(self.port).requests([each for each in self.log[case.name] if SPANS not in each.target])
        sent = [{name: value for name, value in each.items() if name != "connection"} for each in sent]
        sent = [{**each, "line": each["line"].replace(self.name, "<play>")} for each in sent]
        return sorted(sent, key=lambda each: str(each["body"])) if case.at_once else sent

    def lines(self, case: Case) -> list[str]:
        lines = [Plain(self.port).text(line) for line in self.printed[case.name]]
        return sorted(lines) if case.at_once else lines

    def tools(self, case: Case) -> list[dict[str, Any]]:
        """What the tools of a case say they did."""
        reports = [json.loads(line) for line in self.printed[case.name] if line.startswith('{"tool"')]
        return sorted(reports, key=json.dumps) if case.at_once else reports

    @cached_property
    def calls(self) -> list[Any]:
        """Every call of its trace."""
        return Debugger.load(self.traces[0]).calls()

    def is_of(self, case: Case, url: str) -> bool:
        return f"@{self.name}.{case.name}/" in url


def play(
    framework: Framework,
    way: str,
    provider: Provider,
    folder: Path,
    environment: dict[str, str],
    agents: Path = AGENTS,
) -> Played:
    name = f"{framework.name}.{way}"
    words = [f"{case.name}={provider.url(f'{case.words}@{name}.{case.name}')}" for case in framework.cases]
    run = ["-m", "reenact", "run", "--strict-coverage", "--out", "runs"]
    before = {
        BARE: [],
        RUN: run,
        WRAPPED: [str(WRAPPING), str(folder / "runs" / "wrapped.jsonl")],
        DECORATED: [*run, str(DECORATING)],
    }[way]
    done = python([*before, str(agents / framework.script), *words], folder, environment)
    traces = sorted((folder / "runs").glob("*.jsonl"))
    log = {case.name: _received(provider, f"@{name}.{case.name}/") for case in framework.cases}
    stderr = done.stderr.splitlines()
    return Played(done.returncode, by_case(done.stdout), stderr, log, provider.port, traces, name, folder)


def python(words: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a Python in a folder that is its home."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**_without_ours(environment), **QUIET, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        timeout=200,
    )


def _received(provider: Provider, mark: str) -> list[Received]:
    """What came to one case; its answers are over, or will be in a moment."""
    found = [each for each in provider.log if mark in each.target]
    while not all(each.over for each in found):
        time.sleep(0.01)
    return found


def _without_ours(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith("REENACT_")}


def by_case(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"": []}
    for line in text.splitlines():
        if line.startswith('{"case"'):
            found[json.loads(line)["case"]] = []
        else:
            found[list(found)[-1]].append(line)
    return found
