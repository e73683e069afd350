"""The expander printed in docs/format.md rebuilds what agents really do to their conversations."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap, read_events
from support.pages import DOCS, blocks


def printed_code() -> dict[str, Any]:
    """The functions of the page, compiled from its own text."""
    namespace: dict[str, Any] = {}
    for block in blocks(DOCS / "format.md"):
        if block.language == "python" and "def expand" in block.text:
            exec(block.text, namespace)
        elif block.language == "python" and "def chain" in block.text:
            exec(block.text[: block.text.index("\nwith")], namespace)
    return namespace


def append(body: dict[str, Any], rng: random.Random) -> None:
    for _ in range(rng.randint(1, 3)):
        text = f"été {rng.random()} ~/a~b"
        body["messages"].append({"role": "user", "content": [{"type": "text", "text": text, "a/b~": 1.0}]})


def move_marker(body: dict[str, Any], rng: random.Random) -> None:
    for message in body["messages"]:
        message["content"][0].pop("cache_control", None)
    rng.choice(body["messages"][-3:])["content"][0]["cache_control"] = {"type": "ephemeral"}


def compact(body: dict[str, Any], rng: random.Random) -> None:
    keep = rng.randint(0, 3)
    summary = {"role": "user", "content": [{"type": "text", "text": f"summary {rng.random()}"}]}
    body["messages"] = [summary, *body["messages"][-keep:]]


def edit_one(body: dict[str, Any], rng: random.Random) -> None:
    rng.choice(body["messages"])["content"][0]["text"] = f"cleared {rng.random()}"


def change_rest(body: dict[str, Any], rng: random.Random) -> None:
    body["temperature"] = rng.choice([0, 0.0, 1, True])
    body.pop("tools", None) if rng.random() < 0.5 else body.update(tools=[{"name": "search"}])


EDITS: list[Callable[[dict[str, Any], random.Random], None]] = [
    append,
    append,
    move_marker,
    compact,
    edit_one,
    change_rest,
]


@pytest.mark.parametrize("seed", range(12))
def test_the_printed_expander_rebuilds_every_request(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path = tmp_path / "run.jsonl"
    bodies = [{"model": "m", "max_tokens": 1, "messages": []} for _ in range(2)]
    for body in bodies:
        append(body, rng)
    sent = {}
    with Tap(path) as tap:
        for _ in range(60):
            body = bodies[rng.randrange(2)]
            rng.choice(EDITS)(body, rng)
            call = tap.record_model_request(body, lane=str(bodies.index(body)))
            sent[call] = copy.deepcopy(body)
            if rng.random() < 0.5:
                block = {"type": "text", "text": f"answer {rng.random()}"}
                answer = {
                    "type": "message",
                    "role": "assistant",
                    "content": [block],
                    "stop_reason": "end_turn",
                }
                tap.record_model_response(answer, call=call)
                body["messages"].append({"role": "assistant", "content": [dict(block)]})
    code = printed_code()
    rebuilt = dict(code["expand"](path.read_text().splitlines()))
    assert repr(rebuilt) == repr({call: reorder(body, rebuilt[call]) for call, body in sent.items()})
    for event in read_events(path):
        if event.kind == "model.request":
            assert code["chain"](rebuilt[event.call]["messages"]) == event.stored["chain"]
            assert event.body == rebuilt[event.call]


def reorder(body: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """The order of a body's own keys is not kept; everything below it is."""
    assert set(body) == set(like)
    return {key: body[key] for key in like}
