"""Where events go besides a file: to a function, into memory, to a bus, to several at once.

A listener's ``receive`` gets one plain dict per event, in the recording thread. What it raises stays here. A
garbage collection calls none, because it may have come in the middle of the agent's code, with a lock in its
hands that the listener needs.
"""

from __future__ import annotations

from ...lines import parse
from .. import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Lines: TypeAlias = list[tuple[str, str]]
    """Lines: whole, and as in the file."""


class CallbackSink:
    """Hand every event to a function as a plain dict, in the recording thread."""

    def __init__(self, function: Callable[[dict[str, Any]], object], *, deltas: bool = False) -> None:
        self.function = function
        self.wants_full = not deltas

    def receive(self, event: dict[str, Any]) -> None:
        self.function(event)


class MemorySink:
    """Keep the newest events in a list, as plain dicts; for tests and notebooks."""

    def __init__(self, limit: int = 10_000, *, deltas: bool = False) -> None:
        self.events: list[dict[str, Any]] = []
        self.limit = limit
        self.wants_full = not deltas

    def receive(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        del self.events[: -self.limit]


class TeeSink:
    """Several sinks at once: at most one file, and any number of others."""

    def __init__(self, *sinks: Any) -> None:
        self.sinks = sinks


_kept: list[tuple[tuple[Any, ...], Lines]] = []
"""What recorders wrote in their finalisers, for listeners to receive with the next event of any recorder."""


def notify(listeners: tuple[Any, ...], lines: Lines) -> int:
    """Hand every event to every listener; returns how many could not be handed over."""
    failed = 0
    for whole, as_written in lines:
        for listener in listeners:
            try:
                text = whole if listener.wants_full else as_written
                listener.receive(parse(text.encode("ascii")))
            except KeyboardInterrupt:
                raise  # the user's own Ctrl-C
            except BaseException as exc:
                failed += 1
                guard.swallow(f"hand an event to {type(listener).__name__}", exc)
    return failed


def keep(listeners: tuple[Any, ...], lines: Lines) -> None:
    """Keep events until somebody records again, flushes or exits."""
    _kept.append((listeners, lines))


def catch_up(*, forget: bool = False) -> None:
    """Hand over what was kept, or forget it."""
    if forget:
        _kept.clear()
    while _kept:
        try:
            listeners, lines = _kept.pop(0)
        except IndexError:  # another thread was quicker
            return
        notify(listeners, lines)
