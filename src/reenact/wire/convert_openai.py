"""The messages of OpenAI (Chat Completions, Responses) and Ollama -> the neutral form. Total."""

from __future__ import annotations

from typing import Any

from . import openai_chat, openai_responses
from .convert_read import parts_of, plain_parts
from .neutral import Conversation, Image, Losses, Part, Text, ToolResult, ToolUse
from .values import as_text, mapping, mappings, string, words

_SYSTEM = ("system", "developer")
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking")


def read_openai(conversation: Conversation, messages: list[Any], system: object = None) -> None:
    """Take in chat messages: system prompts among them, every result a message of its own."""
    for message in mappings(messages):
        role, content = message.get("role"), message.get("content")
        if role in _SYSTEM:
            _system(conversation, words(content))
        elif role in ("tool", "function"):
            inner = plain_parts(parts_of(content, _part, conversation.lost))
            name = string(message.get("tool_name", message.get("name")))
            conversation.say("user", [ToolResult(string(message.get("tool_call_id")), name, inner)])
        else:
            _say(conversation, message, "assistant" if role == "assistant" else "user")


def _say(conversation: Conversation, message: dict[str, Any], role: str) -> None:
    lost = conversation.lost
    parts = parts_of(message.get("content"), _part, lost)
    if string(message.get("refusal")):
        lost.add("the mark of a refusal, whose text is kept")
        parts.append(Text(str(message["refusal"])))
    for key in _REASONING:
        if message.get(key):
            lost.add("reasoning")
            break
    for key in ("audio", "annotations", "name"):
        if message.get(key):
            lost.add({"name": "a speaker's name"}.get(key, key))
    for data in message.get("images") or [] if isinstance(message.get("images"), list) else []:
        if isinstance(data, str):  # Ollama: base64 without a type
            parts.append(Image(None, data))
    use_of = openai_chat.tool_uses({"choices": [{"message": message}]})
    parts += [ToolUse(id_, name, args) for id_, name, args in use_of]
    conversation.say(role, parts)


def _system(conversation: Conversation, text: str) -> None:
    if conversation.said:
        conversation.lost.add("the place of a system message in the middle, whose text is kept")
    if text:
        conversation.system.append(text)


def _part(part: dict[str, Any], lost: Losses) -> Part | None:
    kind = string(part.get("type")) or ""
    if part.get("cache_control"):
        lost.add("a cache marker")
    if part.get("annotations"):
        lost.add("citations")
    if kind in ("text", "input_text", "output_text"):
        return Text(words(part.get("text")))
    if kind == "refusal":
        lost.add("the mark of a refusal, whose text is kept")
        return Text(words(part.get("refusal")))
    if kind in ("image_url", "input_image"):
        url = part.get("image_url")
        image = image_at(string(mapping(url).get("url")) or string(url))
        if image is not None:
            return image
    lost.add("reasoning" if kind == "thinking" else f"a part of type {kind or 'unknown'}")
    return None


def image_at(url: str | None) -> Image | None:
    """Return an image from a URL, which may hold the data itself."""
    if url is None:
        return None
    if not url.startswith("data:"):
        return Image(None, None, url)
    head, _, data = url[5:].partition(",")
    media, _, encoding = head.partition(";")
    return Image(media or None, data) if encoding == "base64" and data else None


def read_responses(conversation: Conversation, items: list[Any], instructions: object = None) -> None:
    """Take in input items: messages, calls, outputs and reasoning side by side."""
    if string(instructions):
        conversation.system.append(str(instructions))
    for item in mappings(items):
        kind = string(item.get("type")) or "message"
        if kind == "message":
            role, content = item.get("role"), item.get("content")
            if role in _SYSTEM:
                _system(conversation, words(content))
            else:
                parts = parts_of(content, _part, conversation.lost)
                conversation.say("assistant" if role == "assistant" else "user", parts)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            conversation.say("user", [_output(item, conversation.lost)])
        else:
            _call(conversation, item, kind)


def _output(item: dict[str, Any], lost: Losses) -> ToolResult:
    output = item.get("output")
    inner: list[Text | Image]
    inner = (
        plain_parts(parts_of(output, _part, lost)) if isinstance(output, list) else [Text(as_text(output))]
    )
    return ToolResult(string(item.get("call_id")), None, inner)


def _call(conversation: Conversation, item: dict[str, Any], kind: str) -> None:
    if kind in ("function_call", "custom_tool_call"):
        uses = openai_responses.tool_uses({"output": [item]})
        conversation.say("assistant", [ToolUse(id_, name, args) for id_, name, args in uses])
    elif kind == "reasoning":
        conversation.lost.add("reasoning")
    else:
        conversation.lost.add(f"an item of type {kind}")
