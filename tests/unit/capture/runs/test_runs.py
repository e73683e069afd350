"""Runs: context manager, async, decorator on every kind of function; which run an event goes to."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact import RunContext, StepLog, Tap, Trace, UsageError
from support.capture_files import events, kinds, of, one


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("REENACT_DIR", str(tmp_path / "runs"))
    monkeypatch.delenv("REENACT_RUN", raising=False)
    monkeypatch.delenv("TRACEPARENT", raising=False)
    (tmp_path / "runs").mkdir()
    yield tmp_path / "runs"


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def test_a_block_is_a_run_with_its_input_name_and_metadata(folder: Path) -> None:
    with reenact.run("trip", input={"task": "Lisbon"}, metadata={"environment": "prod"}, redact=False) as run:
        Trace().step("work")
        StepLog().record_tool_call("t", {}, "out")
        Tap().record_tool_call("t", {})
        assert Trace().run_id == run.run_id and Trace().path == run.path
    (path,) = files(folder)
    assert "trip" in path.name and str(path) == run.path
    assert kinds(path) == ["run.start", "work", "tool_call", "tool.called", "run.end"]
    start = one(path, "run.start")
    assert (start["name"], start["input"], start["meta"]) == (
        "trip",
        {"task": "Lisbon"},
        {"environment": "prod"},
    )
    assert start["run"] == run.run_id and one(path, "run.end")["status"] == "ok"


def test_runs_nest_and_the_inner_one_names_its_parent(folder: Path) -> None:
    with reenact.run("outer", redact=False) as outer:
        Trace().step("before")
        with reenact.run("inner", redact=False) as inner:
            Trace().step("inside")
        Trace().step("after")
    assert kinds(outer.path) == ["run.start", "before", "after", "run.end"]
    assert kinds(inner.path) == ["run.start", "inside", "run.end"]
    assert one(inner.path, "run.start")["parent_run"] == outer.run_id


def test_without_a_run_events_go_to_the_processes_own(folder: Path) -> None:
    code = "from reenact import Tap, Trace\nTrace().step('a')\nTap().record_tool_call('t', {})\nTrace().step('b')"
    subprocess.run([sys.executable, "-c", code], check=True)
    (path,) = files(folder)
    assert kinds(path) == ["run.start", "a", "tool.called", "b", "run.end"]


@pytest.mark.parametrize("error", [None, ValueError("broke"), asyncio.CancelledError()])
def test_a_decorated_function_returns_and_raises_as_before(folder: Path, error: BaseException | None) -> None:
    @reenact.run
    def agent(task: str, *, depth: int = 1) -> str:
        """Its own words."""
        Trace().step("work")
        if error is not None:
            raise error
        return task * depth

    assert agent.__name__ == "agent" and agent.__doc__ == "Its own words."
    if error is None:
        assert agent("ab", depth=2) == "abab"
    else:
        with pytest.raises(type(error)) as caught:
            agent("ab", depth=2)
        assert caught.value is error
    (path,) = files(folder)
    start = one(path, "run.start")
    assert start["input"] == {"task": "ab", "depth": 2} and start["entry"].endswith("agent")
    end = one(path, "run.end")
    assert (
        end["status"]
        == {type(None): "ok", ValueError: "error", asyncio.CancelledError: "cancelled"}[type(error)]
    )
    if isinstance(error, ValueError):
        assert one(path, "error")["error"]["message"] == "broke"


def test_a_decorated_coroutine_is_a_run_a_call_also_when_many_run_at_once(folder: Path) -> None:
    @reenact.run("agent", redact=False)
    async def agent(n: int) -> int:
        Trace().step("work", of=n)
        await asyncio.sleep(0)
        Trace().step("work", of=n)
        if n == 3:
            raise LookupError("three")
        return n

    async def main() -> list[Any]:
        return await asyncio.gather(*(agent(n) for n in range(5)), return_exceptions=True)

    results = asyncio.run(main())
    assert results[:3] == [0, 1, 2] and isinstance(results[3], LookupError)
    assert len(files(folder)) == 5
    for path in files(folder):
        n = one(path, "run.start")["input"]["n"]
        assert [event["of"] for event in of(path, "work")] == [n, n]
        assert one(path, "run.end")["status"] == ("error" if n == 3 else "ok")


def test_a_decorated_generator_is_one_run_that_its_consumer_is_not_part_of(folder: Path) -> None:
    @reenact.run("gen", redact=False)
    def agent() -> Iterator[int]:
        Trace().step("inside", seq=1)
        got = yield 1
        Trace().step("inside", seq=2, got=got)
        try:
            yield 2
        except KeyError:
            yield 3
        return "end"  # type: ignore[return-value]

    with reenact.run("consumer", redact=False) as consumer:
        generator: Any = agent()
        assert next(generator) == 1
        Trace().step("outside")
        assert generator.send("sent") == 2
        Trace().step("outside")
        assert generator.throw(KeyError()) == 3
        with pytest.raises(StopIteration) as stop:
            next(generator)
        assert stop.value.value == "end"
        Trace().step("outside")
    (path,) = [path for path in files(folder) if str(path) != consumer.path]
    assert kinds(path) == ["run.start", "inside", "inside", "run.end"]
    assert of(path, "inside")[1]["got"] == "sent"
    assert kinds(consumer.path) == ["run.start", "outside", "outside", "outside", "run.end"]


def test_an_abandoned_generator_and_an_async_one_end_their_runs(folder: Path) -> None:
    @reenact.run("sync", redact=False)
    def agent() -> Iterator[int]:
        yield 1
        yield 2

    @reenact.run("async", redact=False)
    async def async_agent(fail: bool) -> AsyncIterator[int]:
        Trace().step("inside")
        yield 1
        if fail:
            raise ValueError("broke")
        yield 2

    for _ in agent():
        break

    async def main() -> None:
        assert [item async for item in async_agent(False)] == [1, 2]
        with pytest.raises(ValueError, match="broke"):
            [item async for item in async_agent(True)]

    asyncio.run(main())
    ends = {(one(path, "run.start")["name"], one(path, "run.end")["status"]) for path in files(folder)}
    assert len(files(folder)) == 3
    assert ends == {("sync", "ok"), ("async", "ok"), ("async", "error")}
    assert reenact.capture.runs.current.current_run.get() is None  # type: ignore[attr-defined]


def test_start_makes_a_context_that_writes_nothing_until_something_is_recorded(folder: Path) -> None:
    def body() -> None:
        first = RunContext.start("first")
        assert first.path is None and files(folder) == []
        Trace().step("one")
        second = RunContext.start("second")
        assert second.run_id != first.run_id
        assert one(first.path, "run.end")["status"] == "unclosed"
        assert second.path is None
        Trace().step("two")
        second.close()
        assert kinds(second.path) == ["run.start", "two", "run.end"]
        assert kinds(first.path) == ["run.start", "one", "run.end"]

    contextvars.copy_context().run(body)


def test_a_front_end_with_the_runs_own_id_and_a_path_is_that_run(folder: Path, tmp_path: Path) -> None:
    def body() -> None:
        context = RunContext.start("mine")
        log = StepLog(tmp_path / "steps.jsonl", run_id=context.run_id)
        log.record_tool_call("t", {}, "out")
        Trace().step("note")
        context.close()
        assert context.path == str(tmp_path / "steps.jsonl")

    contextvars.copy_context().run(body)
    assert kinds(tmp_path / "steps.jsonl") == ["run.start", "tool_call", "note", "run.end"]
    assert files(folder) == []


def test_bare_threads_lose_the_run_and_carry_keeps_it(folder: Path) -> None:
    code = """
import reenact
from concurrent.futures import ThreadPoolExecutor
def work(n):
    reenact.Trace().step("work", seq=n)
    return n
with ThreadPoolExecutor(4) as pool:
    with reenact.run("mine", redact=False):
        list(pool.map(work, range(5)))
        assert list(pool.map(reenact.carry(work), range(100, 120))) == list(range(100, 120))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    by_name = {one(path, "run.start").get("name"): path for path in files(folder)}
    assert sorted(event["seq"] for event in of(by_name["mine"], "work")) == list(range(100, 120))
    assert sorted(event["seq"] for event in of(by_name[None], "work")) == list(range(5))


def test_carry_keeps_arguments_result_exception_and_name(folder: Path) -> None:
    def work(a: int, *, b: int) -> int:
        Trace().step("work")
        if b == 0:
            raise ZeroDivisionError
        return a // b

    with reenact.run("mine", redact=False) as run:
        carried = reenact.carry(work)
    assert carried.__name__ == "work"
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ZeroDivisionError):
            pool.submit(carried, 6, b=0).result()
        assert pool.submit(carried, 6, b=3).result() == 2
    assert run.path is not None


def test_the_environment_names_the_one_open_run_and_is_restored(folder: Path, tmp_path: Path) -> None:
    assert "REENACT_RUN" not in os.environ
    with reenact.run("one", redact=False) as one_run:
        assert os.environ["REENACT_RUN"].startswith(one_run.run_id)
        assert one_run.run_id in os.environ["TRACEPARENT"]
        with reenact.run("two", redact=False) as two:
            assert two.env()["REENACT_RUN"].startswith(two.run_id)
            assert one_run.env()["REENACT_RUN"].startswith(one_run.run_id)
        assert os.environ["REENACT_RUN"].startswith(one_run.run_id)
    assert not os.environ.get("REENACT_RUN") and not os.environ.get("TRACEPARENT")


def test_wrong_arguments_are_reported_when_the_run_is_described_not_when_it_runs() -> None:
    for call in (
        lambda: reenact.run(5),
        lambda: reenact.run("x", nonsense=1),
        lambda: reenact.run("x", path="s3://bucket/key"),
        lambda: reenact.run("x", content="some"),
        lambda: RunContext.start(5),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError):
            call()


def test_an_event_of_another_thread_never_lands_in_a_run_it_does_not_belong_to(folder: Path) -> None:
    code = """
import threading, reenact
go, done = threading.Event(), threading.Event()
def bystander():
    go.wait()
    reenact.Trace().step("bystander")
    done.set()
t = threading.Thread(target=bystander); t.start()
with reenact.run("mine", redact=False) as run:
    go.set(); done.wait()
t.join()
print(run.path)
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert kinds(out.strip()) == ["run.start", "run.end"]
    assert threading.active_count() >= 1 and len(files(folder)) == 2
    assert sum(len(of(path, "bystander")) for path in files(folder)) == 1


def test_a_file_per_run_has_its_events_only(folder: Path) -> None:
    with reenact.run("a", redact=False) as a:
        pass
    assert [event["run"] for event in events(a.path)] == [a.run_id] * 2
