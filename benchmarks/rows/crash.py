"""How many acknowledged events are on disk after SIGKILL: the child is killed by its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

from ..baselines import available
from ..baselines.common import kept
from ..harness import Table
from ..victim import mark

ROOT = Path(__file__).resolve().parents[2]
EVENTS = 200
_serial = count()


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    found, table.notes = available()
    trials = 1 if quick else 4
    for name in ("reenact", *found):
        # Half the trials are killed in the middle of the burst, half right after the last acknowledgement.
        asked = [EVENTS if trial % 2 == 0 else EVENTS // 3 for trial in range(trials)]
        results = [_trial(name, folder, after) for after in asked]
        acknowledged, found_again = (sum(column) for column in zip(*results, strict=True))
        table.add(
            name,
            100 * found_again / acknowledged,
            unit="% kept",
            budget=100 if name == "reenact" else None,
            better="high",
            ours=f"{found_again} of {acknowledged}",
            note=getattr(found.get(name), "remark", ""),
        )
    table.notes.append("the page cache survives SIGKILL, not a power cut; events of 0.3 KB")
    table.notes.append("the suite under tests/ does this with threads, processes, forks and 100,000 events")
    return table


def _trial(name: str, folder: Path, kill_after: int) -> tuple[int, int]:
    """Return (events acknowledged, of those on disk) for one killed child."""
    home = folder / f"crash{next(_serial)}"
    home.mkdir()
    command = [sys.executable, "-m", "benchmarks.victim", name, str(home / "run.jsonl"), str(EVENTS)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    acknowledged = 0
    for _ in child.stdout:
        acknowledged += 1
        if acknowledged >= kill_after:
            break
    os.kill(child.pid, signal.SIGKILL)
    acknowledged += len(child.stdout.readlines())
    child.stdout.close()
    child.wait()
    return acknowledged, kept(home / "run.jsonl", [mark(number) for number in range(acknowledged)])
