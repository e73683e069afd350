"""A scripted chat model with the SDK's attributes: two turns of tools, then an answer."""

import json
from types import SimpleNamespace
from typing import Any

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("hotels", "flaky", "read_file")
]


def _flaky(**_: Any) -> str:
    raise TimeoutError("no answer")


HANDLERS = {"hotels": lambda city: f"Hotel in {city}", "flaky": _flaky, "read_file": lambda path: "x" * 9000}

SCRIPT: list[list[tuple[str, dict[str, Any]]]] = [
    [("hotels", {"city": "Lisbon"}), ("flaky", {"q": 1})],
    [("read_file", {"path": "a.csv"})],
    [],
]


class Message:
    role = "assistant"

    def __init__(self, turn: int, uses: list[tuple[str, dict[str, Any]]]) -> None:
        self.content = None if uses else "Here is the plan."
        self.tool_calls = [
            SimpleNamespace(
                id=f"call_{turn}_{n}", function=SimpleNamespace(name=name, arguments=json.dumps(args))
            )
            for n, (name, args) in enumerate(uses)
        ] or None

    def model_dump(self) -> dict[str, Any]:
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in self.tool_calls or []
        ]
        return {"role": "assistant", "content": self.content, "tool_calls": calls or None}


class _Usage:
    def model_dump(self) -> dict[str, int]:
        return {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


_turn = iter(range(len(SCRIPT)))


def _create(**_: Any) -> Any:
    turn = next(_turn)
    return SimpleNamespace(choices=[SimpleNamespace(message=Message(turn, SCRIPT[turn]))], usage=_Usage())


client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=_create)))
