"""What stood in a run before a moment: words, numbers and ids that a person, a prompt or a tool brought in.

What the model wrote itself is no source. Values are compared by their words, so that ``mia_li_3668`` stands
in "Mia Li, 3668": a value counts as unknown only if a part of it stands nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ...wire.json_values import as_text

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]{0,20}(?:\.\d{1,20})?(?![\w])")
TOKEN = re.compile(r"[\w.@+/-]+")
"""What stands together and may be an id; expressions here take no longer than a text is long."""
_MOST_TEXT = 64 << 20
"""Characters that are read of one run; then nothing counts as unknown any more."""
_MOST_NEAR = 2000
_STEM = 4
_LONGEST_ID = 80
_STAND_IN = re.compile(r'<redacted:|"\$(?:cut|hash|none|blob)"')
"""Where a value is not in the trace as it was."""


class KnownValues:
    """Words, numbers and ids that were there so far."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.numbers: set[float] = set()
        self.is_complete = True
        """False once something was not recorded, or not as it was: then nothing can be called unknown."""
        self._ids: dict[int, dict[str, None]] = {}
        self._stems: set[str] = set()
        self._totals: dict[str, None] = {}
        self._size = 0

    def add(self, value: Any, *, is_spoken: bool = True) -> None:
        """Take in a text, or any JSON value; ``is_spoken``: it is part of the conversation."""
        text = as_text(value)
        self._size += len(text)
        if self._size > _MOST_TEXT or _STAND_IN.search(text):
            self.is_complete = False
            return
        lower = text.lower()
        words = _WORD.findall(lower)
        self.words.update(words)
        if is_spoken:
            self._stems.update([word[:_STEM] for word in words])
        for found in _NUMBER.findall(text):
            self.numbers.add(_as_number(found))
            if "," in found:
                self.words.add(found.replace(",", ""))
        for found in TOKEN.findall(lower):
            if _may_be_id(found):
                alike = self._ids.setdefault(len(found := found.strip("./-+")), {})
                if len(alike) < _MOST_NEAR:
                    alike[found] = None

    def has(self, value: str) -> bool:
        """True if all words of a text stood somewhere."""
        return all(word in self.words for word in _WORD.findall(value.lower()))

    def speaks_of(self, verb: str) -> bool:
        """True if a form of a verb was part of the conversation."""
        return verb[:_STEM] in self._stems

    def has_number(self, value: float) -> bool:
        return value in self.numbers or -value in self.numbers or str(value).removesuffix(".0") in self.words

    def nearest(self, value: str) -> str | None:
        """Return a known id that differs in one or two characters, or in their order."""
        lower = value.lower()
        for size in (len(lower), len(lower) - 1, len(lower) + 1):
            for known in self._ids.get(size, ()):
                if known != lower and lower not in known and known not in lower and _is_near(known, lower):
                    return known
        return None

    def add_totals(self, value: Any) -> None:
        """Take in the sums of the numbers under one name in a result."""
        by_name: dict[str, list[float]] = {}
        for name, each in leaves(value):
            if isinstance(each, int | float):
                by_name.setdefault(name, []).append(each)
        for numbers in by_name.values():
            if len(numbers) > 1:
                self.numbers.add(total := round(sum(numbers), 4))
                self._totals[str(total).removesuffix(".0")] = None

    def misread(self, word: str) -> str | None:
        """Return a known number, or total, with the same digits in another order, or one digit another."""
        bare = word.replace(",", "")
        if sum(char.isdigit() for char in bare) < 2:
            return None
        for known in self._totals:
            if len(known) == len(bare) >= 4 and sum(a != b for a, b in zip(known, bare, strict=True)) == 1:
                return known
        if "." in bare:
            for known in self._ids.get(len(bare), ()):
                if known != bare and sorted(known) == sorted(bare) and known.replace(".", "").isdigit():
                    return known
        return None

    def is_sum(self, value: float) -> bool:
        """True if a number follows from two known ones, or from a few added up."""
        numbers = [each for each in self.numbers if each][:400]
        near = {round(each, 2) for each in numbers}
        for each in numbers:
            if (
                round(value - each, 2) in near
                or round(value + each, 2) in near
                or round(value / each, 2) in near
            ):
                return True
            if round(value / each, 4).is_integer() and 1 < value / each <= 100:
                return True
        return False


def _is_near(known: str, value: str) -> bool:
    if len(known) == len(value):
        differ = sum(one != other for one, other in zip(known, value, strict=True))
        return differ == 1 or (differ == 2 and (sorted(known) == sorted(value) or len(value) >= 8))
    short, long = sorted((known, value), key=len)
    return len(short) >= 4 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


def _as_number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


_DATE = re.compile(
    r"\d{4}-\d\d(?:-\d\d)?(?:[T ][\d:.+Z-]*)?\Z|\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?\Z|"
    r"\d{1,2}/\d{1,2}/\d{2,4}\Z|[+-]?\d{1,4}(?:\.\d+)?\Z"
)


def is_id(text: str) -> bool:
    """True for what reads like an id, an address or a number of an account; not for dates and small numbers.

    >>> [is_id(text) for text in ("ORD-1042", "mia@example.com", "2024-05-20", "hotels in Rome", "42")]
    [True, True, False, False, False]
    """
    if not 4 <= len(text) <= 80 or any(char.isspace() for char in text) or _DATE.match(text):
        return False
    if text.isalnum() and sum(char.isdigit() for char in text) < 3 and not text[0].isupper():
        return False  # 19th, 10am, utf8
    return (
        TOKEN.fullmatch(text) is not None
        and _may_be_id(text)
        and not text.startswith(("http://", "https://", "/", "./"))
    )


def _may_be_id(token: str) -> bool:
    return len(token) <= _LONGEST_ID and ("@" in token or any(char.isdigit() for char in token))


def leaves(value: Any, path: str = "", depth: int = 8) -> Iterator[tuple[str, Any]]:
    """Yield the single values of JSON with the name under which each stands; at most some hundreds."""
    if isinstance(value, dict) and depth:
        for name, each in list(value.items())[:100]:
            yield from leaves(each, str(name), depth - 1)
    elif isinstance(value, list) and depth:
        for each in value[:50]:
            yield from leaves(each, path, depth - 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield path, value
