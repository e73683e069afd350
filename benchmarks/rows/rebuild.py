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
    for what, markers in (("moved markers", True), ("plain growth", False)):
        home = folder / what.replace(" ", "-")
        home.mkdir()
        _rebuild(table, home, turns, what, markers, quick)
    table.notes.append(
        f"ours opens the file, finds the step and gives context_at(event); request {turns - 1} of {turns}"
    )
    return table


def _rebuild(table: Table, home: Path, turns: int, what: str, markers: bool, quick: bool) -> None:
    ours, theirs = home / "ours" / "run.jsonl", home / "article.jsonl"
    ours.parent.mkdir()
    recording = feed_tap(ours, agent_run(turns, markers=markers))
    article = available(["article Trace"])[0]["article Trace"](theirs)
    article_recording = feed_baseline(article, agent_run(turns, markers=markers))
    article.close()
    wanted = _last_request(turns, markers)
    step = _step_of_request(ours, turns - 1)
    checks: dict[str, list[Any]] = {}
    rounds = interleave(
        {
            "ours": lambda: min(_by_step(ours, step, checks) for _ in range(5)),
            "by turn": lambda: min(_by_turn(ours, turns - 1, checks) for _ in range(3)),
            "parse every line": lambda: _article(theirs, turns, checks, parse_all=True),
            "skip to the line": lambda: _article(theirs, turns, checks, parse_all=False),
        },
        2,
    )
    spent = {name: min(values) for name, values in rounds.items()}
    for name, budget in (("parse every line", 300), ("skip to the line", None)):
        table.add(
            f"{what}: open, rebuild",
            spent[name] / spent["ours"],
            better="high",
            unit="x faster",
            budget=None if quick else budget,
            ours=us(spent["ours"]),
            against=f"article Trace, {name}",
            theirs=us(spent[name]),
            note=f"by turn:{turns - 1} {us(spent['by turn'])}",
        )
    wrong = {name: _differing(messages, wanted) for name, messages in checks.items()}
    table.add(f"{what}: messages differing from what was sent", sum(wrong.values()), unit="", budget=0)
    table.add(
        f"{what}: recording all {turns} turns, redaction on",
        recording / article_recording,
        ours=us(recording),
        against="article Trace",
        theirs=us(article_recording),
        note=f"{size(ours.stat().st_size)} against {size(theirs.stat().st_size)}; one round",
    )


def _last_request(turns: int, markers: bool) -> list[Any]:
    """Return the messages of request number ``turns - 1``, counted from 1, as they were when sent."""
    seen = 0
    for step in agent_run(turns, markers=markers):
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


def _by_step(path: Path, step: int, checks: dict[str, list[Any]]) -> int:
    from reenact import Recording

    begin = time.process_time_ns()
    recording = Recording.load(path)
    event = recording.at_step(step)
    assert event is not None
    checks["ours"] = recording.context_at(event)
    return time.process_time_ns() - begin


def _by_turn(path: Path, turn: int, checks: dict[str, list[Any]]) -> int:
    from reenact import Recording

    begin = time.process_time_ns()
    recording = Recording.load(path)
    checks["ours, by turn"] = recording.context_at(recording.event(f"turn:{turn}"))
    return time.process_time_ns() - begin


def _article(path: Path, turns: int, checks: dict[str, list[Any]], *, parse_all: bool) -> int:
    """The article's loop: open the file as text, parse line after line, stop at the one."""
    begin = time.process_time_ns()
    seen = 0
    with open(path) as file:
        for line in file:
            event = json.loads(line) if parse_all else None
            kind = event["kind"] if event else "request" if '"kind": "request"' in line[:100] else ""
            if kind == "request":
                seen += 1
                if seen == turns - 1:
                    checks["article"] = (event or json.loads(line))["body"]["messages"]
                    return time.process_time_ns() - begin
    raise AssertionError("no such request")


def _differing(messages: list[Any], wanted: list[Any]) -> int:
    pairs = zip(messages, wanted, strict=False)
    return abs(len(messages) - len(wanted)) + sum(a != b for a, b in pairs)
