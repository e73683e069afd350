"""Verbs that move: forward, back, into and out of calls, to an address, to a text."""

from __future__ import annotations

from collections.abc import Callable

from ...debugger.breakpoints import unquoted
from ...debugger.stepper import Move, Stepper
from ...errors import UsageError
from .session import Do, Group

MOVE, REVERSE, WHERE = Group("move"), Group("reverse"), Group("where")

_MOST = 1_000_000


def number(text: str, default: int | None = None) -> int:
    """Return a count as typed."""
    if not text and default is not None:
        return default
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= _MOST):
        raise UsageError(f"{text!r} is not a number" if text else "a number is needed")
    return int(text)


def _times(go: Callable[[int], Move], direction: int, argument: str) -> Move:
    move, has_moved = Move(False), False
    for _ in range(number(argument, 1)):
        move = go(direction)
        has_moved = has_moved or move.moved
        if not move.moved:
            break
    return move._replace(moved=has_moved)


def _jump(stepper: Stepper, argument: str) -> Move:
    if not argument:
        raise UsageError("j needs to know where", hint="12, turn:3, call:a1b2, @error, @mark, %50, #7 or -1")
    return stepper.go(argument)._replace(moved=True)


def _last(stepper: Stepper, argument: str) -> Move:
    if argument:
        return stepper.to_last_change(argument)
    stepper.refresh()
    return stepper.go("last")._replace(moved=True)


_MOVES: tuple[tuple[Group, str, str, str, Callable[[Stepper, str], Move]], ...] = (
    (MOVE, "n next", "[COUNT]", "the next event of this lane",
     lambda stepper, argument: _times(stepper.next, 1, argument)),
    (MOVE, "s step", "[COUNT]", "the next event, whichever lane: into sub-agents and retries",
     lambda stepper, argument: _times(stepper.step, 1, argument)),
    (MOVE, "r return", "", "out: to the end of the call that begins here, else of the one around this event",
     lambda stepper, _: stepper.out()),
    (MOVE, "c cont continue", "", "continue to the next breakpoint or change of a watch, else to the end",
     lambda stepper, _: stepper.run()),
    (MOVE, "unt until", "[ADDRESS]", "continue to an address; without one to this lane's next turn",
     lambda stepper, argument: stepper.until(argument or None)),
    (MOVE, "j jump", "ADDRESS", "jump: 12, turn:3, call:a1b2, @error, @mark, %50, -1 (last), #7 (index)",
     _jump),
    (MOVE, "first", "", "the first event", lambda stepper, _: stepper.go("first")._replace(moved=True)),
    (MOVE, "last", "[PATH]", "the last event; with PATH back to where that value last changed", _last),
    (MOVE, "/", "REGEX", "the next event with a text that matches; alone it repeats the search",
     lambda stepper, argument: stepper.find(unquoted(argument), 1)),
    (MOVE, "?", "REGEX", "the same backwards",
     lambda stepper, argument: stepper.find(unquoted(argument), -1)),
    (REVERSE, "rn n-", "[COUNT]", "the event before this one in its lane",
     lambda stepper, argument: _times(stepper.next, -1, argument)),
    (REVERSE, "rs s-", "[COUNT]", "the event before this one, whichever lane",
     lambda stepper, argument: _times(stepper.step, -1, argument)),
    (REVERSE, "rc c-", "", "back to the previous breakpoint or change", lambda stepper, _: stepper.run(-1)),
    (REVERSE, "back", "", "back to where the cursor was before", lambda stepper, _: stepper.retrace(-1)),
    (REVERSE, "fwd", "", "forward again after back", lambda stepper, _: stepper.retrace(1)),
    (WHERE, "u up", "", "to the call in which this one was made", lambda stepper, _: stepper.up()),
    (WHERE, "d down", "", "to the first call made in this one", lambda stepper, _: stepper.down()),
)  # fmt: skip
"""Each verb with the move of the stepper that it makes."""


def _verb(move: Callable[[Stepper, str], Move]) -> Do:
    return lambda session, argument: session.moved(move(session.stepper, argument))


for group, names, usage, help_text, move in _MOVES:
    group.verb(names, usage, help_text)(_verb(move))
