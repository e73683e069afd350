"""The same with threads, with real latencies, and with threads and an event loop side by side."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.playback.matching import frontier as f
from reenact.playback.matching.request import MODEL, Request
from reenact.playback.matching.tape import Tape
from support.simulated import URL, Again, Diverged, Ours, Recorded, body, text_of, user

SEEDS = range(6)
LONG_PATIENCE = 20.0
"""Threads of a busy machine may be slow to ask; whoever is waited for here does ask."""
STEP = 0.01
"""Seconds between two answers of a recording: enough for a thread to be seen to have one."""
PACES = (1, 4, 16)
"""Times as slow: on a busy machine a thread may wake after one that was answered later."""


class RecordedInThreads:
    """Every answer has a time of its own, so that no two come at once."""

    def __init__(self, tap: Tap, seed: int, pace: int = 1) -> None:
        self.tap, self.rng, self.lock = tap, random.Random(seed), threading.Lock()
        self.turn = threading.Lock()
        self.step = STEP * pace

    def ask(self, text: str, lane: str = "main") -> str:
        call = self.tap.record_model_request(body([user(text)]), lane=lane, url=URL)
        with self.lock:
            late, found = self.rng.randrange(1, 5) * self.step, self.rng.getrandbits(48)
        time.sleep(late)
        answer = {"role": "assistant", "content": [{"type": "text", "text": f"{text} -> {found}"}]}
        with self.turn:  # the one before must have been seen, which takes some turns if the machine is busy
            for _ in range(10):
                time.sleep(self.step / 10)
            self.tap.record_model_response(answer, call=call, status=200)
        return text_of(answer)


class AgainInThreads:
    def __init__(self, rule: Ours) -> None:
        self.rule = rule

    def ask(self, text: str, lane: str = "main") -> str:
        return text_of(self.rule.answer_in_thread(Request(MODEL, "POST", body([user(text)]), url=URL)))


def sequential(io: Any) -> Any:
    seen = ["plan"]
    for _ in range(4):
        seen.append(io.ask(seen[-1]))
    return seen


def mapped(io: Any) -> Any:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(io.ask, [f"part {n}" for n in range(4)]))
    return io.ask(" ".join(answers))


def equal_parallel(io: Any) -> Any:
    with ThreadPoolExecutor(3) as pool:
        answers = sorted(pool.map(io.ask, ["vote"] * 3))
    return io.ask(" ".join(answers))


def completed(io: Any) -> Any:
    seen = []
    with ThreadPoolExecutor(4) as pool:
        for each in as_completed([pool.submit(io.ask, f"site {n}") for n in range(4)]):
            seen.append(each.result())
        seen.append(io.ask(f"in this order: {seen}"))
    return seen


def three_agents(io: Any) -> Any:
    def one(name: str) -> list[str]:
        seen = [name]
        for _ in range(3):
            seen.append(io.ask(f"{name} goes on from {seen[-1]}", lane=name))
        return seen

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(one, ("ann", "ben", "cyd")))


AGENTS = {each.__name__: each for each in (sequential, mapped, equal_parallel, completed, three_agents)}


def record(agent: Any, folder: Path, seed: int, pace: int = 1) -> tuple[Any, Tape]:
    path = folder / f"{seed}-{pace}.jsonl"
    with Tap(path) as tap:
        seen = agent(RecordedInThreads(tap, seed, pace))
    return seen, Tape.load(str(path))


def play_again(agent: Any, rule: Ours) -> Any:
    """What an agent sees that a rule answers, or where it diverged."""
    try:
        return agent(AgainInThreads(rule))
    except Diverged as exc:
        return exc


@pytest.mark.parametrize("name", AGENTS)
def test_unchanged_agents_see_the_very_same(name: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        for pace in PACES:
            seen, tape = record(AGENTS[name], tmp_path, seed, pace)
            rule = Ours(tape, patience=LONG_PATIENCE)
            rule.release._quiet *= pace
            again = play_again(AGENTS[name], rule)
            if again == seen:
                break
        assert again == seen
        assert rule.frontier.missing() == []
        assert rule.release.order == [call.id for call in sorted(tape.calls, key=lambda call: call.end)]


@pytest.mark.parametrize("name", AGENTS)
def test_a_prompt_edit_is_caught(name: str, tmp_path: Path) -> None:
    class Edited(AgainInThreads):
        def ask(self, text: str, lane: str = "main") -> str:
            return super().ask(
                text.replace("plan", "cancel").replace("1", "one").replace("vote", "dissent"), lane
            )

    _, tape = record(AGENTS[name], tmp_path, 1)
    with pytest.raises(Diverged) as caught:
        AGENTS[name](Edited(Ours(tape, patience=0.02)))
    assert caught.value.found.code in (f.CHANGED, f.EXTRA)


def test_a_loop_and_threads_beside_it(tmp_path: Path) -> None:
    """A task asks, threads ask, and a call made in a thread by the loop; one order for all."""

    async def work(ask: Any, io: Any) -> Any:
        seen: list[str] = []

        async def task(name: str) -> None:
            for turn in range(2):
                seen.append(text_of(await ask([user(f"{name} {turn}")])))

        async def thread(name: str) -> None:
            for turn in range(2):
                seen.append(await asyncio.to_thread(io.ask, f"{name} {turn}"))

        await asyncio.gather(task("ann"), thread("ben"), task("cyd"), thread("dee"))
        return seen

    class InTasks(Recorded):
        async def ask(self, messages: list[Any], lane: str = "main") -> Any:
            call = self.tap.record_model_request(body(messages), lane=lane, url=URL)
            await asyncio.sleep(self.rng.randrange(1, 5) * STEP + STEP / 2)
            answer = {
                "role": "assistant",
                "content": [{"type": "text", "text": f"{self.rng.getrandbits(48)}"}],
            }
            self.tap.record_model_response(answer, call=call, status=200)
            return answer

    for seed in SEEDS:
        path = tmp_path / f"{seed}.jsonl"
        with Tap(path) as tap:
            asyncio.run(work(InTasks(tap, random.Random(seed)).ask, RecordedInThreads(tap, -seed - 1)))
        tape = Tape.load(str(path))
        rule = Ours(tape, patience=LONG_PATIENCE)
        asyncio.run(asyncio.wait_for(work(Again(rule).ask, AgainInThreads(rule)), 50))
        assert rule.frontier.missing() == []
        assert rule.release.order == [call.id for call in sorted(tape.calls, key=lambda call: call.end)]


def test_threads_with_partners_that_never_call_are_not_held_up(tmp_path: Path) -> None:
    _, tape = record(mapped, tmp_path, 1)
    rule = Ours(tape, patience=0.02)
    threads = [
        threading.Thread(target=AgainInThreads(rule).ask, args=(f"part {n}",), daemon=True) for n in (0, 2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(50)
    assert not any(each.is_alive() for each in threads)
    assert len(rule.release.order) == 2
