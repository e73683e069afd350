"""Cohere's v2 chat: POST /v2/chat. Its messages are OpenAI's, its answer is one message and a reason.

One of the provider files behind shapes.py; pure functions that take any decoded body.
"""

from __future__ import annotations

from .values import count, decoded, mapping, mappings, neutral, string, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "cohere"

STOP = {
    "COMPLETE": "end_turn", "STOP_SEQUENCE": "stop_sequence", "MAX_TOKENS": "max_tokens",
    "TOOL_CALL": "tool_use", "ERROR": "error", "ERROR_TOXIC": "content_filter",
}  # fmt: skip


def is_request(body: dict[str, Any]) -> bool:
    """True for parameters that no other shape with ``messages`` has."""
    return "messages" in body and not {"citation_options", "safety_mode", "strict_tools"}.isdisjoint(body)


def is_response(body: dict[str, Any]) -> bool:
    """True for one message with a reason in capitals beside it."""
    return isinstance(body.get("message"), dict) and (string(body.get("finish_reason")) or "").isupper()


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the counts of the model; what is billed may be fewer."""
    return usage_from_raw(mapping(body.get("usage")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts; the cached ones are part of the input."""
    tokens = mapping(raw.get("tokens")) or mapping(raw.get("billed_units"))
    given, cached = count(tokens.get("input_tokens")), count(raw.get("cached_tokens"))
    uncached = None if given is None else max(0, given - (cached or 0))
    return neutral(uncached, count(tokens.get("output_tokens")), cached)


def stop_reason(body: dict[str, Any]) -> str | None:
    """Return the neutral stop reason."""
    reason = string(body.get("finish_reason"))
    return None if reason is None else STOP.get(reason, reason)


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (None, message): Cohere's errors have no type."""
    message = body.get("message")
    if isinstance(message, str):
        return None, message
    return (None, words(body["error"])) if string(body.get("error")) else None


def tool_uses(body: dict[str, Any]) -> list[tuple[str | None, str, object]]:
    """Return the tool calls, spelled as OpenAI's."""
    calls = mappings(mapping(body.get("message")).get("tool_calls"))
    functions = [(string(call.get("id")), mapping(call.get("function"))) for call in calls]
    return [(id_, string(each.get("name")) or "", decoded(each.get("arguments"))) for id_, each in functions]


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the one message of the answer."""
    message = body.get("message")
    return [("/message", message)] if isinstance(message, dict) else []


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer as messages to be read; a plan of tools is what the model says before them."""
    return [
        {**message, "content": message.get("content") or message.get("tool_plan")}
        for _, message in answers(body)
    ]


def part(block: dict[str, Any]) -> tuple[str, str] | None:
    """Cohere's parts are OpenAI's."""
    return None
