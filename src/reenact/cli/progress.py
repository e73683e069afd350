"""How far a command is that reads many files: one line on stderr, only on a terminal, after a second."""

from __future__ import annotations

import time

from .output import Output

_FIRST, _NEXT = 1.0, 0.2


class Progress:
    """Rewrites one line; gone when the command is done."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._due = time.monotonic() + _FIRST
        self._is_terminal = out.stderr.isatty()
        self._shown = False

    def tick(self, files: int, of: int, events: int) -> None:
        """Show where we are, if it is time to."""
        now = time.monotonic()
        if not self._is_terminal or now < self._due:
            return
        self._due = now + _NEXT
        self._shown = True
        self._out.stderr.write(f"\rreading … {files:,} of {of:,} files, {events:,} events")
        self._out.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            self._out.stderr.write("\r\x1b[K")
            self._out.stderr.flush()
