"""Conversion holds for any conversation, and no odd value makes it raise."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_reading_total import anything

from reenact.wire import pairing, reading
from reenact.wire.convert import TARGETS, as_text, convert
from support.examples import up_to

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
names = st.sampled_from(["search", "book", "read_file"])
arguments = st.dictionaries(st.text(max_size=4), st.none() | st.integers() | st.text(max_size=5), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    """An Anthropic conversation: words, tool uses, all of them answered in one message."""
    messages: list[Any] = []
    number = 0
    for _ in range(draw(st.integers(0, 4))):
        if not messages or messages[-1]["role"] == "assistant":
            messages.append({"role": "user", "content": draw(texts)})
        uses = []
        for name in draw(st.lists(names, max_size=3)):
            number += 1
            uses.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": draw(arguments)})
        printed = [{"type": "text", "text": draw(texts)}] if not uses or draw(st.booleans()) else []
        content = printed[0]["text"] if printed and not uses else printed + uses
        messages.append({"role": "assistant", "content": content})
        if uses:
            results = [
                {"type": "tool_result", "tool_use_id": use["id"], "content": draw(texts)}
                for use in draw(st.permutations(uses))
            ]
            more = [{"type": "text", "text": draw(texts)}] if draw(st.booleans()) else []
            messages.append({"role": "user", "content": results + more})
    return messages


@given(messages=conversations(), system=st.none() | texts)
def test_to_openai_and_back_nothing_is_different(messages: list[Any], system: str | None) -> None:
    params = {"model": "m", "max_tokens": 5} | ({"system": system} if system else {})
    there = convert(messages, [], params, "anthropic", "openai")
    assert not there.lost
    assert pairing.consistent(there.messages, "openai").length == len(there.messages)
    back = convert(there.messages, there.tools, there.params, "openai", "anthropic")
    assert (back.messages, back.params, back.lost) == (messages, params, [])


@given(messages=conversations())
def test_to_gemini_and_back_words_uses_and_pairs_are_the_same(messages: list[Any]) -> None:
    there = convert(messages, [], {}, "anthropic", "gemini")
    assert pairing.consistent(there.messages, "gemini").length == len(there.messages)
    back = convert(there.messages, [], {}, "gemini", "anthropic").messages
    assert pairing.consistent(back, "anthropic").length == len(back)
    assert spoken(back) == spoken(messages)


def spoken(messages: list[Any]) -> list[Any]:
    """What was said, with every result beside its use instead of an id; a JSON result as its value."""
    found: list[Any] = []
    uses: dict[str, list[Any]] = {}
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                uses[block["id"]] = [block["name"], block["input"]]
                found.append(uses[block["id"]])
            elif block["type"] == "tool_result":
                uses[block["tool_use_id"]].append(block["content"])
            else:
                found.append((message["role"], block["text"]))
    return found


@up_to(300)
@given(
    messages=st.lists(anything, max_size=4) | st.lists(st.dictionaries(st.sampled_from(
        ["role", "content", "parts", "tool_calls", "type", "output", "call_id", "images"]), anything), max_size=4),
    tools=st.lists(anything, max_size=3),
    params=st.dictionaries(st.sampled_from(
        ["system", "instructions", "systemInstruction", "generationConfig", "inferenceConfig", "options", "stop",
         "toolConfig", "tool_choice", "model", "max_tokens"]), anything, max_size=5),
    source=st.none() | st.sampled_from([*reading.NAMES, "other"]),
    target=st.sampled_from(TARGETS),
)  # fmt: skip
def test_nothing_raises(messages: Any, tools: Any, params: Any, source: str | None, target: str) -> None:
    if target == "text":
        assert isinstance(as_text(messages, tools, params, source), str)
        return
    made = convert(messages, tools, params, source, target)
    assert all(isinstance(message, dict) for message in made.messages)
    json.dumps(made.messages)
    prefix = pairing.consistent(messages, source)
    assert 0 <= prefix.length <= len(messages)
    assert pairing.consistent(messages[: prefix.length], source).length == prefix.length
