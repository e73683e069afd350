"""Verbs that move: forward, back, into and out of calls, to an address, to a text."""

from __future__ import annotations

from ...debugger.breakpoints import unquoted
from ...debugger.stepper import Move
from ...errors import UsageError
from .session import Session
from .verb import Do, Verb

MOVE, REVERSE = "move", "reverse"
_MOST = 1_000_000


def _times(direction: int, *, in_lane: bool) -> Do:
    def do(session: Session, argument: str) -> None:
        stepper, moved = session.stepper, False
        move = Move(False)
        for _ in range(number(argument, 1)):
            move = stepper.next(direction) if in_lane else stepper.step(direction)
            moved = moved or move.moved
            if not move.moved:
                break
        session.moved(move._replace(moved=moved))

    return do


def number(text: str, default: int | None = None) -> int:
    """Return a count as typed."""
    if not text and default is not None:
        return default
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= _MOST):
        raise UsageError(f"{text!r} is not a number" if text else "a number is needed")
    return int(text)


def _plain(verb: str, move: str, *arguments: int) -> Do:
    def do(session: Session, argument: str) -> None:
        nothing(verb, argument)
        session.moved(getattr(session.stepper, move)(*arguments))

    return do


def nothing(verb: str, argument: str) -> None:
    """Raise if something follows a verb that takes nothing."""
    if argument:
        raise UsageError(f"{verb} takes nothing after it", hint=f"h {verb} explains it")


def _until(session: Session, argument: str) -> None:
    session.moved(session.stepper.until(argument or None))


def _jump(session: Session, argument: str) -> None:
    if not argument:
        raise UsageError("j needs to know where", hint="12, turn:3, call:a1b2, @error, @mark, %50, #7 or -1")
    move = session.stepper.go(argument)
    session.moved(move._replace(moved=True))


def _first(session: Session, argument: str) -> None:
    nothing("first", argument)
    session.moved(session.stepper.go("first")._replace(moved=True))


def _last(session: Session, argument: str) -> None:
    if argument:
        session.moved(session.stepper.to_last_change(argument))
        return
    session.stepper.refresh()
    session.moved(session.stepper.go("last")._replace(moved=True))


def _find(direction: int) -> Do:
    def do(session: Session, argument: str) -> None:
        session.moved(session.stepper.find(unquoted(argument), direction))

    return do


VERBS = (
    Verb("n", MOVE, "[COUNT]", "the next event of this lane", _times(1, in_lane=True), ("next",)),
    Verb(
        "s",
        MOVE,
        "[COUNT]",
        "the next event, whichever lane: into sub-agents and retries",
        _times(1, in_lane=False),
        ("step",),
    ),
    Verb(
        "r",
        MOVE,
        "",
        "out: to the end of the call that begins here, else of the one around this event",
        _plain("r", "out"),
        ("return",),
    ),
    Verb(
        "c",
        MOVE,
        "",
        "continue to the next breakpoint or change of a watch, else to the end",
        _plain("c", "run"),
        ("cont", "continue"),
    ),
    Verb(
        "unt",
        MOVE,
        "[ADDRESS]",
        "continue to an address; without one to this lane's next turn",
        _until,
        ("until",),
    ),
    Verb(
        "j",
        MOVE,
        "ADDRESS",
        "jump: 12, turn:3, call:a1b2, @error, @mark, %50, -1 (last), #7 (index)",
        _jump,
        ("jump",),
    ),
    Verb("first", MOVE, "", "the first event", _first),
    Verb("last", MOVE, "[PATH]", "the last event; with PATH back to where that value last changed", _last),
    Verb("/", MOVE, "REGEX", "the next event with a text that matches; alone it looks again", _find(1)),
    Verb("?", MOVE, "REGEX", "the same backwards", _find(-1)),
    Verb(
        "rn", REVERSE, "[COUNT]", "the event before this one in its lane", _times(-1, in_lane=True), ("n-",)
    ),
    Verb(
        "rs",
        REVERSE,
        "[COUNT]",
        "the event before this one, whichever lane",
        _times(-1, in_lane=False),
        ("s-",),
    ),
    Verb("rc", REVERSE, "", "back to the breakpoint or change before", _plain("rc", "run", -1), ("c-",)),
    Verb("back", REVERSE, "", "where the cursor was before", _plain("back", "retrace", -1)),
    Verb("fwd", REVERSE, "", "forward again after back", _plain("fwd", "retrace", 1)),
)
