"""What code pays for being watched while it makes no call: a function of a tool, a thread, a task."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from threading import Thread
from types import FunctionType, ModuleType
from typing import Any

from reenact import install, uninstall
from reenact.capture.calls.open_calls import OpenUse, calls_of, open_uses
from reenact.capture.front.options import Options
from reenact.capture.recorder.recorder import begin_run
from reenact.capture.tools.finder import Finder
from reenact.capture.tools.watching import unwatch_all, watch
from reenact.wire.neutral import ToolUse

from ..harness import Table, interleave, us

BUDGET_US = 0.5


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    calls = 1_000_000 if quick else 10_000_000
    recorder = begin_run(str(folder / "run.jsonl"), Options())
    other = OpenUse(calls_of(recorder), "call", ToolUse("t1", "other", {}))
    other.recorder = recorder
    for what, uses in (("no tool use open", []), ("a use of another tool open", [other])):
        open_uses.extend(uses)
        bare, watched = _spent(calls)
        open_uses.clear()
        table.add(
            f"one call of a watched function, {what}",
            (watched - bare) / calls * 1e6,
            unit="µs",
            budget=BUDGET_US,
            ours=f"{watched / calls * 1e9:.0f} ns",
            against="the same function bare",
            theirs=f"{bare / calls * 1e9:.0f} ns",
        )
    _add_search(table, recorder, 5 if quick else 25)
    recorder.close("ok")
    table.notes.append(f"CPU time of {calls:,} calls in ten rounds, bare and watched in turn")
    _add_callers(table, 500 if quick else 5_000)
    return table


def _spent(calls: int) -> tuple[float, float]:
    """Return the CPU seconds of these calls, bare and watched; half of them each way in turn."""
    spent = [0.0, 0.0]
    for _ in range(10):
        for way, is_watched in enumerate((False, True)):
            function: Any = _made()
            if is_watched:
                assert watch(function, "lookup") == ""
            began = time.process_time()
            for number in range(calls // 10):
                function(number, 2)
            spent[way] += time.process_time() - began
            unwatch_all()
    return spent[0], spent[1]


def _made() -> Any:
    def lookup(city: object, days: int) -> object:
        return city

    return lookup


# Looking for the function of a tool in a large program.

MODULES, OBJECTS = 3_000, 400_000
SEARCH_MS = 5.0


def _add_search(table: Table, recorder: Any, rounds: int) -> None:
    """Measure how long a response waits while the functions of its tools are looked for."""
    program = [{"number": number, "text": [number]} for number in range(OBJECTS // 2)]
    modules = [_module(number) for number in range(MODULES)]
    try:
        for where, name in (
            ("in one of the modules", "work_1701_3"),
            ("inside a running function", "nested"),
            ("nowhere", "nobody"),
        ):
            spent = [_searched(recorder, name) * 1e3 for _ in range(rounds)]
            table.add(
                f"the search for a tool's function {where}",
                median(spent),
                unit="ms",
                budget=SEARCH_MS,
                ours=f"{min(spent):.1f} to {max(spent):.1f} ms",
            )
    finally:
        for module in modules:
            del sys.modules[module.__name__]
        program.clear()
    table.notes.append(
        f"searches: CPU time of the thread, {MODULES:,} modules and {OBJECTS:,} tracked objects"
    )


def _module(number: int) -> ModuleType:
    """Make a module; every third one is the user's, with ten functions."""
    module = ModuleType(f"of_benchmark_{number}")
    module.__file__ = f"/{'project' if number % 3 == 0 else 'site-packages'}/{module.__name__}.py"
    code = compile("def work(city, days): return city", module.__file__, "exec").co_consts[0]
    for at in range(10):
        name = f"work_{number}_{at}"
        setattr(module, name, FunctionType(code.replace(co_name=name, co_qualname=name), vars(module)))
    sys.modules[module.__name__] = module
    return module


def _searched(recorder: Any, name: str) -> float:
    def nested(city: object, days: int) -> object:
        return city

    use = OpenUse(calls_of(recorder), "call", ToolUse("t1", name, {"city": "Oslo", "days": 2}))
    finder = Finder({})
    began = time.thread_time()
    finder.opened(recorder, [use])
    spent = time.thread_time() - began
    open_uses.clear()
    unwatch_all()
    assert (name in finder.missing) == (name == "nobody"), finder.missing
    return spent


# Threads, work items and tasks: each gets a name where it is started.


def _threads(count: int) -> None:
    for _ in range(count):
        thread = Thread(target=int)
        thread.start()
        thread.join()


def _work_items(count: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        for _ in range(count):
            pool.submit(int).result()


def _tasks(count: int) -> None:
    async def nothing() -> None:
        pass

    async def main() -> None:
        for _ in range(count):
            await asyncio.create_task(nothing())

    asyncio.run(main())


def _add_callers(table: Table, count: int) -> None:
    ways = {"bare": (int, int), "ours": (install, uninstall)}
    try:
        from opentelemetry.instrumentation.threading import ThreadingInstrumentor
    except ImportError:
        table.notes.append("OpenTelemetry's instrumentation of threading is not installed")
    else:
        ways["OpenTelemetry"] = ThreadingInstrumentor().instrument, ThreadingInstrumentor().uninstrument
    starts = {"thread": _threads, "work item of a thread pool": _work_items, "task": _tasks}
    for what, start in starts.items():
        rounds = interleave({way: _timed(start, count, *hooks) for way, hooks in ways.items()}, 10)
        spent = {way: min(found) / count * 1e9 for way, found in rounds.items()}
        for other in (way for way in ways if way != "ours"):
            ours, theirs = us(spent["ours"]), us(spent[other])
            table.add(
                f"start and end of a {what}",
                spent["ours"] / spent[other],
                ours=ours,
                against=other,
                theirs=theirs,
            )
    table.notes.append(
        f"threads, work items and tasks: CPU time of the process for {count:,}, the lowest of ten rounds"
    )


def _timed(start: Callable[[int], None], count: int, begin: Any, end: Any) -> Callable[[], float]:
    def spent() -> float:
        begin()
        began = time.process_time()
        start(count)
        seconds = time.process_time() - began
        end()
        return seconds

    return spent
