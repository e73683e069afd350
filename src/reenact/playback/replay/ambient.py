"""Clock and chance as they were: the values a process drew, given again in their order.

Each thread has those of the thread of its name, a pool of threads those of its pool; where the recording
knows no such thread, the next value of that name that nobody has taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any

from ... import schema
from ..matching.tape import Tape


class Ambient:
    """The recorded values of one process; ``writer`` tells, when it matters, which one it is."""

    def __init__(self, tape: Tape, writer: Callable[[], str | None]) -> None:
        self._tape = tape
        self._writer = writer
        self._lock = Lock()
        self._by_thread: dict[tuple[str, str | None], deque[int]] | None = None
        self._by_name: dict[str, deque[int]] = {}
        self._taken: set[int] = set()

    def next(self, name: str, thread: str | None) -> Any:
        """Return the next value of a name, None if there is none left."""
        with self._lock:
            if self._by_thread is None:
                self._by_thread = self._line_up()
            for queue in (self._by_thread.get((name, thread)), self._by_name.get(name)):
                while queue:
                    at = queue.popleft()
                    if at not in self._taken:
                        self._taken.add(at)
                        return self._value(at)
            return None

    def _line_up(self) -> dict[tuple[str, str | None], deque[int]]:
        recording, writer = self._tape.recording, self._writer()
        found: dict[tuple[str, str | None], deque[int]] = {}
        with self._tape.lock:
            for at, kind in enumerate(recording.event_types()):
                if kind != schema.AMBIENT:
                    continue
                event = recording.events[at]
                name, thread = event._raw().get("name"), event._raw().get("thread")
                if self._tape.process_of(event.writer) == writer and type(name) is str:
                    found.setdefault((name, thread), deque()).append(at)
                    self._by_name.setdefault(name, deque()).append(at)
                event._forget()
        return found

    def _value(self, at: int) -> Any:
        with self._tape.lock:
            event = self._tape.recording.events[at]
            try:
                return event._raw().get("value")
            finally:
                event._forget()
