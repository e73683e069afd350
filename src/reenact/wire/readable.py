"""What a person would read of messages and parts, of a system prompt and of tools, whichever provider's.

Used by shapes.text(), ``show`` and ``debug``. A part is asked of the provider files in turn; parts of
different providers do not look alike, so no name is needed.
"""

from __future__ import annotations

from . import anthropic, bedrock, gemini, openai_chat, openai_responses
from .values import OTHER, REASONING, TEXT, mapping, mappings, parts_of, string, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .values import Provider

SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
TOOLS = ("tools", "functions", "toolConfig")
"""Where requests keep their system prompt and their tools."""

_TYPED: tuple[Provider, ...] = (anthropic, openai_responses, openai_chat)
_UNTYPED: tuple[Provider, ...] = (gemini, bedrock)


def join(messages: list[object]) -> str:
    """Return the text of messages or parts; reasoning only if there is nothing else."""
    all_parts = [(_glue(message), _parts(message)) for message in messages]
    said = "\n".join(filter(None, (_said(parts, glue) for glue, parts in all_parts)))
    return said or "\n".join(text for _, parts in all_parts for _, text in parts if text)


def _parts(message: object) -> list[tuple[str, str]]:
    return message_parts(message) if isinstance(message, dict) else [(TEXT, words(message))]


def _glue(message: object) -> str:
    """Answers are cut into texts anywhere, around a citation for instance; prompts between paragraphs."""
    return "\n" if isinstance(message, dict) and message.get("role") == "user" else ""


def _said(parts: list[tuple[str, str]], glue: str) -> str:
    found, previous = "", ""
    for sort, text in parts:
        if text and sort != REASONING:
            if found:
                found += glue if sort == previous == TEXT else "\n"
            found += text
        if text:
            previous = sort
    return found


def message_parts(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (sort, text) of each part of a message, or of the one part that the object is."""
    if isinstance(message.get("parts"), list):
        return parts_of(message["parts"], _part)
    bare = "type" not in message and "content" in message
    if "role" in message or message.get("type") == "message" or bare:
        return openai_chat.parts(message, _part)
    return [_part(message)]


def _part(part: dict[str, Any]) -> tuple[str, str]:
    kind = string(part.get("type"))
    for provider in _TYPED if kind else _UNTYPED:
        found = provider.part(part)
        if found is not None:
            return found
    return OTHER, words(part) if part else ""


def system_text(value: object) -> str:
    """Return a system prompt as text: a string, blocks, or Gemini's content."""
    value = value.get("parts", value) if isinstance(value, dict) else value
    if isinstance(value, list):  # Bedrock puts a mark for its cache among the blocks
        value = [block for block in value if "cachePoint" not in mapping(block)]
    return words(value)


def tool_names(value: object) -> list[str]:
    """Return the names of the tools a request offers."""
    names = []
    for tool in mappings(value.get("tools") if isinstance(value, dict) else value):  # an object is Bedrock's
        declared = mappings(tool.get("functionDeclarations", tool.get("function_declarations"))) or [tool]
        for one in declared:
            inner = mapping(one.get("function")) or mapping(one.get("toolSpec")) or one
            names.append(string(inner.get("name")) or string(inner.get("type")) or "?")
    return names
