"""One text sought in another: as it stands, normalised, or by most of its words in order.

Normalised means without regard to case, white space and JSON escapes. A fuzzy match has at least 60 % of the
text's sequences of eight words. Each match has a confidence from 0 to 1: how far it shows that one text was
taken from the other, and not that both have it by chance.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import NamedTuple

EXACT, NORMALISED, FUZZY = "exact", "normalised", "fuzzy"

SHINGLE, LEAST_SHARED = 8, 0.6
"""Words in a sequence, and the share of a text's sequences that a fuzzy match has."""

_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_ESCAPED = {"b": " ", "f": " ", "n": " ", "r": " ", "t": " "}
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+"
)
"""Languages that put no spaces between words have one word per character."""

_BY_LENGTH = ((12, 0.99), (6, 0.95), (4, 0.85), (3, 0.6), (1, 0.3))
"""Letters and digits of a text that is found as it stands, and what that shows."""

_CUT_WORD = 0.7
"""Factor for a text that is found inside of a longer word."""


class Match(NamedTuple):
    """Where a text was found."""

    how: str
    confidence: float
    begin: int | None = None
    """In the other text, as it stands there; None where only its normalised form has the place."""
    end: int | None = None


class Sought(str):
    """A text to look for, with its normalised form and its words, made when needed."""

    @cached_property
    def normalised(self) -> str:
        return normalise(self)

    @cached_property
    def words(self) -> list[str]:
        return words_of(self)

    @cached_property
    def shingles(self) -> set[tuple[str, ...]]:
        return _shingles(self.words)

    @cached_property
    def letters(self) -> int:
        return sum(char.isalnum() for char in self[:64])

    @property
    def confidence(self) -> float:
        """What it shows that the text is found as it stands."""
        return next((share for least, share in _BY_LENGTH if self.letters >= least), 0.1)

    def match(self, text: str) -> Match | None:
        """Return the best match in a text: exact before normalised before fuzzy."""
        return self.exact(text) or self.normal(text) or self.fuzzy(text)

    def exact(self, text: str, *, within_words: bool = False) -> Match | None:
        """Find the text as it stands: as whole words, or else anywhere if wanted."""
        if not self:
            return None
        at, inside = text.find(self), -1
        while at >= 0:
            if _is_whole(text, at, at + len(self)):
                return Match(EXACT, self.confidence, at, at + len(self))
            inside = at if inside < 0 else inside
            at = text.find(self, at + 1)
        if inside < 0 or not within_words:
            return None
        return Match(EXACT, round(self.confidence * _CUT_WORD, 2), inside, inside + len(self))

    def normal(self, text: str) -> Match | None:
        """Find the text without regard to case, white space and JSON escapes."""
        if not self.letters:
            return None
        other = normalise(text)
        at = other.find(self.normalised)
        while at >= 0:
            if _is_whole(other, at, at + len(self.normalised)):
                return Match(NORMALISED, round(self.confidence * 0.95, 2))
            at = other.find(self.normalised, at + 1)
        return None

    def fuzzy(self, text: str) -> Match | None:
        """Find most of the text's words in their order."""
        if not self.shingles:
            return None
        shared = len(self.shingles & _shingles(words_of(text))) / len(self.shingles)
        return Match(FUZZY, round(shared * 0.9, 2)) if shared >= LEAST_SHARED else None


def normalise(text: str) -> str:
    """Return a text without JSON escapes, in one case, with single spaces.

    >>> normalise('A\\\\nB  c'), normalise('caf\\\\u00e9')
    ('a b c', 'café')
    """
    return " ".join(_unescaped(text).casefold().split())


def words_of(text: str) -> list[str]:
    """Return the words of the normalised text.

    >>> words_of("The price: 426 EUR")
    ['the', 'price', '426', 'eur']
    """
    return _WORD.findall(_unescaped(text).casefold())


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_character, text)
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # pairs become one character


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2])


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1)}


def _is_whole(text: str, begin: int, end: int) -> bool:
    """True if no word or number continues over the ends of a part of a text."""
    return not (
        (begin > 0 and text[begin].isalnum() and text[begin - 1].isalnum())
        or (end < len(text) and text[end - 1].isalnum() and text[end].isalnum())
    )
