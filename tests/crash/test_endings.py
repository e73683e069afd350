"""How a run ended, as its file says it: exceptions anywhere, exits of every kind, and deaths that leave no word."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from support.harness import finish, lines, run_script, start

HEAD = """
import asyncio, logging, threading
import os, sys
from reenact import StepLog, Tap, Trace
trace = Trace("run.jsonl", redact=False)
trace.step("begun")
"""


def ended(tmp_path: Path, source: str, **more: str):  # type: ignore[no-untyped-def]
    finished = run_script(HEAD + source, cwd=tmp_path, **more)
    found = lines(tmp_path / "run.jsonl")
    assert found.torn == []
    found.assert_gapless()
    return finished, found


@pytest.mark.parametrize(
    "death",
    ["os._exit(7)", "os.kill(os.getpid(), 15)", "os.kill(os.getpid(), 9)", "os.abort()"],
)
def test_a_death_without_a_word_leaves_every_event_and_no_end(death: str, tmp_path: Path) -> None:
    finished, found = ended(tmp_path, f'for n in range(100): trace.step("n", seq=n)\n{death}\n')
    assert finished.code != 0
    assert [event["seq"] for event in found.of("n")] == list(range(100))
    assert not found.of("run.end")


def test_sigterm_from_outside_acts_as_without_us(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(HEAD + 'import time\nprint("up", flush=True)\ntime.sleep(60)\n')
    child = start(script, cwd=tmp_path)
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    child.terminate()
    assert finish(child).code == -signal.SIGTERM
    assert lines(tmp_path / "run.jsonl").kinds() == ["run.start", "begun"]


def test_ctrl_c_ends_the_run_as_cancelled(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(HEAD + 'import time\nprint("up", flush=True)\ntime.sleep(60)\n')
    child = start(script, cwd=tmp_path)
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    finished = finish(child)
    assert finished.code == -signal.SIGINT  # as CPython does it
    found = lines(tmp_path / "run.jsonl")
    assert found.one("error")["error"]["type"] == "KeyboardInterrupt"
    end = found.one("run.end")
    assert (end["status"], end["exit"]) == ("cancelled", 130)


def test_an_uncaught_exception_is_in_the_trace_with_type_message_and_frames(tmp_path: Path) -> None:
    finished, found = ended(
        tmp_path,
        """
def plan():
    raise RuntimeError("no plan")
def main():
    plan()
main()
""",
    )
    assert finished.code == 1
    assert "RuntimeError: no plan" in finished.err, "the agent's own traceback is printed as ever"
    event = found.one("error")
    assert event["where"] == "main"
    assert (event["error"]["type"], event["error"]["message"]) == ("RuntimeError", "no plan")
    assert [frame.split(" in ")[1] for frame in event["error"]["frames"]] == ["plan", "main", "<module>"]
    end = found.one("run.end")
    assert (end["status"], end["exit"], end["error"]["type"]) == ("error", 1, "RuntimeError")
    assert end["tot"]["err"] == 1


def test_an_exception_in_a_thread_is_an_error_of_a_run_that_goes_on(tmp_path: Path) -> None:
    finished, found = ended(
        tmp_path,
        """
import threading
def work():
    raise ValueError("thread broke")
t = threading.Thread(target=work, name="worker-7"); t.start(); t.join()
trace.step("after")
trace.close()
""",
    )
    assert finished.code == 0
    assert "thread broke" in finished.err
    event = found.one("error")
    assert (event["where"], event["thread"]) == ("thread", "worker-7")
    assert event["error"]["message"] == "thread broke"
    assert found.one("run.end")["status"] == "ok"


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_an_exception_in_a_forgotten_task_is_an_error_event(loop: str, tmp_path: Path) -> None:
    finished, found = ended(
        tmp_path,
        f"""
import asyncio, gc
import {loop} as loop
async def broken():
    raise LookupError("task broke")
async def main():
    asyncio.create_task(broken())
    await asyncio.sleep(0.01)
    gc.collect()
loop.run(main())
""",
    )
    assert finished.code == 0
    assert "task broke" in finished.err, "asyncio still reports it"
    event = found.one("error")
    assert event["where"] == "task"
    assert (event["error"]["type"], event["error"]["message"]) == ("LookupError", "task broke")


def test_an_exception_in_a_finaliser_is_an_error_event(tmp_path: Path) -> None:
    finished, found = ended(
        tmp_path,
        """
class Broken:
    def __del__(self): raise OSError("finaliser broke")
Broken()
""",
    )
    assert "finaliser broke" in finished.err
    event = found.one("error")
    assert event["where"] == "unraisable"
    assert event["error"]["type"] == "OSError"


@pytest.mark.parametrize(
    ("way", "code"), [("sys.exit(3)", 3), ("sys.exit()", 0), ("raise SystemExit('no')", 1), ("pass", 0)]
)
def test_leaving_without_close_is_recorded_as_unclosed(way: str, code: int, tmp_path: Path) -> None:
    finished, found = ended(tmp_path, way)
    assert finished.code == code
    assert found.one("run.end")["status"] == "unclosed"
    assert not found.of("error")


@pytest.mark.parametrize(
    ("way", "code", "status", "error"),
    [
        ("pass", 0, "ok", None),
        ("raise ValueError('x')", 1, "error", "ValueError"),
        ("sys.exit(3)", 3, "error", None),
        ("sys.exit(0)", 0, "ok", None),
        ("raise KeyboardInterrupt", -signal.SIGINT, "cancelled", "KeyboardInterrupt"),
    ],
)
def test_a_run_block_says_how_it_was_left(
    way: str, code: int, status: str, error: str | None, tmp_path: Path
) -> None:
    finished = run_script(
        f"""
import sys, reenact
with reenact.run("trip", path="run.jsonl", redact=False):
    reenact.Trace().step("begun")
    {way}
""",
        cwd=tmp_path,
    )
    assert finished.code == code
    found = lines(tmp_path / "run.jsonl")
    found.assert_gapless()
    end = found.one("run.end")
    assert end["status"] == status
    assert (end.get("error") or {}).get("type") == error
    assert [event["error"]["type"] for event in found.of("error")] == ([error] if error else [])


def test_every_open_run_hears_of_the_exception_that_ends_the_process(tmp_path: Path) -> None:
    run_script(
        """
from reenact import Trace
one, two, closed = (Trace(f"{n}.jsonl", redact=False) for n in ("one", "two", "closed"))
closed.close()
raise RuntimeError("end of all")
""",
        cwd=tmp_path,
    )
    for name, status in (("one", "error"), ("two", "error"), ("closed", "ok")):
        found = lines(tmp_path / f"{name}.jsonl")
        assert found.one("run.end")["status"] == status
        assert len(found.of("error")) == (status == "error")


def test_the_hooks_of_the_agent_are_called_and_keep_their_arguments(tmp_path: Path) -> None:
    finished = run_script(
        """
import sys, threading
seen = []
sys.excepthook = lambda kind, exc, tb: print("main", kind.__name__, exc, tb is exc.__traceback__)
threading.excepthook = lambda args: print("thread", args.exc_type.__name__, args.thread.name)
sys.unraisablehook = lambda args: print("unraisable", args.exc_type.__name__)
from reenact import Trace
trace = Trace("run.jsonl", redact=False)
class Broken:
    def __del__(self): raise OSError("x")
Broken()
def work(): raise ValueError
t = threading.Thread(target=work, name="t1"); t.start(); t.join()
raise KeyError("main")
""",
        cwd=tmp_path,
    )
    assert finished.out.splitlines() == [
        "unraisable OSError",
        "thread ValueError t1",
        "main KeyError 'main' True",
    ]
    assert len(lines(tmp_path / "run.jsonl").of("error")) == 3


def test_the_hooks_can_be_taken_out_again(tmp_path: Path) -> None:
    finished = run_script(
        """
import sys, threading, asyncio, logging
before = (sys.excepthook, sys.unraisablehook, threading.excepthook, list(logging.getLogger("asyncio").filters))
from reenact import Trace
from reenact.capture.runs import crashes as death
trace = Trace("run.jsonl", redact=False)
death.remove()
print(before == (sys.excepthook, sys.unraisablehook, threading.excepthook, logging.getLogger("asyncio").filters))
""",
        cwd=tmp_path,
    )
    assert finished.out == "True\n"


def test_no_signal_handler_is_installed(tmp_path: Path) -> None:
    finished = run_script(
        """
import signal
before = {n: signal.getsignal(n) for n in signal.valid_signals()}
import reenact
with reenact.run("x", redact=False, path="run.jsonl"):
    reenact.Trace().step("a")
    print(before == {n: signal.getsignal(n) for n in signal.valid_signals()})
""",
        cwd=tmp_path,
    )
    assert finished.out == "True\n"


def test_a_task_error_never_lands_in_another_run(tmp_path: Path) -> None:
    """asyncio tells of a forgotten task's exception whenever it is collected: in any run's context."""
    run_script(
        """
import asyncio, gc, reenact
async def broken():
    raise LookupError("of one")
async def one():
    async with reenact.run("one", path="one.jsonl", redact=False):
        task = asyncio.create_task(broken())
        await asyncio.sleep(0.01)
        held.append(task)
        del task
        await asyncio.sleep(0.05)
async def two():
    async with reenact.run("two", path="two.jsonl", redact=False):
        await asyncio.sleep(0.03)
        held.clear()
        gc.collect()
        await asyncio.sleep(0.03)
held = []
async def main():
    await asyncio.gather(one(), two())
asyncio.run(main())
""",
        cwd=tmp_path,
    )
    assert not lines(tmp_path / "two.jsonl").of("error")
    assert lines(tmp_path / "two.jsonl").one("run.end")["status"] == "ok"


def test_a_finaliser_error_never_lands_in_another_run(tmp_path: Path) -> None:
    run_script(
        """
import reenact
class Broken:
    def __del__(self): raise OSError("of one")
with reenact.run("one", path="one.jsonl", redact=False) as one:
    broken = Broken()
    with reenact.run("two", path="two.jsonl", redact=False):
        del broken
""",
        cwd=tmp_path,
    )
    assert not lines(tmp_path / "two.jsonl").of("error")


def test_exit_handlers_of_the_agent_may_still_record(tmp_path: Path) -> None:
    finished = run_script(
        """
import atexit
@atexit.register
def before_us(): trace.step("registered-before")
from reenact import Trace
trace = Trace("run.jsonl", redact=False)
@atexit.register
def after_us(): trace.step("registered-after")
trace.step("work")
""",
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == ""
    found = lines(tmp_path / "run.jsonl")
    found.assert_gapless()
    assert sorted(each["kind"] for each in found.user()) == ["registered-after", "registered-before", "work"]
    assert found.one("run.end")["status"] == "unclosed"
