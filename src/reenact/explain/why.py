"""Why: the first producer of a text or value, and the chain of events through which it came.

Links of the recording come first: a tool call leads to the response that requests it, a message that is sent
again to the event it came from. Where there is none, the text is sought in what the model had been sent, or
in what happened before. Every step has how it was found and a confidence. That nothing in the recording holds
a text is an answer; that a deciding text was withheld or cut is another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from .. import schema
from ..recording.calls import MODEL, Call
from ..recording.derived_events import DerivedEvent
from ..recording.derived_tools import DerivedCall
from ..recording.event_addresses import failure_of
from ..recording.recording import Recording
from ..tracefile.events.event import Event
from ..wire.json_values import as_text
from .brought import (
    ARGUMENTS,
    ERROR,
    EVENT,
    REASONING,
    REDACTED,
    RESPONSE,
    RESULT,
    RUN_INPUT,
    TOOL_ERROR,
    WITHHELD,
    Piece,
    brought,
    leaves,
    message_pieces,
)
from .sources import Source, Sources
from .text_index import Hit, Progress, TextIndex
from .text_match import EXACT, Match, Sought

QUESTION, LINK = "question", "link"
"""How a step was found, besides ``exact``, ``normalised`` and ``fuzzy``: it is what was asked about, or the
recording links the two events."""

FOUND, NO_ORIGIN, CANNOT_TELL = "found", "no recorded origin", "cannot tell"

CALL = "tool call"
_BY_MODEL = (RESPONSE, REASONING, ARGUMENTS)
_LONGEST = 24
"""Steps of a chain."""
_MOST_VALUES = 24
"""Values of one event that are followed."""
_MOST_ALSO = 20
_DEEPEST = 20
"""Calls within calls."""
_SURE_ENOUGH = 0.6
"""Confidence from which a text in an earlier event counts where no link leads there."""


@dataclass(frozen=True, slots=True)
class Step:
    """One place on the way of a text."""

    event: Event
    what: str
    """``argument``, ``tool call``, ``tool result``, ``response``, ``user message``, ``system prompt`` …"""
    path: str
    """Where in the event, as ``p`` of the debugger takes it."""
    text: str
    """What stands there."""
    how: str
    """How the step before led to it: ``question``, ``link``, ``exact``, ``normalised`` or ``fuzzy``."""
    confidence: float
    span: tuple[int, int] | None = None
    """Where in ``text`` it stands, if it stands there exactly."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The way of one text back to its first producer."""

    text: str
    path: str
    """Of the value that was asked about; empty for a text."""
    steps: tuple[Step, ...]
    """From what was asked about back to the first producer, and on to what led to that."""
    producer: Step | None
    """The first producer; None if no event holds the text."""
    verdict: str
    """``found``, ``no recorded origin`` or ``cannot tell``."""
    reason: str
    also: tuple[Event, ...] = ()
    """Other events that brought the same text."""

    @property
    def confidence(self) -> float:
        """That of the weakest step up to the producer."""
        confidence = 1.0
        for step in self.steps:
            confidence = min(confidence, step.confidence)
            if step is self.producer:
                break
        return confidence


@dataclass(frozen=True, slots=True)
class Why:
    """What fed a text, a value, an event or the end of a run."""

    question: str
    event: Event | None
    """The event that was asked about; None for a text."""
    chains: tuple[Chain, ...]
    """One per value that was followed."""

    @property
    def verdict(self) -> str:
        """That of the text that was asked about; of several values ``found`` if one of them is."""
        verdicts = [chain.verdict for chain in self.chains]
        if self.event is None or not verdicts:
            return verdicts[0] if verdicts else NO_ORIGIN
        return next((each for each in (FOUND, CANNOT_TELL) if each in verdicts), NO_ORIGIN)

    @property
    def producer(self) -> Event | None:
        """The first producer of the first chain that has one."""
        return next((chain.producer.event for chain in self.chains if chain.producer is not None), None)


class Explainer:
    """Answers ``why`` for one recording; holds its index of words once somebody needs it."""

    def __init__(self, recording: Recording, progress: Progress | None = None) -> None:
        self.recording = recording
        self.sources = Sources(recording)
        self.progress = progress
        """Called while the run is read for the first time."""

    @cached_property
    def index(self) -> TextIndex:
        return TextIndex(self.recording, self.progress)

    # what can be asked -----------------------------------------------------------------------------

    def text(self, text: str) -> Why:
        """Explain a text: the last event that brought it, and how it came there."""
        sought = Sought(text.strip())
        chain = self._text_chain(sought)
        parts: list[Chain] = []
        last = chain.steps[0] if chain.steps else None
        if last is not None and chain.verdict == NO_ORIGIN and last.what in (RESPONSE, REASONING):
            parts = [*self._chains(last.event, last.what, last.path, evidence(sought), last.text)]
        return Why(text, None, (chain, *parts))

    def value(self, event: Event, path: str, value: Any) -> Why:
        """Explain a value of an event; each text in an object or list by itself."""
        if event.event_type == schema.MODEL_REQUEST and _MESSAGE.fullmatch(path):
            found = [each for piece in message_pieces(value, path) for each in leaves(piece.value, path)]
        else:
            found = [*leaves(value, path)]
        found, what = found[:_MOST_VALUES], _what_at(event, path)
        chains = [self._chain(Sought(text.strip()), event, what, where, text) for where, text in found]
        return Why(path, event, tuple(chains))

    def event(self, event: Event) -> Why:
        """Explain what fed an event: the arguments of a call, the facts in a text."""
        return Why("", event, tuple(self._event_chains(event)))

    def ending(self) -> Why | None:
        """Explain what fed the error that a run ended with, else its last answer; None without either."""
        event = failure_of(self.recording)
        if event is None:
            ends = [
                call.end for call in self.recording.calls() if call.kind == MODEL and call.end is not None
            ]
            event = next((end for end in reversed(ends) if end.error is None), None)
        return None if event is None else self.event(event)

    # from an event to the texts in it ---------------------------------------------------------------

    def _event_chains(self, event: Event) -> Iterator[Chain]:
        is_request, failed = event.event_type == schema.MODEL_REQUEST, event.error is not None
        for piece in brought(event):
            if is_request and piece.text.strip():
                yield self._chain(Sought(piece.text.strip()), event, piece.what, piece.path, piece.text)
            elif piece.what in (TOOL_ERROR, RESULT) and event.event_type == schema.TOOL_RESULT:
                yield from self._result_chains(event, piece)
            elif piece.what == ARGUMENTS:
                path = "args" if event.event_type == schema.TOOL_CALLED else ""
                yield from self._argument_chains(event, piece.value, path)
            elif piece.what != EVENT or not failed:
                yield from self._chains(event, piece.what, piece.path, evidence(piece.text), piece.text)

    def _argument_chains(self, event: Event, args: Any, path: str) -> Iterator[Chain]:
        for where, text in islice(leaves(args, path), _MOST_VALUES):
            yield self._chain(Sought(text.strip()), event, ARGUMENTS, where, text)

    def _result_chains(self, event: Event, piece: Piece) -> Iterator[Chain]:
        """Explain how a tool ended: by its call, by what that got, and by what else its error names."""
        first = Step(event, piece.what, piece.path, piece.text, QUESTION, 1.0)
        steps = (first, *islice(self._led_to(event), 2))
        yield Chain(piece.text, piece.path, steps, first, FOUND, _returned(event))
        call = self._call_of(event)
        if call is None:
            return
        begin = self.begin_of(call)
        yield from self._argument_chains(begin, call.args, "args")
        known = {text for _, text in leaves(call.args)}
        for text in evidence(piece.text) if piece.what == TOOL_ERROR else ():
            earlier = None if text in known else self._earlier(Sought(text), begin)
            if earlier is not None:
                yield self._walk(
                    Sought(text), Step(event, piece.what, piece.path, piece.text, QUESTION, 1.0), "", earlier
                )

    def _chains(
        self, event: Event, what: str, path: str, texts: Iterable[str], whole: str
    ) -> Iterator[Chain]:
        for text in texts:
            yield self._chain(Sought(text), event, what, path, whole)

    # one text back to its producer ------------------------------------------------------------------

    def _chain(self, sought: Sought, event: Event, what: str, path: str, text: str) -> Chain:
        at = text.find(sought)
        span = (at, at + len(sought)) if at >= 0 and len(sought) < len(text) else None
        return self._walk(sought, Step(event, what, path, text, QUESTION, 1.0, span), path)

    def _text_chain(self, sought: Sought) -> Chain:
        """Find a text anywhere in the run and follow it back from the last event that brought it."""
        last = self._last_hit(sought)
        if last is None:
            return Chain(sought, "", (), None, *self._nowhere(sought))
        first = next(self._all_hits(sought, last), last)
        source = self._resolved(last)
        chain = self._walk(sought, _step(source, last.match), "")
        origin = self._resolved(first)
        producer = chain.producer
        is_first = producer is not None and TextIndex.position(producer.event) <= TextIndex.position(
            origin.event
        )
        if not is_first and first.match.how != "fuzzy":
            # The run holds the text earlier, and nothing recorded leads there.
            chain = self._walk(sought, _step(origin, first.match), "")
        also = [hit.event for hit in islice(self._all_hits(sought, last), _MOST_ALSO) if not _is_copy(hit)]
        shown = {step.event for step in chain.steps}
        return Chain(
            sought, "", chain.steps, chain.producer, chain.verdict, chain.reason,
            tuple(dict.fromkeys(event for event in also if event not in shown)),
        )  # fmt: skip

    def _last_hit(self, sought: Sought) -> Hit | None:
        hit = next(self.index.hits(sought, backwards=True), None) or self.index.fuzzy(sought)
        if hit is None and len(sought.words) <= 3:
            hit = next(self.index.inside_words(sought), None)
        return hit

    def _all_hits(self, sought: Sought, last: Hit) -> Iterator[Hit]:
        """Yield the places of a text, found as well as the last one was, in order."""
        if last.match.how == "fuzzy":
            return iter((last,))
        hits = self.index.hits(sought)
        return (hit for hit in hits if hit.match.how == EXACT or last.match.how != EXACT)

    def _resolved(self, hit: Hit) -> Source:
        """Return the event that a text came from if it stands in the history of a request."""
        if hit.event.event_type == schema.MODEL_REQUEST:
            return self.sources.origin(hit.event, hit.piece)
        return Source(hit.event, hit.piece)

    def _walk(self, sought: Sought, first: Step, path: str, *known: Step) -> Chain:
        """Follow a text back from its first steps."""
        steps, seen = [first, *known], {(first.event, first.what)}
        while len(steps) < _LONGEST:
            step = self._before(sought, steps[-1])
            if step is None or (step.event, step.what) in seen:
                break
            seen.add((step.event, step.what))
            steps.append(step)
        producer = steps[-1]
        verdict, reason = self._verdict(producer)
        if verdict == FOUND and producer is not first and producer.confidence < _SURE_ENOUGH:
            reason += "; a text as short as this may be there by chance"
        led_to = self._led_to(producer.event) if producer.what in (RESULT, TOOL_ERROR) else ()
        return Chain(sought, path, (*steps, *led_to), producer, verdict, reason)

    def _before(self, sought: Sought, step: Step) -> Step | None:
        """Return where the text of a step came from; None if this is its first producer."""
        kind = step.event.event_type
        if step.what in (ARGUMENTS, CALL) and kind in (schema.TOOL_CALLED, schema.TOOL_RESULT):
            return self._requested(sought, step.event)
        if step.what in _BY_MODEL and kind == schema.MODEL_RESPONSE:
            found = self.sources.find(sought, step.event)
            if found is not None:
                return _step(found.source, found.match)
            return self._earlier(sought, step.event) if self.sources.of(step.event) is None else None
        if step.what in (RESULT, TOOL_ERROR) and kind in (schema.TOOL_RESULT, schema.TOOL_CALLED):
            return self._inside(sought, step.event)
        if kind == schema.MODEL_REQUEST and (sent := self._sent(sought, step)) is not None:
            return sent
        return None if step.what == RUN_INPUT else self._earlier(sought, step.event)

    def _sent(self, sought: Sought, step: Step) -> Step | None:
        """Return the event that a message of a request came from, if the request only sends it again."""
        number = _MESSAGE.match(step.path)
        messages = self.recording.sent_at(step.event) if number is not None else []
        if number is None or int(number[1]) >= len(messages):
            return None
        for piece in message_pieces(messages[int(number[1])], number[0]):
            if piece.exact(sought) is not None or sought.normal(piece.text) is not None:
                source = self.sources.origin(step.event, piece)
                if source.event != step.event:
                    return _step(source, Match(LINK, 1.0))
        return None

    def _requested(self, sought: Sought, event: Event) -> Step | None:
        """Return the response that requested a tool call."""
        call = self._call_of(event)
        if isinstance(call, DerivedCall):
            response: Event | None = call.event
        else:
            response = call.requested_by.end if call is not None and call.requested_by is not None else None
        if response is None or response.event_type != schema.MODEL_RESPONSE:
            return self._earlier(sought, event)
        tool_id = event.tool_id
        uses = [piece for piece in brought(response) if piece.what == ARGUMENTS]
        named = [piece for piece in uses if tool_id is not None and piece.tool_id == tool_id]
        for piece in named or uses:
            if sought.match(piece.text) is not None or piece.exact(sought) is not None:
                return Step(response, RESPONSE, piece.path, piece.text, LINK, 1.0 if named else 0.9)
        return self._earlier(sought, event)  # the agent's code wrote it, whatever the model requested

    def _call_of(self, event: Event) -> Call | None:
        return event.call if isinstance(event, DerivedEvent) else self.recording.index.call_of(event)

    def _inside(self, sought: Sought, event: Event) -> Step | None:
        """Return what a tool's result was taken from: a call that was made inside of it, or its arguments."""
        call = self._call_of(event)
        if call is None:
            return None
        if not isinstance(event, DerivedEvent) and call.begin is not None and call.begin is not call.end:
            first, last = TextIndex.position(call.begin) + 1, TextIndex.position(event)
            if last - first > 0:
                for hit in self.index.hits(sought, first, last):
                    if self._is_inside(hit.event, call):
                        return _step(self._resolved(hit), hit.match)
        piece = Piece(ARGUMENTS, "args", call.args)
        match = piece.exact(sought)
        if match is None or match.confidence < _SURE_ENOUGH:
            return None
        return _step(Source(self.begin_of(call), piece), match)

    def _is_inside(self, event: Event, call: Call) -> bool:
        index = self.recording.index
        each = index.call_of(event) or index.model_call_of(event)
        for _ in range(_DEEPEST):
            if each is None or call.id is None:
                return False
            if each.parent == call.id:
                return True
            each = index.call_named(each.parent) if each.parent is not None else each.requested_by
        return False

    def _earlier(self, sought: Sought, event: Event) -> Step | None:
        """Return the first event before another one that brought a text, where no link leads to it."""
        if sought.confidence < _SURE_ENOUGH:
            return None
        last = TextIndex.position(event)
        hit = next(self.index.hits(sought, 0, last), None) or self.index.fuzzy(sought, 0, last)
        if hit is None:
            return None
        confidence = round(hit.match.confidence * 0.9, 2)
        return _step(self._resolved(hit), hit.match._replace(confidence=confidence))

    # beyond the producer ------------------------------------------------------------------------------

    def _led_to(self, event: Event) -> Iterator[Step]:
        """Yield what led to a tool's result: its call, the response that requests it, and what fed that."""
        seen: set[Event] = set()
        while event not in seen and len(seen) < _LONGEST // 4:
            seen.add(event)
            call = self._call_of(event)
            if call is None:
                return
            begin = self.begin_of(call)
            values = sorted((text for _, text in leaves(call.args)), key=len, reverse=True)
            text = f"{call.tool or 'tool'}({as_text(call.args) if call.args is not None else ''})"
            yield Step(begin, CALL, "args", text, LINK, 1.0)
            source = None
            for value in values[:_MOST_VALUES]:
                named = self._requested(Sought(value.strip()), begin)
                if named is None or named.how != LINK:
                    continue
                if source is None:
                    yield named
                found = self.sources.find(Sought(value.strip()), named.event)
                source = named
                if found is not None and found.match.confidence >= _SURE_ENOUGH:
                    step = _step(found.source, found.match)
                    yield step
                    event = step.event
                    break
            if event in seen or event.event_type != schema.TOOL_RESULT:
                return

    def begin_of(self, call: Call) -> Event:
        """Return the event or entry that shows the beginning of a tool call."""
        if not isinstance(call, DerivedCall):
            return call.event
        beside = self.recording.entries.beside(call.event.index or 0)
        return next((each for part, each in beside if part > 0 and each.call.order == call.order), call.event)

    # answers ------------------------------------------------------------------------------------------

    def _verdict(self, producer: Step) -> tuple[str, str]:
        event, what = producer.event, producer.what
        if what in (RESULT, TOOL_ERROR):
            return FOUND, _returned(event)
        if what in _BY_MODEL and event.event_type == schema.MODEL_RESPONSE:
            sources = self.sources.of(event)
            if sources is None:
                return CANNOT_TELL, "the model wrote it, and what it had been sent is not recorded"
            withheld = self.sources.withheld(event)
            if withheld:
                return CANNOT_TELL, f"the model wrote it, and part of what it had been sent is {WITHHELD}"
            return NO_ORIGIN, "the model wrote it, and nothing that it had been sent holds it"
        if what in (ARGUMENTS, CALL):
            return NO_ORIGIN, "the agent's code wrote it, and no response requests a call with it"
        if what == RUN_INPUT:
            return FOUND, "it is in the input of the run"
        if what in (ERROR, EVENT):
            is_error = what == ERROR
            verdict = NO_ORIGIN if is_error and producer.how == QUESTION else FOUND
            return verdict, "no earlier event holds it" if is_error else "the agent recorded it"
        return FOUND, "it was first sent here: by the user, a template or the agent's code"

    def _nowhere(self, sought: Sought) -> tuple[str, str]:
        gaps = self.index.gaps
        if gaps[WITHHELD]:
            return CANNOT_TELL, f"no event holds it, and content of {_places(gaps[WITHHELD])} is {WITHHELD}"
        if gaps[REDACTED] and len(sought.split()) == 1:
            return CANNOT_TELL, f"no event holds it, and secrets in {_places(gaps[REDACTED])} were {REDACTED}"
        return NO_ORIGIN, "no event of the run holds it"


_MESSAGE = re.compile(r"messages\[(\d{1,9})\]")


def _places(positions: Iterable[int]) -> str:
    number = sum(1 for _ in positions)
    return "an event" if number == 1 else f"{number:,} events"


def _is_copy(hit: Hit) -> bool:
    """True for what a request sends on: results of tools, and what the model wrote."""
    what = hit.piece.what
    sent_on = (RESULT, TOOL_ERROR, ARGUMENTS, REASONING, "assistant message")
    return what in sent_on and hit.event.event_type == schema.MODEL_REQUEST


def _returned(event: Event) -> str:
    name = f"the tool {event.tool_name}" if event.tool_name else "a tool"
    return f"{name} {'returned' if event.error is None else 'failed with'} it"


def _step(source: Source, match: Match) -> Step:
    span = None if match.begin is None or match.end is None else (match.begin, match.end)
    piece = source.piece
    return Step(source.event, piece.what, piece.path, piece.text, match.how, match.confidence, span)


def _what_at(event: Event, path: str) -> str:
    """Return what a value of an event is."""
    kind, name = event.event_type, re.split(r"[.\[]", path, maxsplit=1)[0]
    if kind in (schema.TOOL_CALLED, schema.TOOL_RESULT):
        return {"args": ARGUMENTS, "input": ARGUMENTS, "error": TOOL_ERROR}.get(name, RESULT)
    if kind == schema.MODEL_RESPONSE:
        return ERROR if name == "error" else RESPONSE
    if kind == schema.MODEL_REQUEST:
        return "message"
    return ERROR if name in ("error", "err") or kind == schema.ERROR else EVENT


# The parts of a text that can be traced: quoted words, numbers, names with digits, addresses.

_QUOTED = r"""(?<!\w)(?:"([^"\n]{2,80})"|'([^'\n]{2,80})'|`([^`\n]{2,80})`|“([^”\n]{2,80})”)(?!\w)"""
_FACT = r"""((?:https?://|/)[^\s"'<>()]{3,200}|[\w.+-]+@[\w-]+\.[\w.]+|[\w:/.,+-]*\d[\w:/.,+-]*)"""
_NAME = r"(?<=[\w,;:] )([A-ZÀ-Þ][\w'’-]{3,}(?: [A-ZÀ-Þ][\w'’-]+){0,3})"
_EVIDENCE = re.compile(f"{_QUOTED}|{_FACT}|{_NAME}")
_MOST_EVIDENCE = 12


def evidence(text: str) -> list[str]:
    """Return the parts of a text that can be traced; the whole text if it has none.

    >>> evidence("The hotel in Lisbon costs 426 EUR, see 'Rua 7'.")
    ['Lisbon', '426', 'Rua 7']
    """
    found = (
        "".join(filter(None, each.groups())).strip(".,:;-+/ ") for each in _EVIDENCE.finditer(text[:20_000])
    )
    parts = list(islice(dict.fromkeys(part for part in found if Sought(part).letters > 1), _MOST_EVIDENCE))
    return parts or ([text.strip()] if text.strip() else [])
