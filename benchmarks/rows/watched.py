"""What a function pays for being watched as a tool, while it is called for something else."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from reenact.capture.calls.open_calls import OpenUse, calls_of, open_uses
from reenact.capture.front.options import Options
from reenact.capture.recorder.recorder import begin_run
from reenact.capture.tools.watching import unwatch_all, watch
from reenact.wire.neutral import ToolUse

from ..harness import Table

BUDGET_US = 0.5


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    calls = 1_000_000 if quick else 10_000_000
    recorder = begin_run(str(folder / "run.jsonl"), Options())
    other = OpenUse(calls_of(recorder), "call", ToolUse("t1", "other", {}))
    other.recorder = recorder
    for what, uses in (("no tool use open", []), ("a use of another tool open", [other])):
        open_uses.extend(uses)
        bare, watched = _spent(calls)
        open_uses.clear()
        table.add(
            f"one call of a watched function, {what}",
            (watched - bare) / calls * 1e6,
            unit="µs",
            budget=BUDGET_US,
            ours=f"{watched / calls * 1e9:.0f} ns",
            against="the same function bare",
            theirs=f"{bare / calls * 1e9:.0f} ns",
        )
    recorder.close("ok")
    table.notes.append(f"CPU time of {calls:,} calls in ten rounds, bare and watched in turn")
    return table


def _spent(calls: int) -> tuple[float, float]:
    """Return the CPU seconds of these calls, bare and watched; half of them each way in turn."""
    spent = [0.0, 0.0]
    for _ in range(10):
        for way, is_watched in enumerate((False, True)):
            function: Any = _made()
            if is_watched:
                assert watch(function, "lookup") == ""
            began = time.process_time()
            for number in range(calls // 10):
                function(number, 2)
            spent[way] += time.process_time() - began
            unwatch_all()
    return spent[0], spent[1]


def _made() -> Any:
    def lookup(city: object, days: int) -> object:
        return city

    return lookup
