"""Giving back one late request whole, against replay loops over the article's full capture of the same run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ..baselines import available
from ..harness import Table, interleave, size, us
from ..ours import feed_baseline, feed_tap
from ..workload import agent_run


def measure(quick: bool, folder: Path) -> Table:
    turns = 200 if quick else 1000
    table = Table("")
    ours, theirs = folder / "ours" / "run.jsonl", folder / "article.jsonl"
    ours.parent.mkdir()
    recording = feed_tap(ours, agent_run(turns))
    article = available(["article Trace"])[0]["article Trace"](theirs)
    article_recording = feed_baseline(article, agent_run(turns))
    article.close()
    wanted = _last_request(turns)
    step = _step_of_request(ours, turns - 1)
    checks: dict[str, Any] = {}
    rounds = interleave(
        {
            "ours": lambda: _by_step(ours, step, checks),
            "by turn": lambda: _by_turn(ours, turns - 1, checks),
            "parse every line": lambda: _article(theirs, turns, checks, parse_all=True),
            "skip to the line": lambda: _article(theirs, turns, checks, parse_all=False),
        },
        2,
    )
    spent = {name: min(values) for name, values in rounds.items()}
    for name in ("parse every line", "skip to the line"):
        table.add(
            f"open, rebuild request {turns - 1} of {turns}",
            spent[name] / spent["ours"],
            better="high",
            unit="x faster",
            ours=us(spent["ours"]),
            against=f"article Trace, {name}",
            theirs=us(spent[name]),
        )
    table.notes.append(f"ours is asked for by its step; by turn:{turns - 1} it takes {us(spent['by turn'])}")
    for name, body in checks.items():
        table.add(
            f"{name}: messages differing from what was sent", _differing(body, wanted), unit="", budget=0
        )
    table.add(
        f"recording all {turns} turns, redaction on",
        recording / article_recording,
        ours=us(recording),
        against="article Trace",
        theirs=us(article_recording),
        note=f"{size(ours.stat().st_size)} against {size(theirs.stat().st_size)}; one round",
    )
    return table


def _last_request(turns: int) -> list[Any]:
    """Return the messages of request number ``turns - 1``, counted from 1, as they were when sent."""
    seen = 0
    for step in agent_run(turns):
        if step.kind == "request":
            seen += 1
            if seen == turns - 1:
                messages: list[Any] = json.loads(json.dumps(step.fields["body"]["messages"]))
                return messages
    raise AssertionError("no such request")


def _step_of_request(path: Path, number: int) -> int:
    """Return the step of the run's request of that number, counted from 1."""
    with open(path, "rb") as file:
        requests = [line for line in file if b'"kind": "model.request"' in line[:200]]
    step: int = json.loads(requests[number - 1])["step"]
    return step


def _by_step(path: Path, step: int, checks: dict[str, Any]) -> int:
    from reenact import Recording

    begin = time.perf_counter_ns()
    event = Recording.load(path).at_step(step)
    checks["ours"] = event.payload["body"] if event is not None else {"messages": []}
    return time.perf_counter_ns() - begin


def _by_turn(path: Path, turn: int, checks: dict[str, Any]) -> int:
    from reenact import Recording

    begin = time.perf_counter_ns()
    checks["ours, by turn"] = Recording.load(path).event(f"turn:{turn}").payload["body"]
    return time.perf_counter_ns() - begin


def _article(path: Path, turns: int, checks: dict[str, Any], *, parse_all: bool) -> int:
    begin = time.perf_counter_ns()
    seen = 0
    with open(path, "rb") as file:
        for line in file:
            event = json.loads(line) if parse_all else None
            kind = event["kind"] if event else "request" if b'"kind": "request"' in line[:100] else ""
            if kind == "request":
                seen += 1
                if seen == turns - 1:
                    checks["article"] = (event or json.loads(line))["body"]
                    return time.perf_counter_ns() - begin
    raise AssertionError("no such request")


def _differing(body: dict[str, Any], wanted: list[Any]) -> int:
    messages = body["messages"]
    pairs = zip(messages, wanted, strict=False)
    return abs(len(messages) - len(wanted)) + sum(a != b for a, b in pairs)
