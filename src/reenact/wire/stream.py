"""The door to streamed answers: raw bytes of a stream into the answer it would have been without.

Used by capture at the end of a stream, and by the reader for one that was cut by a crash. Pure and
total: any bytes, cut anywhere, give what can be told from them, in linear time; nothing raises.
"""

from __future__ import annotations

from . import eventstream, sse
from .alike import Alike
from .inflate import decoded
from .pieces import Problems
from .values import mapping, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .pieces import Assembler

__all__ = ["Assembled", "assemble", "decoded", "stream_kind"]

_ANTHROPIC = frozenset({
    "message_start", "message_delta", "message_stop", "ping",
    "content_block_start", "content_block_delta", "content_block_stop",
})  # fmt: skip
_COHERE = frozenset({
    "message-start", "message-end", "content-start", "content-delta", "content-end", "tool-plan-delta",
    "tool-call-start", "tool-call-delta", "tool-call-end", "citation-start", "citation-end",
})  # fmt: skip
_BEDROCK = frozenset({
    "messageStart", "messageStop", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "metadata",
})  # fmt: skip


class Assembled:
    """What a stream came to."""

    __slots__ = ("aborted", "body", "complete", "error", "events", "first_content", "problems")

    def __init__(self, events: int, first_content: int | None, found: Assembler) -> None:
        body = found.body()
        self.body = found.failure if body is None else body
        """The answer in the shape it has without streaming; None if nothing of one came."""
        self.complete = found.complete
        """True if the provider said that this was all; a stream that was cut is not."""
        self.error = found.error
        """(type, message) of an error that came in the stream, after the status 200."""
        self.first_content = first_content
        """Where in the data the event ends in which the model said something first."""
        self.events = events
        """How many events came."""
        self.aborted = found.aborted
        """Answers that broke off and were begun anew in the same stream."""
        self.problems = list(found.problems)
        """What was skipped, in words."""


def assemble(data: bytes, provider: str | None, content_type: str | None = None) -> Assembled:
    """Put the answer together from a stream, cut or whole; its events tell the dialect better than a name."""
    telling = (_dialect(event.data or {}) for event in _events(data, content_type, Problems()))
    dialect = next(filter(None, telling), None) or _by_name(provider)
    found = _assembler(dialect, problems := Problems())
    count, first_content, alike = 0, None, Alike()
    for event in _events(data, content_type, problems, alike):
        count += 1
        said = event.data
        if said is None:
            found.done()
        elif (len(said) == 1 or "__type" in said) and (error := eventstream.exception(said)) is not None:
            found.fail(error, {"__type": error[0], "message": error[1]})
        elif found.add(said) and first_content is None:
            first_content = event.end
        if found.only_said is not None and first_content is not None:
            alike.learn(event.block, *found.only_said)
        else:
            alike.head = b""
        found.only_said = None
    return Assembled(count + alike.taken, first_content, found)


def _events(
    data: bytes, content_type: str | None, problems: Problems, alike: Alike | None = None
) -> Iterator[sse.Event]:
    binary = eventstream.CONTENT_TYPE in (content_type or "").lower() or eventstream.is_frame(data)
    return eventstream.events(data, problems) if binary else sse.events(data, problems, alike)


def _dialect(event: dict[str, Any]) -> str | None:
    """Return whose event this is, by marks that only theirs have."""
    if _is_whole(event):
        return "whole"
    kind = string(event.get("type")) or ""
    if kind.startswith("response."):
        return "openai-responses"
    if kind in _ANTHROPIC:
        return "anthropic"
    if kind in _COHERE:
        return "cohere"
    if isinstance(event.get("choices"), list):
        return "openai"
    if isinstance(event.get("candidates"), list) or "usageMetadata" in event or "promptFeedback" in event:
        return "gemini"
    if len(event) == 1 and not _BEDROCK.isdisjoint(event):
        return "bedrock"
    if "done" in event and ("message" in event or "response" in event):
        return "ollama"
    return None


def _is_whole(event: dict[str, Any]) -> bool:
    """True for an answer that was not streamed, though it was asked to be."""
    if event.get("type") == "message" or event.get("object") in ("chat.completion", "response"):
        return True
    return isinstance(mapping(event.get("output")).get("message"), dict)


def _by_name(provider: str | None) -> str:
    """Return the dialect of a provider by name; an unknown one most likely speaks OpenAI's."""
    known = ("anthropic", "openai-responses", "gemini", "bedrock", "ollama", "cohere")
    return provider if provider in known else "openai"


def _assembler(dialect: str, problems: Problems) -> Assembler:
    # Each is imported when met: an agent talks to one provider, seldom two.
    if dialect == "anthropic":
        from .assemble_anthropic import Anthropic

        return Anthropic(problems)
    if dialect == "openai-responses":
        from .assemble_openai_responses import Responses

        return Responses(problems)
    if dialect == "gemini":
        from .assemble_gemini import Gemini

        return Gemini(problems)
    if dialect == "bedrock":
        from .assemble_bedrock import Bedrock

        return Bedrock(problems)
    if dialect == "ollama":
        from .assemble_ollama import Ollama

        return Ollama(problems)
    if dialect == "cohere":
        from .assemble_cohere import Cohere

        return Cohere(problems)
    if dialect == "whole":
        from .assemble_whole import Whole

        return Whole(problems)
    from .assemble_openai_chat import Chat

    return Chat(problems)


_TYPES = (
    ("text/event-stream", "sse"),
    (eventstream.CONTENT_TYPE, "eventstream"),
    ("application/x-ndjson", "ndjson"),
    ("application/jsonl", "ndjson"),
)


def stream_kind(
    provider: str | None, url: str | None, content_type: str | None, request_body: object
) -> str | None:
    """Return how an answer is streamed: ``sse ndjson eventstream``, ``json`` (an array, from Gemini
    without ``alt=sse``), or None if it is not. The answer's content type decides; where it says
    nothing of the matter, the URL and the request do."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    for name, found in _TYPES:
        if kind == name:
            return found
    path, _, query = (url or "").partition("?")
    plain = kind.endswith("json")
    if path.endswith(":streamGenerateContent"):
        return "json" if plain or "alt=sse" not in query else "sse"
    if plain:
        return None  # an error, or a server that knows no streams
    if path.endswith(("/converse-stream", "/invoke-with-response-stream")):
        return "eventstream"
    wanted = mapping(request_body).get("stream")
    if provider == "ollama" and path.endswith(("/api/chat", "/api/generate")):
        return None if wanted is False else "ndjson"  # streaming is its default
    return "sse" if wanted is True else None
