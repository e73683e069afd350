"""Whether a run called the tools it was expected to call, and where it did not.

An expected call is a tool's name, or a name and arguments that must be among the real ones.
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
    """One call that should have been made."""

    tool: str
    args: Mapping[str, Any] | None = None
    """Arguments that must be there; None for any."""

    def fits(self, tool: str, args: Any) -> bool:
        """True if a call is this one."""
        return tool == self.tool and (self.args is None or _is_among(self.args, args))

    def __str__(self) -> str:
        return self.tool if self.args is None else _short(call_text(self.tool, self.args))


Made = tuple[str, Any]
"""Name and arguments of a call that was made."""


def expected_of(given: Sequence[Any]) -> list[Expected]:
    """Return expected calls as they were told: names, or pairs of name and arguments."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise UsageError(f"expected calls are a list, not {given!r}", hint='for example ["search", "book"]')
    found = []
    for each in given:
        if isinstance(each, str):
            found.append(Expected(each))
        elif isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], Mapping):
            found.append(Expected(*each))
        else:
            hint = 'a tool\'s name, or a name and arguments: ("search", {"q": "Rome"})'
            raise UsageError(f"an expected call cannot be {each!r}", hint=hint)
    return found


def difference(made: Sequence[Made], expected: Sequence[Expected], how: str) -> str | None:
    """Return what is wrong with the calls that were made, as text of several lines; None if nothing is."""
    if how not in HOWS:
        raise UsageError(f"how={how!r}", hint=f"how is one of: {', '.join(HOWS)}")
    in_order = how in (ORDERED, SUBSEQUENCE)
    pairs = _aligned(made, expected) if in_order else _matched(made, expected)
    is_missing = len(pairs) < len(expected)
    is_over = how in (ORDERED, ANY_ORDER) and len(pairs) < len(made)
    if not is_missing and not is_over:
        return None
    rows = _in_order(made, expected, pairs) if in_order else _side_by_side(made, expected, pairs)
    told = "\n".join(rows)
    return f"expected {HOWS[how]}:\n{told}\n  (- expected and not called, + called and not expected)"


def _is_among(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            key in found and _is_among(value, found[key]) for key, value in wanted.items()
        )
    return bool(wanted == found)


def _aligned(made: Sequence[Made], expected: Sequence[Expected]) -> dict[int, int]:
    """Return which call is which expected one, as many as can be without changing the order."""
    longest = [[0] * (len(made) + 1) for _ in range(len(expected) + 1)]
    for at in range(len(expected) - 1, -1, -1):
        for of in range(len(made) - 1, -1, -1):
            fits = expected[at].fits(*made[of])
            longest[at][of] = (
                longest[at + 1][of + 1] + 1 if fits else max(longest[at + 1][of], longest[at][of + 1])
            )
    pairs, at, of = {}, 0, 0
    while at < len(expected) and of < len(made):
        if expected[at].fits(*made[of]):
            pairs[at] = of
            at, of = at + 1, of + 1
        elif longest[at + 1][of] >= longest[at][of + 1]:
            at += 1
        else:
            of += 1
    return pairs


def _matched(made: Sequence[Made], expected: Sequence[Expected]) -> dict[int, int]:
    """Return the same for any order: a call that fits several goes where it leaves most for the others."""
    taken: dict[int, int] = {}

    def place(at: int, tried: set[int]) -> bool:
        for of, call in enumerate(made):
            if of not in tried and expected[at].fits(*call):
                tried.add(of)
                if of not in taken or place(taken[of], tried):
                    taken[of] = at
                    return True
        return False

    for at in range(len(expected)):
        place(at, set())
    return {at: of for of, at in taken.items()}


def _in_order(made: Sequence[Made], expected: Sequence[Expected], pairs: dict[int, int]) -> list[str]:
    rows, of = [], 0
    for at, each in enumerate(expected):
        upto = pairs.get(at, of)
        rows += [f"  + {_shown(call)}" for call in made[of:upto]]
        rows.append(f"    {_shown(made[upto])}" if at in pairs else f"  - {each}")
        of = upto + 1 if at in pairs else of
    return rows + [f"  + {_shown(call)}" for call in made[of:]]


def _side_by_side(made: Sequence[Made], expected: Sequence[Expected], pairs: dict[int, int]) -> list[str]:
    used = set(pairs.values())
    rows = [f"    {_shown(call)}" if of in used else f"  + {_shown(call)}" for of, call in enumerate(made)]
    return rows + [f"  - {each}" for at, each in enumerate(expected) if at not in pairs]


def _shown(call: Made) -> str:
    return _short(call_text(*call))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
