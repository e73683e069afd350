"""One call, one record: while a seam is inside a call, the libraries below it are not listened to."""

from __future__ import annotations

from _contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token

_inside: ContextVar[bool] = ContextVar("reenact_inside", default=False)


def is_inside() -> bool:
    """True if a seam further out has this call already."""
    return _inside.get()


def enter() -> Token[bool]:
    """A seam hands the call on to the library; give the token back to ``leave``."""
    return _inside.set(True)


def step_out() -> Token[bool]:
    """The library calls the agent's own code, whose calls are its own; give the token back to ``leave``."""
    return _inside.set(False)


def leave(token: Token[bool]) -> None:
    """The library has returned."""
    try:
        _inside.reset(token)
    except ValueError:  # an async call that was closed in another context
        _inside.set(False)
