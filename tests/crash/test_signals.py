"""Signals, finalisers and shutdown in the middle of recording: the agent's exceptions reach it, lines stay whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.examples import one_in
from support.harness import lines, run_script


def test_a_signal_handler_may_record_while_recording(tmp_path: Path) -> None:
    finished = run_script(
        """
import signal
from reenact import Trace
import reenact.capture.recorder.file as file
file.STALL_S = 60.0  # while a slow device is waited for, alarms would pile up in one another
trace = Trace("run.jsonl", redact=False)
fired = 0
def handler(number, frame):
    global fired
    fired += 1
    trace.step("alarm", seq=fired)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
seq = 0
while fired < 1500:
    seq += 1
    trace.step("work", seq=seq, payload={"a": ["x" * 50] * 5})
signal.setitimer(signal.ITIMER_REAL, 0)
trace.close()
print(seq, fired)
""",
        cwd=tmp_path,
    )
    assert finished.code == 0, finished.err
    assert finished.err == ""
    worked, fired = map(int, finished.out.split())
    found = lines(tmp_path / "run.jsonl")
    assert found.torn == []
    assert sorted(each["seq"] for each in found.of("alarm")) == list(range(1, fired + 1))
    assert [each["seq"] for each in found.of("work")] == list(range(1, worked + 1))
    steps = sorted(each["step"] for each in found.all)
    assert steps == list(range(1, len(steps) + 1)), "a step was given twice"
    found.one("run.start")
    assert found.one("run.end")["dropped"] == 0


def test_a_signal_handler_may_record_while_the_first_file_is_opened(tmp_path: Path) -> None:
    """Many runs, each with an alarm near its beginning: one head each, no descriptor left behind."""
    finished = run_script(
        """
import os, random, signal
from reenact import Trace
import reenact.capture.recorder.disk_space
trace = None
def handler(number, frame):
    if trace is not None:
        trace.step("alarm")
signal.signal(signal.SIGALRM, handler)
class Late(Trace):
    def __init__(self, path):
        global trace
        super().__init__(None)
        self._own = self._new_recorder(path, None)
        trace = self
before = len(os.listdir("/proc/self/fd"))
for n in range(600):
    signal.setitimer(signal.ITIMER_REAL, random.random() * 0.0004 + 1e-6)
    each = Late(f"{n}.jsonl")
    each.step("first")
    signal.setitimer(signal.ITIMER_REAL, 0)
    each.close()
    trace = None
print(len(os.listdir("/proc/self/fd")) - before)
""",
        cwd=tmp_path,
    )
    assert finished.err == "" and finished.out == "0\n"
    for path in tmp_path.glob("*.jsonl"):
        found = lines(path)
        found.one("run.start"), found.one("first"), found.one("run.end")
        steps = sorted(each["step"] for each in found.all)
        assert steps == list(range(1, len(steps) + 1)), path


@pytest.mark.parametrize(
    "exception", one_in(2, ["TimeoutError", "ValueError", "RuntimeError", "SystemExit", "MyTimeout"])
)
@pytest.mark.parametrize("front_end", ["Trace", "StepLog", "Tap"])
def test_an_alarm_that_raises_always_reaches_the_agent(
    front_end: str, exception: str, tmp_path: Path
) -> None:
    """A time-out by alarm interrupts recording at any point; afterwards other threads can still record."""
    finished = run_script(
        f"""
import signal, sys, threading
from reenact import {front_end}
class MyTimeout(BaseException): pass
out = {front_end}("run.jsonl", redact=False)
class Sdk:
    def model_dump(self): return {{"role": "user", "content": ["x"] * 20}}
def record(seq):
    value = [{{"a": (1, 2), "b": {{3}}, "c": float("nan")}}, Sdk()]
    if "{front_end}" == "Trace":
        out.step("work", seq=seq, value=value)
    elif "{front_end}" == "StepLog":
        out.record_tool_call("t", value, {{"seq": seq}}, None, 1)
    else:
        call = out.record_model_request({{"model": "m", "messages": [{{"role": "user", "content": str(k)}} for k in range(9)] + value}})
        out.record_model_response({{"model": "m", "content": [{{"type": "text", "text": "hi"}}]}}, call=call)
        out.record_tool_call("t", value)
armed = reached = fired = 0
def handler(number, frame):
    global fired
    fired += 1
    raise {exception}("time is up")
record(0)  # what is imported on first use, is: Python itself swallows an exception in its import locks
signal.signal(signal.SIGALRM, handler)
seq = 0
def spin():  # a function of its own: from 3.12 on a jump back may raise outside the try around its loop
    global seq
    signal.setitimer(signal.ITIMER_REAL, delay * 1e-6 + 2e-6)
    while fired < armed:
        seq += 1
        record(seq)
for delay in range(1, 400):
    try:
        armed = fired + 1
        try:
            spin()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except {exception} as exc:
        assert str(exc) == "time is up", exc
        reached += 1
print(reached == fired)
def other():
    print(out._own.lock.acquire(timeout=60))
    out._own.lock.release()
t = threading.Thread(target=other); t.start(); t.join()
""",
        cwd=tmp_path,
    )
    assert finished.out.split() == ["True", "True"], finished.out + finished.err[-2000:]
    found = lines(tmp_path / "run.jsonl")
    assert found.torn == []
    steps = [each["step"] for each in found.all]
    assert len(set(steps)) == len(steps)
    assert finished.ours == []


@pytest.mark.parametrize("handler", one_in(2, ["function", "method", "callable object", "partial", "lambda"]))
def test_every_kind_of_signal_handler_is_known_as_the_agents(handler: str, tmp_path: Path) -> None:
    finished = run_script(
        """
import functools, os, signal, sys
from reenact import Trace
def raising(number, frame): raise ValueError("time is up")
class Handler:
    def on_signal(self, number, frame): raise ValueError("time is up")
    def __call__(self, number, frame): raise ValueError("time is up")
handlers = {
    "function": raising, "method": Handler().on_signal, "callable object": Handler(),
    "partial": functools.partial(raising), "lambda": lambda number, frame: raising(number, frame),
}
signal.signal(signal.SIGUSR1, handlers[sys.argv[1]])
class Interrupts:
    def __repr__(self):
        os.kill(os.getpid(), signal.SIGUSR1)
        return "never"
trace = Trace("run.jsonl", redact=False)
try:
    trace.step("a", value=Interrupts())
except ValueError as exc:
    print(exc)
""",
        handler,
        cwd=tmp_path,
    )
    assert finished.out == "time is up\n", finished.err


def test_finalisers_that_record_during_a_collection_while_writing(tmp_path: Path) -> None:
    finished = run_script(
        """
import gc
from reenact import Trace
trace = Trace("run.jsonl", redact=False)
count = 0
class Cyclic:
    def __init__(self): self.me = self
    def __del__(self):
        global count
        count += 1
        trace.step("finalised", seq=count)
gc.set_threshold(7, 2, 2)
for seq in range(3000):
    Cyclic()
    trace.step("work", seq=seq, payload=[{"a": [seq]} for _ in range(10)])
gc.set_threshold(700, 10, 10)
gc.collect()
trace.close()
print(count)
""",
        cwd=tmp_path,
    )
    assert finished.err == ""
    found = lines(tmp_path / "run.jsonl")
    assert found.torn == []
    assert [each["seq"] for each in found.of("work")] == list(range(3000))
    assert sorted(each["seq"] for each in found.of("finalised")) == list(range(1, int(finished.out) + 1))
    steps = sorted(each["step"] for each in found.all)
    assert steps == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("trial", range(3))
def test_shutdown_with_daemon_threads_still_recording_neither_hangs_nor_tears(
    trial: int, tmp_path: Path
) -> None:
    finished = run_script(
        """
import threading, time
from reenact import StepLog, Tap, Trace
trace = Trace("run.jsonl", redact=False)
tap = Tap("tap.jsonl", redact=False)
started = threading.Barrier(7)
class Late:
    def __del__(self): trace.step("late")
late = Late()
def work(n):
    started.wait()
    while True:
        trace.step("work", payload=["x" * 100] * 20)
        tap.record_model_request({"messages": [{"role": "user", "content": "x" * 2000}]})
for n in range(6):
    threading.Thread(target=work, args=(n,), daemon=True).start()
started.wait()
time.sleep(0.05)
""",
        cwd=tmp_path,
    )
    assert finished.code == 0
    assert finished.err == ""
    for name in ("run", "tap"):
        found = lines(tmp_path / f"{name}.jsonl")
        assert len(found.torn) <= 1  # a thread frozen between two pages of its write
        assert found.one("run.end")["status"] == "unclosed"
        steps = [each["step"] for each in found.all]
        assert steps == sorted(set(steps))


def test_recording_in_a_finaliser_during_shutdown_is_recorded_or_counted_never_raised(tmp_path: Path) -> None:
    finished = run_script(
        """
import sys
from reenact import Tap, Trace
trace = Trace("run.jsonl", redact=False)
class Late:
    def __del__(self):
        trace.step("late", payload={"a": {1, 2}})
        print("went on", file=sys.__stderr__ or sys.stderr)
sys.late = Late()
""",
        cwd=tmp_path,
    )
    assert finished.code == 0
    assert "Traceback" not in finished.err and "Exception ignored" not in finished.err
    assert lines(tmp_path / "run.jsonl").torn == []
