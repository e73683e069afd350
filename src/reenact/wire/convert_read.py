"""Anthropic's, Bedrock's and Gemini's messages -> the neutral form.

The messages of OpenAI and Ollama are read in convert_openai. Total: what is odd is lost and counted.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from .gemini import _get as get
from .neutral import Conversation, Image, Losses, Part, Text, ToolResult, ToolUse
from .values import as_text, decoded, mapping, mappings, string, words

_MARKS = {"cache_control": "a cache marker", "citations": "citations"}


def read_anthropic(conversation: Conversation, messages: list[Any], system: object) -> None:
    """Take in Messages: typed blocks, results of tools in a user's message."""
    conversation.system += _texts(system, conversation.lost)
    _read(conversation, messages, _anthropic_part)


def read_bedrock(conversation: Conversation, messages: list[Any], system: object) -> None:
    """Take in Converse's messages: blocks without a type, named by their key."""
    conversation.system += _texts(system, conversation.lost)
    _read(conversation, messages, _bedrock_part)


def read_gemini(conversation: Conversation, contents: list[Any], system: object) -> None:
    """Take in contents: the model's role is ``model``, parts are named by their key."""
    instruction = mapping(system)
    conversation.system += _texts(instruction.get("parts") if instruction else system, conversation.lost)
    for content in mappings(contents):
        role = "assistant" if content.get("role") == "model" else "user"
        parts = content.get("parts")
        read = [_gemini_part(part, conversation.lost) for part in mappings(parts)]
        read += [Text(part) for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
        conversation.say(role, [part for part in read if part is not None])


def _read(
    conversation: Conversation,
    messages: list[Any],
    read_part: Callable[[dict[str, Any], Losses], Part | None],
) -> None:
    for message in mappings(messages):
        role = "assistant" if message.get("role") == "assistant" else "user"
        conversation.say(role, parts_of(message.get("content"), read_part, conversation.lost))


def parts_of(
    content: object, read_part: Callable[[dict[str, Any], Losses], Part | None], lost: Losses
) -> list[Part]:
    """Return the parts of a content: a text, or a list of blocks."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    found: list[Part] = []
    for item in content if isinstance(content, list) else [] if content is None else [content]:
        part = read_part(item, lost) if isinstance(item, dict) else Text(as_text(item))
        if part is not None:
            found.append(part)
    return found


def _texts(system: object, lost: Losses) -> list[str]:
    if isinstance(system, str):
        return [system] if system else []
    for block in mappings(system):
        _count_marks(block, lost)
        if "cachePoint" in block:
            lost.add("a cache marker")
    return [text for block in mappings(system) if (text := words(block.get("text")))]


def _count_marks(block: dict[str, Any], lost: Losses) -> None:
    for key, what in _MARKS.items():
        if block.get(key):
            lost.add(what)


def _anthropic_part(block: dict[str, Any], lost: Losses) -> Part | None:
    kind = string(block.get("type")) or ""
    _count_marks(block, lost)
    if kind == "text":
        return Text(words(block.get("text")))
    if kind == "tool_use":
        return ToolUse(string(block.get("id")), string(block.get("name")) or "", decoded(block.get("input")))
    if kind == "tool_result":
        inner = parts_of(block.get("content"), _anthropic_part, lost)
        is_error = block.get("is_error") is True
        return ToolResult(string(block.get("tool_use_id")), None, plain_parts(inner), is_error)
    if kind == "image":
        source = mapping(block.get("source"))
        image = Image(string(source.get("media_type")), string(source.get("data")), string(source.get("url")))
        if image.data or image.url:
            return image
    if kind in ("thinking", "redacted_thinking"):
        lost.add("a thinking block with its signature")
    elif kind.endswith(("tool_use", "tool_result")):
        lost.add(f"a block of a tool the provider ran ({kind})")
    else:
        lost.add(f"a block of type {kind or 'unknown'}")
    return None


def plain_parts(parts: list[Part]) -> list[Text | Image]:
    """Return what a result may hold."""
    return [part for part in parts if isinstance(part, Text | Image)]


def _bedrock_part(block: dict[str, Any], lost: Losses) -> Part | None:
    use, result, image = block.get("toolUse"), block.get("toolResult"), block.get("image")
    if isinstance(use, dict) and use.get("type") != "server_tool_use":
        return ToolUse(string(use.get("toolUseId")), string(use.get("name")) or "", decoded(use.get("input")))
    if isinstance(result, dict):
        inner = parts_of(result.get("content"), _bedrock_part, lost)
        is_error = result.get("status") == "error"
        return ToolResult(string(result.get("toolUseId")), None, plain_parts(inner), is_error)
    if "text" in block:
        return Text(words(block["text"]))
    if "json" in block:
        return Text(as_text(block["json"]))
    if isinstance(image, dict):
        data = mapping(image.get("source")).get("bytes")
        if isinstance(data, bytes):
            data = base64.b64encode(data).decode("ascii")
        if isinstance(data, str):
            return Image(f"image/{string(image.get('format')) or 'png'}", data)
    kind = next(iter(block), "unknown")
    lost.add(
        "a thinking block with its signature" if kind == "reasoningContent"
        else "a cache marker" if kind == "cachePoint" else f"a block of type {kind}"
    )  # fmt: skip
    return None


def _gemini_part(part: dict[str, Any], lost: Losses) -> Part | None:
    if get(part, "thoughtSignature"):
        lost.add("a thought signature")
    use, result = get(part, "functionCall"), get(part, "functionResponse")
    if isinstance(use, dict):
        args = use.get("args")
        return ToolUse(
            string(use.get("id")), string(use.get("name")) or "", {} if args is None else decoded(args)
        )
    if isinstance(result, dict):
        return _gemini_result(result)
    if part.get("thought") is True:
        lost.add("a thinking block with its signature")
        return None
    if "text" in part:
        return Text(words(part["text"]))
    data = mapping(get(part, "inlineData"))
    media = string(get(data, "mimeType")) or ""
    if media.startswith("image/") and string(data.get("data")):
        return Image(media, str(data["data"]))
    lost.add(f"a part of type {media or next(iter(part), 'unknown')}")
    return None


def _gemini_result(result: dict[str, Any]) -> ToolResult:
    """Google's own convention: the value under ``result`` or ``output``, a failure under ``error``."""
    response = result.get("response")
    value: Any = response
    is_error = False
    if isinstance(response, dict) and len(response) == 1:
        key = next(iter(response))
        is_error = key == "error"
        value = response[key] if key in ("result", "output", "error") else response
    return ToolResult(string(result.get("id")), string(result.get("name")), [Text(as_text(value))], is_error)
