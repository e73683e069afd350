"""Events on their way to callbacks and buses.

Used by writers that have listeners. What a callback raises stays here; a garbage collection calls none,
because it may have come in the middle of the agent's code, with a lock in its hands that the callback needs.
"""

from __future__ import annotations

from typing import Any

from ...lines import parse
from .. import guard

Told = list[tuple[str, str]]

"""Lines: whole, and as in the file."""

_left: list[tuple[tuple[Any, ...], Told]] = []
"""What recorders said in their finalisers, for listeners to hear with the next event of any recorder."""


def tell(listeners: tuple[Any, ...], told: Told) -> int:
    """Hand every event to every listener; returns how many could not be handed over."""
    failed = 0
    for full, as_written in told:
        for listener in listeners:
            try:
                text = full if listener.wants_full else as_written
                listener.receive(parse(text.encode("ascii")))
            except KeyboardInterrupt:
                raise  # the user's own Ctrl-C
            except BaseException as exc:
                failed += 1
                guard.swallow(f"hand an event to {type(listener).__name__}", exc)
    return failed


def later(listeners: tuple[Any, ...], told: Told) -> None:
    """Keep events until somebody records again, flushes or exits."""
    _left.append((listeners, told))


def catch_up(*, forget: bool = False) -> None:
    """Tell what was kept, or forget it."""
    if forget:
        _left.clear()
    while _left:
        try:
            listeners, told = _left.pop(0)
        except IndexError:  # another thread was quicker
            return
        tell(listeners, told)
