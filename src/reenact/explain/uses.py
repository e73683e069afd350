"""Uses: where later events of a run contain what one event brought.

The first request that carries it to the model, and how long later ones still do; arguments of tools with a
value of it; responses and other events with its words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .. import schema
from ..recording.calls import TOOL, Call
from ..recording.derived_events import DerivedEvent
from ..recording.origins import tool_ids
from ..tracefile.events.event import Event, base_kind
from ..tracefile.events.rebuilt_requests import answer_named, base_of, kept_messages, messages_of, repeated
from ..wire.json_values import string
from .brought import ARGUMENTS, RESPONSE, Piece, brought, leaves
from .text_index import TextIndex
from .text_match import EXACT, Match, Sought, normalise
from .why import LINK, Explainer, evidence

REQUEST = "request"
_LEAST = 0.6
"""Confidence from which an equal value counts."""
_KNOWN_BEFORE = 0.4
"""Factor for a value that an earlier event had already."""


@dataclass(frozen=True, slots=True)
class Use:
    """A place in a later event with what the event brought."""

    event: Event
    what: str
    """``request``, ``argument``, ``response``, ``user message`` …"""
    path: str
    text: str
    """The value or the words in common."""
    how: str
    """``link``, ``exact``, ``normalised`` or ``fuzzy``."""
    confidence: float
    """Low if an earlier event had the same value."""


@dataclass(frozen=True, slots=True)
class Uses:
    """All uses of one event, in order."""

    event: Event
    uses: tuple[Use, ...]
    requests: int
    """How many later requests carry it to the model."""
    last_request: Event | None
    """The last of them; later requests of its conversation do not have it any more."""


def uses_of(explainer: Explainer, event: Event) -> Uses:
    """Return where later events contain what an event brought."""
    carriers = [*_carriers(explainer, event)]
    found = [Use(each, REQUEST, "", "", LINK, 1.0) for each in carriers[:1]]
    found += _Search(explainer, event).uses()
    order = sorted(found, key=lambda use: (use.event.index or 0, use.what != REQUEST))
    return Uses(event, tuple(order), len(carriers), carriers[-1] if carriers else None)


def _carriers(explainer: Explainer, event: Event) -> Iterator[Event]:
    """Yield the later requests that carry a response, a tool's result or a new message to the model."""
    recording = explainer.recording
    call, tool_id = string(event.call), string(event.tool_id)
    is_response, is_result = (
        event.event_type == kind for kind in (schema.MODEL_RESPONSE, schema.TOOL_RESULT)
    )
    places: dict[str, set[int]] = {}
    first = (event.index or 0) + 1
    if event.event_type == schema.MODEL_REQUEST and call is not None:
        fields = event.stored_fields
        kept = kept_messages(fields)
        places[call] = {kept + at for at, _ in enumerate(messages_of(fields.get("body")))}
    if isinstance(event, DerivedEvent) and is_result and event.call.end is not None:
        first = event.call.end.index or first
    types = recording.event_types()
    for at in range(first, len(types)):
        if types[at] != schema.MODEL_REQUEST:
            continue
        request = recording.events[at]
        fields = request.stored_fields
        kept = kept_messages(fields)
        here = {place for place in places.get(base_of(fields) or "", ()) if place < kept}
        for number, written in enumerate(messages_of(fields.get("body")), kept):
            same = repeated(written)
            if (
                (is_response and call is not None and answer_named(written) == call)
                or (same is not None and same[1] in places.get(same[0], ()))
                or (is_result and tool_id is not None and same is None and tool_id in tool_ids(written))
            ):
                here.add(number)
        if here:
            places[string(fields.get("call")) or ""] = here
            yield request


class _Search:
    """The texts of an event, sought in what comes after it."""

    def __init__(self, explainer: Explainer, event: Event) -> None:
        self._explainer = explainer
        self._event = event
        is_result = event.event_type == schema.TOOL_RESULT
        own = [piece for piece in brought(event) if piece.what != ARGUMENTS or not is_result]
        self._own = [piece.text.strip() for piece in own if piece.text.strip()]
        self._normalised = [normalise(text) for text in self._own]

    def uses(self) -> Iterator[Use]:
        event = self._event
        recording, at = self._explainer.recording, event.index if event.index is not None else -1
        for call in recording.calls(derived=True):
            if call.kind == TOOL and (call.event.index or 0) > at and call.event != event:
                yield from self._in_arguments(call)
        similar = {
            each
            for text in self._own
            for each in self._explainer.index.similar(Sought(text), TextIndex.position(event) + 1)
        }
        for later in recording.events[at + 1 :]:
            if base_kind(later) in (schema.TOOL_CALLED, schema.TOOL_CALL, schema.TOOL_RESULT):
                continue
            for piece in brought(later):
                if piece.what == ARGUMENTS or piece.tool_id is not None or piece.what == "assistant message":
                    continue  # listed by its tool, or sent again
                use = self._in_text(later, piece, TextIndex.position(later) in similar)
                if use is not None:
                    yield use

    def _in_arguments(self, call: Call) -> Iterator[Use]:
        for path, text in leaves(call.args, "args"):
            sought = Sought(text.strip())
            match = self._match(sought)
            if match is not None:
                begin = self._explainer.begin_of(call)
                yield Use(begin, ARGUMENTS, path, text, match.how, self._confidence(sought, match))

    def _in_text(self, later: Event, piece: Piece, is_similar: bool) -> Use | None:
        for text in self._own:
            sought = Sought(text)
            whole = sought.match(piece.text) if is_similar else sought.exact(piece.text)
            if whole is not None and whole.confidence >= _LEAST:
                return Use(later, piece.what, piece.path, text, whole.how, whole.confidence)
        shared = []
        for text in evidence(piece.text) if piece.what == RESPONSE else ():
            sought = Sought(text)
            match = self._match(sought)
            if match is not None:
                shared.append((self._confidence(sought, match), text))
        if not shared:
            return None
        return Use(
            later, piece.what, piece.path, ", ".join(text for _, text in shared), EXACT, max(shared)[0]
        )

    def _match(self, sought: Sought) -> Match | None:
        """Find a value in the event's own texts."""
        if sought.confidence < _LEAST:
            return None
        found: Match | None = None
        for text, normalised in zip(self._own, self._normalised, strict=True):
            found = found or (sought.exact(text) if sought in text else None)
            if found is None and sought.normalised in normalised:
                found = sought.normal(text)
        return found

    def _confidence(self, sought: Sought, match: Match) -> float:
        """Return what an equal value shows: little if an event before had it."""
        hits = self._explainer.index.hits(sought, 0, TextIndex.position(self._event))
        return round(match.confidence * (1.0 if next(hits, None) is None else _KNOWN_BEFORE), 2)
