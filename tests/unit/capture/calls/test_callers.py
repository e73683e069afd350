"""Callers: threads, tasks and work items have names by the way they were started, and the work notices nothing."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import functools
import gc
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextvars import copy_context
from multiprocessing.pool import ThreadPool
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import ReferenceType, ref

import anyio.to_thread
import pytest
import uvloop

import reenact
from reenact.capture import guard
from reenact.capture.calls import callers
from reenact.capture.calls.callers import caller_fields, caller_name

PATCHED = {
    (threading.Thread, "start"),
    (threading.Thread, "_bootstrap_inner"),
    (concurrent.futures.thread._WorkItem, "__init__"),
    (concurrent.futures.thread._WorkItem, "run"),
    (asyncio.BaseEventLoop, "create_task"),
    (asyncio.tasks, "as_completed"),
    (asyncio, "as_completed"),
    (uvloop.Loop, "create_task"),
}


@pytest.fixture
def installed() -> Iterator[None]:
    reenact.install()
    yield
    reenact.uninstall()


async def vote() -> str | None:
    await asyncio.sleep(0)
    return caller_name()


def in_threads(*targets: Callable[[], Any]) -> list[Any]:
    found: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda n=n, each=each: found.update({n: each()}))
        for n, each in enumerate(targets)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return [found[n] for n in range(len(targets))]


def test_no_caller_is_known_without_recording() -> None:
    assert caller_name() is None
    assert in_threads(caller_name) == [None]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["asyncio.events", "reenact.capture.runs.current", "trio.lowlevel"])
def test_a_module_that_another_thread_still_imports_is_not_used(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    assert caller_name() == "main"


@pytest.mark.usefixtures("installed")
class TestNames:
    def test_of_threads(self) -> None:
        assert caller_name() == "main"
        first, second = in_threads(caller_name, lambda: in_threads(caller_name))
        assert (first, second) == ("main/<lambda>.0", ["main/<lambda>.1/<lambda>.0"])

    def test_of_a_class_of_threads(self) -> None:
        class Worker(threading.Thread):
            def run(self) -> None:
                self.caller = caller_name()

        worker = Worker()
        worker.start()
        worker.join()
        assert worker.caller == "main/Worker.0"

    def test_of_work_in_a_pool_whichever_thread_does_it(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda _: caller_name(), range(3))) == [
                f"main/<lambda>.{n}" for n in range(3)
            ]
            assert pool.submit(caller_name).result() == "main/caller_name.0"
            assert pool.submit(functools.partial(caller_name)).result() == "main/caller_name.1"
            nested = pool.submit(lambda: in_threads(caller_name)).result()
        assert nested == ["main/<lambda>.3/<lambda>.0"]

    def test_of_work_in_a_copied_context(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            found = [pool.submit(copy_context().run, caller_name) for _ in range(2)]
            assert [each.result() for each in found] == ["main/run.0", "main/run.1"]
        assert in_threads(functools.partial(copy_context().run, caller_name)) == ["main/<lambda>.0"]

    @pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
    def test_of_tasks(self, run: Callable[[Any], Any]) -> None:
        async def main() -> list[Any]:
            async with asyncio.TaskGroup() as group:
                grouped = [group.create_task(vote()) for _ in range(2)]
            return [
                caller_name(),
                *await asyncio.gather(vote(), vote()),
                *(each.result() for each in grouped),
                await asyncio.to_thread(caller_name),
                await asyncio.get_running_loop().run_in_executor(None, caller_name),
            ]

        main_task, *others = run(main())
        names = ["vote.2", "vote.3", "vote.0", "vote.1", "run.0", "caller_name.0"]
        assert others == [f"{main_task}/{name}" for name in names]
        assert main_task == ("main" if run is asyncio.run else main_task)

    def test_of_coroutines_that_as_completed_starts_in_any_order(self) -> None:
        async def job(number: int) -> tuple[int, str | None]:
            return number, await vote()

        async def main() -> list[Any]:
            return [await each for each in asyncio.as_completed([job(n) for n in range(20)])]

        assert sorted(asyncio.run(main())) == [(n, f"main/job.{n}") for n in range(20)]

    def test_of_coroutines_that_a_thread_hands_to_a_loop(self) -> None:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()

        def hand_over() -> list[str | None]:
            handed = [asyncio.run_coroutine_threadsafe(vote(), loop) for _ in range(2)]
            return [each.result() for each in handed]

        assert in_threads(hand_over, hand_over) == [
            [f"main/<lambda>.{n}/vote.0", f"main/<lambda>.{n}/vote.1"] for n in range(2)
        ]
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def test_that_are_not_known_are_not_guessed(self) -> None:
        async def main() -> Any:
            return await anyio.to_thread.run_sync(caller_name), await asyncio.Task(vote())

        assert asyncio.run(main()) == (None, None)

    def test_of_threads_that_share_the_work_by_chance_are_not_known(self) -> None:
        with ThreadPool(2) as pool:
            assert pool.map(lambda _: caller_name(), range(3)) == [None] * 3

    def test_of_a_task_created_by_keyword(self) -> None:
        async def main() -> str | None:
            return await asyncio.get_running_loop().create_task(coro=vote())

        assert asyncio.run(main()) == "main/vote.0"

    if sys.version_info >= (3, 12):  # eager tasks

        def test_of_eager_tasks(self) -> None:
            async def main() -> list[Any]:
                loop: Any = asyncio.get_running_loop()
                loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]
                return await asyncio.create_task(eager(loop))

            async def eager(loop: Any) -> list[str | None]:
                unknown: Any = asyncio.Task(vote(), loop=loop, eager_start=True)  # type: ignore[call-arg]
                return [caller_name(), await asyncio.create_task(vote()), await unknown, caller_name()]

            assert asyncio.run(main()) == ["main/eager.0", "main/eager.0/vote.0", None, "main/eager.0"]

    def test_run_no_code_of_the_work(self) -> None:
        class Job:
            def __call__(self) -> None:
                found.append(caller_name())

            def __getattr__(self, name: str) -> Any:
                raise AssertionError

        found: list[str | None] = []
        with ThreadPoolExecutor(1) as pool:
            pool.submit(Job()).result()
        assert found == ["main/Job.0"]

    def test_stay_short_where_each_task_creates_the_next(self) -> None:
        async def step(left: int) -> str:
            return str(caller_name()) if left == 0 else await asyncio.create_task(step(left - 1))

        names = {asyncio.run(step(left)) for left in (3, 300, 301)}
        assert len(names) == 3 and max(map(len, names)) <= callers.MAX_PATH

    def test_begin_again_in_a_run(self, tmp_path: Path) -> None:
        in_threads(caller_name)
        for n in range(2):
            with reenact.run(path=tmp_path / f"{n}.jsonl"), ThreadPoolExecutor(1) as pool:
                assert caller_name() == "main"
                assert pool.submit(reenact.carry(caller_name)).result() == "main/caller_name.0"
        assert in_threads(caller_name) == ["main/<lambda>.1"]


def test_threads_from_before_are_not_known() -> None:
    go, found = threading.Event(), []
    thread = threading.Thread(target=lambda: (go.wait(), found.append(caller_name())))
    thread.start()
    reenact.install()
    try:
        go.set()
        thread.join()
    finally:
        reenact.uninstall()
    assert found == [None]


# What the agent could notice.


def test_everything_is_as_it_was_afterwards() -> None:
    before = {each: vars(each[0]).get(each[1]) for each in PATCHED}
    signatures = {each: inspect.signature(getattr(*each)) for each in PATCHED}
    reenact.install()
    try:
        for each in PATCHED:
            assert getattr(*each) is not before[each]
            assert getattr(*each).__qualname__ == getattr(each[0], each[1]).__wrapped__.__qualname__
            assert inspect.signature(getattr(*each)) == signatures[each]
    finally:
        reenact.uninstall()
    assert {each: vars(each[0]).get(each[1]) for each in PATCHED} == before


def raise_it() -> None:
    raise ValueError("of the agent")


@pytest.mark.usefixtures("installed")
def test_no_frame_of_ours_is_in_a_traceback_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[BaseException] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_value))
    thread = threading.Thread(target=raise_it)
    thread.start()
    thread.join()

    async def raise_soon() -> None:
        raise_it()

    async def main() -> None:
        seen.extend(await asyncio.gather(raise_soon(), asyncio.to_thread(raise_it), return_exceptions=True))

    asyncio.run(main())
    with ThreadPoolExecutor(1) as pool:
        seen.append(pool.submit(raise_it).exception() or AssertionError())
    assert len(seen) == 4
    for each in seen:
        frames = traceback.extract_tb(each.__traceback__)
        assert not [
            frame for frame in frames if "reenact" in frame.filename and "tests" not in frame.filename
        ]


def test_a_task_shows_where_it_was_created() -> None:
    async def main() -> list[str]:
        task: Any = asyncio.create_task(vote())
        await task
        return [frame.name for frame in task._source_traceback]

    bare = asyncio.run(main(), debug=True)
    reenact.install()
    try:
        assert asyncio.run(main(), debug=True) == bare
    finally:
        reenact.uninstall()


@pytest.mark.usefixtures("installed")
def test_work_runs_where_it_cannot_be_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("of ours")

    guard.forget()
    monkeypatch.setattr(callers, "current", fail)
    assert in_threads(lambda: 1, lambda: 2) == [1, 2]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(abs, -3).result() == 3

    async def main() -> list[int]:
        return [await each for each in asyncio.as_completed([asyncio.sleep(0, 4)])]

    assert asyncio.run(main()) == [4]
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("reenact: could not name a new thread or task"), lines


class Held:
    """Shows whether the frames of an exception are still there."""


@pytest.mark.parametrize("how", ["pool", "task"])
@pytest.mark.usefixtures("installed")
def test_an_exception_is_freed_without_the_collector(how: str) -> None:
    held: list[ReferenceType[Held]] = []

    def fail() -> None:
        local = Held()
        held.append(ref(local))
        raise ValueError("of the agent")

    async def fail_soon() -> None:
        fail()

    async def main() -> None:
        task = asyncio.create_task(fail_soon())
        await asyncio.wait([task])
        assert type(task.exception()) is ValueError

    gc.collect()
    gc.disable()
    try:
        if how == "pool":
            with ThreadPoolExecutor(1) as pool:
                assert type(pool.submit(fail).exception()) is ValueError
                pool.submit(str).result()
        else:
            asyncio.run(main())
        assert [each() for each in held] == [None]
    finally:
        gc.enable()


@pytest.mark.usefixtures("installed")
def test_runs_leave_nothing_behind(tmp_path: Path) -> None:
    """The ends of threads are noted for the next call of their run, and there may be none."""

    def call() -> None:
        callers.caller_fields()

    with reenact.run(path=tmp_path / "a.jsonl") as run:
        noted: Any = run.caller
        with ThreadPoolExecutor(1) as pool:
            pool.submit(reenact.carry(call)).result()
        assert noted.ended == ["main/call.0"]
    gone = ref(run)
    del run
    gc.collect()
    assert gone() is None and callers.caller_fields() == {"who": "main"}


@pytest.mark.usefixtures("installed")
def test_work_goes_to_another_process_as_it_is() -> None:
    with ProcessPoolExecutor(1) as pool:
        assert pool.submit(abs, -3).result() == 3


@pytest.mark.usefixtures("installed")
def test_a_task_created_in_a_finaliser_touches_no_context_variable() -> None:
    """On Python 3.11 that could crash the process."""
    changed: list[bool] = []

    class Client:
        def __del__(self) -> None:
            before = dict(copy_context())
            self.closing = asyncio.get_running_loop().create_task(vote())
            changed.append(dict(copy_context()) != before)
            tasks.append(self.closing)

    async def main() -> None:
        client: Any = Client()
        client.itself = client
        del client
        gc.collect()
        await asyncio.gather(*tasks)

    tasks: list[asyncio.Task[Any]] = []
    asyncio.run(main())
    assert changed == [False]


def test_work_ends_when_those_who_wait_can_see_it(installed: None) -> None:
    """A callback of the agent lets other threads run, as that of an event loop does: they end later."""
    may_end, has_ended = threading.Event(), threading.Event()
    calls: list[dict[str, Any]] = []

    def work() -> None:
        calls.append(caller_fields())
        may_end.wait(60)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(work)
        first.add_done_callback(lambda _: has_ended.wait(60))
        may_end.set()
        first.result(60)
        pool.submit(work).result(60)
        has_ended.set()
    calls.append(caller_fields())
    assert [each.get("done") for each in calls] == [None, ["main/work.0"], ["main/work.1"]]
