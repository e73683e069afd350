"""Signed thinking: what a model thought is bound to the model and to what it saw.

Behind a change in the conversation, and for another model, a provider may refuse it; so it is taken out there
and stays as it is, to the byte, everywhere else.
"""

from __future__ import annotations

from typing import Any

from ...wire.json_values import mapping, mappings
from ...wire.pairing import is_models
from .cut import digest

_BLOCKS = ("thinking", "redacted_thinking")
_KEYS = ("reasoning_details", "thinking_blocks")
"""Where gateways of OpenAI's shape keep what other providers signed."""


def is_signed(message: Any) -> bool:
    """True if a message holds thinking that is signed or sealed."""
    return _without(message) is not message


def stripped(messages: list[Any], stale: set[bytes], provider: str | None) -> list[Any]:
    """Return the messages, those whose digest is ``stale`` without their signed thinking; else the same."""
    if not stale or not any(is_signed(each) and digest(each) in stale for each in messages):
        return messages
    kept: list[Any] = []
    bare = False
    for message in messages:
        new = _without(message)
        if new is not message and digest(message) in stale:
            bare = True
            if new is not None:
                kept.append(new)
            continue
        if bare and _is_item(message, provider):
            # An item that names itself is refused without the reasoning it came with; unnamed it is taken.
            kept.append({key: value for key, value in message.items() if key != "id"})
            continue
        bare = False
        kept.append(message)
    return kept


def _is_item(message: Any, provider: str | None) -> bool:
    return provider == "openai-responses" and is_models(message)


def _without(message: Any) -> Any:
    """Return a message without signed thinking: the very same if it has none, None if nothing is left."""
    told = mapping(message)
    if told.get("type") == "reasoning" and "role" not in told:
        return None
    if type(told.get("parts")) is list:
        return _without_part_signatures(told)
    content = told.get("content")
    if type(content) is list:
        rest = [block for block in content if not _is_thinking(block)]
        if len(rest) < len(content):
            return {**told, "content": rest} if rest else None
    if any(told.get(key) for key in _KEYS):
        return {key: value for key, value in told.items() if key not in _KEYS}
    calls = told.get("tool_calls")
    if any("extra_content" in call for call in mappings(calls)):  # Gemini's signatures in OpenAI's shape
        bare = [
            {key: value for key, value in call.items() if key != "extra_content"} for call in mappings(calls)
        ]
        return {**told, "tool_calls": bare}
    return message


def _is_thinking(block: Any) -> bool:
    told = mapping(block)
    return told.get("type") in _BLOCKS or "reasoningContent" in told


def _without_part_signatures(content: dict[str, Any]) -> Any:
    signed = [part for part in mappings(content["parts"]) if _signature_key(part)]
    if not signed:
        return content
    parts = []
    for part in content["parts"]:
        key = _signature_key(part)
        bare = {name: value for name, value in part.items() if name != key} if key else part
        if bare:
            parts.append(bare)
    return {**content, "parts": parts} if parts else None


def _signature_key(part: Any) -> str | None:
    told = mapping(part)
    return next((key for key in ("thoughtSignature", "thought_signature") if key in told), None)
