"""Messages of any provider -> pieces a person reads: who, what sort, the text, which tool use it answers."""

from __future__ import annotations

import os
from itertools import groupby
from typing import Any, NamedTuple

from ...tracefile.event import Event
from ...tracefile.values import restore
from ...wire import reading
from ...wire.json_values import string
from ...wire.messages import message_parts, readable, role_of
from ...wire.neutral import REASONING, RESULT, TEXT, TOOL, Part, ToolResult

__all__ = ["REASONING", "RESULT", "TEXT", "TOOL", "Piece", "answer_pieces", "opened", "pieces_of"]

_MAX_BLOB = 1 << 20
"""A longer text is read from its blob by commands that print it; here its beginning will do."""


class Piece(NamedTuple):
    """One text, tool use, result or thought of a message."""

    role: str
    sort: str
    text: str
    id: str | None = None
    """Of the tool use a result answers; the tool's name where the provider gives no id."""
    failed: bool = False


def opened(event: Event, value: Any) -> Any:
    """Return a stored value with the texts that stand in blobs put back, unless they are very long."""
    if not event._is_ours():
        return value
    blobs = event._shelf.blobs

    def text(reference: object) -> str | None:
        path = blobs.path(reference)
        if path is not None and os.path.getsize(path) > _MAX_BLOB:
            return None
        return blobs.text(reference)

    return restore(value, text)


def answer_pieces(event: Event) -> list[Piece]:
    """Return what a model said in the event that ends its call."""
    fields = event._raw()
    body = fields.get("body")
    if type(body) is not dict:
        said = opened(event, fields.get("content", fields.get("text")))
        if said is None:
            return []
        is_message = type(said) is dict and ("content" in said or "parts" in said)
        return pieces_of({"role": "assistant", **(said if is_message else {"content": said})})
    body = opened(event, body)
    found = [message for _, message in reading.answers(body, string(fields.get("provider")))]
    if found:
        return [piece._replace(role="assistant") for message in found for piece in pieces_of(message)]
    said = reading.text(body, string(fields.get("provider")))
    return [Piece("assistant", TEXT, said)] if said else []


def pieces_of(message: Any) -> list[Piece]:
    """Return the pieces of one message that say something, texts that stand side by side as one."""
    role = role_of(message)
    found = [_piece(role, part) for part in message_parts(message)]
    return _joined([p for p in found if p.text or (p.sort == RESULT and p.id is not None)])


def _piece(role: str, part: Part) -> Piece:
    sort, text = readable(part)
    if isinstance(part, ToolResult):
        return Piece(role, sort, text, part.id or part.name, part.failed)
    return Piece(role, sort, text)


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Answers are cut into texts anywhere, around a citation for instance; prompts between paragraphs."""
    result: list[Piece] = []
    for _, group in groupby(enumerate(pieces), _what_goes_together):
        some = [piece for _, piece in group]
        glue = "" if some[0].role == "assistant" else "\n"
        result.append(some[0]._replace(text=glue.join(piece.text for piece in some if piece.text)))
    return result


def _what_goes_together(numbered: tuple[int, Piece]) -> object:
    number, piece = numbered
    joins = piece.sort == TEXT or (piece.sort == RESULT and piece.id is not None)
    return (piece.sort, piece.id) if joins else number
