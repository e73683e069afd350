"""A request's messages, tools and options in one provider's shape -> in another's.

Pairs of tool uses and results are kept; what the target has no counterpart for is named. Pure and
total: any JSON values are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .convert_openai import read_openai, read_responses
from .convert_options import read_options, read_tools, write_options, write_tools
from .convert_read import read_anthropic, read_bedrock, read_gemini
from .convert_write import write_anthropic, write_gemini, write_openai, write_text
from .gemini import _get as get
from .neutral import Conversation, ToolResult, ToolUse, pair
from .values import string

TARGETS = ("anthropic", "openai", "gemini", "text")
_READ: dict[str, Callable[[Conversation, list[Any], object], None]] = {
    "anthropic": read_anthropic,
    "openai": read_openai,
    "openai-responses": read_responses,
    "gemini": read_gemini,
    "bedrock": read_bedrock,
    "ollama": read_openai,
}
_WRITE = {"anthropic": write_anthropic, "openai": write_openai, "gemini": write_gemini}


class Converted(NamedTuple):
    """What a request has become."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    params: dict[str, Any]
    lost: list[str]
    """What has no counterpart, in words."""
    notes: list[str]
    """What was made up or is still missing, as sentences."""


def neutral(
    messages: list[Any], tools: list[Any], params: dict[str, Any], source: str | None
) -> Conversation:
    """Return a request in the neutral form; an unknown source is read as OpenAI's shape."""
    provider = source if source in _READ else "openai"
    conversation = Conversation()
    system = params.get("system", params.get("instructions", get(params, "systemInstruction")))
    _READ[provider](conversation, messages, system)
    conversation.tools = read_tools(tools, conversation.lost)
    read_options(conversation, params, provider)
    unnamed = sum(
        isinstance(part, ToolUse | ToolResult) and not part.id
        for each in conversation.said
        for part in each.parts
    )
    conversation.said = pair(conversation.said)
    if unnamed:
        conversation.notes.append(
            "the recording has no ids for tool uses; they were numbered call_1, call_2, …"
        )
    return conversation


def as_text(messages: list[Any], tools: list[Any], params: dict[str, Any], source: str | None) -> str:
    """Return a conversation to be read."""
    return write_text(neutral(messages, tools, params, source))


def convert(
    messages: list[Any], tools: list[Any], params: dict[str, Any], source: str | None, target: str
) -> Converted:
    """Return a request in the shape of another provider."""
    conversation = neutral(messages, tools, params, source)
    if target == "gemini":
        conversation.notes.clear()  # it takes no ids either
    written = _WRITE[target](conversation)
    options = write_options(conversation, target)
    system = "\n\n".join(conversation.system)
    if system and target == "anthropic":
        options["system"] = system
    elif system and target == "gemini":
        options["systemInstruction"] = {"parts": [{"text": system}]}
    if target == "anthropic" and "max_tokens" not in options:
        conversation.notes.append("Anthropic needs max_tokens, which the recording does not have")
    model = string(conversation.options.get("model"))
    if model:
        conversation.notes.append(f"the model is still {model}; name one of {target}'s")
    made = write_tools(conversation.tools, target)
    return Converted(written, made, options, conversation.lost.told(), conversation.notes)
