"""Which open tool use a call of a function is for: by name and arguments, in any run of the process.

The context decides where it is there. Where it is lost, as in a bare executor, the tool use itself tells the
run; of two runs with equal uses neither is known to be the right one, and nothing is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...wire.json_values import canonical
from .. import guard
from ..calls.callers import caller_name
from ..calls.open_calls import OpenUse, invocation, open_uses
from ..recorder.jsonable import jsonable

_LONGEST_INJECTED = 200


class Claim:
    """A call of a watched function that is recorded for a tool use."""

    __slots__ = ("_who", "args", "attempt", "injected", "is_exact", "use")

    def __init__(self, use: OpenUse, bound: dict[str, Any], is_equal: bool, is_exact: bool) -> None:
        self.use = use
        self.is_exact = is_exact
        """True if the tool use is certain: by equal arguments, or because a framework has its id."""
        sent = _sent(use)
        named = [name for name in bound if type(sent) is dict and name in sent]
        if is_equal and len(named) < len(sent):
            self.args, self.injected = sent, {}  # one parameter holds them all
        else:
            names = named if named or is_exact else list(bound)
            self.args = {name: bound[name] for name in names} if named or not is_exact else sent
            self.injected = {name: _shown(bound[name]) for name in bound if name not in names}
        self.attempt = None if use.attempts < 2 else use.attempts
        self._who = caller_name()

    def release(self) -> None:
        """The call has ended."""
        self.use.release(self._who)


def claimed(
    names: frozenset[str], bound: dict[str, Any], function: Any = None, *, answering: bool = False
) -> Claim | None:
    """Claim the tool use that a call is for; None if it is for none. A framework may know it.

    A call with other arguments is for the only open use. Of several uses none is recorded for it. Where a
    recording answers, it takes the first whose arguments have the same names, and a call beside one that is
    under way counts in any case: a tool must not run unasked.
    """
    held = invocation()
    if held is not None and held.use.name in names and _is_alive(held.use):
        is_equal = _is_equal(bound, _sent(held.use), loosely=True)
        if is_equal or function in held.bodies:
            return Claim(held.use, bound, is_equal, True) if _taken([held.use], answering) else None
    named = [use for use in list(open_uses) if use.name in names and _is_alive(use)]
    named = [use for use in named if use.calls.is_acted_upon_here(use.answer)]
    equal = [use for use in named if _is_equal(bound, _sent(use))]
    exact = nearest(equal or [use for use in named if _is_equal(bound, _sent(use), loosely=True)])
    exact.sort(key=lambda use: use.attempts and not use.is_provisional)
    taken = _taken(exact, answering)
    if taken is not None:
        if taken.is_provisional:  # the call with the right arguments counts, it is no second attempt
            taken.attempts, taken.is_provisional = 1, False
        return Claim(taken, bound, True, True)
    untouched = nearest([use for use in named if not use.attempts])
    if len(named) > 1:
        untouched = [use for use in untouched if answering and _has_names(bound, _sent(use))]
    if exact or not untouched or not untouched[0].take():
        return None
    untouched[0].is_provisional = True
    return Claim(untouched[0], bound, False, False)


def _taken(uses: list[OpenUse], answering: bool) -> OpenUse | None:
    """Claim one of these: the first that no other call has, else beside such a call."""
    for use in uses:
        if use.take():
            return use
    for use in uses:
        if answering or use.is_tried_again():
            use.add_attempt()
            return use
    return None


def _is_alive(use: OpenUse) -> bool:
    return use.recorder is not None and not use.recorder.closed


def nearest(uses: list[OpenUse]) -> list[OpenUse]:
    """Return those of the response that this context acts upon; without a context those of the only one."""
    here = uses[0].calls.begun_here() if uses else ()
    in_context = {use.answer for use in uses if use.answer in here}
    latest = max(in_context, key=here.index) if in_context else None
    if latest is None and len({use.answer for use in uses}) == 1:
        latest = uses[0].answer
    return [use for use in uses if use.answer == latest]


def _sent(use: OpenUse) -> Any:
    return json.loads(use.args)


def _is_equal(bound: dict[str, Any], sent: Any, *, loosely: bool = False) -> bool:
    """True if a call has the arguments that the model sent, each by its name or all in one parameter.

    Loosely: a program may read "2" as a number, or the other way round.
    """
    try:
        if type(sent) is dict:
            if all(name in bound and _same(bound[name], value, loosely) for name, value in sent.items()):
                return True
            return bool(sent) and any(_covers(value, sent, loosely) for value in bound.values())
        return any(_same(value, sent, loosely) for value in bound.values())
    except Exception as exc:  # whatever an argument does when it is looked at
        guard.pass_on(exc)
        return False


def _has_names(bound: dict[str, Any], sent: Any) -> bool:
    """True if a call takes the arguments that the model sent, each or all in one, whatever their values."""
    if type(sent) is not dict or not sent:
        return False
    return any(all(name in values for name in sent) for values in (bound, *map(_held, bound.values())))


def _same(value: Any, sent: Any, loosely: bool) -> bool:
    if type(value) is type(sent) and type(value) in (str, int, bool):
        return bool(value == sent)
    plain = jsonable(value)
    if _is_number(plain) and _is_number(sent):
        return bool(plain == sent)
    if loosely and type(plain) is not type(sent) and {type(plain), type(sent)} <= {str, int, float, bool}:
        return _text(plain) == _text(sent)
    if type(plain) is dict and type(sent) is dict:
        return _covers(plain, sent, loosely)
    if type(plain) is list and type(sent) is list:
        pairs = zip(plain, sent, strict=False)
        return len(plain) == len(sent) and all(_same(one, other, loosely) for one, other in pairs)
    return canonical(plain) == canonical(sent)


def _covers(value: Any, sent: dict[str, Any], loosely: bool) -> bool:
    """True if an object holds what was sent; a model or dataclass may add its defaults."""
    held = _held(value)
    return all(name in held and _same(held[name], each, loosely) for name, each in sent.items())


def _held(value: Any) -> Mapping[str, Any]:
    """Return what an object has by name, or the JSON of a text; nothing of anything else.

    No code of the agent runs: it may be the context of a framework, or load what it shows.
    """
    kind = type(value)
    if issubclass(kind, str):
        try:
            value = json.loads(value)
        except ValueError as exc:
            guard.pass_on(exc)
        return value if type(value) is dict else {}
    if issubclass(kind, dict):
        return dict(dict.items(value))
    fields = getattr(kind, "__dataclass_fields__", ()) if "__slots__" in vars(kind) else ()
    names = [name for name in fields if name in vars(kind)["__slots__"]]
    of = object.__getattribute__
    try:
        return {name: of(value, name) for name in names} if names else of(value, "__dict__")
    except (AttributeError, TypeError) as exc:
        guard.pass_on(exc)
        return {}


def _text(value: str | float) -> str:
    text = str(value).lower()
    for read in (int, float):
        try:
            number = read(text)
        except ValueError as exc:
            guard.pass_on(exc)
        else:
            return str(int(number)) if number == number // 1 else str(number)
    return text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> Any:
    """Return an argument that the model did not send: itself if it is plain and short, else what it is."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and len(value) <= _LONGEST_INJECTED:
        return value
    kind = type(value)
    return f"<{kind.__module__}.{kind.__qualname__}>"
