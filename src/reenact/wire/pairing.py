"""Tool uses and their results inside a conversation, in every provider's own shape.

Which messages ask for tools, which answer them, up to where a conversation is one that a provider
accepts, and the message that carries a result. Pure functions; none raises for an odd value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import anthropic, bedrock, gemini, ollama, openai_chat, openai_responses
from .toolresults import tool_results
from .values import as_text, mapping, string

RESPONSES = openai_responses.NAME
_WRAPPED: dict[str, Any] = {
    "anthropic": anthropic.tool_uses,
    "openai": lambda message: openai_chat.tool_uses({"choices": [{"message": message}]}),
    RESPONSES: lambda item: openai_responses.tool_uses({"output": [item]}),
    "gemini": lambda content: gemini.tool_uses({"candidates": [{"content": content}]}),
    "bedrock": lambda message: bedrock.tool_uses({"output": {"message": message}}),
    "ollama": lambda message: ollama.tool_uses({"message": message}),
}
_OUTPUTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""Of Responses' calls: those whose output is a text, so that it can be made from a result."""

_MERGING = ("anthropic", "gemini", "bedrock")
"""Where messages of one role side by side count as one."""


class Use(NamedTuple):
    """A tool use as an answer asks for it."""

    id: str | None
    name: str
    form: str | None = None
    """The type of the item or call, where a provider has several."""
    args: Any = None

    def __str__(self) -> str:
        return f"{self.name or 'a tool'} ({self.id})" if self.id else self.name or "a tool"


class Outcome(NamedTuple):
    """What came back from a tool."""

    value: Any
    failed: bool = False
    """True if the value is what went wrong."""


class Prefix(NamedTuple):
    """The longest beginning of a conversation that a provider accepts."""

    length: int
    unanswered: list[Use]
    orphans: list[str]
    """Results that no tool use before them asked for."""


def is_models(message: object, provider: str | None) -> bool:
    """True if the model said it."""
    item = mapping(message)
    role = item.get("role")
    if provider == RESPONSES and role is None:
        kind = string(item.get("type")) or ""
        return kind == "reasoning" or kind.endswith("_call")
    return role in ("assistant", "model")


def uses(message: object, provider: str | None) -> list[Use]:
    """Return the tool uses a message asks for."""
    if not is_models(message, provider):
        return []
    item = mapping(message)
    find = _WRAPPED.get(provider or "", _WRAPPED["openai"])
    form = string(item.get("type")) if provider == RESPONSES else None
    if form is None and isinstance(item.get("function_call"), dict):
        form = "function"
    return [Use(id_, name, form, args) for id_, name, args in find(item)]


def results(message: object) -> list[tuple[str | None, str | None]]:
    """Return (id, tool name) of the results a message carries; either may be unsaid."""
    return [(result.id, result.name) for result in tool_results(message)]


def consistent(messages: list[Any], provider: str | None, *, kept_elsewhere: bool = False) -> Prefix:
    """Return up to where every tool use is answered and every result was asked for.

    ``kept_elsewhere``: the provider holds an earlier part, so a result may belong to a use not seen here.
    """
    waiting: dict[object, Use] = {}
    safe = block = 0
    was_models = False
    for position, message in enumerate(messages):
        models = is_models(message, provider)
        goes_on = models and was_models and provider in _MERGING
        if models and not was_models:
            block = position
        was_models = models
        found = results(message)
        if waiting and not found and not goes_on and provider != RESPONSES:
            return Prefix(safe, list(waiting.values()), [])
        for id_, name in found:
            key = _match(waiting, id_, name)
            if key is not None:
                del waiting[key]
            elif not kept_elsewhere:
                return Prefix(safe, list(waiting.values()), [id_ or name or "a result"])
        for number, use in enumerate(uses(message, provider)):
            waiting[use.id if use.id is not None and use.id not in waiting else (position, number)] = use
        if not waiting:
            safe = position + 1
        else:
            safe = min(safe, block)
    return Prefix(safe, list(waiting.values()), [])


class Pair(NamedTuple):
    """A tool use and its result, by the places of their messages; None for one that is not there."""

    use: int | None
    result: int | None
    name: str


def pairs(messages: list[Any], provider: str | None) -> list[Pair]:
    """Return every tool use with its result, and what of them stands alone."""
    waiting: dict[object, Use] = {}
    asked: dict[object, int] = {}
    found: list[Pair] = []
    for position, message in enumerate(messages):
        for id_, name in results(message):
            key = _match(waiting, id_, name)
            use = waiting.pop(key, None)
            told = use.name if use is not None else name or id_ or "a tool"
            found.append(Pair(asked.get(key) if use is not None else None, position, told))
        for number, use in enumerate(uses(message, provider)):
            key = use.id if use.id is not None and use.id not in waiting else (position, number)
            waiting[key], asked[key] = use, position
    return found + [Pair(asked[key], None, use.name) for key, use in waiting.items()]


def _match(waiting: dict[object, Use], id_: str | None, name: str | None) -> object:
    """Return the key of the use a result answers: by id, else, where one has none, by name and order."""
    if id_ is not None and id_ in waiting:
        return id_
    for key, use in waiting.items():
        if id_ is not None and use.id is not None:
            if use.id == id_:
                return key
        elif name is None or not use.name or use.name == name:
            return key
    return None


def result_messages(provider: str | None, answered: list[tuple[Use, Outcome]]) -> list[dict[str, Any]] | None:
    """Return the messages that carry tool results; None if one has no shape made of a text."""
    if provider == "anthropic":
        return [{"role": "user", "content": [_anthropic(use, outcome) for use, outcome in answered]}]
    if provider == "gemini":
        return [{"role": "user", "parts": [_gemini(use, outcome) for use, outcome in answered]}]
    if provider == "bedrock":
        return [{"role": "user", "content": [_bedrock(use, outcome) for use, outcome in answered]}]
    if provider == RESPONSES:
        if any(use.form not in _OUTPUTS for use, _ in answered):
            return None
        return [
            {"type": _OUTPUTS[use.form or ""], "call_id": use.id, "output": as_text(outcome.value)}
            for use, outcome in answered
        ]
    if provider == "ollama":
        return [
            {"role": "tool", "tool_name": use.name, "content": as_text(outcome.value)}
            | ({"tool_call_id": use.id} if use.id else {})
            for use, outcome in answered
        ]
    return [_openai(use, outcome) for use, outcome in answered]


def _openai(use: Use, outcome: Outcome) -> dict[str, Any]:
    if use.id is None:
        return {"role": "function", "name": use.name, "content": as_text(outcome.value)}
    return {"role": "tool", "tool_call_id": use.id, "content": as_text(outcome.value)}


def _anthropic(use: Use, outcome: Outcome) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": use.id, "content": as_text(outcome.value)}
    return {**block, "is_error": True} if outcome.failed else block


def _gemini(use: Use, outcome: Outcome) -> dict[str, Any]:
    is_object = isinstance(outcome.value, dict) and not outcome.failed
    value = outcome.value if is_object else {"error" if outcome.failed else "result": outcome.value}
    response = {"name": use.name, "response": value}
    return {"functionResponse": {"id": use.id, **response} if use.id else response}


def _bedrock(use: Use, outcome: Outcome) -> dict[str, Any]:
    is_object = isinstance(outcome.value, dict) and not outcome.failed
    content = [{"json": outcome.value} if is_object else {"text": as_text(outcome.value)}]
    status = "error" if outcome.failed else "success"
    return {"toolResult": {"toolUseId": use.id, "content": content, "status": status}}
