"""``python -m benchmarks.wire.caller WAY FOLDER``: an agent that makes calls on command, and reports what they cost.

One JSON object a line comes in, ``{"sdk", "url", "kb", "stream", "calls"}``, one goes out: the CPU time and the
time on the clock of every call in nanoseconds, and the number of streamed events; with ``"tools": true`` the
conversation of a tool loop instead.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from .agent import tool_loop
from .recording import WAYS

PARAGRAPH = "The tide came in slowly and the boats rose with it, one after another, while nobody looked. "
WARM_UP = 2


def main() -> None:
    way, home = sys.argv[1], Path(sys.argv[2])
    warnings.simplefilter("ignore")
    for number, line in enumerate(sys.stdin):
        folder = home / str(number)
        folder.mkdir(parents=True)
        try:
            told = perform(way, folder, **json.loads(line))
        except Exception as exc:
            told = {"failed": f"{type(exc).__name__}: {exc}"}
        print("RESULT " + json.dumps(told), flush=True)


def perform(
    way: str, folder: Path, *, sdk: str, url: str, kb: int, stream: bool, calls: int, tools: bool = False
) -> dict[str, Any]:
    client, call = SDKS[sdk](url)
    if tools:
        with client, WAYS[way](client, folder):
            return {"messages": tool_loop(client, calls, stream)}
    cpu, wall, events = [], [], 0
    with client, WAYS[way](client, folder):
        messages = conversation(kb)
        for number in range(-WARM_UP, calls):
            if number == 0:
                gc.collect()
            begun, clock = time.process_time_ns(), time.perf_counter_ns()
            events = call(messages, stream)
            cpu.append(time.process_time_ns() - begun)
            wall.append(time.perf_counter_ns() - clock)
            messages += [
                {"role": "assistant", "content": "Lisbon has seven hills."},
                {"role": "user", "content": f"And number {number}, what is it called?"},
            ]
    return {"cpu": cpu[WARM_UP:], "wall": wall[WARM_UP:], "events": events}


def conversation(kb: int) -> list[dict[str, Any]]:
    """So many kilobytes of messages, ending in one of the user's."""
    turns = max(1, kb // 2) * 2 - 1
    size = kb * 1000 // turns
    return [
        {"role": ("user", "assistant")[at % 2], "content": (f"{at}: " + PARAGRAPH * 12)[:size]}
        for at in range(turns)
    ]


def _anthropic(url: str, **more: Any) -> tuple[Any, Any]:
    from anthropic import Anthropic

    client = Anthropic(api_key="none", base_url=url, **more)

    def call(messages: list[dict[str, Any]], stream: bool) -> int:
        answer = client.messages.create(
            model="claude-sonnet-4-6", max_tokens=1024, messages=messages, stream=stream
        )
        return sum(1 for _ in answer) if stream else 0

    return client, call


def _openai(url: str, **more: Any) -> tuple[Any, Any]:
    from openai import OpenAI

    client = OpenAI(api_key="none", base_url=f"{url}/v1", **more)

    def call(messages: list[dict[str, Any]], stream: bool) -> int:
        answer = client.chat.completions.create(model="gpt-5-mini", messages=messages, stream=stream)
        return sum(1 for _ in answer) if stream else 0

    return client, call


SDKS = {"anthropic": _anthropic, "openai": _openai}

if __name__ == "__main__":
    main()
