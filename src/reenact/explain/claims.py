"""The claims of an answer, and the event and span that support each: which sentences have a source.

Citations come from the provider (on the wire), from the agent (``cite``, ``CitationStore``), and from markers
in the text that name one of the agent's. A citation whose words are in a recorded event is supported by it.
One that leads outside of the recording counts as cited. Nothing else does: an answer without any citation is
reported as such, not as clean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .. import schema
from ..errors import UsageError
from ..recording.calls import MODEL, TOOL
from ..tracefile.events.event import Event
from ..wire import reading
from ..wire.claims import Sentence, markers, sentences
from ..wire.json_values import string
from .brought import RESULT, WITHHELD, Piece, brought, leaves
from .sources import Source
from .text_match import Match, Sought, normalise
from .why import Explainer, evidence

SUPPORTED, CITED, NOT_FOUND, CANNOT_TELL = "supported", "cited", "quote not found", "cannot tell"
UNSUPPORTED = "unsupported"
ALL, SOME, NONE = "all claims cited", "some claims cited", "no citations"

_ORDER = (SUPPORTED, CITED, CANNOT_TELL, NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Support:
    """A citation behind a claim."""

    by: str
    """``provider`` or ``agent``."""
    source: str
    """A URL, a title, an id."""
    title: str | None
    quote: str
    """The words of the source, where they are known."""
    state: str
    """``supported`` by a recorded event, ``cited`` (the source is not in the recording), ``quote not found``
    in what the model had been sent, or ``cannot tell``: that was withheld."""
    event: Event | None = None
    """The recorded event that has the words, or the source."""
    path: str = ""
    span: tuple[int, int] | None = None
    """In the text at ``path``."""
    text: str = ""
    """The words there."""
    how: str = ""
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of an answer."""

    text: str
    begin: int
    end: int
    supports: tuple[Support, ...]

    @property
    def state(self) -> str:
        """The best state of its citations; ``unsupported`` without any."""
        states = {support.state for support in self.supports}
        return next((state for state in _ORDER if state in states), UNSUPPORTED)

    @property
    def is_covered(self) -> bool:
        return self.state in (SUPPORTED, CITED)


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of one answer."""

    event: Event
    claims: tuple[Claim, ...]
    citations: int
    """How many citations the answer has, of the provider and of the agent."""

    @property
    def coverage(self) -> float:
        """The share of the claims with a source; 0 if there are none."""
        return sum(claim.is_covered for claim in self.claims) / len(self.claims) if self.claims else 0.0

    @property
    def verified(self) -> float:
        """The share of the claims whose source is a recorded event."""
        return sum(each.state == SUPPORTED for each in self.claims) / len(self.claims) if self.claims else 0.0

    @property
    def verdict(self) -> str:
        """``no citations``, ``some claims cited`` or ``all claims cited``."""
        if not self.citations:
            return NONE
        return ALL if self.claims and self.coverage == 1 else SOME


@dataclass(frozen=True, slots=True)
class _Citation:
    begin: int
    end: int
    by: str
    source: str
    title: str | None
    quote: str
    span: tuple[int, int] | None = None


def claims_of(explainer: Explainer, event: Event | None = None) -> Claims:
    """Return the claims of the answer that an event belongs to; without one, of the run's last answer."""
    answer = _answer(explainer, event)
    text = reading.answer_text(answer.body, string(answer.provider))
    if not reading.answers(answer.body, string(answer.provider)):
        text = answer.content or ""
    found = [*_by_provider(answer), *_by_agent(explainer, answer, text)]
    resolver = _Resolver(explainer, answer)
    claims = []
    for sentence in sentences(text):
        behind = [each for each in found if _concerns(each, sentence)]
        claims.append(Claim(*sentence, tuple(resolver.support(each, sentence.text) for each in behind)))
    return Claims(answer, tuple(claims), len(found))


def _answer(explainer: Explainer, event: Event | None) -> Event:
    recording = explainer.recording
    if event is not None:
        call = recording.index.model_call_of(event)
        end = None if call is None else call.end
    else:
        ends = [call.end for call in recording.calls() if call.kind == MODEL and call.end is not None]
        texts = (end for end in reversed(ends) if end.error is None and (end.content or "").strip())
        end = next(texts, None)
    if end is None or end.error is not None:
        raise UsageError(
            "there is no answer whose claims could be listed",
            hint="name a response: reenact why RUN 13 --claims",
        )
    return end


def _concerns(citation: _Citation, sentence: Sentence) -> bool:
    """True if a citation stands in a sentence, or right behind it; a point belongs to what it ends."""
    if citation.begin == citation.end:
        return sentence.begin < citation.begin <= sentence.end + 1 or citation.begin == sentence.begin == 0
    return citation.begin < sentence.end and sentence.begin < citation.end


def _by_provider(answer: Event) -> Iterator[_Citation]:
    for each in reading.citations(answer.body, string(answer.provider)):
        source = each.source or each.title or "an unnamed source"
        yield _Citation(each.begin, each.end, "provider", source, each.title, each.quote)


def _by_agent(explainer: Explainer, answer: Event, text: str) -> Iterator[_Citation]:
    """Yield what the agent cites: by the words of its claim, and by markers that name its id."""
    recording, types = explainer.recording, explainer.recording.event_types()
    events = [recording.events[at] for at, kind in enumerate(types) if kind == schema.CITATION]
    mine = [each for each in events if string(each.call) in (None, string(answer.call))]
    marked = markers(text, [str(each.id) for each in mine if each.id is not None])
    for each in mine:
        source, quote = each.source, string(each.quote) or ""
        span = each.span if type(each.span) is list and len(each.span) == 2 else None
        named = source if type(source) is str else _named(source)
        known = _Citation(0, 0, "agent", named, None, quote, (span[0], span[1]) if span else None)
        places = [(marker.begin, marker.end) for marker in marked if marker.id == str(each.id)]
        places = places or [*_places(string(each.claim) or "", text)]
        for begin, end in places:
            yield _Citation(begin, end, known.by, named, None, quote, known.span)


def _named(source: Any) -> str:
    """Return the name of a source that is an object."""
    if isinstance(source, dict):
        keys = ("source_uri", "uri", "url", "id", "title", "name", "path")
        return next((str(source[key]) for key in keys if source.get(key)), str(source)[:200])
    return "an unnamed source" if source is None else str(source)[:200]


def _places(claim: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where the words of a claim stand in the answer."""
    sought = Sought(claim.strip())
    match = sought.exact(text, within_words=True)
    if match is not None and match.begin is not None and match.end is not None:
        yield match.begin, match.end
        return
    for sentence in sentences(text):
        if sought and (normalise(sentence.text) in sought.normalised or sought.normal(sentence.text)):
            yield sentence.begin, sentence.end


class _Resolver:
    """Finds the recorded events behind the citations of one answer."""

    def __init__(self, explainer: Explainer, answer: Event) -> None:
        self._explainer = explainer
        sources = explainer.sources.of(answer)
        self._is_known = sources is not None and not explainer.sources.withheld(answer)
        own = [Source(answer, piece) for piece in brought(answer) if piece.what == RESULT]
        self._sources = [*(sources or ()), *own]

    def support(self, citation: _Citation, claim: str) -> Support:
        """Return where the words or the source of a citation are recorded."""
        within = [*self._calls(citation.source)]
        where = within or self._sources
        if citation.quote:
            found = _find(Sought(citation.quote.strip()), where)
            return self._made(citation, found, NOT_FOUND if self._is_known or within else CANNOT_TELL)
        if within:  # the agent names a tool call: what of the claim is in its result?
            texts = [claim, *sorted(evidence(claim), key=len, reverse=True)]
            found = next((each for text in texts if (each := _find(Sought(text), within))), None)
            return self._made(citation, found or (within[0], None), CITED)
        return self._made(citation, self._named(citation), CITED)

    def _named(self, citation: _Citation) -> tuple[Source, Match | None] | None:
        """Return what the model had been sent under the address or the title of a source."""
        is_address = "/" in citation.source
        for source in self._sources:
            if is_address and (match := source.piece.exact(Sought(citation.source))) is not None:
                return source, match
            names = (citation.source, citation.title)
            if not isinstance(source.piece.value, str) and any(
                t in names for _, t in leaves(source.piece.value)
            ):
                return source, None
        return None

    def _calls(self, source: str) -> Iterator[Source]:
        """Yield the results of the tool call that a source names by its id, or the event at an address."""
        name = source.removeprefix("call:")
        recording = self._explainer.recording
        for call in recording.calls(derived=True):
            if call.kind == TOOL and name and name in (call.id, call.tool_id) and call.end is not None:
                pieces = [Piece(RESULT, "result", call.result)] if call.derived else brought(call.end)
                yield from (Source(call.end, piece) for piece in pieces)

    def _made(
        self, citation: _Citation, found: tuple[Source, Match | None] | None, otherwise: str
    ) -> Support:
        named = (citation.by, citation.source, citation.title, citation.quote)
        if found is None:
            return Support(*named, otherwise)
        (event, piece), match = found
        if piece.gap == WITHHELD and match is None:
            return Support(*named, CANNOT_TELL, event, piece.path)
        if match is None:
            return Support(*named, SUPPORTED, event, piece.path, citation.span, how="link", confidence=1.0)
        span = citation.span if match.begin is None or match.end is None else (match.begin, match.end)
        text = piece.text[span[0] : span[1]] if span is not None else ""
        return Support(*named, SUPPORTED, event, piece.path, span, text, match.how, match.confidence)


def _find(sought: Sought, sources: list[Source]) -> tuple[Source, Match] | None:
    """Return the first source with a text: exactly, else normalised, else fuzzy."""
    if not sought.strip():
        return None
    tiers: tuple[Callable[[Piece], Match | None], ...] = (
        lambda piece: piece.exact(sought),
        lambda piece: sought.normal(piece.text),
        lambda piece: sought.fuzzy(piece.text),
    )
    for tier in tiers:
        for source in sources:
            match = tier(source.piece)
            if match is not None:
                return source, match
    return None
