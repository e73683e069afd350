"""Compare two requests leaf by leaf: where they differ, how similar they are, and likely causes.

Used to find the nearest recorded request and to report the first difference. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...wire.json_values import canonical

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


# Why two texts may differ unintentionally: clocks, random ids, addresses, the order of a set.
#
# Hints, not verdicts; the likeliest comes first.

CLOCK, RANDOM_ID, ORDER, ADDRESS, TEMP_PATH = "clock", "random-id", "order", "address", "temp-path"
MODEL, FIELD, PROMPT, RACE = "model", "field", "prompt", "race"
ANSWER, LOSSY, STREAM, TOOL_RESULT = "answer", "lossy", "stream", "tool-result"
EQUAL_AT_ONCE, NOT_NAMED = "equal-at-once", "not-named"

WORDS = {
    CLOCK: "a time or date is in the text: take it from reenact.now(), or record with --ambient MODULE",
    RANDOM_ID: "a random id is in the text: take it from reenact.uuid(), or record with --ambient MODULE",
    ORDER: "the same things in another order: a set, or a dict built in another order; sort it",
    ADDRESS: "the address of an object is in the text: its repr() was formatted into it",
    TEMP_PATH: "the path of a temporary file is in the text",
    MODEL: "the request names another model",
    FIELD: "only one side has this field: a setting was changed, or another SDK version sends it",
    PROMPT: "the text comes from your code: a prompt or its template was changed",
    RACE: "these are the recorded calls in another order: steps were swapped, or they race",
    ANSWER: "the differing text came from an earlier answer: look for the first difference before this one",
    LOSSY: "the recording holds only a part of this request, so nothing matches it; "
    "pass --blobs DIR if its long texts are in another folder",
    TOOL_RESULT: "this is the result of a tool that ran again and returned something else; "
    "decorated with @tap.tool and recorded again, it returns its recorded result",
    EQUAL_AT_ONCE: "the threads and tasks that made these requests are not those that make them now; "
    "if that is meant, record again",
    NOT_NAMED: "the recording does not name the thread or task that made each request, as none did before "
    'format 1.1: rerecord it, with reenact run or mode="rerecord"',
    STREAM: "one side requests a stream, the other a plain answer",
}

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


def likely_causes(difference: Difference, recorded_whole: Any, now_whole: Any) -> list[str]:
    """Return hints for the first difference of two requests, the likeliest first."""
    path, recorded, now = difference
    found: list[str] = []
    if path[:1] == ("stream",):
        return [STREAM]
    if path[:1] == ("model",):
        found.append(MODEL)
    if _is_reordered(path, recorded_whole, now_whole):
        found.append(ORDER)
    elif type(recorded) is str and type(now) is str:
        found += _of_texts(recorded, now)
    elif recorded is MISSING or now is MISSING:
        found.append(FIELD if len(path) == 1 else PROMPT)
    return list(dict.fromkeys(found))


def _of_texts(recorded: str, now: str) -> list[str]:
    before, after = changed_part(recorded, now)
    found = [name for name, pattern in _PATTERNS if pattern.search(before) and pattern.search(after)]
    old, new = re.findall(r"\w+", before), re.findall(r"\w+", after)
    if len(old) > 1 and sorted(old) == sorted(new):
        found.append(ORDER)
    return found


def _is_reordered(path: tuple[str | int, ...], recorded: Any, now: Any) -> bool:
    """True if a list on the path has the same elements on both sides."""
    for part in path:
        if type(recorded) is list and type(now) is list and recorded != now:
            if sorted(map(canonical, recorded)) == sorted(map(canonical, now)):
                return True
        try:
            recorded, now = recorded[part], now[part]
        except (LookupError, TypeError):
            return False
    return False


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
