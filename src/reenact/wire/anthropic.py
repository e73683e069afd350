"""Anthropic Messages: POST /v1/messages.

One of the provider files behind shapes.py; pure functions that take any decoded body.
"""

from __future__ import annotations

from .values import (
    REASONING,
    RESULT,
    TEXT,
    TOOL,
    call_text,
    count,
    decoded,
    mapping,
    mappings,
    neutral,
    some_messages,
    string,
    words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "anthropic"

STOP = {"pause_turn": "pause"}

_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})


def is_request(body: dict[str, Any]) -> bool:
    """True for marks only this request has: schemas and blocks of its own, or a top-level system text."""
    if "anthropic_version" in body or "anthropic_beta" in body:
        return True
    if any("input_schema" in tool for tool in mappings(body.get("tools"))):
        return True
    for message in some_messages(body):
        for block in mappings(message.get("content")):
            source = mapping(block.get("source"))
            kind = string(block.get("type"))
            if kind in _BLOCKS or (kind == "image" and "type" in source):
                return True
    system = body.get("system")
    typed = bool(mappings(system)) and all("type" in block for block in mappings(system))
    return "max_tokens" in body and (isinstance(system, str) or typed)


def is_response(body: dict[str, Any]) -> bool:
    """True for a message or an error; a hand-shortened message counts if it has a stop reason."""
    if body.get("type") == "error":
        return isinstance(body.get("error"), dict)
    if not isinstance(body.get("content"), list):
        return False
    return body.get("type") == "message" or "stop_reason" in body


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the counts of the answer; those of hidden sub-calls (``iterations``) are not added."""
    return usage_from_raw(mapping(body.get("usage")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """``input_tokens`` is the uncached part already, ``output_tokens`` includes thinking."""
    return neutral(
        count(raw.get("input_tokens")),
        count(raw.get("output_tokens")),
        count(raw.get("cache_read_input_tokens")),
        count(raw.get("cache_creation_input_tokens")),
        count(mapping(raw.get("output_tokens_details")).get("thinking_tokens")),
    )


def stop_reason(body: dict[str, Any]) -> str | None:
    """Return the neutral stop reason."""
    reason = string(body.get("stop_reason"))
    return STOP.get(reason, reason) if reason else None


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (type, message) of an error body."""
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    return string(error.get("type")), words(error.get("message"))


def tool_uses(body: dict[str, Any]) -> list[tuple[str | None, str, object]]:
    """Return the uses the agent has to carry out; server tools are not among them."""
    return [
        (string(block.get("id")), string(block.get("name")) or "", decoded(block.get("input")))
        for block in mappings(body.get("content"))
        if block.get("type") == "tool_use"
    ]


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The agent appends role and content of the body itself."""
    return [("", body)] if body.get("content") is not None else []


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer as messages to be read."""
    return [body]


def part(block: dict[str, Any]) -> tuple[str, str] | None:
    """Return (sort, text) of one content block; None if it is not one of Anthropic's."""
    kind = string(block.get("type")) or ""
    if kind == "text":
        return TEXT, words(block.get("text"))
    if kind == "thinking":
        return REASONING, words(block.get("thinking"))
    if kind == "redacted_thinking":
        return REASONING, ""
    if kind.endswith("tool_use"):
        return TOOL, call_text(block.get("name"), block.get("input"))
    if kind.endswith("tool_result"):
        return RESULT, words(block.get("content"))
    if kind == "compaction":
        return TEXT, words(block.get("content"))
    return None
