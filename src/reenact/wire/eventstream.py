"""Amazon's binary event stream: frames with two checksums, each with headers and a JSON payload.

Bedrock's. A frame is length (4 bytes), length of headers (4), their CRC (4),
headers, payload, CRC of all before (4). Any bytes are read; a bad frame is skipped and noted.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from .assembler import Problems
from .json_values import mapping, plain_text, string
from .sse import Event, json_bytes

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_SMALLEST = 16
_LARGEST = 25 << 20
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Sizes of the header values that have one; 6 (bytes) and 7 (text) say their own."""
_TEXT, _BYTES = 7, 6


def is_frame(data: bytes, at: int = 0) -> bool:
    """True if a frame begins there, by the checksum of its first eight bytes."""
    if len(data) < at + 12:
        return False
    total, headers = _number(data, at), _number(data, at + 4)
    if not _SMALLEST <= total <= _LARGEST or headers > total - _SMALLEST:
        return False
    return crc32(data[at : at + 8]) == _number(data, at + 8)


def events(data: bytes, problems: Problems) -> Iterator[Event]:
    """Yield the events of all whole frames: ``{event type: payload}``, an exception as ``{"__type": …}``."""
    at = 0
    while at < len(data):
        if not is_frame(data, at):
            start, at = at, _next_frame(data, at + 1)
            problem = "bytes that are not a frame" if len(data) - start >= 12 else "cut off in the frame"
            problems.note(f"{problem} at byte {start}")
            continue
        end = at + _number(data, at)
        if end > len(data):
            problems.note(f"cut off in the frame at byte {at}")
            return
        if crc32(data[at : end - 4]) != _number(data, end - 4):
            problems.note(f"frame with a wrong checksum at byte {at}")
        else:
            event = _event(data[at + 12 : end - 4], _number(data, at + 4))
            if event is None:
                problems.note(f"frame that cannot be read at byte {at}")
            else:
                yield Event(event, end)
        at = end


def _next_frame(data: bytes, at: int) -> int:
    """Return where the next frame begins; one of less than 16 MB begins with a zero."""
    while (at := data.find(b"\0", at)) >= 0:
        if is_frame(data, at):
            return at
        at += 1
    return len(data)


def _number(data: bytes, at: int, size: int = 4) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _event(frame: bytes, headers_length: int) -> dict[str, Any] | None:
    headers = _headers(frame[:headers_length])
    payload = _json(frame[headers_length:])
    kind = headers.get(":message-type")
    if kind in ("exception", "error"):
        name = headers.get(":exception-type") or headers.get(":error-code")
        message = plain_text((payload or {}).get("message")) or headers.get(":error-message", "")
        return {**(payload or {}), "__type": name or kind, "message": message}
    name = headers.get(":event-type")
    if not name or payload is None:
        return None
    payload.pop("p", None)  # padding that hides the lengths of the pieces
    if name == "chunk" and "bytes" in payload:
        return _inner(payload["bytes"])
    return {name: payload}


def _headers(data: bytes) -> dict[str, str]:
    """Return the headers that are text; reading ends at the first one that is broken."""
    found = {}
    at = 0
    while at < len(data):
        size = data[at]
        name = data[at + 1 : at + 1 + size]
        kind = _number(data, at + 1 + size, 1)
        at += size + 2
        if kind in _FIXED:
            at += _FIXED[kind]
        elif kind in (_TEXT, _BYTES):
            length = _number(data, at, 2)
            if kind == _TEXT:
                value = data[at + 2 : at + 2 + length]
                found[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
            at += 2 + length
        else:
            break
    return found


def _json(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _inner(encoded: object) -> dict[str, Any] | None:
    """Return the model's own event, which InvokeModelWithResponseStream carries in base64."""
    try:
        return _json(a2b_base64(string(encoded) or "")) or None
    except ValueError:
        return None


def exception(event: dict[str, Any]) -> tuple[str, str] | None:
    """Return (type, message) if the event is an exception, as a frame or as SDKs spell it."""
    name = event.get("__type")
    if isinstance(name, str):
        return name, plain_text(event.get("message"))
    if len(event) == 1:
        for key, value in event.items():
            if key.endswith("Exception"):
                return key, plain_text(mapping(value).get("message"))
    return None


def frame(name: str, payload: Any) -> bytes:
    """Return one event as a frame."""
    headers = ((":event-type", name), (":content-type", "application/json"), (":message-type", "event"))
    head = b"".join(_header(key, value) for key, value in headers)
    data = json_bytes(payload)
    sizes = _encoded(16 + len(head) + len(data)) + _encoded(len(head))
    whole = sizes + _encoded(crc32(sizes)) + head + data
    return whole + _encoded(crc32(whole))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + bytes([_TEXT]) + _encoded(len(text), 2) + text


def _encoded(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "big")
