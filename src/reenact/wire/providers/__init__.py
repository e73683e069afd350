"""All that is known of each provider, one file each; may import its siblings in ``wire`` that know none.

Adding a provider is one file with the names of ``Provider``, one row in ``PROVIDERS``, and one row in the
tables of ``tests/unit/wire/test_providers.py``. A file that conversions can write to has those of ``Target``.
"""

from __future__ import annotations

from typing import Any, Protocol

from ..assembler import Assembler, Problems
from ..neutral import Cited, Conversation, Outcome, Part, Tool, ToolUse, Usage
from . import anthropic, bedrock, cohere, gemini, ollama, openai_chat, openai_responses


class Provider(Protocol):
    """The names that every provider file has. Bodies and messages are decoded JSON from outside."""

    NAME: str
    ENDPOINTS: tuple[str, ...]
    """Ends of URL paths that take requests in this shape, longer ones first."""
    SYSTEM_KEYS: tuple[str, ...]
    """Where a request keeps its system prompt, first as the provider spells it; empty if it is a message."""
    ID_KEYS: tuple[str, ...]
    """Fields of ids that are made up and pair tool uses with results."""
    MESSAGES_KEY: str
    """Where a request keeps its conversation."""
    TOOLS_PATH: tuple[str, ...]
    """The keys that lead to the tools a request offers."""
    USER_FIRST: bool
    """True if the model may not speak first."""
    ALTERNATES: bool
    """True if two messages of one role side by side are refused."""
    JOINS_ROLES: bool
    """True if neighbouring messages of one role count as one."""
    OPTIONS: dict[str, str]
    """The names of options at the top of a request, each with its neutral name."""
    NESTED_OPTIONS: tuple[str, dict[str, str]]
    """The same of an object inside the request, after the key of that object."""

    # Recognise.
    def is_request(self, body: dict[str, Any], /) -> bool: ...
    def is_response(self, body: dict[str, Any], /) -> bool: ...
    def is_event(self, event: dict[str, Any], /) -> bool: ...

    # Read an answer.
    def usage(self, body: dict[str, Any], /) -> Usage | None: ...
    def usage_from_raw(self, raw: dict[str, Any], /) -> Usage | None: ...
    def stop_reason(self, body: dict[str, Any], uses_tools: bool, /) -> str | None: ...
    def error_of(self, body: dict[str, Any], /) -> tuple[str | None, str] | None: ...
    def answers(self, body: dict[str, Any], /) -> list[tuple[str, dict[str, Any]]]: ...
    def messages(self, body: dict[str, Any], /) -> list[dict[str, Any]]: ...
    def citations(self, body: dict[str, Any], /) -> list[Cited]: ...

    # Read and write messages of a request.
    def part(self, part: dict[str, Any], /) -> Part | None: ...
    def result_messages(self, answered: list[tuple[ToolUse, Outcome]], /) -> list[dict[str, Any]] | None: ...
    def user_message(self, text: str, /) -> dict[str, Any]: ...
    def system_value(self, old: Any, text: str, /) -> Any: ...

    # Replace what was recorded by a text.
    def with_result(self, item: dict[str, Any], text: str, /) -> dict[str, Any]: ...
    def text_answer(
        self, text: str, old: dict[str, Any], model: str, url: str | None, /
    ) -> dict[str, Any]: ...

    # Put a stream together, and make one.
    def StreamAssembler(self, problems: Problems, /) -> Assembler: ...
    def restream(self, body: dict[str, Any], url: str | None, /) -> list[bytes]: ...

    # Convert a request to the neutral model.
    def read_tool_choice(self, params: dict[str, Any], /) -> str | None: ...


class Target(Provider, Protocol):
    """What a file also has if requests can be converted to its shape."""

    ID_IN_RESULTS: bool
    """True if a tool result names its use by id, not by name and order."""
    REQUIRED_OPTIONS: tuple[str, ...]
    """Options without which a request is refused, as the provider spells them."""
    URL_OPTIONS: tuple[str, ...]
    """Neutral names of options that stand in the URL, not in the body."""

    def write_messages(self, conversation: Conversation, /) -> list[dict[str, Any]]: ...
    def write_system(self, text: str, /) -> dict[str, Any]: ...
    def write_tools(self, tools: list[Tool], /) -> list[dict[str, Any]]: ...
    def write_tool_choice(self, choice: str, /) -> dict[str, Any]: ...


PROVIDERS: tuple[Provider, ...] = (
    gemini,
    openai_responses,
    bedrock,
    ollama,
    cohere,
    anthropic,
    openai_chat,
)
"""In the order they are asked whose a body is. Bedrock and Ollama have marks of their own on top of a shape
that could pass for Anthropic's or OpenAI's; Gemini's errors must be seen before OpenAI's."""

BY_NAME: dict[str, Provider] = {provider.NAME: provider for provider in PROVIDERS}

TARGETS: dict[str, Target] = {"anthropic": anthropic, "openai": openai_chat, "gemini": gemini}
"""Shapes that requests can be converted to."""


def option_place(provider: Provider, name: str) -> tuple[str, ...]:
    """Return the keys that lead to an option of a neutral name in a request; else the name itself."""
    nested, names = provider.NESTED_OPTIONS
    within = [(nested, key) for key, neutral in names.items() if neutral == name]
    at_top = [(key,) for key, neutral in provider.OPTIONS.items() if neutral == name]
    places: list[tuple[str, ...]] = [*within, *at_top]
    return (name,) if (name,) in places or not places else places[0]


def named(name: str | None) -> Provider:
    """Return a provider by name; an unknown one most likely speaks OpenAI's shape."""
    return BY_NAME.get(name or "", openai_chat)
