"""1,000 runs at once through one shared client: what a call pays, what is held, who gets whose events."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from ..harness import Table, percentile, us
from ..wire.provider import provider

CALLS = 3
AT_ONCE = 64
"""Connections of the shared client; the other runs wait for one, as they do in a server."""


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    runs = 100 if quick else 1000
    for sdk in ("anthropic", "openai"):
        home = folder / sdk
        os.environ["REENACT_DIR"] = str(home)
        with provider() as url:
            bare = asyncio.run(_drive(sdk, url, runs, None))
            spent: dict[int, int] = {}
            ours = asyncio.run(_drive(sdk, url, runs, spent))
        each = [*spent.values()]
        table.add(
            f"{sdk}, {runs} runs: p99 inside recording, of one call",
            percentile(each, 0.99) / 1e6 if each else None,
            unit="ms",
            budget=1,
            ours=f"p50 {us(percentile(each, 0.5))}" if each else "",
        )
        table.add(
            f"{sdk}, {runs} runs: CPU time of one call, added",
            (ours["cpu"] - bare["cpu"]) / runs / CALLS / 1e6,
            unit="ms",
            ours=us(ours["cpu"] / runs / CALLS),
            against="bare",
            theirs=us(bare["cpu"] / runs / CALLS),
        )
        more = ours["fds"] - bare["fds"]
        table.add(f"{sdk}, {runs} idle runs: descriptors more than bare", more, unit="", budget=64)
        wrong, seen = _misplaced(home)
        table.add(f"{sdk}: events in a wrong run", wrong, unit="", budget=0, note=f"of {seen}")
        table.add(f"{sdk}: events missing", runs * CALLS * 2 - seen, unit="", budget=0)
    table.notes.append(
        f"{CALLS} calls a run through one tap.wrap()ped AsyncAnthropic or AsyncOpenAI of {AT_ONCE} connections, every other one "
        "streamed; the time is the CPU time of the event loop's thread inside Watch.begin and Exchange"
    )
    return table


async def _drive(sdk: str, url: str, runs: int, spent: dict[int, int] | None) -> dict[str, Any]:
    """Let every run make one call, look at the process while all are idle, let them make the others."""
    import reenact

    client, call = _client(sdk, url)
    if spent is not None:
        reenact.Tap().wrap(client)
        _time_recording(spent)
    ready: list[int] = []
    gate = asyncio.Event()

    async def agent(number: int) -> None:
        said: list[dict[str, Any]] = []
        with reenact.run(f"run-{number}") if spent is not None else open(os.devnull) as _:
            for turn in range(CALLS):
                said.append({"role": "user", "content": f"owner-{number} question {turn} " + "x" * 400})
                await call(said, turn % 2 == 1)
                said.append({"role": "assistant", "content": "Lisbon has seven hills."})
                if turn == 0:
                    ready.append(number)
                    await gate.wait()

    begun = time.process_time_ns()
    async with client:
        tasks = [asyncio.create_task(agent(number)) for number in range(runs)]
        while len(ready) < runs and not any(task.done() for task in tasks):
            await asyncio.sleep(0.01)
        fds = len(os.listdir("/proc/self/fd")) - (0 if spent is not None else runs)
        gate.set()
        await asyncio.gather(*tasks)
    return {"cpu": time.process_time_ns() - begun, "fds": fds}


def _client(sdk: str, url: str) -> tuple[Any, Any]:
    if sdk == "anthropic":
        import anthropic

        limits = anthropic.DefaultAsyncHttpxClient(limits=_limits(anthropic), timeout=300)
        client: Any = anthropic.AsyncAnthropic(api_key="none", base_url=f"{url}/s/text", http_client=limits)
        create, asked = client.messages.create, {"model": "claude-sonnet-4-6", "max_tokens": 100}
    else:
        import openai

        limits = openai.DefaultAsyncHttpxClient(limits=_limits(openai), timeout=300)
        client = openai.AsyncOpenAI(api_key="none", base_url=f"{url}/s/text/v1", http_client=limits)
        create, asked = client.chat.completions.create, {"model": "gpt-5-mini"}

    async def call(messages: list[dict[str, Any]], stream: bool) -> None:
        answer = await create(**asked, messages=messages, stream=stream)
        if stream:
            async for _ in answer:
                pass

    return client, call


def _limits(sdk: Any) -> Any:
    kind = type(sdk.DEFAULT_CONNECTION_LIMITS)
    return kind(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)


def _time_recording(spent: dict[int, int]) -> None:
    """Have every call's time inside the recorder added up, by its exchange."""
    from reenact.capture.http.exchange import Exchange
    from reenact.capture.http.watch import Watch

    clock = time.thread_time_ns
    keep: list[Any] = []  # an exchange that is gone would give its id to another

    def timed(owner: type, name: str, of_result: bool) -> None:
        inner = getattr(owner, name)

        def outer(self: Any, *args: Any, **named: Any) -> Any:
            begun = clock()
            result = inner(self, *args, **named)
            took = clock() - begun
            exchange = result if of_result else self
            if exchange is not None:
                if of_result:
                    keep.append(exchange)
                spent[id(exchange)] = spent.get(id(exchange), 0) + took
            return result

        setattr(owner, name, outer)

    timed(Watch, "begin", True)
    for name in ("answered", "chunk", "end"):
        timed(Exchange, name, False)


def _misplaced(folder: Path) -> tuple[int, int]:
    """Return (model events in a run of another name, model events seen), read without our own reader."""
    wrong = seen = 0
    for path in folder.rglob("*.jsonl"):
        owner, calls = "", set()
        for line in path.read_bytes().splitlines():
            event = json.loads(line)
            if event["kind"] == "run.start":
                owner = event["name"].removeprefix("run-")
            elif event["kind"] == "model.request":
                seen += 1
                calls.add(event["call"])
                wrong += f"owner-{owner} ".encode() not in line
            elif event["kind"] == "model.response":
                seen += 1
                wrong += event["call"] not in calls
    return wrong, seen
