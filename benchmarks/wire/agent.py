"""An agent in a tool loop: asks, does what the model wants done, sends the whole conversation again."""

from __future__ import annotations

from typing import Any

from ..workload import MODEL, SYSTEM, Text

LOOKUP = {
    "name": "lookup",
    "description": "Look something up in the archive.",
    "input_schema": {
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
    },
}
SYSTEM_AND_TOOLS = {"system": SYSTEM, "tools": [LOOKUP]}


def tool_loop(client: Any, turns: int, stream: bool) -> list[dict[str, Any]]:
    """Run an agent of Anthropic's SDK for so many turns; returns its conversation."""
    text = Text()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How high are the hills of Lisbon?"}]
    for _ in range(turns):
        asked = {"model": MODEL, "max_tokens": 1024, "messages": messages, **SYSTEM_AND_TOOLS}
        if stream:
            with client.messages.stream(**asked) as answer:
                found = answer.get_final_message()
        else:
            found = client.messages.create(**asked)
        content = [block.model_dump(exclude_none=True) for block in found.content]
        messages.append({"role": "assistant", "content": content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": text.piece(1500)}
            for block in found.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results or "Go on."})
    return messages
