"""Reading back: offsets against ``wc -l``, one event out of many, and the two commands one types first."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from ..harness import Table, interleave, percentile, size, us
from ..ours import ReenactTrace, feed_tap
from ..workload import Conversation, Step, Text, payloads

# A launcher of its own: a child's peak memory counts what its parent held when it was started.
LAUNCHER = """
import json, os, sys, time
begin = time.perf_counter()
null = os.open(os.devnull, os.O_RDWR)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
_, status, usage = os.wait4(pid, 0)
wall, cpu = time.perf_counter() - begin, usage.ru_utime + usage.ru_stime
print(json.dumps([cpu, wall, usage.ru_maxrss, os.waitstatus_to_exitcode(status)]))
"""


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    _offsets(table, folder / "mixed", 4_000 if quick else 30_000)
    _passes(table, folder / "calls", 5_000 if quick else 25_000)
    _commands(table, folder / "many", 20_000 if quick else 100_000)
    _small_runs(table, folder / "small", 2_000 if quick else 20_000)
    table.notes.append(
        "commands are judged by CPU time: on an idle machine it is the time on the clock; median of 5"
    )
    return table


def _offsets(table: Table, home: Path, events: int) -> None:
    path = home / "run.jsonl"
    home.mkdir()
    _write(path, events, shares=((300, 0.60), (4_000, 0.35), (100_000, 0.05)))
    rounds = interleave(
        {"wc": lambda: _wc(path), "offsets": lambda: _scan(path), "json": lambda: _loads(path)}, 5
    )
    spent = {name: min(values) for name, values in rounds.items()}
    table.add(
        f"offsets of {events:,} events in {size(path.stat().st_size)}",
        spent["wc"] / spent["offsets"],
        budget=0.7,
        better="high",
        unit="x its speed",
        ours=us(spent["offsets"]),
        against="wc -l",
        theirs=us(spent["wc"]),
        note=f"{spent['json'] / spent['offsets']:.0f} x faster than a json.loads loop",
    )
    viewed, parsed = _event_k(path, events)
    table.add(
        "event k by its offset, whole, median",
        percentile(parsed, 0.5) / 1e3,
        unit="µs",
        budget=20,
        note=f"its kind alone {us(percentile(viewed, 0.5))}; p99 {us(percentile(parsed, 0.99))}: events of 100 KB",
    )


def _scan(path: Path) -> int:
    from reenact.tracefile.columns import line_offsets

    begin = time.perf_counter_ns()
    line_offsets(str(path), keep_from=sys.maxsize)  # never from an index kept beside the file
    return time.perf_counter_ns() - begin


def _wc(path: Path) -> int:
    begin = time.perf_counter_ns()
    subprocess.run(["wc", "-l", str(path)], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter_ns() - begin


def _loads(path: Path) -> int:
    begin = time.perf_counter_ns()
    with open(path, "rb") as file:
        for line in file:
            json.loads(line)
    return time.perf_counter_ns() - begin


def _event_k(path: Path, events: int) -> tuple[list[int], list[int]]:
    """Return the nanoseconds to fetch an event's kind, and all of its fields."""
    from reenact import Recording

    viewed, parsed = [], []
    recording = Recording.load(path)
    for k in random.Random(3).choices(range(events), k=4_000):
        begin = time.perf_counter_ns()
        _ = recording.events[k].kind
        viewed.append(time.perf_counter_ns() - begin)
    for k in random.Random(4).choices(range(events), k=4_000):
        begin = time.perf_counter_ns()
        _ = recording.events[k].payload
        parsed.append(time.perf_counter_ns() - begin)
    return viewed, parsed


def _passes(table: Table, home: Path, turns: int) -> None:
    """What the debugger asks first of a run of four events a turn."""
    from reenact import Recording

    home.mkdir()
    path = home / "run.jsonl"
    feed_tap(path, _short_conversations(turns), redact=False)
    asked: dict[str, tuple[float, Callable[[Recording], object]]] = {
        "open and count": (0.3, lambda recording: recording.count()),
        "event_types()": (0.15, lambda recording: recording.event_types()),
        "totals": (0.5, lambda recording: recording.totals),
        "calls()": (0.5, lambda recording: recording.calls()),
    }
    for what, (budget, ask) in asked.items():
        spent = []
        for _ in range(3):
            recording = None if what == "open and count" else Recording.load(path)
            if recording is not None:
                recording.count()
            begin = time.process_time()
            ask(recording or Recording.load(path))
            spent.append(time.process_time() - begin)
        full = 4 * turns == 100_000
        table.add(f"{what}, {4 * turns:,} events", min(spent), unit="s CPU", budget=budget if full else None)
    bare = min(_command("-c", "pass")[0] for _ in range(3))
    for words in (["show", str(path)], ["debug", str(path), "-c", "b error; c"]):
        what = f"{words[0]}, {4 * turns:,} events of calls"
        _show_command(table, what, words, 0.5, bare, full=False)


def _short_conversations(turns: int) -> Iterator[Step]:
    """Fifty turns each, as many as are wanted."""
    text = Text()
    for _ in range(turns // 50):
        conversation = Conversation(text, 0, big_results=False, markers=True)
        for _ in range(50):
            yield from conversation.turn(last=False)


def _commands(table: Table, home: Path, events: int) -> None:
    home.mkdir()
    path = home / "run.jsonl"
    _write(path, events, shares=((300, 1.0),))
    bare = min(_command("-c", "pass")[0] for _ in range(3))
    for words, budget in ((["ls", home], 0.3), (["show", path], 0.5), (["debug", path, "-c", "l"], 0.5)):
        _show_command(table, f"{words[0]}, {events:,} events", [str(word) for word in words], budget, bare)


def _small_runs(table: Table, home: Path, runs: int) -> None:
    home.mkdir()
    for number, fields in enumerate(payloads(300, runs)):
        recorder = ReenactTrace(home / f"run-{number:06d}.jsonl", redact=False)
        recorder.record("note", fields)
        recorder.close()
    bare = min(_command("-c", "pass")[0] for _ in range(3))
    floor = [_command("-m", "benchmarks.floors", "ls", str(home))[0] for _ in range(5)]
    what = f"ls, {runs:,} small runs"
    _show_command(table, what, ["ls", str(home)], 1, bare, full=runs == 20_000, floor=median(floor))


def _show_command(
    table: Table,
    what: str,
    args: list[str],
    budget: float,
    bare: float,
    full: bool = True,
    floor: float | None = None,
) -> None:
    results = [_command("-m", "reenact", *args) for _ in range(5)]
    cpu, _, peak, code = sorted(results)[2]
    wall = min(wall for _, wall, _, _ in results)
    broken = f"exit {code}; " if code != 0 else ""
    table.add(
        f"reenact {what}",
        cpu,
        unit="s CPU",
        budget=budget if full and code == 0 else None,
        floor=floor,
        against="bare interpreter",
        theirs=f"{bare:.3f} s",
        note=f"{broken}{cpu / bare:.1f} x a bare interpreter; {wall:.2f} s on the clock",
    )
    table.add(f"reenact {what}: peak memory", peak / 1024, unit="MB", budget=100)


def _command(*args: str) -> tuple[float, float, int, int]:
    """Return (CPU seconds, wall seconds, peak KB, exit code) of one interpreter run."""
    command = [sys.executable, "-I", "-S", "-c", LAUNCHER, sys.executable, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    cpu, wall, peak, code = json.loads(done.stdout)
    return cpu, wall, peak, code


def _write(path: Path, events: int, shares: tuple[tuple[int, float], ...]) -> None:
    """Record that many events of mixed sizes with our own recorder."""
    pools: list[list[dict[str, Any]]] = [payloads(n_bytes, 20) for n_bytes, _ in shares]
    chosen = random.Random(5).choices(pools, [share for _, share in shares], k=events)
    recorder = ReenactTrace(path, redact=False)
    for at, pool in enumerate(chosen):
        recorder.record("note", pool[at % len(pool)])
    recorder.close()
