"""The way back of stream.py: an answer as the pieces of a stream that comes to it.

Used where an edited answer takes the place of a streamed one: the agent's SDK reads it as it would have
read the provider's. Each dialect has a file with its events; here they become bytes. What a dialect cannot
say in a stream (two neighbouring texts of Gemini, for instance) is said as it says it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any
from zlib import crc32

from . import (
    restream_anthropic,
    restream_bedrock,
    restream_cohere,
    restream_gemini,
    restream_ollama,
    restream_openai_chat,
    restream_openai_responses,
    shapes,
)
from .eventstream import CONTENT_TYPE

_SSE, _NDJSON, _JSON = "text/event-stream; charset=utf-8", "application/x-ndjson", "application/json"
_TEXT = 7
"""The type of a header's value in a binary event stream."""


def stream_of(body: dict[str, Any], provider: str | None, url: str | None) -> list[bytes]:
    """Return the pieces, one event each, of a stream that is this answer; ValueError if none is known."""
    dialect = shapes.whose_answer(body, provider)
    if dialect == "anthropic":
        return _anthropic(body, url)
    if dialect == "openai-responses":
        return [_named(event) for event in restream_openai_responses.events(body)]
    if dialect == "gemini":
        return _gemini(body, url)
    if dialect == "bedrock":
        return [_frame(name, payload) for name, payload in restream_bedrock.events(body)]
    if dialect == "ollama":
        return [_bytes(line) + b"\n" for line in restream_ollama.lines(body)]
    if dialect == "cohere":
        return [*map(_named, restream_cohere.events(body)), b"data: [DONE]\n\n"]
    if dialect == "openai":
        return [*map(_sse, restream_openai_chat.chunks(body)), b"data: [DONE]\n\n"]
    raise ValueError("no stream is known for an answer of this shape")


def stream_type(provider: str | None, url: str | None) -> str:
    """Return the content type that goes with such a stream."""
    path, _, query = (url or "").partition("?")
    if path.endswith(("/converse-stream", "/invoke-with-response-stream")) or provider == "bedrock":
        return CONTENT_TYPE
    if path.endswith(":streamGenerateContent") and "alt=sse" not in query:
        return _JSON
    return _NDJSON if provider == "ollama" else _SSE


def _anthropic(body: dict[str, Any], url: str | None) -> list[bytes]:
    events = restream_anthropic.events(body)
    if (url or "").partition("?")[0].endswith("/invoke-with-response-stream"):
        return [_frame("chunk", {"bytes": b64encode(_bytes(event)).decode("ascii")}) for event in events]
    return [_named(event) for event in events]


def _gemini(body: dict[str, Any], url: str | None) -> list[bytes]:
    events = restream_gemini.events(body)
    if stream_type("gemini", url) == _JSON:
        return list(_array(events))
    return [_sse(event) for event in events]


def _array(events: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """How Gemini streams without ``alt=sse``: one array, an element at a time."""
    before = b"["
    for event in events:
        yield before + _bytes(event)
        before = b",\r\n"
    yield b"]"


def _bytes(value: Any) -> bytes:
    # Escaped: some readers of streams take U+2028 and the like for ends of lines.
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _sse(event: dict[str, Any]) -> bytes:
    return b"data: " + _bytes(event) + b"\n\n"


def _named(event: dict[str, Any]) -> bytes:
    return b"event: " + str(event["type"]).encode() + b"\n" + _sse(event)


def _frame(name: str, payload: Any) -> bytes:
    """Return one event of Amazon's binary stream (``eventstream`` says how it is built)."""
    headers = ((":event-type", name), (":content-type", _JSON), (":message-type", "event"))
    head = b"".join(_header(key, value) for key, value in headers)
    data = _bytes(payload)
    sizes = _number(16 + len(head) + len(data)) + _number(len(head))
    frame = sizes + _number(crc32(sizes)) + head + data
    return frame + _number(crc32(frame))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_TEXT]) + _number(len(text), 2) + text


def _number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big")
