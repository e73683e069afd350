"""The bus: patterns, once, off, async handlers; a slow handler costs drops, never the agent's time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from reenact import EventBus, Tap, Trace, UsageError
from reenact.capture import guard
from support.capture_files import kinds


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("tool.*", ["tool.called", "tool.result"]),
        ("tool.called", ["tool.called"]),
        ("*", ["note"]),
        ("**", ["run.start", "tool.called", "tool.result", "note", "a.b.c", "run.end"]),
        ("a.**", ["a.b.c"]),
        ("a.*.c", ["a.b.c"]),
        ("a.b", []),
        ("tool", []),
    ],
)
def test_a_pattern_hears_its_kinds_in_order(pattern: str, expected: list[str], tmp_path: Path) -> None:
    bus = EventBus()
    found: list[str] = []
    bus.on(pattern, lambda event: found.append(event["kind"]))
    with Tap(tmp_path / "run.jsonl", bus=bus, redact=False) as tap:
        call = tap.record_tool_call("t", {})
        tap.record_tool_result("t", 1, call=call)
        trace = Trace(tap.recorder())
        trace.step("note")
        trace.step("a.b.c")
    assert bus.flush(60)
    assert found == expected


def test_once_hears_one_event_and_off_none(tmp_path: Path) -> None:
    bus = EventBus()
    found: list[str] = []

    @bus.once("work")
    def first(event: dict[str, Any]) -> None:
        found.append("once")

    def second(event: dict[str, Any]) -> None:
        found.append("on")

    assert bus.on("work", second) is second
    with Trace(tmp_path / "run.jsonl", bus=bus, redact=False) as trace:
        trace.step("work")
        trace.step("work")
        assert bus.flush(60)
        assert bus.off("work", second)
        assert not bus.off("work", second)
        trace.step("work")
    assert bus.flush(60)
    assert found == ["once", "on", "on"]


def test_async_handlers_run_with_and_without_a_loop_of_the_agent(tmp_path: Path) -> None:
    bus = EventBus()
    found: list[tuple[str, object]] = []

    async def handler(event: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        found.append((event["kind"], threading.current_thread()))

    bus.on("outside", handler)
    with Trace(tmp_path / "a.jsonl", bus=bus, redact=False) as trace:
        trace.step("outside")
        assert bus.flush(60)

    async def main() -> None:
        bus.on("inside", handler)
        with Trace(tmp_path / "b.jsonl", bus=bus, redact=False) as trace:
            trace.step("inside")
            while len(found) < 2:
                await asyncio.sleep(0.001)

    asyncio.run(main())
    assert [kind for kind, _ in found] == ["outside", "inside"]
    assert found[1][1] is threading.main_thread(), "a handler given inside a loop runs in that loop"


def test_a_stuck_handler_costs_drops_that_are_counted_and_no_recording(tmp_path: Path) -> None:
    bus = EventBus(max_queued=10)
    stuck, entered = threading.Event(), threading.Event()

    def handler(event: dict[str, Any]) -> None:
        entered.set()
        stuck.wait(120)

    bus.on("work", handler)
    with Trace(tmp_path / "run.jsonl", bus=bus, redact=False) as trace:
        trace.step("work")
        assert entered.wait(60)
        for _ in range(50):
            trace.step("work")
        assert trace.lost == 0
        assert bus.dropped >= 40
    stuck.set()
    assert bus.flush(60)
    assert kinds(tmp_path / "run.jsonl").count("work") == 51


def test_a_failing_handler_is_reported_once_and_the_others_go_on(tmp_path: Path, capsys: Any) -> None:
    guard.forget()
    bus = EventBus()
    found: list[str] = []

    def broken(event: dict[str, Any]) -> None:
        raise RuntimeError("handler broke")

    bus.on("work", broken)
    bus.on("work", lambda event: found.append(event["kind"]))
    with Trace(tmp_path / "run.jsonl", bus=bus, redact=False) as trace:
        trace.step("work")
        trace.step("work")
        assert bus.flush(60)
    assert found == ["work", "work"]
    assert capsys.readouterr().err.count("handler broke") == 1


def test_a_bus_can_carry_events_of_the_agents_own(tmp_path: Path) -> None:
    bus = EventBus()
    found: list[dict[str, Any]] = []
    bus.on("mine", found.append)
    bus.emit("mine", answer=42)
    assert bus.flush(60)
    assert found[0]["answer"] == 42 and found[0]["kind"] == "mine"


def test_the_bus_gets_whole_requests_unless_it_asks_for_deltas(tmp_path: Path) -> None:
    whole, deltas = EventBus(), EventBus(deltas=True)
    received: dict[str, list[Any]] = {"whole": [], "deltas": []}
    whole.on("model.request", received["whole"].append)
    deltas.on("model.request", received["deltas"].append)
    for bus, name in ((whole, "a"), (deltas, "b")):
        with Tap(tmp_path / f"{name}.jsonl", bus=bus, redact=False) as tap:
            tap.record_model_request({"messages": [{"role": "user", "content": "1"}]})
            tap.record_model_request(
                {"messages": [{"role": "user", "content": "1"}, {"role": "user", "content": "2"}]}
            )
        assert bus.flush(60)
    assert len(received["whole"][1]["body"]["messages"]) == 2 and "base" not in received["whole"][1]
    assert (
        len(received["deltas"][1]["body"]["messages"]) == 1 and received["deltas"][1]["keep"]["messages"] == 1
    )


def test_wrong_arguments_are_reported_at_once() -> None:
    bus = EventBus()
    with pytest.raises(UsageError):
        bus.on("tool.*", 5)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        bus.on(5, print)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        Trace("never.jsonl", bus=object())


def test_a_child_forked_while_a_thread_is_in_the_bus_can_use_it(tmp_path: Path) -> None:
    code = """
import os, threading, warnings
warnings.simplefilter("ignore")
from reenact import EventBus, Tap
bus = EventBus(); bus.on("**", lambda event: None)
held, go = threading.Event(), threading.Event()
def hold():
    with bus._wake:
        held.set(); go.wait()
thread = threading.Thread(target=hold); thread.start(); held.wait()
pid = os.fork()
if pid == 0:
    Tap("run.jsonl", bus=bus).record_tool_call("x")
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])); go.set()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("7\n", "")
