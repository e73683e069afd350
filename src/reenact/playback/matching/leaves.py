"""Where two requests differ, leaf by leaf, and how much: to name the nearest one and the first difference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_FIRST = (
    "tool",
    "path",
    "stream",
    "model",
    "system",
    "instructions",
    "messages",
    "input",
    "contents",
    "args",
)
"""What a person looks at first; the rest follows by name."""
_WORD = re.compile(r"\w+|[^\w\s]")
_MOST_WORDS = 2_000
_MAX_DEPTH = 200
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "(absent)"})()
"""What stands for a value on the side where there is none."""


class Difference(NamedTuple):
    """One place where two values differ."""

    path: tuple[str | int, ...]
    recorded: Any
    now: Any

    @property
    def pointer(self) -> str:
        """The path as people write it: ``messages[3].content``."""
        text = "".join(f"[{part}]" if type(part) is int else f".{part}" for part in self.path)
        return text.removeprefix(".") or "(all of it)"


def differences(recorded: Any, now: Any) -> Iterator[Difference]:
    """Yield the places where two JSON values differ, what matters most first."""
    return _differ((), recorded, now)


def _differ(path: tuple[str | int, ...], recorded: Any, now: Any) -> Iterator[Difference]:
    if type(recorded) is dict and type(now) is dict and len(path) < _MAX_DEPTH:
        for key in sorted(recorded.keys() | now.keys(), key=_rank):
            one, other = recorded.get(key, MISSING), now.get(key, MISSING)
            if one is MISSING or other is MISSING:
                yield Difference((*path, key), one, other)
            else:
                yield from _differ((*path, key), one, other)
    elif type(recorded) is list and type(now) is list and len(path) < _MAX_DEPTH:
        yield from _differ_lists(path, recorded, now)
    elif type(recorded) is not type(now) or recorded != now:
        yield Difference(path, recorded, now)


def _differ_lists(path: tuple[str | int, ...], recorded: list[Any], now: list[Any]) -> Iterator[Difference]:
    shorter = min(len(recorded), len(now))
    tail = 0  # what was put in or taken out in the middle does not make all that follows differ
    while len(recorded) != len(now) and tail < shorter and recorded[-1 - tail] == now[-1 - tail]:
        tail += 1
    one, other = recorded[: len(recorded) - tail], now[: len(now) - tail]
    for at in range(max(len(one), len(other))):
        if at >= len(one):
            yield Difference((*path, at), MISSING, other[at])
        elif at >= len(other):
            yield Difference((*path, at), one[at], MISSING)
        else:
            yield from _differ((*path, at), one[at], other[at])


def _rank(key: Any) -> tuple[int, str]:
    return (_FIRST.index(key) if key in _FIRST else len(_FIRST), str(key))


def likeness(recorded: Any, now: Any) -> float:
    """Return how alike two values are, from 0 to 1: the share of words that stand in the same leaves."""
    total = _weight(recorded) + _weight(now)
    lost = 0.0
    for _, one, other in differences(recorded, now):
        if type(one) is str and type(other) is str:
            some, others = _words(one), _words(other)
            common = sum(min(count, others.get(word, 0)) for word, count in some.items())
            lost += sum(some.values()) + sum(others.values()) - 2 * common
        else:
            lost += sum(_weight(side) for side in (one, other) if side is not MISSING)
    return max(0.0, 1 - lost / total) if total else 1.0


def _weight(value: Any, depth: int = 0) -> int:
    if type(value) is str:
        return min(_MOST_WORDS, len(_WORD.findall(value[: 8 * _MOST_WORDS])))
    if depth > _MAX_DEPTH:
        return 1
    if type(value) is dict:
        return sum(_weight(item, depth + 1) for item in value.values())
    return sum(_weight(item, depth + 1) for item in value) if type(value) is list else 1


def _words(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in _WORD.findall(text[: 8 * _MOST_WORDS])[:_MOST_WORDS]:
        found[word] = found.get(word, 0) + 1
    return found
