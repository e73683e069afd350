"""Long and changed texts on a page: word by word, cut where nobody would read on, and how much was cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...compare.words import GONE, NEW, SAME, Words, word_changes
from ...tracefile.events.text import pretty_json
from ..html import Html, join, tag

MOST = 20_000
"""Characters of one text on a page."""
_FOLDED = 1_200
"""Characters, or lines, of a text beyond which the rest is folded."""
_LINES = 14
_AROUND = 160
"""Characters that are shown on each side of a change."""


class LeftOut:
    """Counts what is not on the page, to be stated at its end."""

    def __init__(self) -> None:
        self.characters = 0
        self._notes: list[str] = []

    def note(self, text: str) -> None:
        self._notes.append(text)

    def cut(self, text: str, most: int = MOST) -> str:
        """Return a text without what is beyond a limit."""
        if len(text) <= most:
            return text
        self.characters += len(text) - most
        return f"{text[:most]} … {len(text) - most:,} more characters"

    @property
    def notes(self) -> list[str]:
        words = f"{self.characters:,} characters of texts longer than {MOST:,}"
        return [*self._notes, *([words] if self.characters else [])]


def value_text(value: Any) -> str:
    """Return a recorded value as text: a text as it is, anything else as indented JSON."""
    return value if isinstance(value, str) else pretty_json(value)


def folded(text: str, left_out: LeftOut) -> Html:
    """Return a text whose lines are kept; the rest of a long one opens on request."""
    text = left_out.cut(text)
    lines = text.split("\n")
    head = "\n".join(lines[:_LINES])[:_FOLDED]
    if len(head) == len(text):
        return tag("pre", text)
    more = f"{len(text) - len(head):,} more characters"
    return join(tag("pre", head), tag("details", tag("summary", more), tag("pre", text[len(head) :])))


def both_sides(old: str, new: str, left_out: LeftOut) -> tuple[Html, Html]:
    """Return two texts with the words that differ marked in each."""
    words = word_changes(left_out.cut(old), left_out.cut(new))
    before, after = ([each for each in words if each.sort != sort] for sort in (NEW, GONE))
    return marked(before), marked(after)


def marked(words: Iterable[Words]) -> Html:
    """Return stretches of text in one block; long ones that stayed are shortened."""
    parts = list(words)
    last = len(parts) - 1
    cells = []
    for at, (sort, text) in enumerate(parts):
        if sort == SAME:
            cells.append(_shortened(text, is_first=at == 0, is_last=at == last and last > 0))
        else:
            cells.append(tag("del" if sort == GONE else "ins", text))
    return tag("pre", *cells)


def _shortened(text: str, *, is_first: bool, is_last: bool) -> Html:
    if len(text) <= 3 * _AROUND:
        return join(text)
    head, tail = ("" if is_first else text[:_AROUND]), ("" if is_last else text[-_AROUND:])
    much = f"{len(text) - len(head) - len(tail):,} equal characters"
    return join(head, tag("span", f" … {much} … ", class_="skip-text"), tail)
