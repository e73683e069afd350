"""Agents of seven shapes, recorded through ``Tap`` with random latencies and run again from their recordings.

An agent is a function of an ``io`` with ``ask`` and ``tool``. What it returns tells everything it saw and in which
order, so that two runs are the same if they return the same. Time is virtual while recording: a latency of half a
second costs nothing, and no two answers come at once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from reenact import Tap
from reenact.playback.matching.frontier import Miss, Served
from reenact.playback.matching.player import Player
from reenact.playback.matching.request import MODEL, Request
from reenact.playback.matching.tape import Tape

URL = "https://api.anthropic.com/v1/messages"
NO_ANSWER = {"content": [{"type": "text", "text": "no answer recorded"}], "found": None}
Agent = Callable[[Any], Awaitable[Any]]


class Diverged(BaseException):
    """What a miss raises; no agent catches it by accident."""

    def __init__(self, found: Miss) -> None:
        super().__init__(found.code)
        self.found = found


class VirtualTime(asyncio.SelectorEventLoop):
    """A loop that does not sleep but puts its clock forward."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        select = self._selector.select

        def jump(timeout: float | None = None) -> Any:
            self._now += timeout or 0.0
            return select(0)

        self._selector.select = jump

    def time(self) -> float:
        return self._now


def body(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-6", "max_tokens": 64, "messages": messages, **more}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


class Recorded:
    """Answers nobody can guess, late by chance, all of it recorded."""

    def __init__(self, tap: Tap, rng: random.Random) -> None:
        self.tap, self.rng = tap, rng

    async def ask(self, messages: list[Any], lane: str = "main") -> dict[str, Any]:
        call = self.tap.record_model_request(body(messages), lane=lane, url=URL)
        await asyncio.sleep(self.rng.uniform(0.001, 0.5))
        text = f"{messages[-1]['content']} -> {self.rng.getrandbits(48)}"
        answer = {
            "id": f"msg_{self.rng.getrandbits(48):x}", "type": "message", "role": "assistant",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        }  # fmt: skip
        self.tap.record_model_response(answer, call=call, status=200)
        return answer

    async def tool(self, name: str, **args: Any) -> Any:
        call = self.tap.record_tool_call(name, args)
        await asyncio.sleep(self.rng.uniform(0.001, 0.5))
        result = {"tool": name, "found": self.rng.getrandbits(48)}
        self.tap.record_tool_result(name, result, call=call)
        return result


class Again:
    """The same agent's calls, answered by a rule."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule

    async def ask(self, messages: list[Any], lane: str = "main") -> Any:
        return await self.rule.answer(Request(MODEL, "POST", body(messages), url=URL))

    async def tool(self, name: str, **args: Any) -> Any:
        return await self.rule.answer(Request.tool(name, args))


class Ours(Player):
    """A player whose misses raise, or are told to the agent where it is to keep going."""

    def __init__(self, tape: Tape, mode: str = "strict", **options: Any) -> None:
        super().__init__(tape, mode=mode, **options)
        self.mode = mode

    async def answer(self, request: Request) -> Any:
        return self.outcome(await self.ask_async(request))

    def answer_in_thread(self, request: Request) -> Any:
        return self.outcome(self.ask(request))

    def outcome(self, found: Served | Miss) -> Any:
        if isinstance(found, Served):
            return found.call.answer.body
        if self.mode == "strict":
            raise Diverged(found)
        return dict(NO_ANSWER)


def text_of(answer: dict[str, Any]) -> str:
    return answer["content"][0]["text"]


def reply(answer: dict[str, Any]) -> dict[str, Any]:
    """What an agent appends of an answer."""
    return {"role": "assistant", "content": answer["content"]}


async def sequential(io: Any) -> Any:
    messages = [user("plan a trip")]
    for turn in range(4):
        answer = await io.ask(messages)
        first = await io.tool("search", q=text_of(answer))
        second = await io.tool("book", what=f"room {turn}")
        messages += [reply(answer), user(f"{first} {second}")]
    return messages


async def gathered(io: Any) -> Any:
    answers = await asyncio.gather(*(io.ask([user(f"part {n}")]) for n in range(5)))
    return await io.ask([user(" ".join(map(text_of, answers)))])


async def repeated(io: Any) -> Any:
    return [text_of(await io.ask([user("another joke")])) for _ in range(5)]


async def equal_parallel(io: Any) -> Any:
    answers = await asyncio.gather(*(io.ask([user("vote")]) for _ in range(4)))
    return await io.ask([user(" ".join(map(text_of, answers)))])


async def as_completed(io: Any) -> Any:
    seen: list[str] = []
    for each in asyncio.as_completed([io.ask([user(f"site {n}")]) for n in range(4)]):
        seen.append(text_of(await each))
        seen.append(text_of(await io.ask([user(f"so far: {seen}")])))
    return seen


async def pool_of_two(io: Any) -> Any:
    room, done = asyncio.Semaphore(2), []

    async def job(number: int) -> None:
        async with room:
            answer = await io.ask([user(f"job {number}, done: {len(done)}")])
            found = await io.tool("fetch", job=number, after=len(done))
            done.append((number, text_of(answer), found["found"]))

    await asyncio.gather(*map(job, range(6)))
    return done


def three_agents(lanes: bool) -> Agent:
    async def agents(io: Any) -> Any:
        board: list[str] = []

        async def one(name: str) -> None:
            messages = [user(f"you are {name}")]
            for _ in range(3):
                answer = await io.ask(messages, lane=name if lanes else "main")
                found = await io.tool("look", who=name, board=len(board))
                board.append(f"{name}: {found['found']}")
                messages += [reply(answer), user(f"board: {board}")]

        await asyncio.gather(*map(one, ("ann", "ben", "cyd")))
        return board

    return agents


SHAPES: dict[str, Agent] = {
    "sequential": sequential,
    "gather": gathered,
    "repeated": repeated,
    "equal-parallel": equal_parallel,
    "as_completed": as_completed,
    "pool of 2": pool_of_two,
    "3 agents, one lane": three_agents(False),
    "3 agents, lanes": three_agents(True),
}


def record(agent: Agent, folder: Path, seed: int) -> tuple[Any, Tape]:
    """Run an agent once for the recording; returns what it saw, and the tape."""
    path = folder / f"{seed}.jsonl"
    loop = VirtualTime()
    with Tap(path) as tap:
        try:
            seen = loop.run_until_complete(agent(Recorded(tap, random.Random(seed))))
        finally:
            loop.close()
    return seen, Tape.load(str(path))


def replay(agent: Agent, rule: Any, new_loop: Callable[[], Any] = asyncio.new_event_loop) -> Any:
    """Run an agent again; every call is answered by the rule."""

    async def watched() -> Any:
        return await asyncio.wait_for(agent(Again(rule)), 20)  # the watchdog: nothing may hang

    loop = new_loop()
    try:
        return loop.run_until_complete(watched())
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
