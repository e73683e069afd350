"""What a request or an answer contains: its provider, usage, stop reason, error, tools and text.

The provider is known by name or found by shape. Every function takes any decoded JSON value and never
raises; what is unknown is None or empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from ..schema import LISTS
from .json_values import mapping, mappings, plain_text, string
from .messages import message_parts, readable, role_of
from .neutral import REASONING, TEXT, Cited, Text, ToolResult, ToolUse, Usage, count, token_usage
from .providers import (
    BY_NAME,
    PROVIDERS,
    Provider,
    anthropic,
    bedrock,
    gemini,
    ollama,
    openai_chat,
    openai_responses,
)

NAMES = tuple(sorted(BY_NAME))
"""The names of all providers."""

_ENDPOINTS = tuple((ending, provider.NAME) for provider in PROVIDERS for ending in provider.ENDPOINTS)
_COUNTED_AS: tuple[tuple[str, Provider], ...] = (
    ("prompt_tokens", openai_chat),
    ("input_tokens", anthropic),
    ("promptTokenCount", gemini),
    ("inputTokens", bedrock),
)
"""A name in a usage object that only one provider has."""

SYSTEM = tuple(dict.fromkeys(key for provider in PROVIDERS for key in provider.SYSTEM_KEYS))
TOOLS = (*dict.fromkeys(provider.TOOLS_PATH[0] for provider in PROVIDERS), "functions")
"""Where requests keep their system prompt and their tools; the last is OpenAI's older name."""


_OPENAI_MODELS = ("gpt-", "chatgpt-", "o1", "o3", "o4")


def provider_of_request(body: object, url: str | None = None) -> str | None:
    """Return whose shape a request has: by its URL's path, else by marks only that shape has.

    ``contents`` is Gemini, ``input`` without ``messages`` is Responses. Of those with ``messages``:
    camelCase parameters or blocks without a type are Bedrock; ``options``, ``think``, ``keep_alive``
    or message fields like ``images`` are Ollama; ``input_schema``, tool blocks in the content or
    ``max_tokens`` with a top-level ``system`` are Anthropic; the roles system, developer and tool,
    ``tools[].function`` or parameters like ``max_completion_tokens`` are OpenAI. A body with no mark
    fits several; then only a plain ``claude…`` or ``gpt-…`` model name decides, else the answer is None.
    """
    path = string(url)
    if path:
        path = path.partition("#")[0].partition("?")[0].rstrip("/").removesuffix("/count_tokens")
        for ending, name in _ENDPOINTS:
            if path.endswith(ending):
                return name
    request = mapping(body)
    for provider in PROVIDERS:
        if provider.is_request(request):
            return provider.NAME
    if not isinstance(request.get("messages"), list):
        return None
    model = string(request.get("model")) or ""
    if model.startswith("claude") and "max_tokens" in request:
        return anthropic.NAME
    return openai_chat.NAME if model.startswith(_OPENAI_MODELS) else None


def provider_of_response(body: object) -> str | None:
    """Return whose shape an answer or an error body has."""
    response = _object(body)
    for provider in PROVIDERS:
        if provider.is_response(response):
            return provider.NAME
    return None


def _object(body: object) -> dict[str, Any]:
    """Return the body as an object; Google at times sends an error as an array of one."""
    if isinstance(body, list) and len(body) == 1 and "error" in mapping(body[0]):
        body = body[0]
    return mapping(body)


def provider_of_answer(body: object, provider: str | None = None) -> str | None:
    """Return the provider whose answer this is: the named one if it fits, else found by shape."""
    reader = _reader_of(_object(body), provider)
    return reader.NAME if reader is not None else None


def _reader_of(body: dict[str, Any], provider: str | None) -> Provider | None:
    """Return the provider file that reads the answer; a name that does not fit it gives way to shape."""
    named = BY_NAME.get(provider) if isinstance(provider, str) else None
    if named is not None and named.is_response(body):
        return named
    shape = provider_of_response(body)
    return BY_NAME[shape] if shape else named


class Reading:
    """An answer with its provider, known by name or found by shape."""

    __slots__ = ("_body", "_reader", "_uses")

    def __init__(self, body: object, provider: str | None = None) -> None:
        self._body = _object(body)
        self._reader = _reader_of(self._body, provider)
        self._uses: list[ToolUse] | None = None

    def usage(self) -> Usage | None:
        """Return neutral usage: input (uncached), output (with reasoning), cache_read, cache_write,
        reasoning; a count the body does not tell is left out."""
        found = self._reader.usage(self._body) if self._reader is not None else None
        found = found or usage_from_raw(self._body.get("usage"))
        if found is None and "input" in (bare := usage_from_raw(self._body) or {}) and "output" in bare:
            return bare  # only both together: an answer that counts tokens has spent none
        return found

    def stop_reason(self) -> str | None:
        """Return why the model stopped: ``end_turn tool_use max_tokens stop_sequence refusal
        content_filter pause error``, or the provider's own word where none of these says it."""
        if self._reader is None:
            return None
        return self._reader.stop_reason(self._body, bool(self.tool_uses()))

    def error(self) -> tuple[str | None, str] | None:
        """Return (type, message) if the body is an error or carries one; the type is None if unnamed."""
        return self._reader.error_of(self._body) if self._reader is not None else None

    def tool_uses(self) -> list[ToolUse]:
        """Return the tools it asks the agent to run, in order: those without a result in the same answer.

        Arguments that are JSON in a string are decoded; what cannot be decoded stays a string.
        """
        if self._uses is None:
            parts = [part for _, message in self.answers() for part in message_parts(message)]
            answered = {part.id for part in parts if isinstance(part, ToolResult)} - {None}
            self._uses = [part for part in parts if isinstance(part, ToolUse) and part.id not in answered]
        return self._uses

    def answers(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the parts that an agent appends to its next request, as (pointer, object)."""
        return self._reader.answers(self._body) if self._reader is not None else []


def usage(body: object, provider: str | None = None) -> Usage | None:
    """Return neutral usage of an answer, as ``Reading`` does."""
    return Reading(body, provider).usage()


def usage_from_raw(raw: object) -> Usage | None:
    """Return neutral usage from a usage object alone, in any provider's spelling or our own."""
    counts = mapping(raw)
    own = token_usage(
        *(count(counts.get(name)) for name in ("input", "output", "cache_read", "cache_write", "reasoning"))
    )
    if own is not None:
        return own
    # Responses and Anthropic share two names, but only Anthropic's input leaves the cached part out.
    details = mapping(counts.get("output_tokens_details"))
    inside = "input_tokens_details" in counts or "cached_input_tokens" in counts
    if inside or "reasoning_tokens" in details:
        return openai_responses.usage_from_raw(counts)
    likely = next((reader for name, reader in _COUNTED_AS if name in counts), None)
    others: tuple[Provider, ...] = (openai_chat, gemini, bedrock, ollama, anthropic)
    for reader in (likely, *others) if likely is not None else others:
        found = reader.usage_from_raw(counts)
        if found is not None and ("input" in found or "output" in found):
            return found
    return None


def stop_reason(body: object, provider: str | None = None) -> str | None:
    """Return why the model stopped, as ``Reading`` does."""
    return Reading(body, provider).stop_reason()


def error_of(body: object, provider: str | None = None) -> tuple[str | None, str] | None:
    """Return (type, message) of an error, as ``Reading`` does."""
    return Reading(body, provider).error()


def model_of(body: object, url: str | None = None) -> str | None:
    """Return the model a request asks for or an answer came from; Gemini and Bedrock say it in the URL."""
    named = _object(body)
    for key in ("model", "modelVersion", "model_version", "modelId"):
        if string(named.get(key)):
            return str(named[key])
    path = (string(url) or "").partition("?")[0]
    for before, after in (("/models/", ":"), ("/model/", "/")):
        if before in path:
            return unquote(path.rpartition(before)[2].partition(after)[0]) or None
    return None


def tool_uses(body: object, provider: str | None = None) -> list[ToolUse]:
    """Return the tools an answer asks for, as ``Reading`` does."""
    return Reading(body, provider).tool_uses()


def answers(body: object, provider: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return the parts of an answer that come back in a request, as ``Reading`` does."""
    return Reading(body, provider).answers()


def citations(body: object, provider: str | None = None) -> list[Cited]:
    """Return the citations that the provider attaches to an answer; places are those of ``answer_text``."""
    found = _object(body)
    reader = _reader_of(found, provider)
    return reader.citations(found) if reader is not None else []


def answer_text(body: object, provider: str | None = None) -> str:
    """Return the text parts of an answer put together, as the places of citations count them."""
    parts = [part for _, message in answers(body, provider) for part in message_parts(message)]
    return "".join(part.text for part in parts if isinstance(part, Text))


KEPT_BY = ("previous_response_id", "thread", "conversation")
"""A request with one of these sends only what is new; the provider keeps the rest."""


def kept_conversation(body: object) -> str | None:
    """Return the id of the answer, or of the conversation, that a request continues at the provider."""
    request = mapping(body)
    if request.keys().isdisjoint(KEPT_BY):
        return None
    before = string(request.get("previous_response_id"))
    thread = string(mapping(request.get("thread")).get("previous_message_id"))
    return before or thread or conversation_id(body)


def conversation_id(body: object) -> str | None:
    """Return the id of the conversation that the provider adds a request and its answer to."""
    conversation = mapping(body).get("conversation")
    return string(conversation) or string(mapping(conversation).get("id"))


def conversation_key(body: object) -> str | None:
    """Return which of ``messages``, ``input``, ``contents`` holds the conversation as a list."""
    request = mapping(body)
    for key in LISTS:
        if isinstance(request.get(key), list):
            return key
    return None


def text(body: object, provider: str | None = None) -> str:
    """Return what a person would read of an answer, of a request's newest message, of one message,
    or of a list of content parts. Tool uses read ``name({"key": "value"})``; reasoning is left out
    unless there is nothing else."""
    if not isinstance(body, dict):
        error = error_of(body, provider)
        if error or not isinstance(body, list):
            return _error_text(error) if error else joined_text([body])
        return joined_text(body if any("role" in mapping(item) for item in body) else [{"content": body}])
    reader = _reader_of(body, provider)
    if reader is not None and reader.is_response(body):
        found = (
            joined_text([*reader.messages(body)]) if reader.answers(body) or not reader.error_of(body) else ""
        )
        return found or _error_text(reader.error_of(body))
    key = conversation_key(body)
    if key:
        return joined_text(_newest(body[key]))
    for key in ("input", "prompt"):
        if isinstance(body.get(key), str) and "type" not in body:
            return str(body[key])
    return joined_text([body])


def _error_text(error: tuple[str | None, str] | None) -> str:
    return ": ".join(filter(None, error)) if error else ""


def _newest(conversation: list[object]) -> list[object]:
    """Return the last message, or all results of tools that stand last side by side."""
    first = len(conversation) - 1
    while first > 0 and role_of(conversation[first]) == role_of(conversation[first - 1]) == "tool":
        first -= 1
    return conversation[first:] if conversation else []


def joined_text(messages: list[object]) -> str:
    """Return the text of messages or parts; reasoning only if there is nothing else."""
    all_parts = [(_glue(message), [*map(readable, message_parts(message))]) for message in messages]
    text = "\n".join(filter(None, (_joined(parts, glue) for glue, parts in all_parts)))
    return text or "\n".join(text for _, parts in all_parts for _, text in parts if text)


def _glue(message: object) -> str:
    """Answers are cut into texts anywhere, around a citation for instance; prompts between paragraphs."""
    return "\n" if isinstance(message, dict) and message.get("role") == "user" else ""


def _joined(parts: list[tuple[str, str]], glue: str) -> str:
    found, previous = "", ""
    for sort, text in parts:
        if text and sort != REASONING:
            if found:
                found += glue if sort == previous == TEXT else "\n"
            found += text
        if text:
            previous = sort
    return found


def system_text(value: object) -> str:
    """Return a system prompt as text: a string, blocks, or Gemini's content."""
    value = value.get("parts", value) if isinstance(value, dict) else value
    if isinstance(value, list):  # Bedrock puts a mark for its cache among the blocks
        value = [block for block in value if "cachePoint" not in mapping(block)]
    return plain_text(value)


def tool_declarations(value: object) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each tool that a request offers, with the object in it that has its name and schema."""
    for tool in mappings(value.get("tools") if isinstance(value, dict) else value):  # an object is Bedrock's
        for one in mappings(gemini.field(tool, "functionDeclarations")) or [tool]:
            yield tool, mapping(one.get("function")) or mapping(one.get("toolSpec")) or one


def tool_names(value: object) -> list[str]:
    """Return the names of the tools a request offers."""
    return [
        string(function.get("name")) or string(function.get("type")) or "?"
        for _, function in tool_declarations(value)
    ]
