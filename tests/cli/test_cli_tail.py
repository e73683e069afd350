"""reenact tail."""

from __future__ import annotations

import subprocess
import sys

import reenact
from support.typed import COMMAND, environment, record_steps, record_trip, typed


def start(*words, **env):
    return subprocess.Popen(
        [COMMAND, "tail", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**env),
    )


def test_a_finished_run_is_printed_and_nothing_is_waited_for(tmp_path):
    path = record_trip(tmp_path / "a.jsonl")
    code, out, err = typed("tail", path, "-n", "3")
    assert code == 0
    assert len(out.splitlines()) == 3 and "The run is over (ok)" in err
    assert typed("tail", path, "--no-follow", "-n", "1", "--json").rows[0]["kind"] == "run.end"
    assert typed("tail", path, "-n", "0").out == ""


def test_a_growing_run_is_followed_until_it_ends_every_event_once(tmp_path):
    path = tmp_path / "a.jsonl"
    trace = reenact.Trace(path)
    for number in range(50):
        trace.step("note", number=number)
    with start(path, "-n", 5) as child:
        first = child.stdout.readline()
        for number in range(50, 3000):
            trace.step("note", number=number)
        trace.close()
        # communicate() would lose what readline() has read ahead
        rest, err = child.stdout.read(), child.stderr.read()
        child.wait(timeout=60)
    assert child.returncode == 0 and "The run is over (ok)" in err
    lines = (first + rest).splitlines()
    numbers = [int(line.rpartition("number=")[2]) for line in lines if "number=" in line]
    # Five old ones; those written while it was starting may be among them.
    assert numbers == list(range(numbers[0], 3000)) and numbers[0] >= 45
    assert "run.end" in lines[-1]


def test_rotation_is_survived(tmp_path):
    path = tmp_path / "a.jsonl"
    trace = reenact.Trace(path, segment_bytes=20_000)
    trace.step("note", number=0)
    with start(path, "--json") as child:
        child.stdout.readline()
        for number in range(1, 500):
            trace.step("note", number=number, text="x" * 200)
        trace.close()
        rest = child.stdout.read()
    assert len(list(tmp_path.glob("*.jsonl"))) > 3
    assert rest.count('"kind": "note"') >= 499


def test_it_stops_when_the_process_is_gone(tmp_path):
    agent = "import os, sys, reenact; t = reenact.Trace(sys.argv[1]); t.step('note'); print(1, flush=True); sys.stdin.read(); os._exit(1)"
    writer = subprocess.Popen(
        [sys.executable, "-c", agent, str(tmp_path / "a.jsonl")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    with writer:
        writer.stdout.readline()
        with start(tmp_path / "a.jsonl") as child:
            child.stdout.readline()
            writer.communicate(b"")
            _, err = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "The run is over (killed)" in err


def test_an_interrupt_is_quiet(tmp_path):
    path = record_steps(tmp_path / "a.jsonl", 3)
    with start(path, "--keep-going") as child:
        child.stdout.readline()
        import signal

        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, "")
