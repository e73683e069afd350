"""What ``reenact run`` adds to the start of the agent's interpreter, and to the first import of a library it knows."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
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
    rounds: Any = interleave(contenders, 3 if quick else 9)
    for what in codes:
        for who in list(prefixes)[1:]:
            mine, bare = min(rounds[who, what]), min(rounds["bare", what])
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
    if not tape.exists():
        table.notes.append("reeltime is not installed")
    table.notes.append("CPU time of the agent's own process from its beginning; lowest of the rounds")
    return table


def _probe(prefix: list[str], code: str) -> int:
    command = [*prefix, sys.executable, "-c", PROBE.format(code=code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    line = next(each for each in done.stdout.splitlines() if each.startswith("RESULT "))
    return int(line.split()[1])
