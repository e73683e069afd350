"""The neutral model: messages, tool uses, results and token counts in no provider's words.

Provider files read their own shapes into it and write it back out; everybody else asks for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .json_values import mapping, mappings, string

Usage = dict[str, int]
"""Token counts: ``input`` (uncached), ``output`` (with reasoning), ``cache_read``, ``cache_write``,
``reasoning``; a count the provider does not report is left out."""

TEXT, TOOL, RESULT, REASONING, OTHER = "text", "tool", "result", "reasoning", "other"
"""The kinds of a part as a person reads it (``messages.readable``)."""


class Text(NamedTuple):
    text: str


class Image(NamedTuple):
    media_type: str | None
    data: str | None
    """Base64; None if the picture is at ``url``."""
    url: str | None = None


class ToolUse(NamedTuple):
    """A tool that the model asks the agent to run."""

    id: str | None
    name: str
    args: Any = None
    """An object, or the text that stands where one is expected."""
    form: str | None = None
    """The type of the item or call, where a provider has several."""

    def __str__(self) -> str:
        return f"{self.name or 'a tool'} ({self.id})" if self.id else self.name or "a tool"


class ToolResult(NamedTuple):
    """What a message says that a tool returned."""

    id: str | None
    """Of the tool use it answers; None where the provider or the agent leaves it out."""
    name: str | None
    value: Any = None
    """As the provider carries it."""
    failed: bool = False
    form: str | None = None
    """The type of the item, where a provider has several."""
    parts: tuple[Text | Image, ...] = ()
    """The value in neutral parts; filled in a ``Conversation`` only."""


class Reasoning(NamedTuple):
    text: str
    what: str = "reasoning"
    """How it is called where it is lost."""


class Other(NamedTuple):
    """A part that no other provider has: a document, a tool that the provider runs itself."""

    what: str
    """How it is called where it is lost."""
    text: str = ""
    kind: str = OTHER
    """How it reads."""


Part = Text | Image | ToolUse | ToolResult | Reasoning | Other


class Cited(NamedTuple):
    """A citation that the provider attaches to a part of an answer."""

    begin: int
    """Where the part stands in the answer's text, all its text parts put together."""
    end: int
    source: str | None
    """A URL, the id of a file, or the title of a document."""
    title: str | None = None
    quote: str = ""
    """The words of the source, where the provider has them."""


class Outcome(NamedTuple):
    """What came back from a tool."""

    value: Any
    failed: bool = False
    """True if the value is what went wrong."""


CommonPart = Text | Image | ToolUse | ToolResult
"""The parts that every provider has."""


class Message(NamedTuple):
    role: str
    """``user`` or ``assistant``; results of tools are the user's."""
    parts: list[CommonPart]


class Tool(NamedTuple):
    """A tool that a request offers to the model."""

    name: str
    description: str | None
    schema: Any


class Losses(dict[str, int]):
    """What has no counterpart in another provider's shape, and how often it was met."""

    def add(self, what: str) -> None:
        self[what] = self.get(what, 0) + 1

    def described(self) -> list[str]:
        """Return each with its number.

        >>> losses = Losses(); losses.add("thinking"); losses.add("thinking"); losses.described()
        ['thinking (2 times)']
        """
        return [what if count == 1 else f"{what} ({count} times)" for what, count in self.items()]


class Conversation:
    """All that a request asks of a model."""

    def __init__(self) -> None:
        self.system: list[str] = []
        self.messages: list[Message] = []
        self.tools: list[Tool] = []
        self.options: dict[str, Any] = {}
        """``model max_tokens temperature top_p top_k stop stream tool_choice``, those that are set."""
        self.lost = Losses()
        self.notes: list[str] = []
        """What was made up or moved, as sentences."""

    def add(self, role: str, parts: list[CommonPart]) -> None:
        """Add a message; one of the same role as the last becomes part of it."""
        if self.messages and self.messages[-1].role == role:
            self.messages[-1].parts.extend(parts)
        elif parts:
            self.messages.append(Message(role, parts))

    def add_system(self, text: str) -> None:
        """Add a system prompt that stands among the messages."""
        if self.messages:
            self.lost.add("the place of a system message in the middle, whose text is kept")
        if text:
            self.system.append(text)


# Helpers that provider files share to read into the model and to write it out.


def image_at(url: str | None) -> Image | None:
    """Return an image from a URL, which may hold the data itself."""
    if url is None:
        return None
    if not url.startswith("data:"):
        return Image(None, None, url)
    head, _, data = url[5:].partition(",")
    media, _, encoding = head.partition(";")
    return Image(media or None, data) if encoding == "base64" and data else None


def media_type_of(image: Image) -> str:
    """Return the type of a picture, by how its base64 begins if it is not named."""
    begins = {"/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp"}
    return image.media_type or begins.get((image.data or "")[:4], "image/png")


def object_arguments(args: Any, lost: Losses) -> dict[str, Any]:
    """Return a tool's arguments where only an object is accepted."""
    if isinstance(args, dict):
        return args
    if args is None:
        return {}
    lost.add("arguments that are no JSON object, now under the key input")
    return {"input": args}


def described(tool: Tool, schema: str) -> dict[str, Any]:
    """Return a tool's declaration with its schema under the key that the provider wants."""
    description = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **description, schema: tool.schema}


def text_blocks(old: list[Any], text: str) -> list[dict[str, Any]]:
    """Return a text as one block that keeps the type and the cache mark of the last one."""
    last = mappings(old)[-1:]
    mark = {"cache_control": last[0]["cache_control"]} if last and "cache_control" in last[0] else {}
    kind = string(last[0].get("type")) if last else None
    return [{"type": kind if kind == "input_text" else "text", "text": text, **mark}]


def text_of(parts: tuple[Text | Image, ...]) -> str:
    """Return the texts among parts as one."""
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def named_choice(choice: object) -> str | None:
    """Return the neutral choice of one tool that is named at the top or under ``function``."""
    named = string(mapping(mapping(choice).get("function")).get("name"))
    named = named or string(mapping(choice).get("name"))
    return f"tool:{named}" if named else None


# Token counts.


def count(value: object) -> int | None:
    """Return a number of tokens; None for anything that cannot be one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def first_count(*values: object) -> int | None:
    """Return the first value that is a number of tokens."""
    for value in values:
        found = count(value)
        if found is not None:
            return found
    return None


def token_usage(
    input: int | None,
    output: int | None,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Usage | None:
    """Return neutral usage without the unknown counts; None if all are unknown."""
    counts = {
        "input": input,
        "output": output,
        "cache_read": cache_read,
        "cache_write": cache_write,
        "reasoning": reasoning,
    }
    return {name: number for name, number in counts.items() if number is not None} or None


def uncached(prompt: int | None, read: int | None, write: int | None) -> int | None:
    """Return the part of a prompt count that was neither read from nor written to the cache."""
    return None if prompt is None else max(0, prompt - (read or 0) - (write or 0))


def plus(a: int | None, b: int | None) -> int | None:
    """Add two counts; unknown only if both are."""
    return a if b is None else b if a is None else a + b
