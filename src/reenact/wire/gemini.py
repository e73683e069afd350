"""Gemini: POST …/models/{model}:generateContent.

One of the provider files behind shapes.py; pure functions that take any decoded body. The wire is
camelCase; the snake_case that Google's own SDK gives out is understood as well.
"""

from __future__ import annotations

from .values import (
    OTHER,
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
    plus,
    string,
    uncached,
    words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "gemini"

STOP = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "MALFORMED_RESPONSE": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
}


_SNAKE: dict[str, str] = {}
"""Names already turned into the SDK's spelling."""


def _get(value: dict[str, Any], camel: str) -> Any:
    if camel in value:
        return value[camel]
    snake = _SNAKE.get(camel)
    if snake is None:
        snake = "".join("_" + letter.lower() if letter.isupper() else letter for letter in camel)
        _SNAKE[camel] = snake
    return value.get(snake)


def is_request(body: dict[str, Any]) -> bool:
    """True for contents."""
    return isinstance(body.get("contents"), list) and "messages" not in body


def is_response(body: dict[str, Any]) -> bool:
    """True for candidates or usage metadata, and for an error of Google's API."""
    if isinstance(body.get("candidates"), list):
        return True
    if isinstance(_get(body, "usageMetadata"), dict) or isinstance(_get(body, "promptFeedback"), dict):
        return True
    error = mapping(body.get("error"))
    return isinstance(error.get("status"), str) and "code" in error


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts."""
    return usage_from_raw(mapping(_get(body, "usageMetadata")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """The prompt count includes the cached part; tool-use prompts and thoughts are counted apart.

    Google leaves out counts that are zero, so a missing output is what the total leaves for it.
    """
    prompt = count(_get(raw, "promptTokenCount"))
    tool_prompt = count(_get(raw, "toolUsePromptTokenCount"))
    read = count(_get(raw, "cachedContentTokenCount"))
    thoughts = count(_get(raw, "thoughtsTokenCount"))
    output = plus(count(_get(raw, "candidatesTokenCount")), thoughts)
    total = count(_get(raw, "totalTokenCount"))
    if output is None and total is not None and prompt is not None:
        output = max(0, total - prompt - (tool_prompt or 0))
    return neutral(plus(uncached(prompt, read, None), tool_prompt), output, read, None, thoughts)


def stop_reason(body: dict[str, Any]) -> str | None:
    """Return the neutral stop reason; STOP also ends an answer that calls tools."""
    for candidate in mappings(body.get("candidates")):
        reason = string(_get(candidate, "finishReason"))
        if reason:
            found = STOP.get(reason, reason)
            return "tool_use" if found == "end_turn" and tool_uses(body) else found
    return "content_filter" if _get(mapping(_get(body, "promptFeedback")), "blockReason") else None


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (status, message) of an error body."""
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    code = count(error.get("code"))
    return string(error.get("status")) or (f"http_{code}" if code else None), words(error.get("message"))


def tool_uses(body: dict[str, Any]) -> list[tuple[str | None, str, object]]:
    """Return the function calls; ids are often missing."""
    found = []
    for _, content in answers(body):
        for piece in mappings(content.get("parts")):
            call = _get(piece, "functionCall")
            if isinstance(call, dict):
                args = call.get("args")
                found.append((string(call.get("id")), string(call.get("name")) or "", _arguments(args)))
    return found


def _arguments(args: object) -> object:
    return {} if args is None else decoded(args)


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the content of each candidate."""
    candidates = body.get("candidates")
    return [
        (f"/candidates/{index}/content", candidate["content"])
        for index, candidate in enumerate(candidates if isinstance(candidates, list) else [])
        if isinstance(candidate, dict) and isinstance(candidate.get("content"), dict)
    ]


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers as messages to be read."""
    return [content for _, content in answers(body)]


def part(part: dict[str, Any]) -> tuple[str, str] | None:
    """Return (sort, text) of one part; None if it is not one of Gemini's."""
    call, response = _get(part, "functionCall"), _get(part, "functionResponse")
    if isinstance(call, dict):
        return TOOL, call_text(call.get("name"), call.get("args"))
    if isinstance(response, dict):
        return RESULT, words(response.get("response"))
    if "text" in part:
        return (REASONING if part.get("thought") is True else TEXT), words(part["text"])
    code, result = _get(part, "executableCode"), _get(part, "codeExecutionResult")
    if isinstance(code, dict):
        return TEXT, words(code.get("code"))
    if isinstance(result, dict):
        return RESULT, words(result.get("output"))
    for media in ("inlineData", "fileData"):
        if _get(part, media) is not None:
            return OTHER, f"[{media}]"
    return None
