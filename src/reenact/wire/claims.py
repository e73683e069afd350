"""The claims of an answer: its sentences, and the markers in it that name a source, as in ``[1]``.

Pure functions of a text, for the side that records citations and the side that reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_MARKER = re.compile(r"(?<![\w\])])\[\^?([\w.:-]{1,64}(?:\s*,\s*\^?[\w.:-]{1,64}){0,19})\](?!\()")
"""Not behind a word, as in ``a[0]``, and not a link, as in ``[text](url)``."""
_NUMBER = re.compile(r"\d{1,3}\Z")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_END = re.compile(
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)\]]))(?:\s*\[[^\]\n]{1,80}\](?!\())*\s+(?=\S)|\n+|(?<=[。！？])"
)
_SHORT = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|nr|fig|mr|mrs|ms|dr|prof|st|inc|ltd)|\b[A-Z])\.\Z", re.I
)
_LEAST_WORDS = 3


class Marker(NamedTuple):
    """A mark in a text that names a source."""

    id: str
    begin: int
    end: int


class Sentence(NamedTuple):
    """One claim of a text."""

    text: str
    begin: int
    end: int


def markers(text: str, known: Iterable[str] | None = None) -> list[Marker]:
    """Return the markers of a text in order; ``[1, 2]`` are two.

    Of the ids in ``known`` each counts. Any other one counts only if it is a number below 1000, so that a
    year is none.

    >>> [marker.id for marker in markers("Seven hills [1, 2], not a[0], in [2024] [see](x).")]
    ['1', '2']
    >>> [marker.id for marker in markers("As in [doc-3].", {"doc-3"})]
    ['doc-3']
    """
    ids = frozenset(known or ())
    found = []
    for each in _MARKER.finditer(text):
        for part in each[1].split(","):
            name = part.strip().removeprefix("^")
            if name in ids or _NUMBER.match(name):
                found.append(Marker(name, each.start(), each.end()))
    return found


def sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text that claim something: at least three words, outside of code blocks.

    >>> [each.text for each in sentences("Lisbon has hills [1]. It costs 4.50 EUR, e.g. by bus. Yes.")]
    ['Lisbon has hills [1].', 'It costs 4.50 EUR, e.g. by bus.']
    """
    found, begin = [], 0
    plain = _FENCE.sub(lambda code: "\n" * len(code[0]), text)
    for end in [*_END.finditer(plain), None]:
        if end is not None and "\n" not in end[0] and _SHORT.search(plain[begin : end.start()]):
            continue
        # A marker behind the full stop belongs to the sentence before it.
        stop = len(plain) if end is None else end.start() + len(end[0].rstrip())
        whole = plain[begin:stop]
        at = begin + len(whole) - len(whole.lstrip())
        kept = whole.strip()
        if len(re.findall(r"\w+", kept)) >= _LEAST_WORDS or re.search(r"[\u3040-\u9fff]{4}", kept):
            found.append(Sentence(kept, at, at + len(kept)))
        begin = stop if end is None else end.end()
    return found
