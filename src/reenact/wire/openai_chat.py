"""OpenAI Chat Completions, POST /v1/chat/completions, and the many servers that speak it.

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
    parts_of,
    some_messages,
    string,
    uncached,
    words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NAME = "openai"

STOP = {
    "stop": "end_turn",
    "eos": "end_turn",
    "eos_token": "end_turn",
    "length": "max_tokens",
    "model_length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}

_ROLES = frozenset({"system", "developer", "tool", "function"})
_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_PARAMETERS = frozenset({
    "frequency_penalty", "functions", "function_call", "logit_bias", "logprobs", "max_completion_tokens",
    "modalities", "n", "parallel_tool_calls", "presence_penalty", "reasoning_effort", "response_format",
    "seed", "stop", "stream_options", "top_logprobs", "web_search_options",
})  # fmt: skip


def is_request(body: dict[str, Any]) -> bool:
    """True for roles, parts, tools or parameters that the other ``messages`` shapes do not have."""
    if any("function" in tool or tool.get("type") == "function" for tool in mappings(body.get("tools"))):
        return True
    for message in some_messages(body):
        if string(message.get("role")) in _ROLES or "tool_calls" in message or "function_call" in message:
            return True
        if any(string(part.get("type")) in _PARTS for part in mappings(message.get("content"))):
            return True
    return "messages" in body and not _PARAMETERS.isdisjoint(body)


def is_response(body: dict[str, Any]) -> bool:
    """True for choices, and for an error with OpenAI's fields."""
    if isinstance(body.get("choices"), list):
        return True
    if body.get("object") == "error":
        return True
    error = body.get("error")
    if not isinstance(error, dict) or body.get("type") == "error" or "status" in error:
        return False
    return "message" in error and ("type" in error or "code" in error)


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts; Groq keeps them under ``x_groq`` at times."""
    raw = mapping(body.get("usage")) or mapping(mapping(body.get("x_groq")).get("usage"))
    return usage_from_raw(raw)


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """``prompt_tokens`` includes what the cache gave or took, so both are taken off.

    ``completion_tokens`` includes reasoning, except where the total shows that it does not (xAI, and
    Gemini behind this shape).
    """
    prompt, completion = count(raw.get("prompt_tokens")), count(raw.get("completion_tokens"))
    details = mapping(raw.get("prompt_tokens_details"))
    read = first_count(
        details.get("cached_tokens"),
        raw.get("prompt_cache_hit_tokens"),  # DeepSeek
        raw.get("cache_read_input_tokens"),  # LiteLLM
        raw.get("cached_tokens"),  # Moonshot
    )
    write = first_count(
        details.get("cache_write_tokens"),
        details.get("cache_creation_tokens"),  # LiteLLM
        raw.get("cache_creation_input_tokens"),
    )
    reasoning = count(mapping(raw.get("completion_tokens_details")).get("reasoning_tokens"))
    total = count(raw.get("total_tokens"))
    if completion is not None and prompt is not None and total is not None:
        completion = max(completion, total - prompt)
    if completion is not None and reasoning is not None and reasoning > completion:
        completion += reasoning
    return neutral(uncached(prompt, read, write), completion, read, write, reasoning)


def stop_reason(body: dict[str, Any]) -> str | None:
    """Return the neutral stop reason of the first choice that has one.

    ``stop`` is also what a forced tool call ends with, so the message is asked what it was.
    """
    for choice in mappings(body.get("choices")):
        reason = string(choice.get("finish_reason"))
        if reason is None:
            continue
        found = STOP.get(reason, reason)
        if found == "end_turn":
            message = mapping(choice.get("message"))
            if message.get("tool_calls") or message.get("function_call"):
                return "tool_use"
            if string(message.get("refusal")):
                return "refusal"
            if string(choice.get("stop_reason")):  # vLLM names the stop string
                return "stop_sequence"
        return found
    return None


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (type, message) of an error body, or of a choice that ended in an error (OpenRouter)."""
    if body.get("object") == "error":
        return string(body.get("type")), words(body.get("message"))
    found = [body.get("error"), *(choice.get("error") for choice in mappings(body.get("choices")))]
    for error in found:
        if isinstance(error, dict):
            return _error_type(error), words(error.get("message"))
        if string(error):
            return None, str(error)
    return None


def _error_type(error: dict[str, Any]) -> str | None:
    code = error.get("code")
    number = count(code)
    return string(error.get("type")) or string(code) or (f"http_{number}" if number else None)


def tool_uses(body: dict[str, Any]) -> list[tuple[str | None, str, object]]:
    """Return (id, name, arguments) of every tool call of every choice."""
    found = []
    for _, message in answers(body):
        for call in mappings(message.get("tool_calls")):
            name, args = _named(call)
            found.append((string(call.get("id")), string(name) or "", args))
        old = message.get("function_call")
        if isinstance(old, dict):
            found.append((None, string(old.get("name")) or "", decoded(old.get("arguments"))))
    return found


def _named(call: dict[str, Any]) -> tuple[object, object]:
    custom = call.get("custom")
    if isinstance(custom, dict):
        return custom.get("name"), custom.get("input")  # free text, not JSON
    function = mapping(call.get("function"))
    return function.get("name"), decoded(function.get("arguments"))


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the message of each choice; the agent appends the one it picked."""
    choices = body.get("choices")
    return [
        (f"/choices/{index}/message", choice["message"])
        for index, choice in enumerate(choices if isinstance(choices, list) else [])
        if isinstance(choice, dict) and isinstance(choice.get("message"), dict)
    ]


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers as messages to be read; old completions have bare text."""
    return [
        mapping(choice.get("message")) or {"content": choice.get("text")}
        for choice in mappings(body.get("choices"))
    ]


def parts(
    message: dict[str, Any], part: Callable[[dict[str, Any]], tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return (sort, text) of each part of a message, whose content parts are read by ``part``."""
    found = [(REASONING, _reasoning(message))]
    found += parts_of(message.get("content"), part)
    found.append((TEXT, words(message.get("refusal"))))
    if string(message.get("role")) in ("tool", "function"):
        found = [(RESULT, text) for _, text in found]
    for call in mappings(message.get("tool_calls")):
        found.append((TOOL, call_text(*_named(call))))
    old = message.get("function_call")
    if isinstance(old, dict):
        found.append((TOOL, call_text(old.get("name"), old.get("arguments"))))
    return found


def _reasoning(message: dict[str, Any]) -> str:
    names = ("reasoning_content", "reasoning", "thinking")  # thinking: Ollama
    return next(filter(None, (words(message.get(name)) for name in names)), "")


def part(part: dict[str, Any]) -> tuple[str, str] | None:
    """Return (sort, text) of one content part; None if it is not one of Chat Completions'."""
    kind = string(part.get("type")) or ""
    if kind == "text":
        return TEXT, words(part.get("text"))
    if kind == "refusal":
        return TEXT, words(part.get("refusal"))
    if kind == "thinking":  # Mistral
        return REASONING, words(part.get("thinking"))
    return None
