"""1,000 runs at once in one asyncio process: what a call pays, what an idle run holds, who gets whose events."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from ..baselines import available
from ..harness import Table, percentile, us
from ..workload import MODEL

CALLS = 6


def measure(quick: bool, folder: Path) -> Table:
    runs = 200 if quick else 1000
    os.environ["REENACT_DIR"] = str(folder / "runs")
    table = Table("")
    ours = asyncio.run(_ours(runs))
    article = asyncio.run(_article(runs, folder))
    table.add(
        f"{runs} runs: p99 of one model call's recording",
        percentile(ours["spent"], 0.99) / 1e6,
        unit="ms",
        budget=1,
        ours=f"p50 {us(percentile(ours['spent'], 0.5))}",
        against="article Trace per run",
        theirs=f"p50 {us(percentile(article['spent'], 0.5))}, p99 {us(percentile(article['spent'], 0.99))}",
    )
    table.add(
        f"{runs} idle runs: descriptors more than with none",
        ours["fds"],
        unit="",
        budget=64,
        against="article Trace per run",
        theirs=str(article["fds"]),
    )
    table.add(
        f"{runs} idle runs: memory of one",
        ours["rss"] / 1024 / runs,
        unit="KB",
        budget=64,
    )
    wrong, seen = _misplaced(folder / "runs")
    table.add("events in a wrong run", wrong, unit="", budget=0, note=f"of {seen}")
    table.add("events missing", runs * CALLS * 2 - seen, unit="", budget=0)
    table.notes.append(
        "one shared Tap without a path, the run found per call; a call is a request and its response"
    )
    return table


async def _ours(runs: int) -> dict[str, Any]:
    import reenact

    tap = reenact.Tap()

    async def agent(number: int, spent: list[int], gates: list[asyncio.Event], ready: list[int]) -> None:
        await gates[0].wait()
        with reenact.run(f"run-{number}", input={"task": number}):
            for turn in range(CALLS):
                begin = time.perf_counter_ns()
                call = tap.record_model_request(request(number, turn), provider="anthropic")
                paid = time.perf_counter_ns() - begin
                await asyncio.sleep(0)
                begin = time.perf_counter_ns()
                tap.record_model_response(response(number, turn), call=call)
                spent.append(paid + time.perf_counter_ns() - begin)
                if turn == 0:
                    ready.append(number)
                    await gates[1].wait()
                await asyncio.sleep(0)

    return await _drive(agent, runs)


async def _article(runs: int, folder: Path) -> dict[str, Any]:
    make = available(["article Trace"])[0]["article Trace"]

    async def agent(number: int, spent: list[int], gates: list[asyncio.Event], ready: list[int]) -> None:
        await gates[0].wait()
        trace = make(folder / "article" / f"{number}.jsonl")
        for turn in range(CALLS):
            begin = time.perf_counter_ns()
            trace.record("request", request(number, turn))
            trace.record("response", response(number, turn))
            spent.append(time.perf_counter_ns() - begin)
            if turn == 0:
                ready.append(number)
                await gates[1].wait()
            await asyncio.sleep(0)
        trace.close()

    return await _drive(agent, runs)


async def _drive(agent: Any, runs: int) -> dict[str, Any]:
    """Start all agents, let each record one call, look at the process while all are idle, let them finish."""
    spent: list[int] = []
    ready: list[int] = []
    gates = [asyncio.Event(), asyncio.Event()]
    tasks = [asyncio.create_task(agent(number, spent, gates, ready)) for number in range(runs)]
    await asyncio.sleep(0.05)
    fds, rss = len(os.listdir("/proc/self/fd")), _rss()
    gates[0].set()
    while len(ready) < runs and not any(task.done() for task in tasks):
        await asyncio.sleep(0.01)
    idle = {"fds": len(os.listdir("/proc/self/fd")) - fds, "rss": _rss() - rss}
    gates[1].set()
    await asyncio.gather(*tasks)
    return {"spent": spent, **idle}


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def request(run: int, turn: int) -> dict[str, Any]:
    history = [{"role": "user", "content": f"owner-{run} question {n} " + "x" * 400} for n in range(turn + 1)]
    return {"model": MODEL, "max_tokens": 1024, "system": "Be brief.", "messages": history}


def response(run: int, turn: int) -> dict[str, Any]:
    return {
        "id": f"msg_{run}_{turn}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": f"owner-{run} answer {turn} " + "y" * 300}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 50, "output_tokens": 30},
    }


def _misplaced(folder: Path) -> tuple[int, int]:
    """Return (events in a run of another name, model events seen), read without our own reader."""
    wrong = seen = 0
    for path in folder.rglob("*.jsonl"):
        owners: dict[str, str] = {}
        for line in path.read_bytes().splitlines():
            event = json.loads(line)
            if event["kind"] == "run.start":
                owners[event["run"]] = event["name"].removeprefix("run-")
            elif event["kind"].startswith("model."):
                seen += 1
                wrong += f"owner-{owners.get(event['run'])} ".encode() not in line
    return wrong, seen
