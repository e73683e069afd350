"""Streamed answers: the bytes of a stream into the answer it is, and an answer into a stream again.

Pure and total: any bytes, cut anywhere, give what can be read from them, in linear time; nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import eventstream, reading, sse
from .assembler import Assembler, Problems
from .json_values import mapping
from .providers import BY_NAME, PROVIDERS, gemini, named

_SSE, _NDJSON, _JSON = "text/event-stream; charset=utf-8", "application/x-ndjson", "application/json"
_TYPES = {
    "text/event-stream": "sse",
    eventstream.CONTENT_TYPE: "eventstream",
    "application/x-ndjson": "ndjson",
    "application/jsonl": "ndjson",
}
_BINARY_PATHS = ("/converse-stream", "/invoke-with-response-stream")


class Assembled:
    """What a stream came to."""

    __slots__ = ("aborted", "body", "complete", "error", "first_content", "problems")

    def __init__(self, first_content: int | None, found: Assembler) -> None:
        body = found.body()
        self.body = found.failure if body is None else body
        """The answer in the shape it has without streaming; None if nothing of one came."""
        self.complete = found.complete
        """True if the provider marked the end; a stream that was cut is not complete."""
        self.error = found.error
        """(type, message) of an error that came in the stream, after the status 200."""
        self.first_content = first_content
        """Where in the data the first event with content ends."""
        self.aborted = found.aborted
        """Answers that broke off and were begun anew in the same stream."""
        self.problems = list(found.problems)
        """What was skipped, in words."""


def assemble(data: bytes, provider: str | None, content_type: str | None = None) -> Assembled:
    """Put the answer together from a stream, cut or whole; its events tell the dialect better than a name."""
    problems = Problems()
    found = _assembler(data, provider, content_type, problems)
    first_content = None
    for content, end in _events(data, content_type, problems):
        if content is None:
            found.done()
        elif (len(content) == 1 or "__type" in content) and (error := eventstream.exception(content)):
            found.fail(error, {"__type": error[0], "message": error[1]})
        elif found.add(content) and first_content is None:
            first_content = end
    return Assembled(first_content, found)


def _events(data: bytes, content_type: str | None, problems: Problems) -> Iterator[sse.Event]:
    binary = eventstream.CONTENT_TYPE in (content_type or "").lower() or eventstream.is_frame(data)
    return eventstream.events(data, problems) if binary else sse.events(data, problems)


def _assembler(data: bytes, provider: str | None, content_type: str | None, problems: Problems) -> Assembler:
    """Return the assembler of the dialect that the first recognisable event is in."""
    for event in _events(data, content_type, Problems()):
        if event.data is None:
            continue
        if _is_whole(event.data):
            return WholeAnswer(problems)
        for each in PROVIDERS:
            if each.is_event(event.data):
                return each.StreamAssembler(problems)
    return named(provider).StreamAssembler(problems)


def _is_whole(event: dict[str, Any]) -> bool:
    """True for an answer that was not streamed, though a stream was requested."""
    if event.get("type") == "message" or event.get("object") in ("chat.completion", "response"):
        return True
    return isinstance(mapping(event.get("output")).get("message"), dict)


class WholeAnswer(Assembler):
    """An answer that came whole, though a stream was requested: some servers know no streams."""

    _body: dict[str, Any] | None = None

    def add(self, event: dict[str, Any]) -> bool:
        """Take in the answer; the last one, should there be more."""
        self._body = event
        self.complete = True
        self.fail(reading.error_of(event), event)
        return bool(reading.answers(event))

    def body(self) -> dict[str, Any] | None:
        """Return the answer."""
        return self._body


_FINAL = (".done", ".completed", ".incomplete", ".failed", "-end", "_stop")
"""Endings of the types of events that repeat what came before, or say nothing."""
_SPOKEN = {
    "text": "text", "content": "text", "delta": "text", "refusal": "text", "transcript": "text",
    "response": "text",
    "thinking": "thinking", "reasoning": "thinking", "reasoning_content": "thinking", "tool_plan": "thinking",
    "partial_json": "tool", "arguments": "tool", "input": "tool", "name": "tool",
}  # fmt: skip
_DEEP = 12


def spoken(data: bytes, content_type: str | None = None) -> Iterator[tuple[int, str, str]]:
    """Yield the texts of a stream in the order they came: where their event ends in the data, ``text``,
    ``thinking`` or ``tool``, and the text."""
    for event, end in _events(data, content_type, Problems()):
        kind = str((event or {}).get("type") or "")
        if event is not None and not kind.endswith(_FINAL):
            sort = "thinking" if "reasoning" in kind else "tool" if "arguments" in kind else ""
            for found, text in _texts(event, "", 0):
                yield end, sort or found, text


def _texts(value: Any, key: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if value and key in _SPOKEN:
            yield _SPOKEN[key], value
    elif isinstance(value, dict) and depth < _DEEP:
        is_thought = value.get("thought") is True or key == "reasoningContent"
        for name, item in value.items():
            for sort, text in _texts(item, name, depth + 1):
                yield "thinking" if is_thought else sort, text
    elif isinstance(value, list) and depth < _DEEP:
        for item in value:
            yield from _texts(item, "", depth + 1)


def stream_kind(
    provider: str | None, url: str | None, content_type: str | None, request_body: object
) -> str | None:
    """Return how an answer is streamed: ``sse ndjson eventstream``, ``json`` (an array, from Gemini
    without ``alt=sse``), or None if it is not. The answer's content type decides; where it says
    nothing of the matter, the URL and the request do."""
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind in _TYPES:
        return _TYPES[kind]
    path = (url or "").partition("?")[0]
    plain = kind.endswith("json")
    if path.endswith(":streamGenerateContent"):
        return "json" if plain or gemini.is_array_stream(url) else "sse"
    if plain:
        return None  # an error, or a server that knows no streams
    if path.endswith(_BINARY_PATHS):
        return "eventstream"
    wanted = mapping(request_body).get("stream")
    if provider == "ollama" and path.endswith(("/api/chat", "/api/generate")):
        return None if wanted is False else "ndjson"  # streaming is its default
    return "sse" if wanted is True else None


def stream_of(body: dict[str, Any], provider: str | None, url: str | None) -> list[bytes]:
    """Return the pieces, one event each, of a stream that is this answer; ValueError if none is known.

    For an edited answer in the place of a streamed one: the agent's SDK reads it as it reads the provider's.
    What a dialect cannot stream as it stands (two neighbouring texts of Gemini) is streamed as it does it.
    """
    dialect = reading.provider_of_answer(body, provider)
    if dialect is None:
        raise ValueError("no stream is known for an answer of this shape")
    return BY_NAME[dialect].restream(body, url)


def stream_type(provider: str | None, url: str | None) -> str:
    """Return the content type that goes with such a stream."""
    if (url or "").partition("?")[0].endswith(_BINARY_PATHS) or provider == "bedrock":
        return eventstream.CONTENT_TYPE
    if gemini.is_array_stream(url):
        return _JSON
    return _NDJSON if provider == "ollama" else _SSE
