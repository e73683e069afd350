"""A whole agent run, every request, answer and tool call passed to each recorder."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from .. import floors
from ..baselines import available
from ..harness import Table, interleave, us
from ..ours import feed_baseline, feed_tap
from ..workload import agent_run

BUDGET, BUDGET_FAST = 0.35, 0.18
"""With redaction on."""
BESIDES = ["article Trace", "logging + JSON", "loguru serialize", "OTel batch", "Langfuse"]


def measure(quick: bool, folder: Path, libraries: str = "stdlib", budget: float = BUDGET) -> Table:
    turns = 50 if quick else 200
    table = Table("")
    found, table.notes = available(BESIDES)
    contenders: dict[str, Callable[[], int]] = {
        "off": lambda: ours(folder, turns, redact=False),
        "on": lambda: ours(folder, turns, redact=True),
        "floor off": lambda: floor(folder, turns, None),
        "floor on": lambda: floor(folder, turns, floors.search()),
    }
    for name, cls in found.items():
        contenders[name] = lambda cls=cls: theirs(folder, cls, turns)
    spent = {name: min(rounds) for name, rounds in interleave(contenders, 3 if quick else 5).items()}
    article = spent["article Trace"]
    for state in ("off", "on"):
        table.add(
            f"{turns} turns, {libraries}, redaction {state}",
            spent[state] / article,
            budget=None if quick or state == "off" else budget,
            floor=spent[f"floor {state}"] / article,
            ours=us(spent[state]),
            against="article Trace",
            theirs=us(article),
        )
    for name in found:
        if name != "article Trace":
            table.add(
                f"{turns} turns, {libraries}, redaction on",
                spent["on"] / spent[name],
                ours=us(spent["on"]),
                against=name,
                theirs=us(spent[name]),
                note=found[name].remark,
            )
    table.notes.append(
        "CPU time inside recording calls on the caller's thread; whatever drains later is not counted"
    )
    if quick:
        table.notes.append("the budget is for 200 turns; --quick measures 50, where there is less to save")
    return table


_serial = count()


def ours(folder: Path, turns: int, **options: bool) -> int:
    home = folder / f"ours{next(_serial)}"
    home.mkdir()
    return feed_tap(home / "run.jsonl", agent_run(turns), **options)


def floor(folder: Path, turns: int, look: Callable[[bytes], object] | None) -> int:
    return floors.agent_run(folder / f"floor{next(_serial)}.jsonl", agent_run(turns), look)


def theirs(folder: Path, cls: type, turns: int) -> int:
    path = folder / f"theirs{next(_serial)}.jsonl"
    recorder = cls(path)
    spent = feed_baseline(recorder, agent_run(turns))
    recorder.close()
    path.unlink(missing_ok=True)
    return spent
