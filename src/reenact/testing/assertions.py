"""Assertions on what a run did: its tools, errors, costs. A failure shows the run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..debugger.debugger import Debugger
from ..errors import UsageError
from ..recording.calls import TOOL, Call
from ..wire.json_values import call_text
from .drive import Rerun
from .reenactment import Recorded, Reenactment

Run = Recorded | Reenactment | Rerun | Debugger | str | os.PathLike[str]
_SHOWN = 20

ORDERED, ANY_ORDER, SUBSET, SUBSEQUENCE = "ordered", "any-order", "subset", "subsequence"
HOWS = {
    ORDERED: "exactly these calls, in this order",
    ANY_ORDER: "exactly these calls, in any order",
    SUBSET: "at least these calls, in any order",
    SUBSEQUENCE: "at least these calls, in this order",
}


def tools_of(run: Run) -> list[tuple[str, Any]]:
    """Return (name, arguments) of the tools a run called, in the order it called them."""
    return [(call.tool or "", call.args) for call in _debugger(run).calls("tool")]


def assert_trajectory(run: Run, expected: Sequence[Any], how: str = ORDERED) -> None:
    """Fail unless a run called these tools: each a name, or a name and required arguments.

    ``how``: ``ordered`` exactly these in this order, ``any-order`` exactly these, ``subset`` at least these,
    ``subsequence`` at least these, in this order.
    """
    wanted = parse_expected(expected)
    wrong = difference(tools_of(run), wanted, how)
    if wrong is not None:
        raise AssertionError(wrong + _see(run))


def assert_no_errors(run: Run) -> None:
    """Fail if anything in a run failed, except a call that was retried with success."""
    debugger = _debugger(run)
    errors = [event.summary() for event in debugger.errors()]
    if debugger.recording.error is not None and not errors:
        errors = [f"the run itself: {debugger.recording.error}"]
    if errors:
        listed = "\n  ".join(errors[:_SHOWN])
        raise AssertionError(f"{len(errors)} errors:\n  {listed}{_see(run)}")


def assert_within(
    run: Run,
    *,
    turns: int | None = None,
    tool_calls: int | None = None,
    tokens: int | None = None,
    usd: float | None = None,
) -> None:
    """Fail if a run exceeds a limit; an unknown cost exceeds any."""
    summary = _debugger(run).summary()
    totals, cost = summary.totals, summary.cost
    over = [
        f"{used:,} {what}, {allowed:,} allowed"
        for what, used, allowed in (
            ("turns", totals.turns, turns),
            ("tool calls", totals.tool_calls, tool_calls),
            ("tokens", totals.total_tokens, tokens),
        )
        if allowed is not None and used > allowed
    ]
    if usd is not None and (cost.unknown_calls or float(cost.usd) > usd):
        over.append(f"cost {cost.text()}, ${usd:g} allowed")
    if over:
        raise AssertionError("; ".join(over) + _see(run))


def assert_tools_alike(now: Run, recorded: Run | None = None) -> None:
    """Fail unless the tools returned the recorded results, or results of the same shape.

    Additional keys are fine. ``now`` is a ``reenact_run``, or a run with its recording as second argument.
    """
    if recorded is None:
        if not isinstance(now, Reenactment):
            raise UsageError("a run without its recording", hint="assert_tools_alike(run, recording)")
        recorded = now.recorded
    then = [each for each in _debugger(recorded).calls(TOOL) if each.end is not None]
    wrong = []
    for ran in _debugger(now).calls(TOOL):
        pair = next((each for each in then if (each.tool, each.args) == (ran.tool, ran.args)), None)
        if pair is None:
            continue
        then.remove(pair)
        name = f"{ran.tool}({json.dumps(ran.args)[:200]})"
        if (ran.error is None) != (pair.error is None):
            wrong.append(f"{name}: then {_outcome(pair)}, now {_outcome(ran)}")
        else:
            wrong += [f"{name}{each}" for each in unlike(pair.result, ran.result)]
    wrong += [f"{each.tool}({json.dumps(each.args)[:200]}): was not called" for each in then]
    if wrong:
        raise AssertionError("tools returned something else than recorded:\n  " + "\n  ".join(wrong))


def unlike(then: Any, now: Any, path: str = "") -> list[str]:
    """Return where a value's shape differs from the recorded one: types, missing keys, an empty list."""
    if isinstance(then, dict) and isinstance(now, dict):
        gone = [f"{path}.{key}: is missing" for key in then if key not in now]
        return gone + [
            each for key in then if key in now for each in unlike(then[key], now[key], f"{path}.{key}")
        ]
    if isinstance(then, list) and isinstance(now, list):
        if then and now:
            return unlike(then[0], now[0], f"{path}[0]")
        return [f"{path}: was a list of {len(then)}, is empty"] if then else []
    numbers = (int, float)
    alike = type(then) is type(now) or (type(then) in numbers and type(now) in numbers)
    return [] if alike else [f"{path}: was {type(then).__name__}, is {type(now).__name__}"]


def _outcome(call: Call) -> str:
    return "it returned a result" if call.error is None else f"it raised {call.error}"


def _debugger(run: Run) -> Debugger:
    if isinstance(run, Recorded):
        return run.debugger
    if isinstance(run, Reenactment | Rerun):
        return run.run
    return run if isinstance(run, Debugger) else Debugger.load(run)


def _see(run: Run) -> str:
    debugger = _debugger(run)
    shown = [event.summary() for event in debugger.all()[:_SHOWN]]
    more = debugger.count() - len(shown)
    return "\nthe run:\n  " + "\n  ".join([*shown, *([f"… {more} more events"] if more else [])])


# Which of the expected calls were made: a comparison of lists.

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
