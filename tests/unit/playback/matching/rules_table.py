"""How often each rule gives an agent that is run again what it got: the table for the docs.

    python tests/unit/playback/matching/rules_table.py [seeds]

Simple rules, as other tools have them, beside ours: all answer at once unless they release in recorded order.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from reenact.playback.matching.frontier import Frontier, Miss
from reenact.playback.matching.player import Release
from reenact.playback.matching.request import Request
from reenact.playback.matching.tape import RecordedCall, Tape
from support import simulated
from support.simulated import SHAPES, Diverged, Ours, record, replay, user


class Ordinal:
    """The next recorded call, in the order they began; asked for or not."""

    checked = False

    def __init__(self, tape: Tape) -> None:
        self.left = list(tape.calls)

    def pick(self, request: Request) -> RecordedCall | None:
        call = self.left.pop(0) if self.left else None
        if call is None or (self.checked and call.fingerprint.l1 != request.fingerprint.l1):
            return None
        return call

    async def answer(self, request: Request) -> Any:
        call = self.pick(request)
        if call is None:
            raise Diverged(Miss("miss", request, None, 0.0, 0))
        await asyncio.sleep(0)
        return call.answer.body


class OrdinalChecked(Ordinal):
    checked = True


class PerKind(OrdinalChecked):
    """The next recorded call of the kind that is asked for."""

    def pick(self, request: Request) -> RecordedCall | None:
        call = next((each for each in self.left if each.kind == request.kind), None)
        if call is not None:
            self.left.remove(call)
        return call if call is not None and call.fingerprint.l1 == request.fingerprint.l1 else None


class Bag(Ordinal):
    """Any recorded call that is equal, the first one first."""

    def pick(self, request: Request) -> RecordedCall | None:
        call = next((each for each in self.left if each.fingerprint.l1 == request.fingerprint.l1), None)
        if call is not None:
            self.left.remove(call)
        return call


class BagReleased(Bag):
    """The same, answers released in recorded order."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(tape)
        self.release = Release(self, patience=0.01)

    def to_come_before(self, position: float, abandoned: Any) -> RecordedCall | None:
        return next(
            (call for call in self.left if call.begin < position and call.number not in abandoned), None
        )

    async def answer(self, request: Request) -> Any:
        call = self.pick(request)
        if call is None:
            raise Diverged(Miss("miss", request, None, 0.0, 0))
        await self.release.wait_async(call)
        return call.answer.body


class FrontierAlone(Ordinal):
    """Ours without the release."""

    def __init__(self, tape: Tape) -> None:
        super().__init__(tape)
        self.frontier = Frontier(tape.calls)

    def pick(self, request: Request) -> RecordedCall | None:
        found = self.frontier.ask(request)
        return None if isinstance(found, Miss) else found.call


RULES: dict[str, Callable[[Tape], Any]] = {
    "ordinal, unchecked": Ordinal,
    "ordinal + hash": OrdinalChecked,
    "per-kind cursor + hash": PerKind,
    "hash bag": Bag,
    "hash bag + release": BagReleased,
    "frontier alone": FrontierAlone,
    "frontier + release": lambda tape: Ours(tape, patience=0.01),
}


def edited(agent: simulated.Agent) -> simulated.Agent:
    async def changed(io: Any) -> Any:
        ask = io.ask

        async def politely(messages: list[Any], lane: str = "main") -> Any:
            return await ask([*messages[:-1], user(messages[-1]["content"] + " please")], lane)

        io.ask = politely
        return await agent(io)

    return changed


def swapped(in_order: bool) -> simulated.Agent:
    async def agent(io: Any) -> Any:
        names = ("lock", "open")
        return [await io.tool(name, door=7) for name in (names if in_order else names[::-1])]

    return agent


def outcome(agent: simulated.Agent, rule: Any, seen: Any) -> str:
    try:
        again = replay(agent, rule)
    except Diverged:
        return "alarm"
    except Exception:  # it got what it cannot use
        return "crash"
    return "same" if again == seen else "silently wrong"


def counts(rule: Callable[[Tape], Any], seeds: int) -> list[str]:
    row, noticed = [], 0
    for agent in SHAPES.values():
        found = {"same": 0, "alarm": 0, "crash": 0, "silently wrong": 0}
        for seed in range(seeds):
            with tempfile.TemporaryDirectory() as folder:
                seen, tape = record(agent, Path(folder), seed)
                found[outcome(agent, rule(tape), seen)] += 1
                noticed += outcome(edited(agent), rule(tape), seen) == "alarm"
        bad = [f"{count} {what}" for what, count in found.items() if count and what != "same"]
        row.append(", ".join(bad) or "ok")
    swaps = 0
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            seen, tape = record(swapped(True), Path(folder), seed)
            swaps += outcome(swapped(False), rule(tape), seen) == "alarm"
    return [*row, f"{noticed}/{seeds * len(SHAPES)}", f"{swaps}/{seeds}"]


def main(seeds: int) -> None:
    logging.getLogger("asyncio").disabled = True  # tasks whose misses nobody waits for
    print("| rule | " + " | ".join([*SHAPES, "prompt edit noticed", "swap noticed"]) + " |")
    print("|---" * (len(SHAPES) + 3) + "|")
    for name, rule in RULES.items():
        print(f"| {name} | " + " | ".join(counts(rule, seeds)) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
