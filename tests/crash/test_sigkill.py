"""SIGKILL at random points: every event whose recording call had returned is in the file afterwards."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from support.examples import LONG, long, one_in
from support.harness import CHILDREN, Counters, Lines, finish, lines, start, wait_until

WRITER = CHILDREN / "writer.py"
TIMES = 10 if LONG else 1
SHARE = 1 if LONG else 0.25
PROCESSES = 4


def marker(event: dict[str, Any]) -> dict[str, Any]:
    for key in ("args", "input", "result"):
        if isinstance(event.get(key), dict):
            return event[key]
    return event


def check(found: Lines, acknowledged: list[int], writers: int) -> int:
    """Compare a file with the counters; returns the number of acknowledged events, all of them found."""
    assert len(found.torn) <= writers, [line[:80] for line in found.torn]
    found.assert_gapless()
    seqs: dict[int, list[int]] = defaultdict(list)
    for event in found.user():
        seqs[marker(event)["slot"]].append(marker(event)["seq"])
    for slot, count in enumerate(acknowledged):
        present = seqs.pop(slot, [])
        assert present == list(range(1, len(present) + 1)), f"slot {slot} is not in order"
        assert count <= len(present) <= count + 1, f"slot {slot}: {count} acknowledged, {len(present)} found"
    assert not seqs
    assert not found.of("run.end"), "nobody could have written an end"
    return sum(acknowledged)


def kill_when(children: list[subprocess.Popen[str]], counters: Counters, target: int) -> None:
    for child in children:
        wait_until(lambda: counters.total() >= target, child)
    time.sleep(random.random() * 0.003)
    for child in children:
        child.kill()
    for child in children:
        finished = finish(child)
        assert finished.code == -signal.SIGKILL
        assert finished.err == ""


def report(capsys: pytest.CaptureFixture[str], name: str, count: int) -> None:
    with capsys.disabled():
        print(f"\n[sigkill] {name}: {count:,} acknowledged, 0 lost")


# Front end, threads, bytes of an event, acknowledged events to wait for.
CASES = [
    ("Trace", 1, 300, 40_000),
    ("Trace", 8, 300, 25_000),
    ("StepLog", 1, 300, 15_000),
    ("StepLog", 8, 4_000, 2_000),
    ("Tap", 1, 4_000, 2_000),
    ("Tap", 8, 300, 10_000),
    ("Trace", 1, 100_000, 100),
    ("Trace", 8, 100_000, 100),
]


@pytest.mark.parametrize(("front_end", "threads", "size", "target"), one_in(2, CASES, first=1))
def test_no_acknowledged_event_is_lost(
    front_end: str, threads: int, size: int, target: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    total = 0
    for trial in range(TIMES):
        path = tmp_path / f"run{trial}.jsonl"
        counters = Counters(tmp_path / f"acks{trial}", threads)
        child = start(WRITER, front_end, path, counters.path, 0, threads, size)
        kill_when([child], counters, int(target * SHARE * random.uniform(0.8, 1.2)))
        total += check(lines(path), counters.values(), 1)
        counters.close()
        path.unlink()
    report(capsys, f"{front_end}, {threads} threads, {size} bytes", total)


@pytest.mark.parametrize(("size", "target"), [(300, 20_000), long(100_000, 150)])
def test_no_acknowledged_event_of_four_processes_on_one_file_is_lost(
    size: int, target: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    total = 0
    for trial in range(TIMES):
        path = tmp_path / f"run{trial}.jsonl"
        counters = Counters(tmp_path / f"acks{trial}", PROCESSES * 2)
        children = [
            start(WRITER, "Trace", path, counters.path, 2 * each, 2, size) for each in range(PROCESSES)
        ]
        for index, child in enumerate(children):
            wait_until(lambda: counters.values()[2 * index] > 0, child)
        kill_when(children, counters, int(target * SHARE))
        total += check(lines(path), counters.values(), PROCESSES)
        counters.close()
        path.unlink()
    report(capsys, f"4 processes x 2 threads, one file, {size} bytes", total)


FORKS = """
import mmap, os, sys
from reenact import Trace
import reenact.capture.recorder.file
reenact.capture.recorder.file.STALL_S = 60.0  # other tests have a device that stalls

path, counters, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(counters, "r+b") as file:
    acknowledged = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
trace = Trace(path, redact=False)
slot = 0
children = []
for each in range(1, processes):
    pid = os.fork()
    if pid == 0:
        slot = each
        break
    children.append(pid)
else:
    print(*children, flush=True)
seq = 0
while True:
    seq += 1
    trace.step("tool_call", slot=slot, seq=seq, payload="x" * 200)
    acknowledged[slot] = seq
"""


def test_no_acknowledged_event_of_a_parent_and_its_forks_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import os

    script = tmp_path / "forks.py"
    script.write_text(FORKS)
    total = 0
    for trial in range(TIMES):
        folder = tmp_path / str(trial)
        folder.mkdir()
        counters = Counters(tmp_path / f"acks{trial}", PROCESSES)
        child = start(script, folder / "run.jsonl", counters.path, PROCESSES)
        assert child.stdout is not None
        pids = [int(pid) for pid in child.stdout.readline().split()]
        try:
            wait_until(lambda: counters.total() > 15_000 and min(counters.values()) > 0, child)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            child.kill()
        assert finish(child).err == ""
        files = sorted(folder.glob("*.jsonl"))
        assert len(files) == PROCESSES
        found = Lines(*files)
        total += check(found, counters.values(), PROCESSES)
        starter = found.one("run.start")
        assert {each["parent_w"] for each in found.of("proc.start")} == {starter["w"]}
        assert {each["run"] for each in found.events} == {starter["run"]}
        counters.close()
    report(capsys, "a parent and 3 forks", total)


BIG = """
import mmap, sys
from reenact import Trace
import reenact.capture.recorder.file
reenact.capture.recorder.file.STALL_S = 60.0  # other tests have a device that stalls

path, counters, form = sys.argv[1:4]
with open(counters, "r+b") as file:
    acknowledged = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
piece = "a b c d " * 4_000
big = [piece] * 640 if form == "line" else piece * 640
trace = Trace(path, redact=False)
for seq in range(1, 101):
    trace.step("tool_call", slot=0, seq=seq)
    acknowledged[0] = seq
acknowledged[1] = 1
trace.step("big", slot=1, seq=1, big=big)
acknowledged[1] = 2
import time; time.sleep(60)
"""


@pytest.mark.parametrize("form", ["line", long("blob")])
def test_sigkill_inside_a_20_mb_event_costs_that_event_at_most(form: str, tmp_path: Path) -> None:
    script = tmp_path / "big.py"
    script.write_text(BIG)
    inside = 0
    for trial in range(3 * TIMES):
        folder = tmp_path / str(trial)
        folder.mkdir()
        path = folder / "run.jsonl"
        counters = Counters(tmp_path / f"acks{trial}", 2)
        child = start(script, path, counters.path, form)
        wait_until(lambda: counters.values()[1] >= 1, child)
        if form == "line":
            # The line is on its way as soon as the file is larger than the hundred small events.
            wait_until(lambda: path.stat().st_size > 100_000 or counters.values()[1] == 2, child)
        else:
            time.sleep(random.random() * 0.03)
        child.kill()
        finish(child)
        done = counters.values()[1] == 2
        found = lines(path)
        assert len(found.torn) <= 1
        assert [each["seq"] for each in found.of("tool_call")] == list(range(1, 101))
        assert not done or len(found.of("big")) == 1
        found.assert_gapless()
        for event in found.of("big"):
            if form == "blob":  # a blob that a line speaks of is whole
                blob = folder / "run.blobs" / event["big"]["$blob"].removeprefix("sha256:")
                assert blob.stat().st_size == event["big"]["bytes"] == 640 * 32_000
        inside += not done
        counters.close()
        again = start(
            "-c",
            "import sys; from reenact import Trace; Trace(sys.argv[1], redact=False).step('again')",
            path,
        )
        assert finish(again).code == 0
        assert len(lines(path).of("again")) == 1
    assert inside or form == "blob", "no trial was killed inside the event"
