"""Is a library still as its seam expects it? Asked once, when the seam is put in.

What is not there raises ``Unlike``: the seam then takes another door, or is left out and told of.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Unlike(Exception):
    """A library is not as it used to be."""


def need(owner: Any, *names: str) -> None:
    """Raise unless a module or a class has these names."""
    for name in names:
        if not hasattr(owner, name):
            raise Unlike(f"{_name(owner)} has no {name}")


def need_held(owner: type, *names: str) -> None:
    """Raise unless the objects of a class have these names, from the class or from ``__init__``."""
    made = getattr(_code(owner.__init__), "co_names", ())  # type: ignore[misc]
    need(owner, *[name for name in names if name not in made])


def need_asked(owner: type, name: str) -> None:
    """Raise unless a method of the class asks for this one: else what stands in for it is never called."""
    need(owner, name)
    members = [member for kind in owner.__mro__ for member in vars(kind).values()]
    if not any(name in getattr(_code(member), "co_names", ()) for member in members):
        raise Unlike(f"{_name(owner)} does not ask for its {name}")


def need_arguments(owner: type, name: str, *arguments: str) -> None:
    """Raise unless a method takes these arguments by position, and no others."""
    need(owner, name)
    code = _code(getattr(owner, name))
    if code is None or code.co_varnames[1 : code.co_argcount] != arguments:
        raise Unlike(f"{_name(owner)}.{name} takes other arguments")


def _name(owner: Any) -> str:
    return str(getattr(owner, "__qualname__", None) or owner.__name__)


def _code(member: Any) -> Any:
    """Return the code of a method, under what others have put around it."""
    while hasattr(member, "__wrapped__"):
        member = member.__wrapped__
    return getattr(member, "__code__", None)
