"""One suspect, and how surely each kind of them has to do with a failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...tracefile.events.event import Event

SHOWN = 0.5
"""Confidence from which ``show`` prints a suspect unasked, and ``ls`` marks its run.

Chosen so that at most one passing run in twenty has such a suspect: ``tests/labelled`` measures both sides.
"""

MOST_SHOWN = 3

CHANGED_RESULT = "changed result"
TOOL_ERROR = "tool error"
HIDDEN_ERROR = "hidden error"
ERROR_AS_RESULT = "error as result"
EMPTY_RESULT = "empty result"
PARTIAL_RESULT = "partial result"
REPEATED_CALL = "repeated call"
UNKNOWN_ARGUMENT = "unknown argument"
UNKNOWN_CLAIM = "unknown claim"
SCHEMA = "schema violation"
CUT_ANSWER = "cut answer"
LOST_CONTEXT = "lost context"
RETRIES = "retries"
MODEL_ERROR = "model error"
NO_ANSWER = "no answer"
OTHER_UNIT = "other unit"
MISMATCH = "mismatched result"
GARBLED = "garbled result"
STALE = "stale result"
CONFLICT = "conflicting writes"
UNASKED = "unasked action"
INJECTED = "injected instructions"
NO_EFFECT = "no effect"
PLACEHOLDER = "unfilled placeholder"
UNDONE = "claim without a call"
DIFFERS = "differs from a passing run"
KINDS = (
    CHANGED_RESULT, TOOL_ERROR, HIDDEN_ERROR, ERROR_AS_RESULT, EMPTY_RESULT, PARTIAL_RESULT, REPEATED_CALL,
    UNKNOWN_ARGUMENT, UNKNOWN_CLAIM, SCHEMA, CUT_ANSWER, LOST_CONTEXT, RETRIES, MODEL_ERROR, NO_ANSWER,
    OTHER_UNIT, MISMATCH, GARBLED, STALE, CONFLICT, UNASKED,
    INJECTED, NO_EFFECT, PLACEHOLDER, UNDONE, DIFFERS,
)  # fmt: skip

PROVEN = frozenset((CHANGED_RESULT, TOOL_ERROR, HIDDEN_ERROR, RETRIES, MODEL_ERROR, NO_ANSWER))
"""Kinds that are a failure whatever came of it."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something in a run that may have made it go wrong."""

    kind: str
    """One of ``KINDS``."""
    confidence: float
    """How likely it has to do with a failure, 0 to 1."""
    evidence: str
    """What the trace shows, in one printable line."""
    address: str
    """Of the event where it happened first."""
    times: int = 1
    """How often the same was found."""
    event: Event = field(repr=False, compare=False, kw_only=True)

    @property
    def is_shown(self) -> bool:
        """True if ``show`` prints it unasked."""
        return self.confidence >= SHOWN

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``--json`` prints it."""
        return {
            "kind": self.kind,
            "confidence": self.confidence,
            "evidence": self.evidence,
            "address": self.address,
            "times": self.times,
        }
