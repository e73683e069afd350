"""Are all other threads of this process waiting? Then the agent has done all it can with what it knows.

On a busy machine time alone does not tell: a thread that is ready to run may not get a processor for long.
"""

from __future__ import annotations

import os
import time
from threading import get_native_id

_TASKS = "/proc/self/task"
_READY = (b"R", b"D")
"""States of a thread that runs or is ready to, or that waits for a disk."""
_NOTHING = 0.0002
"""Seconds of CPU time between two looks that count as none: another thread has looked at a clock."""


class OtherThreads:
    """The threads of this process besides the one at hand, from look to look. Not thread-safe."""

    def __init__(self) -> None:
        self._used = 0.0
        self._looker = 0

    def are_waiting(self) -> bool:
        """True if none is ready to run, and none has run since the last look, which let all of them run.

        One that waits for the interpreter's lock is not ready to run: it has run by the next look. True where
        threads have no visible state.
        """
        looker, used = get_native_id(), time.process_time() - time.thread_time()
        has_run = looker != self._looker or used - self._used > _NOTHING
        self._looker, self._used = looker, used
        return not has_run and not any(_state(task) in _READY for task in _tasks() if task != str(looker))


def _tasks() -> list[str]:
    try:
        return os.listdir(_TASKS)
    except OSError:  # not Linux
        return []


def _state(task: str) -> bytes:
    try:
        with open(f"{_TASKS}/{task}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1]
    except OSError:  # it has ended meanwhile
        return b""
