"""Messages of any provider -> pieces a person reads: who, what sort, the text, which tool use it answers."""

from __future__ import annotations

import os
from itertools import groupby
from typing import Any, NamedTuple

from ...tracefile.event import Event
from ...tracefile.values import restore
from ...wire import reading
from ...wire.json_values import mapping, string, words
from ...wire.neutral import REASONING, RESULT, TEXT, TOOL
from ...wire.reading import message_parts

__all__ = ["REASONING", "RESULT", "TEXT", "TOOL", "Piece", "answer_pieces", "opened", "pieces_of"]

_MAX_BLOB = 1 << 20
"""A longer text is read from its blob by commands that print it; here its beginning will do."""

_ROLES = {"model": "assistant", "developer": "system", "function": "tool"}
_ANSWERED = ("tool_use_id", "tool_call_id", "call_id", "toolUseId")


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
    if type(message) is not dict:
        return [Piece("user", TEXT, words(message))] if message else []
    role = _role(message)
    is_item = string(message.get("type")) not in (None, "message") and "role" not in message
    parts = next((message[key] for key in ("content", "parts") if type(message.get(key)) is list), None)
    if is_item or parts is None:
        found = [Piece(role, sort, text, *_answers(message)) for sort, text in message_parts(message)]
    else:
        rest = {**message, "role": role, "content": None}
        rest.pop("parts", None)
        beside = [Piece(role, *part) for part in message_parts(rest)]
        found = [piece for piece in beside if piece.sort == REASONING]
        found += [piece for part in parts for piece in _part(role, part, message)]
        found += [piece for piece in beside if piece.sort != REASONING]
    # An empty result says something too, but one tool message has parts of which most are absent.
    said = {piece.id for piece in found if piece.text}
    return _joined(
        [p for p in found if p.text or (p.sort == RESULT and p.id is not None and p.id not in said)]
    )


def _part(role: str, part: Any, message: dict[str, Any]) -> list[Piece]:
    if type(part) is not dict:
        return [Piece(role, RESULT if role == "tool" else TEXT, words(part), *_answers(message))]
    found = [Piece(role, sort, text, *_answers(part)) for sort, text in message_parts(part)]
    if role != "tool":
        return found
    return [piece._replace(sort=RESULT, id=piece.id or _answers(message)[0]) for piece in found]


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


def _role(message: dict[str, Any]) -> str:
    role = string(message.get("role"))
    if role:
        return _ROLES.get(role, role)
    kind = string(message.get("type")) or ""
    if kind.endswith("_output"):
        return "tool"
    return "assistant" if kind.endswith("_call") or kind == "reasoning" else "user"


def _answers(part: dict[str, Any]) -> tuple[str | None, bool]:
    """Return the id of the tool use that a part answers, and whether it says that the tool failed."""
    inner = mapping(part.get("toolResult")) or mapping(part.get("functionResponse"))
    inner = inner or mapping(part.get("function_response")) or part
    found = next((inner[key] for key in _ANSWERED if string(inner.get(key))), None)
    if found is None and inner is not part:
        found = string(inner.get("id")) or string(inner.get("name"))
    return found, inner.get("is_error") is True or inner.get("status") == "error"
