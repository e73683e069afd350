"""OpenAI Responses: POST /v1/responses.

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
    first_count,
    mapping,
    mappings,
    neutral,
    string,
    uncached,
    words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "openai-responses"

STOP = {"max_output_tokens": "max_tokens", "failed": "error"}

_OWN_ARGUMENTS = {
    "local_shell_call": "action",
    "shell_call": "action",
    "computer_call": "action",
    "apply_patch_call": "operation",
    "tool_search_call": "arguments",
}
"""Calls without a name: where each keeps its arguments. The name is the type without ``_call``."""


def is_request(body: dict[str, Any]) -> bool:
    """True for an input without messages; an embedding request, which looks alike, is told apart."""
    if "messages" in body or not isinstance(body.get("input"), str | list):
        return "previous_response_id" in body and "messages" not in body
    return "encoding_format" not in body and "embed" not in (string(body.get("model")) or "")


def is_response(body: dict[str, Any]) -> bool:
    """True for a response object."""
    if body.get("object") == "response":
        return True
    return isinstance(body.get("output"), list) and ("status" in body or "usage" in body)


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts."""
    return usage_from_raw(mapping(body.get("usage")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """``input_tokens`` includes what the cache gave or took, ``output_tokens`` includes reasoning."""
    details, made = mapping(raw.get("input_tokens_details")), mapping(raw.get("output_tokens_details"))
    # The names at the top level are those of Codex's session files.
    read = first_count(details.get("cached_tokens"), raw.get("cached_input_tokens"))
    write = first_count(details.get("cache_write_tokens"), raw.get("cache_write_input_tokens"))
    return neutral(
        uncached(count(raw.get("input_tokens")), read, write),
        count(raw.get("output_tokens")),
        read,
        write,
        first_count(made.get("reasoning_tokens"), raw.get("reasoning_output_tokens")),
    )


def stop_reason(body: dict[str, Any]) -> str | None:
    """Return the neutral stop reason; ``completed`` says nothing of why, so the output is asked."""
    status = string(body.get("status"))
    if status == "incomplete":
        reason = string(mapping(body.get("incomplete_details")).get("reason"))
        return STOP.get(reason, reason) if reason else status
    if status != "completed":
        return STOP.get(status, status) if status else None
    if tool_uses(body):
        return "tool_use"
    items = mappings(body.get("output"))
    if any(item.get("type") == "mcp_approval_request" for item in items):
        return "pause"
    inner = [part.get("type") for item in items for part in mappings(item.get("content"))]
    return "refusal" if "refusal" in inner else "end_turn"


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (type, message) of a response that failed."""
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    return string(error.get("type")) or string(error.get("code")), words(error.get("message"))


def tool_uses(body: dict[str, Any]) -> list[tuple[str | None, str, object]]:
    """Return the calls that wait for the agent: those without an output in the same response."""
    items = mappings(body.get("output"))
    answered = {string(item.get("call_id")) for item in items if _is_output(item)} - {None}
    return [
        (string(item.get("call_id")), name, args)
        for item in items
        for name, args in _called(item)
        if string(item.get("call_id")) not in answered
    ]


def _is_output(item: dict[str, Any]) -> bool:
    return (string(item.get("type")) or "").endswith("_output")


def _called(item: dict[str, Any]) -> list[tuple[str, object]]:
    """Return name and arguments if the item is a call that an agent, not the provider, carries out."""
    kind = string(item.get("type")) or ""
    if kind == "function_call":
        return [(string(item.get("name")) or "", decoded(item.get("arguments")))]
    if kind == "custom_tool_call":
        return [(string(item.get("name")) or "", item.get("input"))]  # free text, not JSON
    if kind in _OWN_ARGUMENTS and item.get("execution") != "server":
        return [(kind.removesuffix("_call"), item.get(_OWN_ARGUMENTS[kind]))]
    return []


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return every output item; the agent appends all of them."""
    output = body.get("output")
    return [
        (f"/output/{index}", item)
        for index, item in enumerate(output if isinstance(output, list) else [])
        if isinstance(item, dict)
    ]


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the output items to be read."""
    return mappings(body.get("output"))


def part(part: dict[str, Any]) -> tuple[str, str] | None:
    """Return (sort, text) of one item or content part; None if it is not one of Responses'."""
    kind = string(part.get("type")) or ""
    if kind in ("input_text", "output_text"):
        return TEXT, words(part.get("text"))
    if kind == "refusal":
        return TEXT, words(part.get("refusal"))
    if kind in ("reasoning_text", "summary_text"):
        return REASONING, words(part.get("text"))
    if kind == "reasoning":
        return REASONING, words(part.get("summary")) or words(part.get("content"))
    if _is_output(part):
        return RESULT, words(part.get("output"))
    if kind in ("mcp_call", "mcp_approval_request"):
        return TOOL, call_text(part.get("name"), part.get("arguments"))
    for name, args in _called(part):
        return TOOL, call_text(name, args)
    return None
