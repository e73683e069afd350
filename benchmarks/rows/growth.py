"""Recording request *k* of one conversation, against json.dumps of the same body: what agents do to their history."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from .. import floors
from ..harness import Table, timed, us
from ..workload import MODEL, SYSTEM, TOOLS, Conversation, Text

CLEARED = "[cleared]"
AROUND = 7
"""Requests before a turn that share its figure."""

Messages = list[dict[str, Any]]


def _plain(messages: Messages, turn: int) -> Messages:
    return messages


def _clear(messages: Messages, turn: int) -> Messages:
    """Keep the last three tool results, as context editing does."""
    if len(messages) > 7:
        for block in messages[-7]["content"]:
            block["content"] = CLEARED
    return messages


def _slide(messages: Messages, turn: int) -> Messages:
    return messages if len(messages) <= 61 else [messages[0], *messages[-60:]]


def _edit(messages: Messages, turn: int) -> Messages:
    """Change the text of an old message in one of ten turns."""
    if turn % 10 == 0:
        messages[len(messages) // 3]["content"][0]["note"] = f"seen at turn {turn}"
    return messages


SHAPES: dict[str, tuple[Callable[[Messages, int], Messages], bool]] = {
    "plain growth": (_plain, False),
    "context editing": (_clear, False),
    "sliding window": (_slide, False),
    "edit in place": (_edit, False),
    "moved markers": (_plain, True),
}


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    at = (10, 100) if quick else (10, 100, 1000)
    for name in SHAPES:
        spent = run_shape(name, folder / f"{name}.jsonl", at[-1])
        for turn in at:
            some = spent[turn - AROUND : turn]
            ours, theirs = median(a for a, _, _ in some), median(b for _, b, _ in some)
            table.add(
                f"{name}, turn {turn}",
                median(a / b for a, b, _ in some),
                budget=0.5,
                floor=median(c / b for _, b, c in some),
                ours=us(ours),
                against="json.dumps of the body",
                theirs=us(theirs),
                note=f"slowest {us(max(a for a, _, _ in some))}",
            )
    table.notes.append(f"CPU time, redaction on; median of the {AROUND} requests up to that turn")
    return table


def record_shape(name: str, path: Path, turns: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], int]]:
    """Record a run; yield each request and answer, and the CPU nanoseconds of recording the request."""
    from reenact import Tap

    with Tap(output_path=path) as tap:
        for body, answer in _bodies(*SHAPES[name], turns):
            begin = time.thread_time_ns()
            call = tap.record_model_request(body, provider="anthropic")
            spent = time.thread_time_ns() - begin
            tap.record_model_response(answer, call=call)
            yield body, answer, spent


def run_shape(name: str, path: Path, turns: int) -> list[tuple[int, int, int]]:
    """Return for each request of a run the CPU nanoseconds of recording it, of json.dumps, of the floor."""
    floor = floors.Conversation(floors.Writer(path.with_suffix(".floor"), look=floors.search()))
    spent = []
    for body, answer, ours in record_shape(name, path, turns):
        spent.append((ours, *timed([partial(json.dumps, body), partial(floor.request, body)])))
        floor.response(answer)
    floor.writer.close()
    return spent


def _bodies(
    change: Callable[[Messages, int], Messages], markers: bool, turns: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    agent = Conversation(Text(), 0, big_results=False, markers=markers)
    for turn in range(1, turns + 1):
        sent = change(agent.messages, turn)
        steps = agent.turn(last=False)
        next(steps)
        answer = next(steps).fields["body"]
        yield {"model": MODEL, "system": SYSTEM, "tools": TOOLS, "messages": sent}, answer
        for _ in steps:
            pass
