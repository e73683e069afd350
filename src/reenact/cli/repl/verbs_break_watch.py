"""Verbs for breakpoints, watches, displays and marks."""

from __future__ import annotations

from ...debugger.breakpoints import Breakpoint, Watch, unquoted
from ...errors import UsageError
from ...tracefile.events.text import count
from .session import Do, Group, Session
from .verbs_move import number

BREAK, WATCH, MARK = Group("break"), Group("watch"), Group("mark")


@BREAK.verb(
    "b break",
    "[WHERE]",
    'stop at error, tool:NAME, agent:NAME or lane:NAME, loop>3, text~"regex", an address, '
    "an expression; alone it lists",
)
def _break(session: Session, argument: str) -> None:
    if argument:
        point = session.stepper.stops.add(argument)
        session.view.note(f"breakpoint {point.number}: {point.text}")
    else:
        _list(session, Breakpoint, "No breakpoints; `b error`, `b tool:NAME` or `b EXPR` sets one.")


def _list(session: Session, sort: type[Breakpoint | Watch], none: str) -> None:
    points = [point for point in session.stepper.stops if isinstance(point, sort)]
    if not points:
        session.view.note(none)
        return
    rows = [(point.number, point.text, point.hits, _how(point)) for point in points]
    session.view.rows((">#", "at" if sort is Breakpoint else "value", ">hits", ""), rows, flexible=1)


def _how(point: Breakpoint | Watch) -> str:
    words = [] if point.enabled else ["disabled"]
    if isinstance(point, Breakpoint):
        words += ["once"] if point.temporary else []
        words += [f"if {point.condition.text}"] if point.condition is not None else []
        words += [f"ignores the next {point.ignore}"] if point.ignore else []
        words += [f"then {point.commands}"] if point.commands else []
    return ", ".join(words)


@BREAK.verb("tbreak", "WHERE", "a breakpoint that is removed at its first stop")
def _tbreak(session: Session, argument: str) -> None:
    point = session.stepper.stops.add(argument, temporary=True)
    session.view.note(f"temporary breakpoint {point.number}: {point.text}")


def _numbered(argument: str, what: str) -> tuple[int, str]:
    first, _, rest = argument.partition(" ")
    if not first:
        raise UsageError(f"a number and {what} are needed", hint="b lists the breakpoints with their numbers")
    return number(first), rest.strip()


@BREAK.verb("condition", "N [EXPR]", "stop at N only if; without EXPR always")
def _condition(session: Session, argument: str) -> None:
    which, text = _numbered(argument, "an expression")
    point = session.stepper.stops.breakpoint(which)
    point.condition = session.stepper.expression(text) if text else None
    session.view.note(f"breakpoint {which} stops " + (f"if {text}" if text else "always"))


@BREAK.verb("ignore", "N COUNT", "pass over the next COUNT hits of N")
def _ignore(session: Session, argument: str) -> None:
    which, text = _numbered(argument, "a count")
    point = session.stepper.stops.breakpoint(which)
    point.ignore = 0 if text in ("", "0") else number(text)
    session.view.note(f"breakpoint {which} ignores the next {count(point.ignore, 'hit')}")


@BREAK.verb(
    "commands", "N [VERBS]", "verbs to run at that stop, to the end of the line: commands 1 ctx; p usage"
)
def _commands(session: Session, argument: str) -> None:
    which, text = _numbered(argument, "verbs")
    session.stepper.stops.breakpoint(which).commands = unquoted(text)
    session.view.note(
        f"breakpoint {which} then runs: {unquoted(text)}" if text else f"breakpoint {which} runs nothing"
    )


def _remove(sort: type[Breakpoint | Watch], name: str) -> Do:
    def do(session: Session, argument: str) -> None:
        stops = session.stepper.stops
        if not argument:
            session.view.note(f"{stops.clear(sort)} removed")
            return
        for word in argument.split():
            which = number(word)
            if not isinstance(stops.get(which), sort):
                raise UsageError(f"{which} is no {name}")
            stops.remove(which)
            session.view.note(f"{name} {which} removed")

    return do


BREAK.verb("cl clear", "[N …]", "remove breakpoints; alone all")(_remove(Breakpoint, "breakpoint"))


def _enable(enabled: bool) -> Do:
    def do(session: Session, argument: str) -> None:
        points = [session.stepper.stops.get(number(word)) for word in argument.split()]
        if not points:
            raise UsageError("which one?", hint="b and watch list them with their numbers")
        for point in points:
            point.enabled = enabled
            session.view.note(f"{point.number} is {'on' if enabled else 'off'}: {point.text}")

    return do


BREAK.verb("enable", "N …", "switch breakpoints or watches on")(_enable(True))
BREAK.verb("disable", "N …", "switch them off")(_enable(False))


@WATCH.verb("watch", "[PATH|EXPR]", "stop c and rc where this value changes; alone it lists")
def _watch(session: Session, argument: str) -> None:
    if argument:
        watch = session.stepper.stops.watch(argument)
        session.view.note(f"watch {watch.number}: {watch.text}")
    else:
        _list(session, Watch, "Nothing is watched; `watch PATH` stops c and rc where its value changes.")


WATCH.verb("unwatch", "[N …]", "stop watching; alone all")(_remove(Watch, "watch"))


@WATCH.verb("display", "[EXPR]", "show this at each stop; alone it shows all")
def _display(session: Session, argument: str) -> None:
    if argument:
        expr = session.stepper.expression(argument)
        which = max(session.displays, default=0) + 1
        session.displays[which] = expr
        value = expr(session.stepper.event)
        session.view.value(f"{which}: {expr.text}", value)
    elif not session.displays:
        session.view.note("Nothing is displayed; `display EXPR` shows a value at each stop.")
    else:
        session.show_displays()


@WATCH.verb("undisplay", "[NUMBER]", "show it no more; alone none")
def _undisplay(session: Session, argument: str) -> None:
    if argument:
        which = number(argument)
        if which not in session.displays:
            raise UsageError(f"there is no display {which}", hint="display lists them")
        del session.displays[which]
    else:
        session.displays.clear()
    session.view.note(f"display {argument} removed" if argument else "nothing is displayed now")


@MARK.verb("mark", "[NAME]", "name this event, for j @NAME")
def _mark(session: Session, argument: str) -> None:
    name = session.stepper.mark(argument)
    session.view.note(f"@{name} is event {session.view.address(session.stepper.event)}")


@MARK.verb("marks", "", "the marks")
def _marks(session: Session, argument: str) -> None:
    stepper = session.stepper
    if not stepper.marks:
        session.view.note("No marks; `mark NAME` names this event, `j @NAME` comes back to it.")
        return
    rows = []
    for name, place in stepper.marks.items():
        event = stepper.entries[place]
        rows.append((f"@{name}", session.view.address(event), event.summary()))
    session.view.rows(("mark", ">event", "what"), rows, flexible=2)
