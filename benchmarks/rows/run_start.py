"""What ``reenact run`` adds to the start of the agent's interpreter, and to the first import of a library it knows."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import sysconfig
from pathlib import Path
from statistics import median
from typing import Any

from ..harness import Table, interleave, us

PROBE = """
{code}
import time
print("RESULT", time.process_time_ns(), flush=True)
"""
SCRIPTS = Path(sysconfig.get_path("scripts"))
LIBRARIES = ("httpx2", "anthropic", "openai")


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    # As installed: modules are compiled once, whatever the environment of this process says.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    tape = SCRIPTS / "tape"
    prefixes = {
        "bare": [],
        "reenact run": [str(SCRIPTS / "reenact"), "run", "--out", str(folder / "runs")],
        **({"tape run": [str(tape), "--tape-dir", str(folder / "tape"), "run"]} if tape.exists() else {}),
    }
    codes = {"pass": "pass", **{name: f"import {name}" for name in LIBRARIES}}
    contenders = {
        (who, what): lambda prefix=prefix, code=code: _probe(prefix, code)
        for what, code in codes.items()
        for who, prefix in prefixes.items()
    }
    rounds: Any = interleave(contenders, 3 if quick else 5)
    for what in codes:
        for who in list(prefixes)[1:]:
            mine, bare = median(rounds[who, what]), median(rounds["bare", what])
            started = f"{who}: start of the interpreter"
            table.add(
                started if what == "pass" else f"{started}, then import {what}",
                (mine - bare) / 1e6,
                unit="ms",
                budget=40 if who == "reenact run" and what == "pass" else None,
                ours=us(mine),
                against="bare",
                theirs=us(bare),
            )
    _whole(table, prefixes, 3 if quick else 5)
    if not tape.exists():
        table.notes.append("reeltime is not installed")
    table.notes.append("CPU time of the agent's own process from its beginning; median of 5")
    return table


def _whole(table: Table, prefixes: dict[str, list[str]], rounds: int) -> None:
    """The whole command with its processes, beyond the program alone."""
    program = [sys.executable, "-c", "pass"]
    contenders = {who: lambda prefix=prefix: _cpu([*prefix, *program]) for who, prefix in prefixes.items()}
    spent: Any = interleave(contenders, rounds)
    for who in list(prefixes)[1:]:
        mine, bare = median(spent[who]), median(spent["bare"])
        table.add(
            f"{who}: the whole command, beyond the program", (mine - bare) / 1e6, unit="ms",
            budget=120 if who == "reenact run" else None, ours=us(mine), against="bare", theirs=us(bare),
        )  # fmt: skip


def _cpu(command: list[str]) -> int:
    """Return the CPU nanoseconds of a program and of all that it has started and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9)


def _probe(prefix: list[str], code: str) -> int:
    command = [*prefix, sys.executable, "-c", PROBE.format(code=code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    line = next(each for each in done.stdout.splitlines() if each.startswith("RESULT "))
    return int(line.split()[1])
