"""``reenact stats`` over a folder of runs, start-up included, against parsing every line and no more."""

from __future__ import annotations

import os
from pathlib import Path

from ..harness import Table, interleave, size
from ..ours import feed_tap
from ..workload import agent_run
from .desk import copies
from .reader import _command

TURNS = 20

PARSE_ALL = """
import json, os, sys
for name in os.listdir(sys.argv[1]):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        for line in file:
            json.loads(line)
"""


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    # As installed: modules are compiled once, whatever the environment of this process says.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    runs = 100
    home = folder / "runs"
    home.mkdir()
    for number in range(runs):
        meta = {"environment": "prod" if number % 2 else "dev"}
        feed_tap(home / f"run-{number:05d}.jsonl", agent_run(TURNS), name=f"agent-{number % 5}", meta=meta)
    _compare(table, home, runs, rounds=3 if quick else 7)
    many = folder / "many"
    many.mkdir()
    _many(table, many, 200 if quick else 2_000)
    if not quick:
        _large(table, folder / "large")
    table.notes.append(
        "whole processes, the fastest of the rounds; orjson is installed, the price cache warm"
    )
    return table


def _compare(table: Table, home: Path, runs: int, rounds: int) -> None:
    ours = ["-m", "reenact", "stats", str(home)]
    _command(*ours)  # the first one ever compiles, and looks prices up
    spent = interleave(
        {
            "stats": lambda: _command(*ours),
            "by run": lambda: _command(*ours, "--by", "run", "--json"),
            "parse": lambda: _command("-c", PARSE_ALL, str(home)),
        },
        rounds,
    )
    best = {name: min(cpu for cpu, _, _, _ in results) for name, results in spent.items()}
    walls = {name: min(wall for _, wall, _, _ in results) for name, results in spent.items()}
    codes = {code for results in spent.values() for _, _, _, code in results}
    bytes_read = sum(file.stat().st_size for file in home.glob("*.jsonl"))
    for name, what in (("stats", "reenact stats"), ("by run", "reenact stats --by run --json")):
        table.add(
            f"{what}, {runs} runs of {TURNS} turns",
            best[name] * 1000,
            budget=300 if codes == {0} else None,
            unit="ms CPU",
            against="json.loads of every line, one process",
            theirs=f"{best['parse'] * 1000:.0f} ms",
            note=f"{best[name] / best['parse']:.1f} x of it; {walls[name] * 1000:.0f} ms on the clock; "
            f"{size(bytes_read)}",
        )


def _many(table: Table, home: Path, runs: int) -> None:
    copies(home, runs)
    spent = interleave(
        {
            "stats": lambda: _command("-m", "reenact", "stats", str(home))[0],
            "parse": lambda: _command("-c", PARSE_ALL, str(home))[0],
            "floor": lambda: _command("-m", "benchmarks.floors", "stats", str(home))[0],
        },
        3,
    )
    ours, theirs, floor = (min(spent[who]) for who in ("stats", "parse", "floor"))
    table.add(
        f"reenact stats, {runs:,} runs of {TURNS} turns", ours / theirs, budget=2, floor=floor / theirs, ours=f"{ours:.2f} s",
        against="json.loads of every line, one process", theirs=f"{theirs:.2f} s",
    )  # fmt: skip


def _large(table: Table, home: Path) -> None:
    """One run of several hundred megabytes: memory is that of a small one."""
    home.mkdir()
    path = home / "long.jsonl"
    feed_tap(path, agent_run(1000))
    once = path.read_bytes()
    head, _, body = once.partition(b"\n")
    with open(path, "wb") as file:
        file.write(head + b"\n")
        while file.tell() < 300_000_000:
            file.write(body)
    _, wall, peak, code = _command("-m", "reenact", "stats", str(path))
    table.add(
        f"reenact stats, one file of {size(path.stat().st_size)}: peak memory",
        peak / 1024 if code == 0 else None,
        unit="MB",
        budget=100,
        note=f"{wall:.1f} s, {path.stat().st_size / wall / 1e6:.0f} MB/s",
    )
