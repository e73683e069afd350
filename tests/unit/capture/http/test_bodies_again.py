"""A body that goes on with an earlier one is parsed in part, and comes to what the whole would come to."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from reenact.capture.http import request_body
from reenact.capture.http.response_body import as_json

LONG = "The tide came in — slowly, “and” \\ the boats rose\n" * 300
Dump = Callable[[Any], bytes]
SPELLINGS: dict[str, Dump] = {
    "compact": lambda body: json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(),
    "spaced": lambda body: json.dumps(body).encode(),
    "odd": lambda body: json.dumps(body, indent=1).encode(),
}


def same(data: bytes) -> Any:
    found = request_body.parsed(data)
    assert json.dumps(found) == json.dumps(as_json(data))
    return found


def message(number: int) -> dict[str, Any]:
    nested = {"messages": [number, 1.0, True, None], "text": '"messages":[' + LONG[:50]}
    return {"role": "user", "content": [{"type": "tool_use", "input": nested}, {"text": f"{number}é"}]}


@pytest.fixture(autouse=True)
def forgetful() -> None:
    request_body._latest = ()


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("key", ["messages", "input", "contents"])
def test_a_conversation_that_grows_is_what_it_is(key: str, spelling: str) -> None:
    dump, body = SPELLINGS[spelling], {"model": "m", "system": LONG, key: [message(0)], "stream": True}
    first = same(dump(body))
    for number in range(1, 8):
        body[key] += [message(number)] * (number % 3 + 1)
        body["temperature"] = number
        now = same(dump(body))
        if spelling != "odd" and number > 1:
            assert now[key][0] is first[key][0], "it was parsed again"
        first = now


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_changed_is_seen(seed: int) -> None:
    dice = random.Random(seed)
    talks = [{"system": LONG, "messages": [message(n)], "model": "m"} for n in range(3)]
    for number in range(40):
        body = dice.choice(talks)
        talk: Any = body["messages"]
        change = dice.random()
        if change < 0.6:
            talk.append(message(number))
        elif change < 0.7:
            talk[dice.randrange(len(talk))]["content"][1]["text"] += "!"
        elif change < 0.8 and len(talk) > 1:
            del talk[dice.randrange(len(talk)) :]
            talk.append(message(-number))
        elif change < 0.9:
            body["tools"] = [{"name": "t", "input_schema": {"messages": [number]}}] * dice.randrange(2)
        else:
            body["system"] = LONG + str(number)
        same(SPELLINGS["compact" if dice.random() < 0.9 else "spaced"](body))


@pytest.mark.parametrize(
    "end",
    [b'],"messages":[]}', b'],"messages":[7]}', b"]", b"]}]", b",]}", b'],"a":{"messages":[]}}', b"\xff]}"],
)
def test_odd_ends_are_left_to_the_parser(end: bytes) -> None:
    body = SPELLINGS["compact"]({"system": LONG, "messages": [message(0)]})
    same(body)
    same(body[:-2] + b"," + json.dumps(message(1)).encode() + b"]}")
    same(body[:-2] + b"," + json.dumps(message(1)).encode() + b"," + json.dumps(message(2)).encode() + end)


def test_what_is_too_large_to_keep_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_body, "_LARGE", 20_000)
    body = {"system": LONG, "messages": [message(0)]}
    same(SPELLINGS["compact"](body))
    assert len(request_body._latest) == 1
    kept = request_body._latest
    body["system"] = LONG * 2
    same(SPELLINGS["compact"](body))
    assert request_body._latest is kept
