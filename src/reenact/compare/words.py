"""Two texts word by word: which words are gone, which are new, and what stayed around them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

SAME, GONE, NEW = "same", "gone", "new"

_WORD = re.compile(r"\s*(?:\w+|[^\w\s])|\s+\Z")
"""A word or a sign, with the blanks before it."""

_LONGEST = 20_000
"""Characters of a side that are compared word by word; in a longer text the lines are compared first."""

_MOST_PAIRS = 200_000
"""Pairs of equal words or lines; with more of them, which would take seconds, the texts count as unlike."""


class Words(NamedTuple):
    """A stretch of text that is in both texts, only in the earlier or only in the later one."""

    sort: str
    """``same``, ``gone`` or ``new``."""
    text: str


def word_changes(old: str, new: str) -> list[Words]:
    """Return both texts as stretches: those that are not new make up the old text, those not gone the new.

    >>> [tuple(words) for words in word_changes("the red car", "the blue car")]
    [('same', 'the '), ('gone', 'red'), ('new', 'blue'), ('same', ' car')]
    """
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    start = _word_start(old, new, start)
    end = _word_start(old[start:][::-1], new[start:][::-1], end)
    middle = _compared(old[start : len(old) - end], new[start : len(new) - end])
    return _joined([Words(SAME, old[:start]), *middle, Words(SAME, old[len(old) - end :])])


def similarity(old: str, new: str) -> float:
    """Return how much of two texts is the same, 0 to 1, by the words of their beginnings in any order."""
    some, others = (Counter(re.findall(r"\w+", text[:_LONGEST])) for text in (old, new))
    total = some.total() + others.total()
    return 2 * (some & others).total() / total if total else float(old == new)


def _common(old: str, new: str) -> int:
    """Return how many characters two texts begin with in common; halving, so that all compares are in C."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _word_start(old: str, new: str, at: int) -> int:
    """Go back from a place to where its word begins in both texts, so that no word is cut in two."""
    while at and any(len(text) > at and text[at].isalnum() and text[at - 1].isalnum() for text in (old, new)):
        at -= 1
    return at


def _compared(old: str, new: str) -> Iterator[Words]:
    if max(len(old), len(new)) <= _LONGEST:
        return _aligned(_WORD.findall(old), _WORD.findall(new), _as_words)
    return _aligned(old.splitlines(keepends=True), new.splitlines(keepends=True), _as_lines)


Within = Callable[[Sequence[str], Sequence[str]], Iterator[Words]]
"""What two unequal stretches of words or lines are."""


def _aligned(old: Sequence[str], new: Sequence[str], within: Within) -> Iterator[Words]:
    some, others = [each.strip() for each in old], [each.strip() for each in new]
    if _pairs(some, others) > _MOST_PAIRS:
        yield from _as_words(old, new)
        return
    for sort, i, j, k, m in SequenceMatcher(None, some, others, autojunk=False).get_opcodes():
        if sort != "equal":
            yield from within(old[i:j], new[k:m])
            continue
        for one, other in zip(old[i:j], new[k:m], strict=True):  # the blanks may differ
            yield from [Words(SAME, one)] if one == other else _as_words([one], [other])


def _pairs(old: list[str], new: list[str]) -> int:
    often = Counter(new)
    return sum(much * often[each] for each, much in Counter(old).items())


def _as_words(old: Sequence[str], new: Sequence[str]) -> Iterator[Words]:
    return iter([Words(GONE, "".join(old)), Words(NEW, "".join(new))])


def _as_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Words]:
    before, after = "".join(old), "".join(new)
    is_long = max(len(before), len(after)) > _LONGEST
    return _as_words(old, new) if is_long else _compared(before, after)


def _joined(parts: list[Words]) -> list[Words]:
    """Join what is side by side; a blank alone between changed words counts as one of them."""
    found: list[Words] = []
    gone, new = "", ""
    for at, (sort, text) in enumerate(parts):
        is_between = (gone or new) and text.isspace() and any(each.text for each in parts[at + 1 : -1])
        if sort != SAME or is_between:
            gone += text if sort != NEW else ""
            new += text if sort != GONE else ""
        elif text:
            found += [*_changed(gone, new), Words(SAME, text)]
            gone = new = ""
    groups = groupby([*found, *_changed(gone, new)], lambda words: words.sort)
    joined = (Words(sort, "".join(words.text for words in group)) for sort, group in groups)
    return [words for words in joined if words.text]


def _changed(gone: str, new: str) -> list[Words]:
    """Return what was replaced and by what; the blanks around both are the same."""
    first = _common(gone[: len(gone) - len(gone.lstrip())], new)
    last = _common(gone[: len(gone.rstrip()) - 1 : -1] if gone.strip() else "", new[first:][::-1])
    around = gone[:first], gone[len(gone) - last :]
    gone, new = gone[first : len(gone) - last], new[first : len(new) - last]
    found = [Words(SAME, around[0]), Words(GONE, gone), Words(NEW, new), Words(SAME, around[1])]
    return [words for words in found if words.text]
