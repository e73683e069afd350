"""An answer of Ollama's own API as the lines of its stream, the last with ``done``.

One of the dialects behind restream.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .values import pieces_of

_EACH = ("model", "created_at")
_TEXTS = ("thinking", "content")


def lines(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines as objects."""
    each = {key: body[key] for key in _EACH if key in body}
    message = body.get("message")
    if isinstance(message, dict):
        for piece in _messages(message):
            yield {**each, "message": piece, "done": False}
        last: dict[str, Any] = {"message": {"role": message.get("role") or "assistant", "content": ""}}
    else:
        for key in ("thinking", "response"):
            for text in pieces_of(body.get(key)):
                yield {**each, "response": "", key: text, "done": False}
        last = {"response": ""}
    about = {key: value for key, value in body.items() if key not in (*_EACH, "thinking")}
    yield {**each, **about, **last, "done": True}


def _messages(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    role = {"role": message.get("role") or "assistant", "content": ""}
    for key in _TEXTS:
        for text in pieces_of(message.get(key)):
            yield {**role, key: text}
    others = {key: value for key, value in message.items() if key not in ("role", *_TEXTS)}
    if others:
        yield {**role, **others}
