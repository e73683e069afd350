"""A recorded stream, chunk by chunk as it arrived: the blob that ``raw`` of a response refers to."""

from __future__ import annotations

import json
from typing import Any

from .stored_values import Blobs

Piece = tuple[bytes, float]
"""Bytes, and their arrival in milliseconds after the call began."""


def read_stream(raw: Any, blobs: Blobs) -> tuple[list[Piece] | None, str | None]:
    """Return the pieces of a stream, or the reason why they are missing."""
    if type(raw) is not dict:
        return None, "no-stream"
    if "withheld" in raw:
        return None, "stream-withheld"
    if blobs.path(raw.get("$blob")) is None:
        return None, "blob-missing"
    stream = blobs.stream(raw.get("$blob"))
    if stream is None:
        return None, "blob-damaged"
    head, _, rest = stream[1].partition(b"\n")
    try:
        pieces = _cut(rest, json.loads(head)["chunks"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, "blob-damaged"
    if raw.get("form") == "rebuilt":
        return pieces, "redacted"
    return pieces, "cut" if raw.get("lossy") else None


def _cut(data: bytes, chunks: list[list[float]]) -> list[Piece]:
    if not chunks:
        return [(data, 0.0)] if data else []
    pieces, at = [], 0
    for size, when in chunks:
        pieces.append((data[at : at + int(size)], float(when)))
        at += int(size)
    if at != len(data):
        raise ValueError("the pieces are not the stream")
    return pieces
