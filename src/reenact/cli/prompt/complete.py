"""What the Tab key offers: verbs, tools, lanes, fields of the current event, marks, addresses."""

from __future__ import annotations

from collections.abc import Iterable

from .line import split_verb
from .session import Session

_PLACES = frozenset("j unt until jump l list ll longlist".split())
_FIELDS = frozenset("p pp watch display print last condition".split())
_POINTS = frozenset("b break tbreak".split())
_NUMBERS = frozenset("cl clear enable disable ignore commands condition unwatch".split())
_NEAR = 500
"""Events before and after this one whose tools and lanes are offered."""


def completions(session: Session, before: str, word: str) -> list[str]:
    """Return the words that may stand here and begin so."""
    command = before.rpartition(";")[2].lstrip()
    verb = split_verb(command)[0] if command else ""
    words = list(_words(session, verb))
    return sorted({each for each in words if each.startswith(word)})


def _words(session: Session, verb: str) -> Iterable[str]:
    if not verb or verb in ("h", "help"):
        yield from session.verbs.names
        return
    if verb in _PLACES or verb in _POINTS:
        yield from (f"@{name}" for name in session.stepper.marks)
        yield from ("@error", "first", "last") if verb in _PLACES else ("error", "loop>3", 'text~"')
    if verb in _POINTS:
        yield from _nearby(session)
    if verb in _PLACES:
        yield f"turn:{session.stepper.lanes.turn(session.stepper.index)}"
    if verb in _NUMBERS:
        yield from (str(point.number) for point in session.stepper.stops)
    if verb in _FIELDS or verb in _POINTS:
        yield from _paths(session)


def _nearby(session: Session) -> Iterable[str]:
    stepper = session.stepper
    around = range(max(0, stepper.index - _NEAR), min(len(stepper.events), stepper.index + _NEAR))
    for index in around:
        event = stepper.events[index]
        yield from (f"tool:{name}" for name in stepper.tools.names(event))
        yield f"lane:{stepper.lanes.of(index)}"


def _paths(session: Session) -> Iterable[str]:
    """Yield the fields of the current event, and one level of what is in them."""
    yield from ("kind", "event_type", "tool", "args", "result", "error", "content", "usage")
    for key, value in session.stepper.event._raw().items():
        if key.isidentifier():
            yield key
            if type(value) is dict:
                yield from (f"{key}.{inner}" for inner in value if inner.isidentifier())
