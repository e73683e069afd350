"""A run that left its recording is over; what waits for a process that ended there is not left to wait.

``multiprocessing.Pool`` does: it starts another worker, and nobody brings the result that is missing. Nor is
code left to itself that catches whatever is raised and asks again for ever.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from .replayed import read_report

_QUIET = 10.0
"""Seconds in which nothing is given, after a divergence, until an agent is interrupted."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_OVER = ("diverged", "unknown", "halted")
"""What is told by a process that must not go on: that it is told again is no sign of life."""


class Overseer:
    """Looks at what the processes of a replay write, and says when and how they are to be ended."""

    def __init__(self, report: str, others: Sequence[str] = ()) -> None:
        self._report = report
        self._others = others
        self._done: list[int] = []
        self._since = time.monotonic()
        self._sent = 0

    def __call__(self) -> int | None:
        """Return the signal to send now: as Ctrl-C does, so that pools are taken down; then for good."""
        told = read_report(self._report)
        over = sum(any(name in each for name in _OVER) for each in told)
        done = [len(told) - over, *map(_size, self._others)]
        if done != self._done:
            self._done, self._since = done, time.monotonic()
        if self._sent == len(_SIGNALS) or time.monotonic() - self._since < _QUIET:
            return None
        self._since = time.monotonic()
        if not over:
            return None
        self._sent += 1
        return _SIGNALS[self._sent - 1]


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
