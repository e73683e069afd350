"""A run that left its recording is over; what waits for a process that ended there is not left to wait.

``multiprocessing.Pool`` does: it starts another worker, and nobody brings the result that is missing.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from .replayed import read_report

_QUIET = 10.0
"""Seconds in which nothing is asked and nothing told, after a divergence, until an agent is interrupted."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Overseer:
    """Looks at what the processes of a replay write, and says when and how they are to be ended."""

    def __init__(self, report: str, others: Sequence[str] = ()) -> None:
        self._report = report
        self._watched = (report, *others)
        self._sizes: list[int] = []
        self._since = time.monotonic()
        self._sent = 0

    def __call__(self) -> int | None:
        """Return the signal to send now: as Ctrl-C does, so that pools are taken down; then a plain end."""
        sizes = [_size(path) for path in self._watched]
        if sizes != self._sizes:
            self._sizes, self._since = sizes, time.monotonic()
        if self._sent == len(_SIGNALS) or time.monotonic() - self._since < _QUIET:
            return None
        self._since = time.monotonic()
        told = ("diverged", "unknown", "halted")
        if not any(name in each for each in read_report(self._report) for name in told):
            return None
        self._sent += 1
        return _SIGNALS[self._sent - 1]


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
