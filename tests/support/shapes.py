"""Agents of seven shapes, in threads and in tasks, that call a real provider over HTTP.

Each returns all that it saw, in the order it saw it. Equal requests get different answers, so an answer that
reaches the wrong thread or task shows. ``Change`` makes them request something else, more, less, or in another order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import count
from threading import Event, Thread
from typing import Any

import httpx

EDITED, INSERTED, OMITTED, SWAPPED = "edited", "inserted", "omitted", "swapped"


@dataclass
class Change:
    """How an agent differs from the recorded one: at which of its requests, or in the order of two steps."""

    what: str = ""
    at: int = -1

    def __post_init__(self) -> None:
        self._numbers = count()

    def texts(self, text: str) -> list[str]:
        """The requests in place of a text; the answer to the last one counts."""
        if next(self._numbers) != self.at:
            return [text]
        return {EDITED: [f"{text}, please"], INSERTED: ["one more thing", text], OMITTED: []}[self.what]

    @property
    def steps(self) -> list[str]:
        """Two steps that do not depend on each other."""
        return ["look right", "look left"] if self.what == SWAPPED else ["look left", "look right"]


def _body(text: str) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}


def _text(response: httpx.Response) -> str:
    return str(response.raise_for_status().json()["content"][0]["text"])


def _set_once_awaited(future: Any, is_awaited: Event) -> None:
    """Those that are done before ``as_completed`` begins come in the order of a set: by chance, whoever runs them."""
    while not future._waiters:
        time.sleep(0.001)
    is_awaited.set()


class Threads:
    """Calls the model in the thread at hand."""

    def __init__(self, url: str, change: Change) -> None:
        self.url, self.change = url, change
        self.client = httpx.Client(trust_env=False, timeout=60)

    def ask(self, text: str) -> str:
        answer = ""
        for each in self.change.texts(text):
            answer = _text(self.client.post(self.url, json=_body(each)))
        return answer

    def sequential(self) -> Any:
        plan = self.ask("plan")
        seen = [self.ask(step) for step in self.change.steps]
        return self.ask(f"{plan} {seen}")

    def gather(self) -> Any:
        def part(number: int) -> list[str]:
            return [self.ask(f"{step} of {number}") for step in self.change.steps]

        with ThreadPoolExecutor(3) as pool:
            return self.ask(str(list(pool.map(part, range(3)))))

    def repeated(self) -> Any:
        return self.ask(str([self.ask("another joke") for _ in range(4)]))

    def equal_at_once(self) -> Any:
        with ThreadPoolExecutor(4) as pool:
            return self.ask(str(list(pool.map(self.ask, ["vote"] * 4))))

    def as_completed(self) -> Any:
        seen: list[str] = []
        is_awaited = Event()

        def visit(number: int) -> str:
            is_awaited.wait()
            return self.ask(f"site {number // 2}")

        with ThreadPoolExecutor(4) as pool:
            visits = [pool.submit(visit, number) for number in range(4)]
            Thread(target=_set_once_awaited, args=(visits[0], is_awaited)).start()
            for each in as_completed(visits):
                seen.append(each.result())
        seen += [self.ask(step) for step in self.change.steps]
        return self.ask(f"in this order: {seen}")

    def pool_of_two(self) -> Any:
        def job(number: int) -> str:
            card = self.ask("draw a card")
            looked = [self.ask(step) for step in self.change.steps] if number == 2 else []
            return self.ask(f"job {number} has {card} {looked}")

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(job, range(4)))

    def three_agents(self) -> Any:
        seen: dict[str, list[str]] = {"ann": [], "ben": [], "cyd": []}
        failed: list[BaseException] = []

        def agent(name: str) -> None:
            try:
                seen[name].append(self.ask("begin"))
                seen[name] += [self.ask(f"{name}: {step}") for step in self.change.steps]
                seen[name].append(self.ask(f"{name} goes on from {seen[name]}"))
            except BaseException as exc:
                failed.append(exc)

        threads = [Thread(target=agent, args=(name,)) for name in seen]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if failed:
            raise failed[0]
        return seen


class Tasks:
    """Calls the model in the task at hand."""

    def __init__(self, url: str, change: Change) -> None:
        self.url, self.change = url, change
        self.client = httpx.AsyncClient(trust_env=False, timeout=60)

    async def ask(self, text: str) -> str:
        answer = ""
        for each in self.change.texts(text):
            answer = _text(await self.client.post(self.url, json=_body(each)))
        return answer

    async def sequential(self) -> Any:
        plan = await self.ask("plan")
        seen = [await self.ask(step) for step in self.change.steps]
        return await self.ask(f"{plan} {seen}")

    async def gather(self) -> Any:
        async def part(number: int) -> list[str]:
            return [await self.ask(f"{step} of {number}") for step in self.change.steps]

        return await self.ask(str(await asyncio.gather(*map(part, range(3)))))

    async def repeated(self) -> Any:
        return await self.ask(str([await self.ask("another joke") for _ in range(4)]))

    async def equal_at_once(self) -> Any:
        return await self.ask(str(await asyncio.gather(*map(self.ask, ["vote"] * 4))))

    async def as_completed(self) -> Any:
        seen: list[str] = []
        for each in asyncio.as_completed([self.ask(f"site {n // 2}") for n in range(4)]):
            seen.append(await each)
            seen.append(await self.ask(f"so far: {seen}"))
        seen += [await self.ask(step) for step in self.change.steps]
        return await self.ask(f"in this order: {seen}")

    async def pool_of_two(self) -> Any:
        room, done = asyncio.Semaphore(2), []

        async def job(number: int) -> None:
            async with room:
                card = await self.ask("draw a card")
                looked = [await self.ask(step) for step in self.change.steps] if number == 2 else []
                done.append(await self.ask(f"job {number} has {card} {looked}, done before: {len(done)}"))

        await asyncio.gather(*map(job, range(4)))
        return done

    async def three_agents(self) -> Any:
        board: list[str] = []

        async def agent(name: str) -> None:
            board.append(await self.ask("begin"))
            seen = [await self.ask(f"{name}: {step}") for step in self.change.steps]
            board.append(await self.ask(f"{name} goes on from {seen} and {board}"))

        async with asyncio.TaskGroup() as group:
            for name in ("ann", "ben", "cyd"):
                group.create_task(agent(name))
        return board


SHAPES = (
    "sequential", "gather", "repeated", "equal_at_once", "as_completed", "pool_of_two", "three_agents",
)  # fmt: skip


def agent_of(kind: str, shape: str, url: str, change: Change | None = None) -> Callable[[], Any]:
    """An agent of ``threads`` or ``tasks``, to be called once."""
    change = change or Change()
    if kind == "threads":
        threads = Threads(url, change)

        def run() -> Any:
            with threads.client:
                return getattr(threads, shape)()

        return run

    async def main() -> Any:
        tasks = Tasks(url, change)
        async with tasks.client:
            return await getattr(tasks, shape)()

    return lambda: asyncio.run(main())
