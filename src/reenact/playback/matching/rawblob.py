"""A recorded stream, piece by piece as it came: the blob that ``raw`` of a ``model.response`` refers to."""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from typing import Any

from ...tracefile.blobs import Blobs

MAX_STREAM = 256 << 20
"""Bytes of one stream that are put back; a blob from elsewhere may be a bomb."""

_CALL = re.compile(r"[0-9a-f]{16}\Z")

Piece = tuple[bytes, float]
"""Bytes, and when they came: milliseconds after the call began."""


def read_stream(raw: Any, blobs: Blobs) -> tuple[list[Piece] | None, str | None]:
    """Return the pieces of a stream, or why they cannot be had."""
    if type(raw) is not dict:
        return None, "no-stream"
    if "withheld" in raw:
        return None, "stream-withheld"
    path = blobs.path(raw.get("$blob"))
    if path is None:
        return None, "blob-missing"
    try:
        with open(path, "rb") as file:
            packed = file.read(MAX_STREAM + 1)
        if len(packed) > MAX_STREAM or hashlib.sha256(packed).hexdigest() != os.path.basename(path):
            return None, "blob-damaged"
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, MAX_STREAM)
        if not unpacking.eof:
            return None, "blob-damaged"
        head, _, rest = data.partition(b"\n")
        pieces = _cut(rest, json.loads(head)["chunks"])
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return None, "blob-damaged"
    if raw.get("form") == "rebuilt":
        return pieces, "redacted"
    return pieces, "cut" if raw.get("lossy") else None


def read_part(call: str | None, blobs: Blobs) -> list[Piece] | None:
    """Return what had come of a stream when the process died, None if nothing is there."""
    if call is None or _CALL.match(call) is None:  # a call id from a trace is no path
        return None
    for folder in blobs.folders:
        try:
            with open(os.path.join(folder, f"{call}.part"), "rb") as file:
                data = file.read(MAX_STREAM)
        except OSError:
            continue
        return [(data, 0.0)] if data else None
    return None


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
