"""A model that does what its prompt says, for agents whose tools are their own.

`PLAN [[["lookup", {"question": "a"}], ["book", {"city": "b"}]], [["book", {"city": "c"}]]]` anywhere in a prompt
asks for two tools at once, then for one, then says a text. Which steps are done is told by the ids of their calls
in the conversation, so that agents who share one follow their own plans.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

from .script import TEXT, ToolUse, Turn, Usage

MARK = "PLAN "
PROMPTS = ("instructions", "system", "messages", "input")
"""Where a prompt may stand; what an agent is told comes before what it is asked."""


def turn(body: Any, where: str = "") -> Turn:
    """The model's next answer; its ids are those of the conversation, at this place."""
    plan = _plan(body)
    key = f"{zlib.crc32(json.dumps([plan, _question(body), where]).encode()):08x}"
    steps = [
        tuple(ToolUse(f"call_{key}_{n}{at}", name, args) for at, (name, args) in enumerate(step))
        for n, step in enumerate(plan, 1)
    ]
    dumped = json.dumps(body)
    done = next((n for n, step in enumerate(steps) if step[0].id not in dumped), len(steps))
    tools = steps[done] if done < len(steps) else ()
    text = f"Looking, step {done + 1}." if tools else TEXT
    usage = Usage(25 + 40 * done, len(text.split()) + 10 * len(tools))
    return Turn(f"{key}{done + 1:04d}", text, "", tools, "tools" if tools else "end", usage)


def _plan(body: Any) -> Any:
    text = next(text for name in PROMPTS for text in _texts(body.get(name)) if MARK in text)
    return json.JSONDecoder().raw_decode(text, text.index(MARK) + len(MARK))[0]


def _question(body: Any) -> Any:
    """What the conversation began with."""
    messages = body.get("messages") or body["input"]
    return (
        messages
        if isinstance(messages, str)
        else next(each["content"] for each in messages if each.get("role") == "user")
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
