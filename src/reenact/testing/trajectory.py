"""Compare the tools that a run called with the expected ones.

An expected call is a tool's name, or a name and arguments that the call must have among its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import UsageError
from ..wire.json_values import call_text

ORDERED, ANY_ORDER, SUBSET, SUBSEQUENCE = "ordered", "any-order", "subset", "subsequence"
HOWS = {
    ORDERED: "exactly these calls, in this order",
    ANY_ORDER: "exactly these calls, in any order",
    SUBSET: "at least these calls, in any order",
    SUBSEQUENCE: "at least these calls, in this order",
}
_LONGEST = 120


class Expected(NamedTuple):
    """One expected call."""

    tool: str
    args: Mapping[str, Any] | None = None
    """Required arguments; None for any."""

    def fits(self, tool: str, args: Any) -> bool:
        """True if a call matches."""
        return tool == self.tool and (self.args is None or _is_among(self.args, args))

    def __str__(self) -> str:
        return self.tool if self.args is None else _short(call_text(self.tool, self.args))


ToolCall = tuple[str, Any]
"""Name and arguments of a call."""


def parse_expected(expected: Sequence[Any]) -> list[Expected]:
    """Return the expected calls of a list of names, or pairs of name and arguments."""
    if isinstance(expected, str) or not isinstance(expected, Sequence):
        raise UsageError(
            f"expected calls are a list, not {expected!r}", hint='for example ["search", "book"]'
        )
    found = []
    for each in expected:
        if isinstance(each, str):
            found.append(Expected(each))
        elif isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], Mapping):
            found.append(Expected(*each))
        else:
            hint = 'a tool\'s name, or a name and arguments: ("search", {"q": "Rome"})'
            raise UsageError(f"an expected call cannot be {each!r}", hint=hint)
    return found


def difference(calls: Sequence[ToolCall], expected: Sequence[Expected], how: str) -> str | None:
    """Return the difference to the expected calls as text of several lines; None without one."""
    if how not in HOWS:
        raise UsageError(f"how={how!r}", hint=f"how is one of: {', '.join(HOWS)}")
    in_order = how in (ORDERED, SUBSEQUENCE)
    pairs = _aligned(calls, expected) if in_order else _matched(calls, expected)
    is_missing = len(pairs) < len(expected)
    is_over = how in (ORDERED, ANY_ORDER) and len(pairs) < len(calls)
    if not is_missing and not is_over:
        return None
    rows = _in_order(calls, expected, pairs) if in_order else _side_by_side(calls, expected, pairs)
    lines = "\n".join(rows)
    return f"expected {HOWS[how]}:\n{lines}\n  (- expected and not called, + called and not expected)"


def _is_among(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            key in found and _is_among(value, found[key]) for key, value in wanted.items()
        )
    return bool(wanted == found)


def _aligned(calls: Sequence[ToolCall], expected: Sequence[Expected]) -> dict[int, int]:
    """Pair expected calls with calls, as many as possible without changing the order."""
    longest = [[0] * (len(calls) + 1) for _ in range(len(expected) + 1)]
    for at in range(len(expected) - 1, -1, -1):
        for of in range(len(calls) - 1, -1, -1):
            fits = expected[at].fits(*calls[of])
            longest[at][of] = (
                longest[at + 1][of + 1] + 1 if fits else max(longest[at + 1][of], longest[at][of + 1])
            )
    pairs, at, of = {}, 0, 0
    while at < len(expected) and of < len(calls):
        if expected[at].fits(*calls[of]):
            pairs[at] = of
            at, of = at + 1, of + 1
        elif longest[at + 1][of] >= longest[at][of + 1]:
            at += 1
        else:
            of += 1
    return pairs


def _matched(calls: Sequence[ToolCall], expected: Sequence[Expected]) -> dict[int, int]:
    """Pair expected calls with calls in any order, as many as possible."""
    taken: dict[int, int] = {}

    def place(at: int, tried: set[int]) -> bool:
        for of, call in enumerate(calls):
            if of not in tried and expected[at].fits(*call):
                tried.add(of)
                if of not in taken or place(taken[of], tried):
                    taken[of] = at
                    return True
        return False

    for at in range(len(expected)):
        place(at, set())
    return {at: of for of, at in taken.items()}


def _in_order(calls: Sequence[ToolCall], expected: Sequence[Expected], pairs: dict[int, int]) -> list[str]:
    rows, of = [], 0
    for at, each in enumerate(expected):
        upto = pairs.get(at, of)
        rows += [f"  + {_shown(call)}" for call in calls[of:upto]]
        rows.append(f"    {_shown(calls[upto])}" if at in pairs else f"  - {each}")
        of = upto + 1 if at in pairs else of
    return rows + [f"  + {_shown(call)}" for call in calls[of:]]


def _side_by_side(
    calls: Sequence[ToolCall], expected: Sequence[Expected], pairs: dict[int, int]
) -> list[str]:
    used = set(pairs.values())
    rows = [f"    {_shown(call)}" if of in used else f"  + {_shown(call)}" for of, call in enumerate(calls)]
    return rows + [f"  - {each}" for at, each in enumerate(expected) if at not in pairs]


def _shown(call: ToolCall) -> str:
    return _short(call_text(*call))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
