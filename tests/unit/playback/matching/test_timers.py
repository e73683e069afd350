"""Agents with timers of their own: what they do between two answers is waited for as long as it took."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from reenact import Tap
from reenact.playback.matching.player import pauses
from reenact.playback.matching.request import MODEL, Request
from reenact.playback.matching.tape import Tape
from support.simulated import URL, Ours, body, reply, user

TIMER = 300.0


def recorded(folder: Path) -> Tape:
    """A quick and a slow call side by side; meanwhile, long after the quick one, a third."""
    tap = Tap(folder / "timed.jsonl")
    calls = {
        name: tap.record_model_request(body([user(name)]), lane=name, url=URL) for name in ("quick", "slow")
    }
    for name in ("quick", "later", "slow"):
        if name == "later":
            calls[name] = tap.record_model_request(body([user(name)]), lane=name, url=URL)
        answer = {"content": [{"type": "text", "text": f"answer to {name}"}]}
        tap.record_model_response(answer, call=calls[name], status=200)
    tap.close()
    lines = [json.loads(line) for line in (folder / "timed.jsonl").read_text().splitlines()]
    at = next(number for number, line in enumerate(lines) if line.get("call") == calls["later"])
    for line in lines[at:]:
        line["ts"] += TIMER
        if line.get("call") == calls["slow"]:
            line["duration_ms"] = TIMER * 1000
    (folder / "timed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Tape.load(str(folder / "timed.jsonl"))


def test_the_time_in_which_nothing_happened_is_known(tmp_path: Path) -> None:
    found = pauses(recorded(tmp_path).calls)
    assert [round(found[number] / TIMER) for number in range(3)] == [0, 0, 1]


def test_a_slow_answer_does_not_come_before_what_a_timer_brings(tmp_path: Path) -> None:
    rule = Ours(recorded(tmp_path), patience=0.001)

    async def ask(text: str) -> Any:
        return reply(await rule.answer(Request(MODEL, "POST", body([user(text)]), url=URL)))

    async def agent() -> bool:
        quick, slow = asyncio.create_task(ask("quick")), asyncio.create_task(ask("slow"))
        await quick
        await asyncio.sleep(0.3)
        was_done = slow.done()
        await ask("later")
        await slow
        return was_done

    assert asyncio.run(agent()) is False
    assert [rule.tape.call(each).lane[1] for each in rule.release.order] == ["quick", "later", "slow"]
