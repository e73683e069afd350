"""Faults planted in real conversations, with what a comparison should find: the injector of ``test_faults.py``.

Works on messages only and shares no code with what it tests. Every changed run has fresh ids.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

Messages = list[dict[str, Any]]
_TAG = "_tag"


class Planted(NamedTuple):
    """A conversation and its copy with a fault."""

    before: Messages
    after: Messages
    causes: tuple[frozenset[str], ...]
    """For each fault the causes that are right; empty if nothing should be found."""
    pairs: dict[int, int | None]
    """Which step of the copy each step of the conversation corresponds to, both from 1; None: to no one."""
    model: str = "gpt-4o"


def plant(messages: Messages, names: list[str], seed: int) -> Planted | None:
    """Plant faults one after the other; None if a conversation has no place for one of them."""
    rng = random.Random(seed)
    before = _tagged(messages)
    if "reorder" in names:
        if not _merge_calls(before, rng):
            return None
    after = copy.deepcopy(before)
    causes, model, touched = [], "gpt-4o", set()
    for name in names:
        if name == "model":
            model = "gpt-4o-mini"
            causes.append(frozenset({"model-changed"}))
            continue
        expected = FAULTS[name](after, rng, touched)
        if expected is None:
            return None
        if expected:
            causes.append(frozenset(expected))
    pairs = _pairs(before, after)
    _fresh_ids(after, rng)
    return Planted(_clean(before), _clean(after), tuple(causes), pairs, model)


# the faults: each changes the messages in place and returns the causes that are right ------------------

Fault = Callable[[Messages, random.Random, set[int]], "set[str] | None"]


def _calls(messages: Messages, touched: set[int]) -> list[int]:
    """Places of messages that request tools and whose results follow, far from earlier faults."""
    return [
        at
        for at, each in enumerate(messages)
        if each.get("tool_calls")
        and at + 1 < len(messages)
        and messages[at + 1]["role"] == "tool"
        and not any(abs(at - other) < 4 for other in touched)
    ]


def _insert(messages: Messages, rng: random.Random, touched: set[int]) -> set[str] | None:
    places = _calls(messages, touched)
    if not places:
        return None
    at = rng.choice(places)
    use = {"id": "call_extra", "type": "function"}
    use["function"] = {"name": "look_around", "arguments": json.dumps({"where": rng.random()})}
    messages[at:at] = [
        {"role": "assistant", "content": None, "tool_calls": [use], _TAG: -1},
        {"role": "tool", "tool_call_id": "call_extra", "content": f"nothing new {rng.random()}"},
    ]
    touched.add(at)
    return {"extra-step"}


def _delete(messages: Messages, rng: random.Random, touched: set[int]) -> set[str] | None:
    places = [at for at in _calls(messages, touched) if len(messages[at]["tool_calls"]) == 1]
    if not places:
        return None
    at = rng.choice(places)
    own = _function(messages[at])
    near = [_function(each) for each in messages[max(0, at - 4) : at + 5] if each.get("tool_calls")]
    del messages[at : at + 2]
    touched.add(at)
    return {"missing-step", "loop-count"} if near.count(own) > 1 else {"missing-step"}


def _function(message: dict[str, Any]) -> tuple[str, str]:
    function = message["tool_calls"][0]["function"]
    return function["name"], json.dumps(json.loads(function["arguments"]), sort_keys=True)


def _output(messages: Messages, rng: random.Random, touched: set[int]) -> set[str] | None:
    places = [at for at in _calls(messages, touched) if len(messages[at + 1].get("content") or "") > 3]
    if not places:
        return None
    at = rng.choice(places)
    content = messages[at + 1]["content"]
    cut = rng.randrange(len(content))
    messages[at + 1]["content"] = f"{content[:cut]}<{rng.randrange(10**6)}>{content[cut + 2 :]}"
    touched.add(at)
    return {"tool-output-changed", "tool-error-changed"}


def _prompt(messages: Messages, rng: random.Random, touched: set[int]) -> set[str] | None:
    if messages[0]["role"] != "system":
        return None
    messages[0]["content"] = f"{messages[0]['content']}\nBe brief, at most {rng.randrange(5, 500)} words."
    return {"prompt-changed"}


def _input(messages: Messages, rng: random.Random, touched: set[int]) -> set[str] | None:
    places = [
        at for at, each in enumerate(messages[:-1]) if each["role"] == "user" and type(each["content"]) is str
    ]
    places = [at for at in places if not any(abs(at - other) < 4 for other in touched)]
    if not places:
        return None
    at = rng.choice(places)
    words = messages[at]["content"].split(" ")
    words.insert(rng.randrange(len(words) + 1), f"(ticket {rng.randrange(10**6)})")
    messages[at]["content"] = " ".join(words)
    touched.add(at)
    return {"input-changed"}


def _args(messages: Messages, rng: random.Random, touched: set[int]) -> set[str] | None:
    places = _calls(messages, touched)
    if not places:
        return None
    at = rng.choice(places)
    function = rng.choice(messages[at]["tool_calls"])["function"]
    args = json.loads(function["arguments"])
    args[rng.choice([*args, "note"])] = f"other {rng.randrange(10**6)}"
    function["arguments"] = json.dumps(args)
    touched.add(at)
    return {"same-request-different-response"}


def _retry(messages: Messages, rng: random.Random, touched: set[int]) -> set[str] | None:
    places = [at for at in _calls(messages, touched) if len(messages[at]["tool_calls"]) == 1]
    if not places:
        return None
    at = rng.choice(places)
    again = copy.deepcopy(messages[at]) | {_TAG: -1}
    again["tool_calls"][0]["id"] = "call_again"
    failed = {
        "role": "tool",
        "tool_call_id": "call_again",
        "content": f"Error: timed out after {rng.random()} s",
    }
    messages[at:at] = [again, failed]
    touched.add(at)
    return {"loop-count"}


def _reorder(messages: Messages, rng: random.Random, touched: set[int]) -> set[str] | None:
    for at, each in enumerate(messages):
        if len(each.get("tool_calls") or ()) > 1:
            number = len(each["tool_calls"])
            each["tool_calls"].reverse()
            messages[at + 1 : at + 1 + number] = messages[at + 1 : at + 1 + number][::-1]
            touched.add(at)
    return set()


FAULTS: dict[str, Fault] = {
    "insert": _insert,
    "delete": _delete,
    "output": _output,
    "prompt": _prompt,
    "input": _input,
    "args": _args,
    "retry": _retry,
    "reorder": _reorder,
}
NAMES = (*FAULTS, "model")


def _merge_calls(messages: Messages, rng: random.Random) -> bool:
    """Make one response with two calls of two that follow each other."""
    places = [
        at for at in _calls(messages, set()) if at + 3 < len(messages) and messages[at + 2].get("tool_calls")
    ]
    places = [at for at in places if messages[at + 3]["role"] == "tool"]
    if not places:
        return False
    at = rng.choice(places)
    first, result, second, other = messages[at : at + 4]
    first["tool_calls"] = [*first["tool_calls"], *second["tool_calls"]]
    for number, (use, answer) in enumerate(zip(first["tool_calls"], (result, other), strict=True)):
        use["id"] = answer["tool_call_id"] = f"call_{number}_{at}"
    messages[at : at + 4] = [first, result, other]
    return True


# which step is which ------------------------------------------------------------------------------------


def _tagged(messages: Messages) -> Messages:
    numbers = count()
    found = copy.deepcopy(messages)
    for message in found:
        message[_TAG] = next(numbers)
        for use in message.get("tool_calls") or ():
            use[_TAG] = next(numbers)
    return found


def _steps(messages: Messages) -> Iterator[int]:
    """Yield the tags of the steps: a model call and the tools it requests, in the order they are recorded."""
    for message in messages:
        if message["role"] == "assistant":
            yield message[_TAG]
            for use in message.get("tool_calls") or ():
                yield -1 if message[_TAG] == -1 else use.get(_TAG, -1)


def _pairs(before: Messages, after: Messages) -> dict[int, int | None]:
    places = {tag: number for number, tag in enumerate(_steps(after), 1) if tag >= 0}
    return {number: places.get(tag) for number, tag in enumerate(_steps(before), 1)}


def _fresh_ids(messages: Messages, rng: random.Random) -> None:
    """Give every tool use another id, and its result the same."""
    for at, message in enumerate(messages):
        for use in message.get("tool_calls") or ():
            old, use["id"] = use["id"], f"call_{rng.randbytes(12).hex()}"
            for result in messages[at + 1 :]:
                if result["role"] != "tool":
                    break
                if result.get("tool_call_id") == old:
                    result["tool_call_id"] = use["id"]
                    break


def _clean(messages: Messages) -> Messages:
    for message in messages:
        message.pop(_TAG, None)
        for use in message.get("tool_calls") or ():
            use.pop(_TAG, None)
    return messages
