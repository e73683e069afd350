"""Compare two requests leaf by leaf: where they differ, how similar they are, and likely causes.

Used to find the nearest recorded request and to report the first difference. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from .json_values import canonical

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
"""Keys reported first; the others follow by name."""
_WORD = re.compile(r"\w+|[^\w\s]")
_MOST_WORDS = 2_000
_MAX_DEPTH = 200
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "(absent)"})()
"""Stands for a value that one side lacks."""


class Difference(NamedTuple):
    """One place where two values differ."""

    path: tuple[str | int, ...]
    recorded: Any
    now: Any

    @property
    def pointer(self) -> str:
        """The path as text: ``messages[3].content``."""
        text = "".join(f"[{part}]" if type(part) is int else f".{part}" for part in self.path)
        return text.removeprefix(".") or "(all of it)"


def differences(recorded: Any, now: Any) -> Iterator[Difference]:
    """Yield the places where two JSON values differ, the most important first."""
    return _differ((), recorded, now)


def _differ(path: tuple[str | int, ...], recorded: Any, now: Any) -> Iterator[Difference]:
    if type(recorded) is dict and type(now) is dict and len(path) < _MAX_DEPTH:
        for key in sorted(recorded.keys() | now.keys(), key=_rank):
            before, after = recorded.get(key, MISSING), now.get(key, MISSING)
            if before is MISSING or after is MISSING:
                yield Difference((*path, key), before, after)
            else:
                yield from _differ((*path, key), before, after)
    elif type(recorded) is list and type(now) is list and len(path) < _MAX_DEPTH:
        yield from _differ_lists(path, recorded, now)
    elif type(recorded) is not type(now) or recorded != now:
        yield Difference(path, recorded, now)


def _differ_lists(path: tuple[str | int, ...], recorded: list[Any], now: list[Any]) -> Iterator[Difference]:
    shorter = min(len(recorded), len(now))
    tail = 0  # an element inserted or removed in the middle must not make all that follow differ
    while len(recorded) != len(now) and tail < shorter and recorded[-1 - tail] == now[-1 - tail]:
        tail += 1
    before, after = recorded[: len(recorded) - tail], now[: len(now) - tail]
    for at in range(max(len(before), len(after))):
        if at >= len(before):
            yield Difference((*path, at), MISSING, after[at])
        elif at >= len(after):
            yield Difference((*path, at), before[at], MISSING)
        else:
            yield from _differ((*path, at), before[at], after[at])


def _rank(key: Any) -> tuple[int, str]:
    return (_FIRST.index(key) if key in _FIRST else len(_FIRST), str(key))


def likeness(recorded: Any, now: Any) -> float:
    """Return how similar two values are, from 0 to 1: the share of words found in the same leaves."""
    total = _weight(recorded) + _weight(now)
    lost = 0.0
    for _, before, after in differences(recorded, now):
        if type(before) is str and type(after) is str:
            old, new = _words(before), _words(after)
            lost += old.total() + new.total() - 2 * (old & new).total()
        else:
            lost += sum(_weight(side) for side in (before, after) if side is not MISSING)
    return max(0.0, 1 - lost / total) if total else 1.0


def _weight(value: Any, depth: int = 0) -> int:
    if type(value) is str:
        return min(_MOST_WORDS, len(_WORD.findall(value[: 8 * _MOST_WORDS])))
    if depth > _MAX_DEPTH:
        return 1
    if type(value) is dict:
        return sum(_weight(item, depth + 1) for item in value.values())
    return sum(_weight(item, depth + 1) for item in value) if type(value) is list else 1


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text[: 8 * _MOST_WORDS])[:_MOST_WORDS])


CLOCK, RANDOM_ID, ADDRESS, TEMP_PATH = "clock", "random-id", "address", "temp-path"

_PATTERNS = (
    (CLOCK, re.compile(r"\d{4}-\d\d-\d\d|\b\d{1,2}:\d\d(:\d\d)?\b|\b\d{1,2} [A-Z][a-z]{2,8} \d{4}")),
    (CLOCK, re.compile(r"\b1[5-9]\d{8}(\d{3}|\.\d+)?\b")),
    (RANDOM_ID, re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    (RANDOM_ID, re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b")),
    (ADDRESS, re.compile(r"\b0x[0-9a-fA-F]{6,}\b")),
    (TEMP_PATH, re.compile(r"/(?:tmp|var/folders|private/tmp)/\S+|\\Temp\\\S+")),
)
_AROUND = 24


def changed_part(recorded: str, now: str) -> tuple[str, str]:
    """Return the middle of two texts without their common ends, in whole words."""
    begin, most = 0, min(len(recorded), len(now))
    while begin < most and recorded[begin] == now[begin]:
        begin += 1
    end = 0
    while end < most - begin and recorded[-1 - end] == now[-1 - end]:
        end += 1
    while begin and not recorded[begin - 1].isspace():
        begin -= 1
    while end and not recorded[len(recorded) - end].isspace():
        end -= 1
    return recorded[begin : len(recorded) - end], now[begin : len(now) - end]


def volatile_parts(before: str, after: str) -> list[str]:
    """Return what both texts hold that is often another one in each run: a clock, an id, an address."""
    found = [name for name, pattern in _PATTERNS if pattern.search(before) and pattern.search(after)]
    return list(dict.fromkeys(found))


def excerpt(value: Any, compared: Any) -> str:
    """Return a value as one line for a report: of a long text, the part that differs from ``compared``."""
    if value is MISSING:
        return "(absent)"
    if type(value) is not str:
        text = canonical(value)
        return text if len(text) <= 160 else text[:157] + "…"
    if len(value) <= 160 or type(compared) is not str:
        return repr(value if len(value) <= 160 else value[:157] + "…")
    part = changed_part(value, compared)[0] or value
    at = max(0, value.find(part) - _AROUND)
    shown = value[at : at + 150]
    return repr(("…" if at else "") + shown + ("…" if at + 150 < len(value) else ""))
