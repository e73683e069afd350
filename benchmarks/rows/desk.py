"""Commands on many and on large files against what everybody knows: their own smaller run, GNU grep, a bare file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from ..harness import Table, interleave, size, us
from ..ours import ReenactTrace, feed_tap
from ..workload import agent_run, payloads
from .growth import record_shape
from .reader import LAUNCHER, _command

WORD = "zebraquux"
"""Stands in no file: everything is searched."""


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    _show_all(table, folder / "turns", (80, 400) if quick else (400, 2_000))
    _closed_run(table, folder / "closed", 40 if quick else 1_000)
    _grep(table, folder / "grep", 20 if quick else 1_000, 200 if quick else 2_000)
    _begin(table, folder / "begun", 200)
    table.notes.append(
        "CPU time; commands as whole processes; ratios of the lowest rounds, times as median of 5"
    )
    return table


def _show_all(table: Table, home: Path, turns: tuple[int, int]) -> None:
    home.mkdir()
    shapes: dict[str, Callable[[Path, int], object]] = {
        "plain growth": lambda path, count: list(record_shape("plain growth", path, count)),
        "two conversations, moved markers": lambda path, count: feed_tap(path, agent_run(count)),
    }
    for name, record in shapes.items():
        paths = [home / f"{name}-{count}.jsonl" for count in turns]
        for path, count in zip(paths, turns, strict=True):
            record(path, count)
        few, many = (
            min(_command("-m", "reenact", "show", "--all", str(path))[0] for _ in range(2)) for path in paths
        )
        table.add(
            f"show --all, {name}: {turns[1]:,} turns",
            many / few,
            budget=6,
            ours=f"{many:.2f} s",
            against=f"{turns[0]} turns",
            theirs=f"{few:.2f} s",
        )


def _closed_run(table: Table, home: Path, megabytes: int) -> None:
    """One run of notes in four segments, of which only the last line holds sums."""
    home.mkdir()
    recorder = ReenactTrace(home / "run.jsonl", redact=False, segment_bytes=megabytes * 1_000_000 // 4)
    (fields,) = payloads(100_000, 1)
    for _ in range(megabytes * 10):
        recorder.record("note", fields)
    recorder.close()
    cpu, _, peak, code = sorted(_command("-m", "reenact", "ls", str(home)) for _ in range(5))[2]
    total = sum(file.stat().st_size for file in home.iterdir())
    table.add(
        f"ls, one closed run of {size(total)} in segments",
        cpu if code == 0 else None,
        unit="s CPU",
        budget=0.3,
        note=f"peak {peak / 1024:.0f} MB",
    )


def _grep(table: Table, home: Path, megabytes: int, runs: int) -> None:
    gnu = shutil.which("grep")
    if gnu is None:
        table.notes.append("there is no grep here")
        return
    one, many = home / "one", home / "many"
    one.mkdir(parents=True)
    many.mkdir()
    feed_tap(one / "run.jsonl", agent_run(200))
    head, _, body = (one / "run.jsonl").read_bytes().partition(b"\n")
    with open(one / "run.jsonl", "wb") as file:
        file.write(head + b"\n")
        while file.tell() < megabytes * 1_000_000:
            file.write(body)
    copies(many, runs)
    for place, what, budget in (
        (one, f"one file of {megabytes} MB", 4),
        (many, f"{runs:,} runs of 20 turns", 15),
    ):
        spent = interleave(
            {
                "ours": lambda place=place: _command("-m", "reenact", "grep", WORD, str(place))[0],
                "gnu": lambda place=place: _bare(gnu, "-rc", WORD, str(place)),
                "floor": lambda place=place: _command("-m", "benchmarks.floors", "grep", WORD, str(place))[0],
            },
            5,
        )
        ours, theirs, floor = (min(spent[who]) for who in ("ours", "gnu", "floor"))
        table.add(
            f"grep, {what}", ours / theirs, budget=budget, floor=floor / theirs, ours=f"{ours:.2f} s", against="GNU grep",
            theirs=f"{theirs:.3f} s",
        )  # fmt: skip


def copies(home: Path, runs: int, turns: int = 20) -> None:
    """Make many runs out of a few that are recorded, each with an id of its own."""
    made: list[tuple[bytes, bytes]] = []
    for number in range(runs):
        path = home / f"run-{number:05d}.jsonl"
        if number < 40:
            feed_tap(path, agent_run(turns), name=f"agent-{number % 5}")
            data = path.read_bytes()
            made.append((data, json.loads(data.partition(b"\n")[0])["run"].encode()))
        else:
            data, run = made[number % len(made)]
            path.write_bytes(data.replace(run, b"%032x" % number))


def _bare(*command: str) -> float:
    """Return the CPU seconds of another program."""
    launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, *command]
    return float(json.loads(subprocess.run(launch, capture_output=True, text=True, check=True).stdout)[0])


def _begin(table: Table, home: Path, runs: int) -> None:
    """Begin a run and record one event, against creating a file and writing as many lines."""
    home.mkdir()
    clock = time.thread_time_ns

    def ours() -> int:
        path = home / f"{os.urandom(8).hex()}.jsonl"
        begin = clock()
        recorder = ReenactTrace(path)
        recorder.record("note", {"number": 1})
        spent = clock() - begin
        recorder.close()
        return spent

    def bare() -> int:
        path = home / f"{os.urandom(8).hex()}.jsonl"
        begin = clock()
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(fd, b"x" * 200)
        os.write(fd, b"x" * 120)
        spent = clock() - begin
        os.close(fd)
        return spent

    spent = interleave({"ours": ours, "bare": bare}, runs)
    mine, theirs = median(spent["ours"]), median(spent["bare"])
    table.add(
        "begin a run, with its first event",
        mine / 1e6,
        unit="ms",
        budget=0.3,
        ours=us(mine),
        against="a new file, two writes",
        theirs=us(theirs),
        note=f"{us(mine - theirs)} beyond the file itself",
    )
