"""What a comparison found: frozen data for commands, pages and programs.

Texts in ``title``, ``outcome``, ``because`` and ``notes`` are printable and on one line. The values in a
``Change`` are as recorded: whoever prints them cleans them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from ..shown import ShownAsHtml

SAME, DIFFERENT, CANNOT_TELL = "same", "different", "cannot tell"
"""Verdicts. ``cannot tell``: nothing differs in what is recorded, but a part of it is cut or redacted."""

# Causes, in the order in which they are checked.
INPUT = "input-changed"
CODE = "code-changed"
PROMPT = "prompt-changed"
MODEL = "model-changed"
SERVED_MODEL = "served-model-changed"
RESPONSE = "same-request-different-response"
ARGS = "tool-args-changed"
OUTPUT = "tool-output-changed"
ERROR = "tool-error-changed"
EXTRA, MISSING, LOOP = "extra-step", "missing-step", "loop-count"
END = "end-changed"
UNKNOWN = "truncated-comparison"
CAUSES = (
    INPUT, CODE, PROMPT, MODEL, SERVED_MODEL, RESPONSE, ARGS, OUTPUT, ERROR, EXTRA, MISSING, LOOP, END,
    UNKNOWN,
)  # fmt: skip


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    path: str
    run: str | None
    name: str
    status: str
    steps: int
    error: str | None = None
    """What it ended with."""


@dataclass(frozen=True)
class Step:
    """One thing that a run did: a model call, a tool call, an event, its input or its end."""

    number: int
    """1-based among the steps of its run."""
    kind: str
    """``input model tool http event end``."""
    title: str
    """What was done: ``search(q="hotels")``."""
    outcome: str = ""
    """What came of it, in short."""
    address: str | None = None
    """Of its event, as ``show`` and ``debug`` take it; None for the input and the end."""
    turn: int | None = None
    lane: str = "main"


@dataclass(frozen=True)
class Change:
    """One place in which two steps differ."""

    part: str
    """``input system tools settings model history response stop args result error event end attempts``."""
    path: str
    """Within the part: ``hotels[1].price``; empty for all of it."""
    left: Any = None
    right: Any = None
    has_left: bool = True
    """False if only the right run has something there."""
    has_right: bool = True


@dataclass(frozen=True)
class Difference:
    """One difference between two runs, with its cause."""

    number: int
    cause: str
    """One of ``CAUSES``."""
    because: str
    """Why it counts as that, as a sentence."""
    left: tuple[Step, ...] = ()
    """Empty if only the right run has this."""
    right: tuple[Step, ...] = ()
    changes: tuple[Change, ...] = ()
    detail: str = ""
    """Which sort of the cause: ``system tools settings history`` of a prompt, ``decision text stop error
    refusal`` of a response."""
    follows: int | None = None
    """The number of the difference that explains this one; None for a root."""
    hint: str | None = None
    """What else may explain it, such as a clock in the text."""

    @property
    def is_root(self) -> bool:
        """True if no earlier difference explains it."""
        return self.follows is None


@dataclass(frozen=True)
class Row:
    """Two steps side by side, or a number of equal ones that are left out."""

    left: Step | None = None
    right: Step | None = None
    difference: int | None = None
    """The number of the difference that the steps belong to; None if they are equal."""
    skipped: int = 0
    """Of equal steps in place of which the row stands."""


@dataclass(frozen=True)
class Unknown:
    """A place at which nobody can tell whether the runs are equal."""

    left: Step
    right: Step
    part: str
    why: str


@dataclass(frozen=True)
class RunDiff(ShownAsHtml):
    """How two runs differ."""

    left: Side
    right: Side
    verdict: str
    differences: tuple[Difference, ...] = ()
    """Roots and what follows from them, in the order of the runs."""
    rows: tuple[Row, ...] = ()
    """The runs side by side: every difference with a few equal steps around it."""
    same_again: tuple[int, int] | None = None
    """The steps, left and right, from which on everything is equal again after the last difference."""
    unknown: tuple[Unknown, ...] = ()
    notes: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    """Paths that differ every time: proposed for ``ignore`` in the settings, not applied."""
    left_out: int = 0
    """Differences beyond the limit, which are counted only."""
    headline: tuple[str, str, str] = field(default=("", "", ""))
    """First divergence, cause, consequence."""

    @property
    def roots(self) -> tuple[Difference, ...]:
        """The differences that no other one explains."""
        return tuple(each for each in self.differences if each.is_root)

    @property
    def first(self) -> Difference | None:
        """The first root."""
        return next((each for each in self.differences if each.is_root), None)

    def __bool__(self) -> bool:
        """True if the runs differ, or nobody can tell."""
        return self.verdict != SAME

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return dict(plain_data(self))


def plain_data(value: Any) -> Any:
    """Return dataclasses as dicts and tuples as lists; other values as they are."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain_data(getattr(value, each.name)) for each in fields(value)}
    return [plain_data(item) for item in value] if type(value) is tuple else value
