"""What the scripted model says, before any dialect puts it into its own shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from .scenario import Scenario

WORDS = "the tide came in slowly and the boats rose with it one after another".split()
TEXT = "Lisbon has seven hills."
THOUGHT = "The user wants hills. Lisbon comes to mind."
SIGNATURE = "c2lnbmVkLWJ5LXRoZS1tb2RlbA=="
UNICODE = 'na\u00efve \u2014 \u65e5\u672c\u8a9e \U0001f989 \u2028 e\u0301 "quoted" \\ \u0007.'
JSON = '{"city": "Lisbon", "days": 3}'
CREATED = 1763200000


@dataclass(frozen=True, slots=True)
class ToolUse:
    id: str
    name: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model; `stop` is "end", "tools" or "length"."""

    id: str
    text: str
    thinking: str = ""
    tools: tuple[ToolUse, ...] = ()
    stop: str = "end"
    usage: Usage | None = None

    def pieces(self) -> list[str]:
        return in_pieces(self.text)


def in_pieces(text: str, size: int = 6) -> list[str]:
    """A text as a stream hands it out."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def turn(scenario: Scenario, rounds: int) -> Turn:
    """The model's answer after so many rounds of tool results."""
    tools = _tools(scenario, rounds)
    text = f"Looking, round {rounds + 1}." if tools else _text(scenario)
    output = max(1, len(text.split())) + 10 * len(tools)
    usage = Usage(25 + 40 * rounds, output)
    thinking = THOUGHT if "thinking" in scenario else ""
    if thinking:
        usage = replace(usage, output=output + 9, reasoning=9)
    if "cached" in scenario:
        usage = replace(usage, cache_read=2000, cache_write=300)
    stop = "tools" if tools else "length" if "length" in scenario else "end"
    return Turn(f"{rounds + 1:04d}", text, thinking, tools, stop, None if "nousage" in scenario else usage)


def _tools(scenario: Scenario, rounds: int) -> tuple[ToolUse, ...]:
    if rounds < (scenario.number("tools") or 0):
        return (_tool(rounds + 1),)
    if rounds == 0:
        return tuple(_tool(each + 1) for each in range(scenario.number("parallel", 2) or 0))
    return ()


def _tool(number: int) -> ToolUse:
    return ToolUse(f"call_{number:04d}", "lookup", {"question": f"How high is hill {number}?"})


def _text(scenario: Scenario) -> str:
    count = scenario.number("long", 200)
    if count is not None:
        return " ".join((WORDS * (count // len(WORDS) + 1))[:count])
    if "empty" in scenario:
        return ""
    if "json" in scenario:
        return JSON
    if "sampled" in scenario:
        return f"{TEXT} {uuid4()}"
    return UNICODE if "unicode" in scenario else TEXT
