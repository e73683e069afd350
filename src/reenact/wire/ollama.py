"""Ollama's own API: POST /api/chat (and /api/generate). Its /v1 endpoints speak OpenAI's shape.

One of the provider files behind shapes.py; pure functions that take any decoded body.
"""

from __future__ import annotations

from .values import count, decoded, mapping, mappings, neutral, some_messages, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "ollama"

STOP = {"stop": "end_turn", "length": "max_tokens"}

_PARAMETERS = frozenset({"options", "keep_alive", "think", "format"})
_MESSAGE_FIELDS = frozenset({"images", "tool_name", "thinking"})


def is_request(body: dict[str, Any]) -> bool:
    """True for Ollama's own parameters and message fields, and for tool arguments that are objects."""
    if not ("messages" in body or "prompt" in body):
        return False
    if not _PARAMETERS.isdisjoint(body):
        return True
    for message in some_messages(body):
        if not _MESSAGE_FIELDS.isdisjoint(message):
            return True
        for call in mappings(message.get("tool_calls")):
            if isinstance(mapping(call.get("function")).get("arguments"), dict):
                return True
    return False


def is_response(body: dict[str, Any]) -> bool:
    """True for an answer with ``done``, and for an error that is a bare string."""
    if "done" in body:
        return isinstance(body.get("message"), dict) or isinstance(body.get("response"), str)
    return isinstance(body.get("error"), str)


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """The counts stand in the body itself."""
    return usage_from_raw(body)


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts; nothing is known of caches."""
    return neutral(count(raw.get("prompt_eval_count")), count(raw.get("eval_count")))


def stop_reason(body: dict[str, Any]) -> str | None:
    """Return the neutral stop reason; ``stop`` also ends an answer that calls tools."""
    reason = string(body.get("done_reason"))
    if reason is None:
        return None
    found = STOP.get(reason, reason)
    return "tool_use" if found == "end_turn" and tool_uses(body) else found


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (None, message): Ollama's errors have no type."""
    error = string(body.get("error"))
    return (None, error) if error else None


def tool_uses(body: dict[str, Any]) -> list[tuple[str | None, str, object]]:
    """Return the tool calls; older servers give them no id."""
    found = []
    for call in mappings(mapping(body.get("message")).get("tool_calls")):
        function = mapping(call.get("function"))
        args = decoded(function.get("arguments"))
        found.append((string(call.get("id")), string(function.get("name")) or "", args))
    return found


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the one message of the answer."""
    message = body.get("message")
    return [("/message", message)] if isinstance(message, dict) else []


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer as messages to be read."""
    return [message for _, message in answers(body)] or [{"content": body.get("response")}]


def part(block: dict[str, Any]) -> tuple[str, str] | None:
    """Ollama has no parts: contents are strings."""
    return None
