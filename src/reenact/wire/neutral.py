"""A conversation in no provider's words, which conversion goes through, and what it cannot carry.

Filled by convert_read and convert_openai, written out by convert_write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Text(NamedTuple):
    text: str


class Image(NamedTuple):
    media_type: str | None
    data: str | None
    """Base64; None if the picture lies at ``url``."""
    url: str | None = None


class ToolUse(NamedTuple):
    id: str | None
    name: str
    args: Any
    """An object, or the text that stood where one was expected."""


class ToolResult(NamedTuple):
    id: str | None
    name: str | None
    parts: list[Text | Image]
    is_error: bool = False


Part = Text | Image | ToolUse | ToolResult


class Said(NamedTuple):
    """One message."""

    role: str
    """``user`` or ``assistant``; results of tools are the user's."""
    parts: list[Part]


class Tool(NamedTuple):
    name: str
    description: str | None
    schema: Any


class Losses(dict[str, int]):
    """What has no counterpart, and how often it was met."""

    def add(self, what: str) -> None:
        self[what] = self.get(what, 0) + 1

    def told(self) -> list[str]:
        """Return each with its number.

        >>> losses = Losses(); losses.add("thinking"); losses.add("thinking"); losses.told()
        ['thinking (2 times)']
        """
        return [what if count == 1 else f"{what} ({count} times)" for what, count in self.items()]


@dataclass(slots=True)
class Conversation:
    """All that is asked of a model."""

    system: list[str] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    """``model max_tokens temperature top_p top_k stop stream tool_choice``, those that are set."""
    lost: Losses = field(default_factory=Losses)
    notes: list[str] = field(default_factory=list)
    """What was made up or moved, as sentences."""

    def say(self, role: str, parts: list[Part]) -> None:
        """Add a message; one of the same role as the last becomes part of it."""
        if self.said and self.said[-1].role == role:
            self.said[-1].parts.extend(parts)
        elif parts:
            self.said.append(Said(role, parts))


def pair(said: list[Said]) -> list[Said]:
    """Return the messages with an id on every use and result and a name on every result.

    Where a provider has no ids, results answer the uses of the message before them by name and order.
    """
    taken = {part.id for each in said for part in each.parts if isinstance(part, ToolUse)}
    fresh = (name for number in range(1, 10**9) if (name := f"call_{number}") not in taken)
    waiting: dict[str | None, ToolUse] = {}
    paired: list[Said] = []
    for role, parts in said:
        new: list[Part] = []
        for part in parts:
            if isinstance(part, ToolUse):
                part = part if part.id else part._replace(id=next(fresh))
                waiting[part.id] = part
            elif isinstance(part, ToolResult):
                use = _asked(waiting, part)
                if use is not None:
                    del waiting[use.id]
                    part = part._replace(id=use.id, name=use.name)
                elif not part.id:
                    part = part._replace(id=next(fresh))
            new.append(part)
        paired.append(Said(role, new))
    return paired


def _asked(waiting: dict[str | None, ToolUse], result: ToolResult) -> ToolUse | None:
    if result.id:
        return waiting.get(result.id)
    return next((use for use in waiting.values() if result.name in (None, use.name)), None)


def text_of(parts: list[Text | Image]) -> str:
    """Return the texts among parts as one."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))
