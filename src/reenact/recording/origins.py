"""Where each message of a request came from: the answer, the tool result, or the request that had it first.

History is sent again with every request; the first one that had a message is what matters. Told from how
our own lines are stored, else by comparing with the lane's earlier requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import schema
from ..tracefile.events.event import Event, base_kind, is_turn_begin, links_of
from ..tracefile.events.rebuilt_requests import answer_named, base_of, kept, repeated
from ..wire import reading
from ..wire.messages import tool_results
from .recording import Recording

_LINKS = 5000
"""Earlier requests that are looked at."""

_NEAR = 300
"""Events before a request among which the tool result or answer in it is sought."""

_LOOKS = 50_000
"""Looks for all messages of one request, beside one through the run; what is not found then is its own."""

_CHASES = 20


class Origin(NamedTuple):
    """The events a message came from, and what they are to it."""

    events: list[Event]
    """One, unless a message holds the results of several tools."""
    how: str
    """``answer``, ``tool`` or ``request``."""
    request: Event | None = None
    """Of results of tools: the request that brought them, and whatever else is in that message."""


class Origins:
    """Finds the origins of messages in one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._looks = _LOOKS + recording.count()

    def of(self, request: Event) -> list[Origin]:
        """Return the origin of each message of a request."""
        messages = self._recording.sent_at(request)
        found: list[Origin | None] = [None] * len(messages)
        link: Event | None = request
        open_below = len(messages)
        for _ in range(_LINKS):
            if link is None or open_below <= 0:
                break
            kept, stored, link_before = self._below(link)
            kept = min(kept, open_below)
            for number in range(kept, open_below):
                element = stored[number - kept] if number - kept < len(stored) else None
                found[number] = self._origin(element, messages[number], link, _CHASES)
            open_below, link = kept, link_before
        return [origin or Origin([request], "request") for origin in found]

    def setting(self, request: Event, key: str) -> Event:
        """Return the request in whose line a setting is written that this one keeps, such as ``system``."""
        for _ in range(_LINKS):
            fields = request.stored_fields
            base = base_of(fields) if kept(fields).get(key) is True else None
            before = self._recording.request_of(base) if base is not None else None
            if before is None or (before.index or 0) >= (request.index or 0):
                break
            request = before
        return request

    def previous(self, request: Event) -> Event | None:
        """Return the request before this one in its lane, earlier attempts at the same turn left out."""
        return next(self.earlier(request), None)

    def earlier(self, request: Event, *, any_lane: bool = False) -> Iterator[Event]:
        """Yield the requests before this one in its lane, nearest first, without attempts at this turn."""
        same_turn = not is_turn_begin(request)
        for earlier in self._requests(request, any_lane=any_lane):
            if not same_turn:
                yield earlier
            same_turn = same_turn and not is_turn_begin(earlier)

    def _requests(self, request: Event, *, any_lane: bool = False) -> Iterator[Event]:
        """Yield all requests before this one in its lane, nearest first."""
        index = self._recording.index
        lane = index.lane_at(request.index or 0)
        for event in self._before(request):
            if base_kind(event) == schema.MODEL_REQUEST and (
                any_lane or index.lane_at(event.index or 0) == lane
            ):
                yield event

    def _below(self, link: Event) -> tuple[int, list[Any], Event | None]:
        """Return how many messages a request took over, what it added as stored, and whom it took from."""
        self._looks -= 1
        if self._looks < 0:
            return 0, [], None
        fields = link.stored_fields
        base, keep, body = base_of(fields), kept(fields), fields.get("body")
        key = next((name for name in schema.LISTS if _has(name, keep, body)), None)
        stored = body.get(key) if type(body) is dict else None
        stored = stored if type(stored) is list else []
        if base is not None and keep and key is not None:
            much = keep.get(key, 0)
            before = self._recording.request_of(base)
            if before is not None and (before.index or 0) >= (link.index or 0):
                before = None  # a circle, or a base that was written later: no recorder does that
            count = len(self._recording.sent_at(link)) - len(stored) if much is True else much
            return (count if type(count) is int and before is not None else 0), stored, before
        before, messages = next(self._requests(link), None), self._recording.sent_at(link)
        shared = 0 if before is None else common_prefix(self._recording.sent_at(before), messages)
        return shared, stored[shared:], before if shared else None

    def _origin(self, element: Any, message: Any, link: Event, chases: int) -> Origin:
        answered, same = answer_named(element), repeated(element)
        if answered is not None:
            answer = self._answer(answered, link)
            return Origin([answer], "answer") if answer is not None else Origin([link], "request")
        if same is not None and chases:
            return self._chased(*same, message, link, chases)
        wanted = tool_ids(message)
        return self._result(wanted, link) if wanted else self._earlier_text(message, link)

    def _result(self, wanted: set[str], link: Event) -> Origin:
        """Return the tool results with these ids nearest before a request; ids may be used again."""
        found: dict[str, Event] = {}
        for part, result in self._recording.entries.beside(link.index or 0):
            if part < 0 and result.tool_id in wanted:  # derived, so no event before the request has it
                found.setdefault(result.tool_id, result)
        for event in self._before(link, _NEAR):
            if len(found) == len(wanted):
                break
            tool_id = event.tool_id if event.event_type == schema.TOOL_RESULT else None
            if type(tool_id) is str and tool_id in wanted:
                found.setdefault(tool_id, event)
        events = sorted(found.values(), key=lambda event: event.index or 0)
        return Origin(events, "tool", link) if events else Origin([link], "request")

    def _earlier_text(self, message: Any, link: Event) -> Origin:
        """Return the answer with this text nearest before a request, else the request itself."""
        role = message.get("role") if type(message) is dict else None
        text = reading.text(message) if role in ("assistant", "model") else None
        for event in self._before(link, _NEAR) if text else ():
            if event.event_type == schema.MODEL_RESPONSE and event.content == text:
                return Origin([event], "answer")
        return Origin([link], "request")

    def _before(self, link: Event, most: int | None = None) -> Iterator[Event]:
        """Yield the events before a request, nearest first, as long as there are looks left."""
        here = link.index or 0
        for at in range(here - 1, -1 if most is None else max(-1, here - most), -1):
            self._looks -= 1
            if self._looks < 0:
                return
            yield self._recording.events[at]

    def _chased(self, call: str, number: Any, message: Any, link: Event, chases: int) -> Origin:
        """Follow a reference to a message of an earlier request to where that one came from."""
        earlier: Event | None = self._recording.request_of(call)
        for _ in range(_LINKS):
            if earlier is None or type(number) is not int:
                return Origin([link], "request")
            kept, stored, before = self._below(earlier)
            if number >= kept:
                element = stored[number - kept] if number - kept < len(stored) else None
                return self._origin(element, message, earlier, chases - 1)
            earlier = before
        return Origin([link], "request")

    def _answer(self, call: str, link: Event) -> Event | None:
        for event in self._before(link):
            if base_kind(event) == schema.MODEL_RESPONSE and links_of(event).get("call") == call:
                return event
        return None


def common_prefix(some: list[Any], others: list[Any]) -> int:
    """Return how many leading elements two lists share."""
    for number, (one, other) in enumerate(zip(some, others, strict=False)):
        if one != other:
            return number
    return min(len(some), len(others))


def tool_ids(message: Any) -> set[str]:
    """Return the ids of the tool uses that a message answers."""
    return {result.id for result in tool_results(message) if result.id}


def _has(name: str, keep: Any, body: Any) -> bool:
    return (type(keep) is dict and name in keep) or (type(body) is dict and name in body)
