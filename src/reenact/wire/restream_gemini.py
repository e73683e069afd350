"""An answer of Gemini as the events of its stream: each an answer with only what is new.

One of the dialects behind restream.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .values import mapping, mappings, pieces_of

_BILL = "usageMetadata"


def events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events; the last has the bill."""
    envelope = {key: value for key, value in body.items() if key not in ("candidates", _BILL)}
    found = list(_candidates(body))
    for candidate in found[:-1]:
        yield {"candidates": [candidate], **envelope}
    bill = {_BILL: body[_BILL]} if _BILL in body else {}
    yield {"candidates": found[-1:], **envelope, **bill}


def _candidates(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for number, candidate in enumerate(mappings(body.get("candidates"))):
        place = {"index": candidate.get("index", number)}
        ended = {key: value for key, value in candidate.items() if key not in ("content", "index")}
        content = candidate.get("content")
        if not isinstance(content, dict):  # blocked
            yield {**place, **ended}
            continue
        others = {key: value for key, value in content.items() if key != "parts"}
        spoken = [piece for part in mappings(content.get("parts")) for piece in _pieces(part)]
        for piece in spoken[:-1]:
            yield {"content": {"parts": [piece], **others}, **place}
        yield {"content": {"parts": spoken[-1:], **others}, **ended, **place}


def _pieces(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a text bit by bit, signed at its end; what is no text comes whole."""
    pieces = pieces_of(part.get("text")) if "text" in part else []
    if not pieces or mapping(part.get("functionCall")):
        yield part
        return
    unsigned = {key: value for key, value in part.items() if key != "thoughtSignature"}
    for piece in pieces[:-1]:
        yield {**unsigned, "text": piece}
    yield {**part, "text": pieces[-1]}
