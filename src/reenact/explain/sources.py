"""What a model was sent in one request, as the pieces that earlier events brought, first ones first.

History that is sent again leads to the event it came from: the response, the tool result, the first request.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ..recording.origins import Origin, Origins
from ..recording.prompt import ContextPart, context_of
from ..recording.recording import Recording
from ..tracefile.events.event import Event
from ..wire.reading import SYSTEM, TOOLS, system_text
from .brought import (
    DECLARATION,
    REASONING,
    RESPONSE,
    RESULT,
    SYSTEM_PROMPT,
    TOOL_ERROR,
    WITHHELD,
    Piece,
    has_gap,
    message_pieces,
)
from .text_match import Match, Sought

_REQUESTS = 8
"""Whose sources are kept."""

_WIDE_ENOUGH = 0.3
"""Confidence from which a match counts; a single letter is found everywhere."""


class Source(NamedTuple):
    """A piece and the event that brought it."""

    event: Event
    piece: Piece


class Found(NamedTuple):
    """A source in which a text was found."""

    source: Source
    match: Match


class Sources:
    """The sources of the requests of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._of = lru_cache(maxsize=_REQUESTS)(self._gathered)

    def of(self, event: Event) -> list[Source] | None:
        """Return what the model had been sent that led to an event; None if that is not recorded."""
        request = self._recording.request_before(event)
        return None if request is None else self._of(request)

    def find(self, sought: Sought, event: Event) -> Found | None:
        """Return the first source of an event that has a text: exactly, else normalised, else fuzzy."""
        sources = self.of(event) or ()
        if sought.confidence < _WIDE_ENOUGH:
            return None
        for source in sources:
            if (match := source.piece.exact(sought)) is not None:
                return Found(source, match)
        for source in sources:
            if (match := sought.normal(source.piece.text)) is not None:
                return Found(source, match)
        best: Found | None = None
        for source in sources if sought.shingles else ():
            if source.piece.what in (RESPONSE, REASONING):
                continue  # a model that says nearly the same again took it from where it had it before
            match = sought.fuzzy(source.piece.text)
            if match is not None and (best is None or match.confidence > best.match.confidence):
                best = Found(source, match)
        return best

    def origin(self, request: Event, piece: Piece) -> Source:
        """Return the source of a piece that stands in the conversation of a request."""
        number = piece.path.removeprefix("messages[").removesuffix("]")
        if not number.isdigit():
            return Source(request, piece)
        found = Origins(self._recording).of(request)
        at = int(number)
        return located(found[at], piece) if at < len(found) else Source(request, piece)

    def withheld(self, event: Event) -> list[Event]:
        """Return the events of which the model was sent something that is not in the recording."""
        request = self._recording.request_before(event)
        whole = [] if request is None or not has_gap(request.body) else [request]
        parts = [each.event for each in self.of(event) or () if each.piece.gap == WITHHELD]
        return list(dict.fromkeys([*parts, *whole]))

    def _gathered(self, request: Event) -> list[Source]:
        context = context_of(self._recording, request)
        if context is None:
            return []
        origins = Origins(self._recording)
        not_sent = sum(not part.is_sent for part in context.messages)
        messages = [each for part in context.messages for each in _pieces(part, not_sent)]
        body = context.request.body
        beside = [
            Source(origins.setting(context.request, key), Piece(what, key, text(value)))
            for what, keys, text in ((SYSTEM_PROMPT, SYSTEM, system_text), (DECLARATION, TOOLS, _itself))
            for key in keys
            if isinstance(body, dict) and (value := body.get(key))
        ]
        return messages + beside


def _itself(value: Any) -> Any:
    return value


def _pieces(part: ContextPart, not_sent: int) -> list[Source]:
    path = f"messages[{(part.number or 0) - not_sent}]" if part.is_sent else "content"
    origin = part.origin
    return [located(origin, piece) for piece in message_pieces(part.value, path) if origin is not None]


def located(origin: Origin, piece: Piece) -> Source:
    """Return a piece of a message with the event that brought it, and its path there."""
    if origin.how == "tool" and piece.what in (RESULT, TOOL_ERROR):
        event = next((each for each in origin.events if each.tool_id == piece.tool_id), origin.events[0])
        return Source(event, piece._replace(path="error" if piece.what == TOOL_ERROR else "result"))
    if origin.how != "answer":
        return Source(origin.request or origin.events[0], piece)
    what = RESPONSE if piece.what == "assistant message" else piece.what
    return Source(origin.events[0], piece._replace(what=what, path="content"))
