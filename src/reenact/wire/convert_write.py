"""The neutral form -> messages of Anthropic, OpenAI or Gemini, or a text to be read.

Uses and results come with ids and names (``neutral.pair``). What a target cannot carry is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .neutral import Conversation, Image, Losses, Part, Said, Text, ToolResult, ToolUse, text_of
from .values import as_json, call_text, decoded

_ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")


def write_anthropic(conversation: Conversation) -> list[dict[str, Any]]:
    """Return Messages: results first in the user's message, ids of letters and digits only."""
    ids = _Ids(conversation)
    messages = []
    for role, parts in conversation.said:
        # A result must stand before anything else the user says.
        ordered = sorted(parts, key=lambda part: not isinstance(part, ToolResult))
        blocks = [block for part in ordered if (block := _block(part, conversation.lost, ids)) is not None]
        if len(blocks) == 1 and blocks[0]["type"] == "text":
            messages.append({"role": role, "content": blocks[0]["text"]})
        elif blocks:
            messages.append({"role": role, "content": blocks})
    if messages and messages[0]["role"] != "user":
        conversation.notes.append("the list begins with the model's words; Anthropic wants a user's first")
    return messages


class _Ids:
    """Ids as Anthropic takes them; one that it would refuse is replaced everywhere by the same other."""

    def __init__(self, conversation: Conversation) -> None:
        self.notes = conversation.notes
        self.changed: dict[str, str] = {}

    def __call__(self, id_: str | None) -> str:
        if id_ and _ANTHROPIC_ID.match(id_):
            return id_
        if not self.changed:
            self.notes.append("ids of tool uses that Anthropic would refuse were replaced")
        return self.changed.setdefault(id_ or "", f"use_{len(self.changed) + 1}")


def _block(part: Part, lost: Losses, ids: _Ids) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Image):
        return _anthropic_image(part)
    if isinstance(part, ToolUse):
        return {"type": "tool_use", "id": ids(part.id), "name": part.name, "input": _object(part.args, lost)}
    inner = [block for each in part.parts if (block := _block(each, lost, ids)) is not None]
    content: Any = text_of(part.parts) if all(isinstance(each, Text) for each in part.parts) else inner
    result = {"type": "tool_result", "tool_use_id": ids(part.id), "content": content}
    return {**result, "is_error": True} if part.is_error else result


def _anthropic_image(image: Image) -> dict[str, Any]:
    if image.url is not None:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": image.media_type or _sniffed(image.data), "data": image.data}
    return {"type": "image", "source": source}


def _sniffed(data: str | None) -> str:
    """Return the type of a picture by how its base64 begins."""
    begins = {"/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp"}
    return begins.get((data or "")[:4], "image/png")


def _object(args: Any, lost: Losses) -> dict[str, Any]:
    if isinstance(args, dict):
        return args
    if args is None:
        return {}
    lost.add("arguments that are no JSON object, now under the key input")
    return {"input": args}


def write_openai(conversation: Conversation) -> list[dict[str, Any]]:
    """Return chat messages: the system prompt first, every result a message of its own."""
    messages: list[dict[str, Any]] = []
    if conversation.system:
        messages.append({"role": "system", "content": "\n\n".join(conversation.system)})
    for role, parts in conversation.said:
        if role == "assistant":
            messages += _assistant(parts, conversation.lost)
            continue
        messages += [_tool(part, conversation.lost) for part in parts if isinstance(part, ToolResult)]
        rest = [part for part in parts if isinstance(part, Text | Image)]
        if rest:
            messages.append({"role": "user", "content": _openai_content(rest)})
    return messages


def _assistant(parts: list[Part], lost: Losses) -> list[dict[str, Any]]:
    # Answers are cut into texts anywhere, around a citation for instance.
    text = "".join(part.text for part in parts if isinstance(part, Text))
    calls = [
        {
            "id": part.id,
            "type": "function",
            "function": {"name": part.name, "arguments": _arguments(part.args)},
        }
        for part in parts
        if isinstance(part, ToolUse)
    ]
    for part in parts:
        if isinstance(part, Image):
            lost.add("an image the model made")
    if not text and not calls:
        return []
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    return [{**message, "tool_calls": calls} if calls else message]


def _arguments(args: Any) -> str:
    if isinstance(args, str):
        return args
    return "{}" if args is None else as_json(args)


def _tool(result: ToolResult, lost: Losses) -> dict[str, Any]:
    if result.is_error:
        lost.add("the mark that a tool failed, whose text is kept")
    for part in result.parts:
        if isinstance(part, Image):
            lost.add("an image in a tool's result")
    return {"role": "tool", "tool_call_id": result.id, "content": text_of(result.parts)}


def _openai_content(parts: Iterable[Text | Image]) -> str | list[dict[str, Any]]:
    parts = list(parts)
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return [
        {"type": "text", "text": part.text}
        if isinstance(part, Text)
        else {"type": "image_url", "image_url": {"url": _url(part)}}
        for part in parts
    ]


def _url(image: Image) -> str:
    return image.url or f"data:{image.media_type or _sniffed(image.data)};base64,{image.data}"


def write_gemini(conversation: Conversation) -> list[dict[str, Any]]:
    """Return contents; there results are paired by name and order, so they stand in the uses' order."""
    contents = []
    order: list[str | None] = []
    for role, parts in conversation.said:
        if role == "assistant":
            order = [part.id for part in parts if isinstance(part, ToolUse)]
        else:
            parts = _in_order(parts, order)
        found = [each for part in parts if (each := _gemini_part(part, conversation.lost)) is not None]
        if found:
            contents.append({"role": "model" if role == "assistant" else "user", "parts": found})
    return contents


def _in_order(parts: list[Part], order: list[str | None]) -> list[Part]:
    results = [part for part in parts if isinstance(part, ToolResult)]
    known = {id_: number for number, id_ in enumerate(order)}
    results.sort(key=lambda result: known.get(result.id, len(order)))
    return [*results, *(part for part in parts if not isinstance(part, ToolResult))]


def _gemini_part(part: Part, lost: Losses) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"text": part.text} if part.text else None
    if isinstance(part, Image):
        if part.data is None:
            lost.add("an image at a URL")
            return None
        media = part.media_type or _sniffed(part.data)
        return {"inlineData": {"mimeType": media, "data": part.data}}
    lost.add("ids of tool uses and results, now paired by name and order")
    if isinstance(part, ToolUse):
        return {"functionCall": {"name": part.name, "args": _object(part.args, lost)}}
    for inner in part.parts:
        if isinstance(inner, Image):
            lost.add("an image in a tool's result")
    text = text_of(part.parts)
    value = decoded(text)
    response = value if isinstance(value, dict) and text.strip() else {"result": text}
    if part.is_error:
        response = {"error": text}
    return {"functionResponse": {"name": part.name or "", "response": response}}


def write_text(conversation: Conversation) -> str:
    """Return the conversation to be read: who said what, tools by name."""
    blocks = [("system", text) for text in conversation.system]
    for said in conversation.said:
        blocks += _spoken(said)
    return "\n\n".join(f"{who}:\n{text}" for who, text in blocks if text) + ("\n" if blocks else "")


def _spoken(said: Said) -> list[tuple[str, str]]:
    blocks: list[tuple[str, list[str]]] = []
    for part in said.parts:
        if isinstance(part, ToolUse):
            blocks.append((f"{said.role} uses {part.id}", [call_text(part.name, part.args)]))
        elif isinstance(part, ToolResult):
            failed = "failed " if part.is_error else ""
            text = "\n".join(_shown(each) for each in part.parts)
            blocks.append((f"{part.name or 'tool'} {failed}{part.id}", [text or "(nothing)"]))
        elif blocks and blocks[-1][0] == said.role:
            blocks[-1][1].append(_shown(part))
        else:
            blocks.append((said.role, [_shown(part)]))
    return [(who, "".join(texts)) for who, texts in blocks]


def _shown(part: Text | Image) -> str:
    return part.text if isinstance(part, Text) else f"[image {part.url or part.media_type or ''}]"
