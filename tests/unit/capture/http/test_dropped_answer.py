"""Answers that end where nobody asked for them: in a finaliser, in another task, or not at all.

Python 3.11 crashes if the garbage collector, run inside ContextVar.set, comes to a finaliser that sets one.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from reenact import Debugger, Tap
from reenact.capture.http import response_body
from reenact.capture.http.exchange import CLOSED, Exchange
from reenact.capture.http.watch import Watch

URL = "https://api.openai.com/v1/chat/completions"
EVENT = b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c%d","function":{"name":"dig",'
EVENT += (
    b'"arguments":"{}"}}]}}]}\n\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
)
LAST = b"data: [DONE]\n\n"


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[Tap]:
    with Tap(tmp_path / "run.jsonl") as tap:
        yield tap


def begun(tap: Tap, number: int = 1) -> Exchange:
    body = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "%d"}]}' % number
    exchange = Watch(tap.recorder).begin("POST", URL, [], body)
    assert exchange is not None
    exchange.answered(200, [("content-type", "text/event-stream")])
    exchange.chunk(EVENT % number)
    return exchange


def reading(exchange: Exchange) -> Iterator[None]:
    """As SDKs read: what closes the answer is the end of a generator."""
    try:
        yield
    finally:
        exchange.end(CLOSED)


def calls(tap: Tap) -> list[Any]:
    return list(Debugger.load(tap.path).calls("model"))


def tools(tap: Tap) -> dict[str, str]:
    """Tool use -> the answer that the call of the tool follows."""
    assert tap.path is not None
    reported = [json.loads(line) for line in Path(tap.path).read_text().splitlines()]
    return {line["tool_id"]: line["parent"] for line in reported if line["kind"] == "tool.called"}


@pytest.mark.parametrize("by", ["drop", "collector"])
def test_an_answer_dropped_unread_is_recorded_and_touches_no_context_variable(tap: Tap, by: str) -> None:
    exchange = begun(tap)
    held: list[Any] = [reading(exchange)]
    if by == "collector":
        next(held[0])
        held.append(held)  # as openai's Stream and its generator hold each other
    else:
        del exchange
    before = list(copy_context().items())
    del held
    gc.collect()
    now = copy_context()
    assert len(now) == len(before) and all(now[variable] is value for variable, value in before)
    (call,) = calls(tap)
    assert call.end is not None and call.end.ended == "closed"


def test_a_tool_follows_the_answer_of_its_own_task_though_another_one_recorded_it(tap: Tap) -> None:
    async def agent(number: int, turn: asyncio.Event, other: asyncio.Event) -> None:
        exchange = begun(tap, number)
        exchange.chunk(LAST)
        if number == 1:
            other.set()  # whose request finds this answer whole, and records it
            await turn.wait()
        exchange.end()
        tap.record_tool_call("dig", {})
        other.set()

    async def main() -> None:
        one, two = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(agent(1, one, two))
        await two.wait()
        await asyncio.gather(first, agent(2, two, one))

    asyncio.run(main())
    assert list(tools(tap)) == ["c2", "c1"]
    assert [tools(tap)["c1"], tools(tap)["c2"]] == [call.end.payload["call"] for call in calls(tap)]


def test_a_tool_follows_the_latest_answer_though_an_older_one_is_closed_late(tap: Tap) -> None:
    older = begun(tap, 1)
    latest = begun(tap, 2)
    latest.end()
    older.end(CLOSED)
    tap.record_tool_call("dig", {})
    assert list(tools(tap)) == ["c2"]


def test_a_tool_follows_an_answer_that_was_read_while_another_call_was_made(tap: Tap) -> None:
    outer = begun(tap, 1)
    begun(tap, 2).end()
    outer.end()
    tap.record_tool_call("dig", {})
    assert list(tools(tap)) == ["c1"]


def test_a_request_that_was_interrupted_keeps_no_lane_busy(tap: Tap) -> None:
    class Interrupting:
        def __iter__(self) -> Iterator[tuple[str, str]]:
            raise KeyboardInterrupt

    recorder = tap.recorder()
    writing = recorder.emit_request
    recorder.emit_request = lambda *args, **how: list(Interrupting())  # type: ignore
    with pytest.raises(KeyboardInterrupt):
        begun(tap)
    recorder.emit_request = writing  # type: ignore[method-assign]
    begun(tap).end()
    assert [call.lane for call in calls(tap)] == ["main"]


def test_a_forked_child_gives_the_descriptor_of_its_parents_answer_back(tap: Tap) -> None:
    exchange = begun(tap)
    part = exchange.arrived.spill
    assert part is not None and part._fd >= 0
    pid = os.fork()
    if pid == 0:
        held = part._fd
        exchange.end()
        try:
            os.fstat(held)
        except OSError:
            os._exit(0 if os.path.exists(part.path) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    gc.collect()  # streams that earlier tests dropped give theirs back now, not in the middle
    free = len(response_body._may_stay_open)
    exchange.end()
    assert len(response_body._may_stay_open) == free + 1


@pytest.mark.long
def test_an_answer_that_nobody_ends_gives_its_descriptor_back(tmp_path: Path) -> None:
    gc.collect()  # streams that earlier tests dropped give theirs back now, not in the middle
    free = len(response_body._may_stay_open)
    part = response_body.Spill(str(tmp_path), "call", None)
    held, path = part._fd, part.path
    del part
    gc.collect()
    with pytest.raises(OSError):
        os.fstat(held)
    assert len(response_body._may_stay_open) == free and os.path.exists(path)


def test_an_answer_longer_than_is_kept_still_says_what_else_was_wrong(
    tap: Tap, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = begun(tap)
    monkeypatch.setattr(response_body, "MAX_HELD", len(EVENT) + 20)
    exchange.chunk(b"no event at all\n\n" + EVENT % 2)
    exchange.end()
    (call,) = calls(tap)
    problems = call.end.payload["problems"]
    assert problems[0].endswith("than are kept of one response") and "no event" in problems[1]
