"""Tool uses and their results inside a conversation: which result answers which use.

A result answers the use of its id; where one of both has none, the first use of its name that waits.
Pure functions; none raises for an odd value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .json_values import mapping
from .messages import role_of, tool_results, tool_uses
from .neutral import CommonPart, Message, Outcome, ToolResult, ToolUse
from .providers import named, openai_responses
from .reading import conversation_key, joined_text


class Prefix(NamedTuple):
    """The longest beginning of a conversation that a provider accepts."""

    length: int
    unanswered: list[ToolUse]
    orphans: list[str]
    """Results without a tool use before them."""


class Pair(NamedTuple):
    """A tool use and its result, by the places of their messages; None for one that is not there."""

    use: int | None
    result: int | None
    name: str


def is_models(message: object) -> bool:
    """True if it is the model's."""
    return role_of(message) == "assistant"


def uses(message: object) -> list[ToolUse]:
    """Return the tool uses a message of the model asks for."""
    return tool_uses(message) if is_models(message) else []


def brought_results(body: object) -> frozenset[str]:
    """Return the ids of the tool uses whose results a request brings: those its last messages carry."""
    key = conversation_key(body)
    found: set[str] = set()
    for message in reversed(mapping(body)[key] if key else []):
        results = tool_results(message)
        if not results:
            break
        found.update(result.id for result in results if result.id)
    return frozenset(found)


IN_TEXT = "text"
"""The form of a result that is known from the words of a message only."""
_OBSERVED = {"Observation:\n": False, "Error:\n": True}
"""How such a message begins, and whether the tool failed."""


def observation(message: object) -> ToolResult | None:
    """Return the result that a message of the user has as plain text, as smolagents sends it.

    It is of all tool uses of the response before it, without a name or an id.
    """
    if role_of(message) != "user":
        return None
    text = joined_text([message])
    for begin, failed in _OBSERVED.items():
        if text.startswith(begin):
            return ToolResult(None, None, text.removeprefix(begin), failed, IN_TEXT)
    return None


def result_messages(
    provider: str | None, answered: list[tuple[ToolUse, Outcome]]
) -> list[dict[str, Any]] | None:
    """Return the messages that carry tool results; None if one has no shape made of a text."""
    return named(provider).result_messages(answered)


def is_answer(result: ToolResult, use_id: str | None, use_name: str) -> bool:
    """True if a result may answer a use: by id; where one of both has none, by name."""
    if result.id is not None and use_id is not None:
        return result.id == use_id
    return result.name is None or not use_name or use_name == result.name


class Waiting:
    """Tool uses without a result so far, in their order, each with the place of its message."""

    def __init__(self) -> None:
        self._uses: dict[object, tuple[ToolUse, int]] = {}
        """By id, those without one or with a repeated one by number."""
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._uses)

    def add(self, position: int, uses: list[ToolUse]) -> None:
        """Wait for the results of these; ids repeat within a conversation."""
        for use in uses:
            self._number += 1
            is_new = use.id is not None and use.id not in self._uses
            self._uses[use.id if is_new else self._number] = use, position

    def take(self, result: ToolResult) -> tuple[ToolUse, int] | None:
        """Return the use that a result answers, which no longer waits, with its place."""
        key = self._key(result)
        return None if key is None else self._uses.pop(key)

    def _key(self, result: ToolResult) -> object:
        if result.id is not None and result.id in self._uses:
            return result.id
        return next(
            (key for key, (use, _) in self._uses.items() if is_answer(result, use.id, use.name)), None
        )

    def left(self) -> list[tuple[ToolUse, int]]:
        """Return those that still wait."""
        return list(self._uses.values())


def consistent(messages: list[Any], provider: str | None, *, kept_elsewhere: bool = False) -> Prefix:
    """Return up to where every tool use is answered and every result has its tool use.

    ``kept_elsewhere``: the provider holds an earlier part, so a result may belong to a use not seen here.
    """
    waiting = Waiting()
    safe = block = 0
    was_models = False
    for position, message in enumerate(messages):
        models = is_models(message)
        continues = models and was_models and named(provider).JOINS_ROLES
        if models and not was_models:
            block = position
        was_models = models
        results = tool_results(message)
        if waiting and not results and not continues and provider != openai_responses.NAME:
            return Prefix(safe, [use for use, _ in waiting.left()], [])
        for result in results:
            if waiting.take(result) is None and not kept_elsewhere:
                orphan = result.id or result.name or "a result"
                return Prefix(safe, [use for use, _ in waiting.left()], [orphan])
        waiting.add(position, uses(message))
        safe = min(safe, block) if waiting else position + 1
    return Prefix(safe, [use for use, _ in waiting.left()], [])


def pairs(messages: list[Any]) -> list[Pair]:
    """Return every tool use with its result, and what of them stands alone."""
    waiting = Waiting()
    found: list[Pair] = []
    for position, message in enumerate(messages):
        for result in tool_results(message):
            taken = waiting.take(result)
            if taken is not None:
                found.append(Pair(taken[1], position, taken[0].name))
            else:
                found.append(Pair(None, position, result.name or result.id or "a tool"))
        waiting.add(position, uses(message))
    return found + [Pair(position, None, use.name) for use, position in waiting.left()]


def with_ids(messages: list[Message]) -> list[Message]:
    """Return neutral messages with an id on every use and result and a name on every result."""
    taken = {part.id for message in messages for part in message.parts if isinstance(part, ToolUse)}
    fresh = (name for number in range(1, 10**9) if (name := f"call_{number}") not in taken)
    waiting = Waiting()
    paired: list[Message] = []
    for role, parts in messages:
        new: list[CommonPart] = []
        for part in parts:
            if isinstance(part, ToolUse):
                part = part if part.id else part._replace(id=next(fresh))
                waiting.add(len(paired), [part])
            elif isinstance(part, ToolResult):
                taken_use = waiting.take(part)
                if taken_use is not None:
                    part = part._replace(id=taken_use[0].id, name=taken_use[0].name)
                elif not part.id:
                    part = part._replace(id=next(fresh))
            new.append(part)
        paired.append(Message(role, new))
    return paired
