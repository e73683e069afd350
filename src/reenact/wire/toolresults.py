"""Results of tools inside a request, told by their shape: every provider spells them in its own way.

Pure functions; none raises for an odd value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .gemini import _get as get
from .shapes import conversation_key
from .values import mapping, mappings, string


class ToolResult(NamedTuple):
    """What a message says that a tool gave."""

    id: str | None
    """Of the tool use it answers; None where the provider or the agent leaves it out."""
    name: str | None
    value: Any
    failed: bool = False


def brought_results(body: object) -> frozenset[str]:
    """Return the ids of the tool uses whose results a request brings: those its last messages carry."""
    key = conversation_key(body)
    found: set[str] = set()
    for message in reversed(mapping(body)[key] if key else []):
        results = tool_results(message)
        if not results:
            break
        found.update(result.id for result in results if result.id)
    return frozenset(found)


def tool_results(message: object) -> list[ToolResult]:
    """Return the results a message carries, in order."""
    item = mapping(message)
    kind = string(item.get("type")) or ""
    if kind.endswith("_output") and "role" not in item:  # OpenAI Responses
        done = item.get("execution") == "server"
        failed = item.get("status") in ("failed", "incomplete")
        return [] if done else [ToolResult(string(item.get("call_id")), None, item.get("output"), failed)]
    if item.get("role") in ("tool", "function"):  # OpenAI Chat, Mistral, Cohere, Ollama
        name = string(item.get("tool_name", item.get("name")))
        return [ToolResult(string(item.get("tool_call_id")), name, item.get("content"))]
    parts = [*mappings(item.get("content")), *mappings(item.get("parts"))]
    return [result for part in parts for result in _in_part(part)]


def _in_part(part: dict[str, Any]) -> list[ToolResult]:
    if part.get("type") == "tool_result":  # Anthropic
        failed = part.get("is_error") is True
        return [ToolResult(string(part.get("tool_use_id")), None, part.get("content"), failed)]
    if isinstance(found := part.get("toolResult"), dict):  # Bedrock
        failed = found.get("status") == "error"
        return [ToolResult(string(found.get("toolUseId")), None, found.get("content"), failed)]
    if isinstance(found := get(part, "functionResponse"), dict):  # Gemini
        value = found.get("response")
        failed = isinstance(value, dict) and value.get("error") is not None
        return [ToolResult(string(found.get("id")), string(found.get("name")), value, failed)]
    return []
