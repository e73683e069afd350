"""Where events go besides a file: to a function, into memory, to several at once.

Used by the front ends. ``receive`` gets one plain dict per event, in the recording thread.
"""

from __future__ import annotations

from .files import FileSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["CallbackSink", "FileSink", "MemorySink", "TeeSink"]


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
