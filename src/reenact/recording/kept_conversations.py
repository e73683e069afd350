"""Conversations that the provider keeps: the recorded part before a request that sends only what is new.

Such a request names the response (``previous_response_id``, ``thread``) or the conversation that it
continues. Here is decided which recorded calls that is, and how it is shown. Nothing of it is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import lines, schema
from ..tracefile.events.event import Event, base_kind
from ..tracefile.events.rebuilt_requests import kept as kept_fields
from ..tracefile.events.text import count, plain
from ..wire import reading
from ..wire.json_values import mapping, string
from .calls import MODEL, Call

if TYPE_CHECKING:
    from .index import Index

NOT_SENT = "not sent"
"""How a message is marked that the provider had already."""

KEPT = f"kept by the provider, {NOT_SENT}"
MISSING = "kept by the provider and not recorded in this run"


class KeptMessage(NamedTuple):
    """A message that the provider had already."""

    message: Any
    event: Event
    """The request or the response that holds it."""


class KeptConversation(NamedTuple):
    """What the provider had before a request, as far as it is recorded."""

    messages: list[KeptMessage]
    """What was sent and answered in earlier calls, in order."""
    missing: str | None
    """In words what is not recorded; None if all is."""

    def __str__(self) -> str:
        number = len(self.messages)
        kept = f"{count(number, 'message')} before it {'is' if number == 1 else 'are'} {KEPT}"
        return "; ".join(filter(None, [kept if number else None, self.missing]))


class SeenMessages(list[Any]):
    """The messages that the model saw; those that the provider kept stand before those of the request."""

    def __init__(self, sent: Iterable[Any], kept: KeptConversation | None = None) -> None:
        before = [] if kept is None else [each.message for each in kept.messages]
        super().__init__([*before, *sent])
        self.not_sent = len(before)
        """How many of them the provider had already: the request did not carry them."""
        self.missing = None if kept is None else kept.missing
        """In words what the provider had and the recording has not; None if nothing is missing."""


def sent_messages(body: Any) -> list[Any]:
    """Return the messages that a request carries; a bare text is one."""
    key = reading.conversation_key(body)
    if key is not None:
        return list(body[key])
    text = mapping(body).get("input", mapping(body).get("prompt"))
    return [{"role": "user", "content": text}] if text is not None else []


def kept_before(index: Index, request: Event, body: Any) -> KeptConversation | None:
    """Return what the provider had before a request with this body; None if the request carries all."""
    name = reading.kept_conversation(body)
    if name is None:
        return None
    found: list[list[KeptMessage]] = []
    missing: list[str] = []
    while name is not None:
        call = _continued(index, name, request)
        begin = None if call is None else _request(call)
        before = None if begin is None else begin.stored_body
        if call is not None:
            found.append(_messages(call, begin))
        if begin is None or not is_recorded(before):
            missing.append(f"what was before, {plain(name, 80)}, is {MISSING}")
            break
        request, name = begin, reading.kept_conversation(before)
    messages = [each for some in reversed(found) for each in some]
    withheld = sum(not is_recorded(each.message) for each in messages)
    if withheld:
        missing.insert(0, f"the content of {withheld} of them is not recorded")
    return KeptConversation(messages, "; ".join(missing) or None)


def continues(index: Index, request: Event, body: Any) -> str | None:
    """Return in words which turn a request continues at the provider; None if it carries everything."""
    name = reading.kept_conversation(body)
    if name is None:
        return None
    call = _continued(index, name, request)
    turn = None if call is None else index.turn_of(call.event)
    if turn is not None:
        return f"turn {turn.number} continues: {KEPT}"
    return f"{plain(name, 80)} continues: {MISSING if index.is_whole else KEPT}"


def _messages(call: Call, request: Event | None) -> list[KeptMessage]:
    found = [] if request is None else [KeptMessage(each, request) for each in sent_messages(request.body)]
    end = call.end
    answers = [] if end is None else reading.answers(end.body, string(end.provider))
    return found + [KeptMessage(message, end) for _, message in answers if end is not None]


def _continued(index: Index, name: str, request: Event) -> Call | None:
    """Return the latest call before a request that the provider keeps under a name."""
    at = request.index or 0
    earlier = reversed(index.kept_as.get(name, ()))
    return next((call for call in earlier if call.end is not None and (call.end.index or 0) < at), None)


def is_recorded(body: Any) -> bool:
    """True for a body that is there, and not a mark in its place."""
    return type(body) is dict and not any(map(lines.is_mark, body))


def may_continue(request: Event) -> bool:
    """True if a request may continue a conversation at the provider; found without building all of it."""
    fields = request.stored_fields
    return not {*kept_fields(fields), *mapping(fields.get("body"))}.isdisjoint(reading.KEPT_BY)


def calls_by_kept_name(calls: Iterable[Call]) -> dict[str, list[Call]]:
    """Return model calls by the ids that later requests may name: of the response, of the conversation."""
    found: dict[str, list[Call]] = {}
    for call in calls:
        if call.kind != MODEL or call.end is None or call.error is not None:
            continue
        begin = _request(call)
        names = (
            string(mapping(call.end.stored_fields.get("body")).get("id")),
            reading.conversation_id(begin.stored_body) if begin is not None and may_continue(begin) else None,
        )
        for name in filter(None, names):
            found.setdefault(name, []).append(call)
    return found


def _request(call: Call) -> Event | None:
    begin = call.begin
    is_recorded = begin is not None and base_kind(begin) == schema.MODEL_REQUEST and not begin.is_partial
    return begin if is_recorded else None
