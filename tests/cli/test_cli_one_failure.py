"""One failure is one error, and a retry recovers only what it recovered: the same figures in every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reenact import Debugger, runs
from support.examples import one_in
from support.forked import type_in
from support.harness import environment
from support.provider import Provider

ASK = """
import sys, httpx
from reenact import Tap

BODY = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}

def ask(scenario, tries):
    for number in range(tries):
        url = sys.argv[1].replace("text", scenario) + "/v1/messages"
        answer = httpx.post(url, json=BODY, headers={"x-stainless-retry-count": str(number)})
        if answer.status_code == 200:
            return answer.json()
    raise RuntimeError(f"Error code: {answer.status_code} - {answer.json()}")

tap = Tap()

@tap.tool
def weigh(item):
    raise ValueError(f"no scale for {item}")
"""
AGENTS: dict[str, tuple[str, int, int]] = {
    "a tool's exception ends the run": ("ask('text', 1)\nweigh('crate')", 1, 0),
    "a tool's exception is wrapped": (
        "try: weigh('crate')\nexcept ValueError as exc: raise RuntimeError('agent failed') from exc",
        1,
        0,
    ),
    "a provider's error ends the run": ("ask('status-529', 1)", 1, 0),
    "four attempts fail and end the run": ("ask('status-529', 4)", 1, 0),
    "the status ends the run": (
        "httpx.post(sys.argv[1].replace('text', 'status-429') + '/v1/messages', json=BODY).raise_for_status()",
        1,
        0,
    ),
    "the status ends the run, and nobody reads the body": (
        "import json, urllib.request as u\n"
        "u.urlopen(sys.argv[1].replace('text', 'status-429') + '/v1/messages', json.dumps(BODY).encode())",
        1,
        0,
    ),
    "two attempts fail, the third succeeds": ("ask('status-429,times-2@again', 3)", 0, 2),
    "a failure is handled, another one ends the run": (
        "try: weigh('crate')\nexcept ValueError: pass\nraise KeyError('crate')",
        2,
        0,
    ),
    "an exception of no call": ("raise KeyError('crate')", 1, 0),
    "a turn fails, another one is retried with success": (
        "try: ask('status-529', 2)\nexcept RuntimeError: pass\nask('status-429,times-1@later', 2)",
        1,
        1,
    ),
}


def typed(folder: Path, *words: object) -> Any:
    return type_in(list(words), folder, environment(REENACT_DIR="runs"))


@pytest.mark.parametrize("agent", one_in(2, AGENTS))
def test_one_failure_is_one_error_in_every_command(agent: str, tmp_path: Path, provider: Provider) -> None:
    source, errors, recovered = AGENTS[agent]
    (tmp_path / "agent.py").write_text(ASK + source + "\n")
    reported = json.loads(
        typed(tmp_path, "run", "--json", "agent.py", provider.url()).stderr.splitlines()[-1]
    )
    figures = {"run": reported["errors"]}
    (row,) = map(json.loads, typed(tmp_path, "ls", "--json").stdout.splitlines())
    figures["ls"] = row["errors"]
    stats = json.loads(typed(tmp_path, "stats", "--json").stdout)
    figures["stats"] = stats["errors"]
    figures["types"] = sum(stats["error_types"].values())
    shown = typed(tmp_path, "show").stdout
    figures["show"] = 1 if "1 error" in shown else 2 if "2 errors" in shown else 0
    (of_many,) = runs(tmp_path / "runs")
    debugger = Debugger.load(tmp_path / row["path"])
    figures["runs()"] = of_many.errors
    figures["summary()"] = debugger.summary().errors
    figures["errors()"] = len(debugger.errors())
    figures["totals"] = debugger.recording.totals.errors
    assert figures == dict.fromkeys(figures, errors)
    assert (stats["retried"], of_many.retried, debugger.summary().retried) == (recovered,) * 3
    text = typed(tmp_path, "stats").stdout
    assert (f"{recovered} recovered by a retry" in text) == bool(recovered)
