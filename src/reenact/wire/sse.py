"""Text streams: server-sent events, JSON lines, and a JSON array, read into events and written again.

Servers mix these (a bare error line among events, a plain body instead of a stream), so one reader takes
them all. Any bytes are read, in linear time; nothing raises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .assembler import Problems

_FIELDS = (b"event", b"id", b"retry")
_DONE = b"[DONE]"
_SPACE = b" \t\r\n"


class Event(NamedTuple):
    """One event."""

    data: dict[str, Any] | None
    """None for ``[DONE]``."""
    end: int
    """Where it ends in the stream."""


def events(data: bytes, problems: Problems) -> Iterator[Event]:
    """Yield the events of a text stream; note what is not an event."""
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    head = data[start : start + 64].lstrip(_SPACE)[:1]
    if head == b"[" or (head == b"{" and _spans_lines(data, start)):
        return _values(data, start, problems)
    if b"\r" in data:
        return _lines(data, start, len(data), problems)
    return _blocks(data, start, problems)


def _blocks(data: bytes, at: int, problems: Problems) -> Iterator[Event]:
    """Yield the events between blank lines: those that look as most do at once, others line by line."""
    # json.loads() does more around it than it does itself.
    decode = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
    while at < len(data):
        end = data.find(b"\n\n", at)
        begin, block, at = at, data[at : end if end >= 0 else len(data)], end + 2 if end >= 0 else len(data)
        found = _usual(block, decode) if end >= 0 else None
        if found is not None:
            yield Event(found, at)
        elif block:
            yield from _lines(data, begin, at, problems)


def _usual(block: bytes, decode: Callable[[str, int], tuple[Any, int]]) -> dict[str, Any] | None:
    """Return the object of an event that is one line of data, with a line that names it or without."""
    head, _, line = block.rpartition(b"\n")
    if line[:7] != b"data: {" or (head and (head[:7] != b"event: " or b"\n" in head)):
        return None
    try:
        text = line.decode("utf-8")
        found, end = decode(text, 6)
    except (ValueError, StopIteration, RecursionError):
        return None
    if end != len(text):
        return None
    value: dict[str, Any] = found
    if head and "type" not in value:
        _put_name(value, head[7:].strip(_SPACE).decode("utf-8", "replace"))
    return value


def _put_name(event: dict[str, Any], name: str | None) -> None:
    """Give an event without a type the name that its line ``event:`` has."""
    if name and "type" not in event and "choices" not in event and "error" not in event:
        event["type"] = name


def _lines(data: bytes, at: int, end: int, problems: Problems) -> Iterator[Event]:
    pending: list[bytes] = []
    name: str | None = None
    for line in data[at:end].splitlines(keepends=True):
        at += len(line)
        text = line.strip(_SPACE)
        if text[:1] == b"{":  # JSON lines, and errors that a proxy throws in between
            yield from _event(pending, name, at - len(line), problems)
            yield from _event([text], None, at, problems, line)
            pending, name = [], None
        elif not text:
            if pending:
                yield from _event(pending, name, at, problems)
            pending, name = [], None
        elif text[:1] != b":":
            field, colon, value = text.partition(b":")
            if field == b"data" and (colon or line[-1:] in b"\r\n"):
                pending.append(value.strip(_SPACE))
            elif field == b"event":
                name = value.strip(_SPACE).decode("utf-8", "replace")
            elif field not in _FIELDS:
                cut = at == len(data) and line[-1:] not in b"\r\n"
                problems.note(f"{'cut off in' if cut else 'not an event:'} the line {_shown(text)}")
    yield from _event(pending, name, at, problems, b"")


def _event(
    pending: list[bytes], name: str | None, end: int, problems: Problems, line: bytes = b"\n"
) -> Iterator[Event]:
    """Yield the event that data lines make; a server that forgets blank lines has one in each."""
    text = b"\n".join(pending)
    if not text:
        return
    if text == _DONE:
        yield Event(None, end)
        return
    found = _object(text, problems)
    if isinstance(found, dict):
        _put_name(found, name)
        yield Event(found, end)
    elif len(pending) > 1:
        for each in pending:
            yield from _event([each], name, end, problems, line)
    elif line[-1:] in (b"\n", b"\r"):
        problems.note(f"event skipped, {found}: {_shown(text)}")
    else:
        problems.note(f"cut off in the event {_shown(text)}")


def _object(text: bytes, problems: Problems) -> dict[str, Any] | str:
    """Return the object that the text is, else why it is none."""
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError:
        decoded = text.decode("utf-8", "replace")
        problems.note(f"bytes that are not UTF-8 in {_shown(text)}")
    try:
        value = json.loads(decoded)
    except (ValueError, RecursionError):
        return "not JSON"
    return value if isinstance(value, dict) else "not an object"


def _shown(text: bytes) -> str:
    shown = text[:60].decode("utf-8", "replace")
    return repr(shown + "…" if len(text) > 60 else shown)


def _spans_lines(data: bytes, start: int) -> bool:
    """True if the JSON value that the data begins with goes over several lines."""
    # Latin-1 keeps one character a byte, and what ends a JSON value is ASCII.
    first = len(data) - len(data[start:].lstrip(_SPACE))
    try:
        _, end = json.JSONDecoder().raw_decode(data.decode("latin-1"), first)
    except (ValueError, RecursionError):
        return False
    return b"\n" in data[first:end]


def _values(data: bytes, at: int, problems: Problems) -> Iterator[Event]:
    """Yield the objects of a JSON array, or of JSON values one after another, up to the first bad one."""
    text = data.decode("latin-1")
    decode = json.JSONDecoder().raw_decode
    while True:
        while at < len(data) and data[at] in b" \t\r\n,[]":
            at += 1
        if at == len(data):
            return
        try:
            _, end = decode(text, at)
        except (ValueError, RecursionError):
            problems.note(f"cut off or broken after byte {at}: {_shown(data[at : at + 61])}")
            return
        yield from _event([data[at:end]], None, end, problems)
        at = end


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON on one line; escaped, since some readers take U+2028 for the end of a line."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def written(event: dict[str, Any]) -> bytes:
    """Return an object as a server-sent event without a name."""
    return b"data: " + json_bytes(event) + b"\n\n"


def written_with_name(event: dict[str, Any]) -> bytes:
    """Return an object as a server-sent event that has the object's type for a name."""
    return b"event: " + str(event["type"]).encode() + b"\n" + written(event)


def written_as_array(events: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield one JSON array, an element at a time: how Gemini streams without ``alt=sse``."""
    before = b"["
    for event in events:
        yield before + json_bytes(event)
        before = b",\r\n"
    yield b"]"


DONE = b"data: [DONE]\n\n"
"""The last event of several dialects."""
