"""One message of a conversation, in any provider's shape, read into neutral parts.

Messages and parts of different providers do not look alike, so no provider's name is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .json_values import call_text, mapping, mappings, plain_text, string
from .neutral import (
    OTHER,
    REASONING,
    RESULT,
    TEXT,
    TOOL,
    Image,
    Losses,
    Other,
    Part,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
)
from .providers import Provider, anthropic, bedrock, gemini, openai_chat, openai_responses

_TYPED: tuple[Provider, ...] = (anthropic, openai_responses, openai_chat)
_UNTYPED: tuple[Provider, ...] = (gemini, bedrock)
_ROLES = {"model": "assistant", "developer": "system", "function": "tool"}
_FIELDS = frozenset({"content", "tool_calls", "function_call", "refusal"})
"""Marks of a message that does not name its role."""
_MARKS = {
    "cache_control": "a cache marker",
    "citations": "citations",
    "annotations": "citations",
    "thoughtSignature": "a thought signature",
    "thought_signature": "a thought signature",
}
"""Fields of a part that no other provider has."""


def message_parts(message: object, lost: Losses | None = None) -> Iterator[Part]:
    """Yield what a message consists of; marks that a conversion cannot carry are counted in ``lost``."""
    item = mapping(message)
    kind = item.get("type")
    if isinstance(item.get("parts"), list):
        yield from content_parts(item["parts"], lost)
    elif "role" in item or kind == "message" or (kind is None and not _FIELDS.isdisjoint(item)):
        yield from openai_chat.message_parts(item, content_parts(item.get("content"), lost))
    elif item:
        yield part_of(item, lost)
    elif message:
        yield Text(plain_text(message))


def content_parts(content: object, lost: Losses | None = None) -> Iterator[Part]:
    """Yield the parts of a content: a text, a list of parts, or one part."""
    for item in content if isinstance(content, list) else [] if content is None else [content]:
        yield part_of(item, lost) if isinstance(item, dict) else Text(plain_text(item))


def part_of(part: dict[str, Any], lost: Losses | None = None) -> Part:
    """Return what a part is, asking one provider after another."""
    kind = string(part.get("type"))
    if lost is not None:
        for key, what in _MARKS.items():
            if part.get(key):
                lost.add(what)
        if kind == "refusal":
            lost.add("the mark of a refusal, whose text is kept")
    for provider in _TYPED if kind else _UNTYPED:
        found = provider.part(part)
        if found is not None:
            return found
    return Other(f"a part of type {kind or next(iter(part), 'unknown')}", plain_text(part) if part else "")


def role_of(message: object) -> str:
    """Return who speaks: ``system user assistant tool``, or the role's own name."""
    item = mapping(message)
    role = string(item.get("role"))
    if role:
        return _ROLES.get(role, role)
    kind = string(item.get("type")) or ""  # an item of OpenAI Responses
    if kind.endswith("_output"):
        return "tool"
    return "assistant" if kind.endswith("_call") or kind == "reasoning" else "user"


def tool_results(message: object) -> list[ToolResult]:
    """Return the results of tools that a message carries, in order."""
    if type(message) is dict and type(message.get("content")) is str and "parts" not in message:
        if message.get("role") in ("user", "assistant", "system"):  # nearly all are such
            return []
    return [part for part in message_parts(message) if isinstance(part, ToolResult)]


MAY_HAVE_FAILED = re.compile(rb'"is_error"\s*:\s*true|"error"(?!\s*:\s*null)|"failed"|"incomplete"')
"""Stands in the JSON of every message with a tool result that is an error, whichever provider it is of."""


def tool_uses(message: object) -> list[ToolUse]:
    """Return the tools that a message asks the agent to run."""
    return [part for part in message_parts(message) if isinstance(part, ToolUse)]


def readable(part: Part) -> tuple[str, str]:
    """Return the kind of a part and what a person would read of it."""
    if isinstance(part, Text):
        return TEXT, part.text
    if isinstance(part, Reasoning):
        return REASONING, part.text
    if isinstance(part, ToolUse):
        return TOOL, call_text(part.name, part.args)
    if isinstance(part, ToolResult):
        return RESULT, plain_text(part.value)
    return (OTHER, "[image]") if isinstance(part, Image) else (part.kind, part.text)


def with_result(message: dict[str, Any], order: int, text: str) -> dict[str, Any]:
    """Return a message with another text as one of its results, no longer an error."""
    if role_of(message) == "tool":
        provider: Provider = openai_chat if "role" in message else openai_responses
        return provider.with_result(message, text)
    key = "parts" if isinstance(message.get("parts"), list) else "content"
    parts, count = [], 0
    for part in message[key]:
        owner = _owner_of_result(part) if isinstance(part, dict) else None
        parts.append(owner.with_result(part, text) if owner is not None and count == order else part)
        count += owner is not None
    return {**message, key: parts}


def _owner_of_result(part: dict[str, Any]) -> Provider | None:
    providers = _TYPED if string(part.get("type")) else _UNTYPED
    return next((each for each in providers if isinstance(each.part(part), ToolResult)), None)


_SIGNED_FIELDS = ("reasoning_details", "thinking_blocks")
"""Where gateways of OpenAI's shape keep what other providers signed."""
_SIGNATURES = ("thoughtSignature", "thought_signature")


def unsigned(message: Any) -> Any:
    """Return a message without signed thinking: the very same if it has none, None if nothing is left.

    Signed thinking is bound to the model and to what it saw; elsewhere a provider may refuse it.
    """
    item = mapping(message)
    if item.get("type") == "reasoning" and "role" not in item:
        return None
    key = next((key for key in ("parts", "content") if isinstance(item.get(key), list)), None)
    if key is not None:
        parts = [(part, _unsigned_part(part)) for part in item[key]]
        rest = [bare for part, bare in parts if bare is not None or part is None]
        if rest != item[key]:
            return {**item, key: rest} if rest else None
    if any(item.get(key) for key in _SIGNED_FIELDS):
        return {key: value for key, value in item.items() if key not in _SIGNED_FIELDS}
    calls = mappings(item.get("tool_calls"))
    if any("extra_content" in call for call in calls):  # Gemini's signatures in OpenAI's shape
        return {**item, "tool_calls": [_without(call, "extra_content") for call in calls]}
    return message


def _unsigned_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") in ("thinking", "redacted_thinking") or "reasoningContent" in part:
        return None
    return (_without(part, *_SIGNATURES) or None) if any(key in part for key in _SIGNATURES) else part


def _without(item: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in names}
