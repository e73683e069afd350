"""Citations: which source stands behind a claim of an answer, recorded as an event beside that answer.

``run.cite(claim, source)`` writes one. ``CitationStore`` is for agents that keep citations with ids and put
markers such as ``[1]`` into their answers: it checks them and writes them to the run at hand, or to a sink.
A citation says where a claim comes from; nobody checks here that it is true.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Protocol

from ...errors import UsageError
from ...wire.claims import Marker, markers, sentences
from .tap import Tap


@dataclass(frozen=True)
class Citation:
    """A source with an id that markers in a text name."""

    id: str
    source_uri: str
    span: tuple[int, int] | None = None
    """Where in the source, in characters."""
    page: int | None = None
    confidence: float | None = None
    """0 to 1."""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in ("id", "source_uri"):
            if not isinstance(value := getattr(self, name), str) or not value.strip():
                raise UsageError(f"{name} of a citation is a text, not {value!r}")
        if self.confidence is not None and not 0 <= self.confidence <= 1:
            raise UsageError(f"confidence is 0 to 1, not {self.confidence!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; what is not known is left out."""
        known = {
            "span": list(self.span) if self.span else None,
            "page": self.page,
            "confidence": self.confidence,
        }
        fields = {"id": self.id, "source_uri": self.source_uri, **known, "metadata": dict(self.metadata)}
        return {name: value for name, value in fields.items() if value not in (None, {})}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Citation:
        """Return a citation from what ``to_dict`` made."""
        span = fields.get("span")
        return cls(
            fields["id"], fields["source_uri"], (span[0], span[1]) if span else None, fields.get("page"),
            fields.get("confidence"), dict(fields.get("metadata") or {}),
        )  # fmt: skip


@dataclass(frozen=True)
class AttributionRecord:
    """A text and its citations."""

    turn_id: str
    text: str
    citations: tuple[Citation, ...]
    captured_at: float

    def to_dict(self) -> dict[str, Any]:
        cited = [citation.to_dict() for citation in self.citations]
        return {
            "turn_id": self.turn_id,
            "text": self.text,
            "citations": cited,
            "captured_at": self.captured_at,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> AttributionRecord:
        cited = tuple(Citation.from_dict(each) for each in fields["citations"])
        return cls(fields["turn_id"], fields["text"], cited, fields["captured_at"])


class Sink(Protocol):
    """Where a store keeps its records beside the trace."""

    def write(self, record: AttributionRecord) -> None: ...
    def read_all(self) -> list[AttributionRecord]: ...


class InMemorySink:
    """Keeps records in a list."""

    def __init__(self) -> None:
        self._records: list[AttributionRecord] = []

    def write(self, record: AttributionRecord) -> None:
        self._records.append(record)

    def read_all(self) -> list[AttributionRecord]:
        return list(self._records)


class JsonlSink:
    """Keeps records in a file, one line each. A line that was cut off is skipped when they are read."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = path
        self._lock = threading.Lock()

    def write(self, record: AttributionRecord) -> None:
        line = json.dumps(record.to_dict(), default=str) + "\n"
        with self._lock, open(self.path, "a", encoding="utf-8") as file:
            file.write(line)

    def read_all(self) -> list[AttributionRecord]:
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines:
            try:
                found.append(AttributionRecord.from_dict(json.loads(line)))
            except (ValueError, KeyError, TypeError, IndexError, UsageError):
                continue
        return found


class CitationStore:
    """Attaches citations to the answers of a run.

    >>> store = CitationStore()                                                              # doctest: +SKIP
    >>> store.attach("turn-1", "Lisbon has seven hills [1].", [Citation("1", "guide.pdf")])  # doctest: +SKIP

    Each is written to the run at hand as a ``citation`` event of the latest answer, and to ``sink``.
    """

    def __init__(self, sink: Sink | None = None) -> None:
        self.sink: Sink = InMemorySink() if sink is None else sink

    def attach(self, turn_id: str, text: str, citations: Iterable[Citation]) -> AttributionRecord:
        """Keep the citations of a text, and record them with the claims whose markers name them."""
        record = AttributionRecord(turn_id, text, tuple(citations), time.time())
        self.sink.write(record)
        tap, known = Tap(), {citation.id: citation for citation in record.citations}
        found = markers(text, known)
        for sentence in sentences(text):
            inside = [each.id for each in found if sentence.begin <= each.begin < sentence.end]
            for citation in [known[name] for name in dict.fromkeys(inside) if name in known]:
                self._cite(tap, sentence.text, citation, turn_id)
        for citation in [each for name, each in known.items() if name not in {marker.id for marker in found}]:
            self._cite(tap, text, citation, turn_id)  # without a marker it stands behind the whole text
        return record

    @staticmethod
    def _cite(tap: Tap, claim: str, citation: Citation, turn_id: str) -> None:
        tap.cite(
            claim, citation.source_uri, id=citation.id, span=citation.span, page=citation.page,
            confidence=citation.confidence, metadata={**citation.metadata, "turn_id": turn_id},
        )  # fmt: skip

    def export(self) -> list[dict[str, Any]]:
        """Return all records as JSON has them."""
        return [record.to_dict() for record in self.sink.read_all()]

    def render_text_summary(self) -> str:
        """Return a few lines for people: each text with its coverage and its sources."""
        lines = []
        for record in self.sink.read_all():
            report = validate(record.text, record.citations)
            lines.append(f"{record.turn_id}: {report.coverage_ratio:.0%} of {report.facts} claims cited")
            lines += [f"  [{each.id}] {each.source_uri}" for each in record.citations]
        return "\n".join(lines)


def attribute(text: str, known: Iterable[str] | None = None) -> list[Marker]:
    """Return the markers of a text: ``[1]``, ``[1, 2]``, ids in ``known``; not ``a[0]`` or ``[2024]``."""
    return markers(text, known)


def unique_marker_ids(text: str, known: Iterable[str] | None = None) -> list[str]:
    """Return the ids that the markers of a text name, each once, in order."""
    return list(dict.fromkeys(marker.id for marker in markers(text, known)))


@dataclass(frozen=True)
class ValidationReport:
    """How far the claims of a text are cited."""

    facts_with_citations: tuple[str, ...]
    facts_missing_citations: tuple[str, ...]
    dangling_citation_ids: tuple[str, ...]
    """Ids that the text names and no citation has."""
    duplicate_citation_ids: tuple[str, ...]
    markers_in_order: tuple[str, ...]

    @property
    def facts(self) -> int:
        return len(self.facts_with_citations) + len(self.facts_missing_citations)

    @property
    def coverage_ratio(self) -> float:
        """The share of the claims that are cited; 0 for a text without claims or citations."""
        return len(self.facts_with_citations) / self.facts if self.facts else 0.0

    @property
    def is_clean(self) -> bool:
        """True if every claim is cited by a known id; never for a text without citations."""
        wrong = self.facts_missing_citations or self.dangling_citation_ids or self.duplicate_citation_ids
        return bool(self.facts_with_citations) and not wrong

    def as_markdown(self) -> str:
        """Return the report for people."""
        lines = [
            f"**{len(self.facts_with_citations)} of {self.facts} claims cited** ({self.coverage_ratio:.0%})"
        ]
        lines += [f"- no citation: {fact}" for fact in self.facts_missing_citations]
        lines += [f"- unknown id: {each}" for each in self.dangling_citation_ids]
        lines += [f"- id used twice: {each}" for each in self.duplicate_citation_ids]
        return "\n".join(lines)


def validate(text: str, citations: Iterable[Citation]) -> ValidationReport:
    """Check the markers of a text against its citations."""
    ids = [citation.id for citation in citations]
    found = markers(text, ids)
    cited: list[str] = []
    missing: list[str] = []
    for sentence in sentences(text):
        named = [each.id for each in found if sentence.begin <= each.begin < sentence.end and each.id in ids]
        (cited if named else missing).append(sentence.text)
    unknown = [marker.id for marker in found if marker.id not in ids]
    twice = [each for each in ids if ids.count(each) > 1]
    order = tuple(marker.id for marker in found)
    return ValidationReport(
        tuple(cited), tuple(missing), tuple(dict.fromkeys(unknown)), tuple(dict.fromkeys(twice)), order
    )
