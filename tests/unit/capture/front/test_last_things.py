"""After the end: no event behind run.end, no file that two runs share by accident, no silence by noise."""

from __future__ import annotations

import asyncio
import enum
import gc
import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact import StepLog, Tap, Trace, flush
from reenact.capture import guard
from reenact.capture.front.options import Options
from reenact.capture.recorder import disk_space


@pytest.fixture(autouse=True)
def _untold() -> Iterator[None]:
    guard.forget()
    yield
    guard.forget()


def kinds(path: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in path.read_bytes().splitlines()]


def test_no_event_stands_behind_the_end_of_its_run(tmp_path: Path) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for number in range(50):
        path = tmp_path / f"{number}.jsonl"
        trace = Trace(path)
        go = threading.Event()

        def work(trace: Trace = trace, go: threading.Event = go) -> None:
            go.wait()
            for _ in range(5):
                trace.step("note")

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        go.set()
        trace.close()
        for thread in threads:
            thread.join()
        assert kinds(path)[-1] == "run.end"
        assert kinds(path).count("note") + trace.lost == 10
    sys.setswitchinterval(interval)


def test_many_runs_with_late_events_do_not_hide_a_full_disk(tmp_path: Path, capsys: Any) -> None:
    for number in range(150):
        trace = Trace(tmp_path / f"{number}.jsonl")
        trace.close()
        trace.step("note")
    Trace("/dev/full").step("note")
    reported = capsys.readouterr().err
    assert reported.count("came after close()") == 1
    assert "/dev/full" in reported


def test_runs_with_ids_that_differ_at_the_end_have_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REENACT_DIR", str(tmp_path))
    for number in range(5):
        with StepLog(run_id=f"customer-1234-{number}") as log:
            log.record_llm_call("m", 1, 1, "end_turn")
    assert len(list(tmp_path.glob("*.jsonl"))) == 5


def test_a_quota_holds_although_files_vanish_while_it_is_measured(tmp_path: Path) -> None:
    (tmp_path / "run.blobs").mkdir()
    (tmp_path / "run.jsonl").write_bytes(b"x" * 10_000)
    over = threading.Event()

    def churn() -> None:
        while not over.is_set():
            for number in range(20):
                (tmp_path / "run.blobs" / f"{number}.tmp").write_bytes(b"")
            for number in range(20):
                (tmp_path / "run.blobs" / f"{number}.tmp").unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    found = [disk_space.over_quota(str(tmp_path), Options(max_bytes=100, min_free=0), 0) for _ in range(200)]
    over.set()
    thread.join()
    assert None not in found


def test_a_kind_that_is_an_enum_of_text_is_its_text(tmp_path: Path) -> None:
    class Kind(str, enum.Enum):  # noqa: UP042  (its str() is not its text)
        TOOL = "tool_call"

    with Trace(tmp_path / "run.jsonl") as trace:
        trace.step(Kind.TOOL, name="search")
    assert kinds(tmp_path / "run.jsonl")[1] == "tool_call"


@pytest.mark.parametrize("kind", [ValueError, SystemExit, asyncio.CancelledError])
def test_nothing_a_callback_raises_reaches_the_agent(kind: type[BaseException], capsys: Any) -> None:
    def fail(event: dict[str, Any]) -> None:
        raise kind("in the callback")

    with Tap(writer=fail) as tap:
        tap.record_tool_call("search", {})
        assert tap.lost == 2
    assert capsys.readouterr().err.count("reenact: ") == 1


@pytest.mark.parametrize("how", ["error", "killed", "well"])
def test_a_run_is_kept_if_one_of_its_processes_failed(tmp_path: Path, how: str) -> None:
    trace = Trace(tmp_path / "run.jsonl", retain="failed")
    trace.step("note")
    child = os.fork()
    if child == 0:
        trace.step("error" if how == "error" else "note")
        if how != "killed":
            trace.close()
        os._exit(0)
    os.waitpid(child, 0)
    trace.close()
    assert len(list(tmp_path.iterdir())) == (0 if how == "well" else 2)


def test_a_garbage_collection_calls_no_callback_that_waits_for_the_agents_lock() -> None:
    lock = threading.Lock()
    ends: list[str] = []

    def callback(event: dict[str, Any]) -> None:
        with lock:
            if event["kind"] == "run.end":
                ends.append(event["status"])

    tap: Any = Tap(writer=callback)
    tap.itself = tap  # so that only the collector finds it
    del tap
    with lock:
        gc.collect()
        assert ends == []
    assert flush()
    assert ends == ["unclosed"]
