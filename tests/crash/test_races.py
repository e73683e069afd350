"""Threads and tasks that begin, share and leave runs at the same moment: one recorder a run, every run ended."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact import RunContext, Tap, Trace
from reenact.capture.runs.current import current_run


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("REENACT_DIR", str(tmp_path))
    monkeypatch.delenv("REENACT_RUN", raising=False)
    monkeypatch.delenv("TRACEPARENT", raising=False)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    current_run.set(None)


def at_once(count: int, work: Callable[[], object]) -> list[str]:
    """Run the function in so many threads at the same moment; returns what they raised."""
    raised: list[str] = []
    ready = threading.Barrier(count)

    def one() -> None:
        ready.wait()
        try:
            work()
        except BaseException as exc:
            raised.append(repr(exc))

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(one,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_bytes().splitlines()]


def test_every_run_of_many_threads_is_ended_as_it_was_left(tmp_path: Path, capsys: Any) -> None:
    def work() -> None:
        for _ in range(40):
            with reenact.run("trip"):
                pass

    assert at_once(8, work) == []
    assert capsys.readouterr().err == ""
    ends = [event["status"] for event in events(tmp_path) if event["kind"] == "run.end"]
    assert ends == ["ok"] * 320


def test_the_environment_can_be_copied_while_other_threads_begin_and_end_runs(tmp_path: Path) -> None:
    def work() -> None:
        for _ in range(50):
            with reenact.run("trip"):
                os.environ.copy()

    assert at_once(4, work) == []
    assert not os.environ.get("REENACT_RUN") and not os.environ.get("TRACEPARENT")


def test_a_variable_the_agent_sets_during_a_run_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with reenact.run("trip"):
        assert os.environ["TRACEPARENT"]
        monkeypatch.setenv("TRACEPARENT", "the agent's own")
    assert os.environ["TRACEPARENT"] == "the agent's own"
    assert not os.environ.get("REENACT_RUN")


def test_one_run_object_entered_by_many_threads_keeps_them_apart(tmp_path: Path) -> None:
    shared = reenact.run("trip")

    def work() -> None:
        for _ in range(60):
            with shared as run:
                Trace().step("note", mine=run.run_id)

    assert at_once(8, work) == []
    found = events(tmp_path)
    assert all(event["mine"] == event["run"] for event in found if event["kind"] == "note")
    kinds = Counter(event["kind"] for event in found)
    kinds.pop("proc.note", None)  # a slow disk may be remarked upon
    assert kinds == {"run.start": 480, "note": 480, "run.end": 480}


def test_the_first_events_of_a_run_from_many_threads_share_one_recorder(tmp_path: Path) -> None:
    for _ in range(20):
        RunContext.start("trip")
        assert at_once(6, lambda: Trace().step("note")) == []
    RunContext.start("last")
    starts = Counter(event["run"] for event in events(tmp_path) if event["kind"] == "run.start")
    assert set(starts.values()) == {1} and len(starts) == 20


def test_a_task_that_starts_a_run_does_not_end_the_one_it_was_begun_in(tmp_path: Path) -> None:
    async def helper() -> None:
        RunContext.start("helper")
        Trace().step("note", where="helper")

    async def main() -> None:
        RunContext.start("main")
        Trace().step("note", where="main")
        await asyncio.gather(helper(), helper())
        Trace().step("note", where="main")
        RunContext.start("next")

    asyncio.run(main())
    found = events(tmp_path)
    main_run = next(event for event in found if event.get("name") == "main")["run"]
    mine = [event for event in found if event["run"] == main_run]
    assert [event["kind"] for event in mine] == ["run.start", "note", "note", "run.end"]
    helpers = [event for event in found if event.get("name") == "helper"]
    assert [event["parent_run"] for event in helpers] == [main_run, main_run]


def test_a_run_with_a_relative_path_stays_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with reenact.run("trip", path="run.jsonl") as run:
        monkeypatch.chdir("elsewhere")
        assert run.path == str(tmp_path / "run.jsonl")


@pytest.mark.parametrize("arguments", [{"name": 5}, {"run_id": 5}])
def test_a_name_or_id_that_is_no_text_is_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises(reenact.UsageError):
        RunContext(**arguments)


def test_calls_begun_by_many_threads_at_once_have_ids_of_their_own() -> None:
    for _ in range(100):
        calls: list[str] = []
        tap = Tap(writer=lambda event: None)
        assert at_once(6, lambda: calls.append(tap.record_tool_call("search", {}))) == []
        assert len(set(calls)) == 6
        tap.close()
