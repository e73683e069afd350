"""A bounded queue for the time a device stalls: the agent goes on, the loss bound is known.

Begun by FileSink after one slow write and left as soon as writes are fast again.
"""

from __future__ import annotations

import time
from _thread import RLock, start_new_thread
from errno import EAGAIN
from typing import TYPE_CHECKING

from .. import guard

if TYPE_CHECKING:
    from .file import FileSink

MAX_QUEUED_BYTES = 16 << 20
MAX_QUEUED_EVENTS = 10_000
PATIENCE_S = 1.0
"""How long callers wait, all together, before events are left to the queue. One slow write is mostly a
busy machine, not a dead device, and an event that was waited for cannot be lost."""


class StallQueue:
    """Lines that wait for the device, and the one thread that writes them."""

    def __init__(self, sink: FileSink, slow_s: float) -> None:
        self.sink = sink
        self.slow_s = slow_s
        self.lines: list[bytes] = []
        self.bytes = 0
        self.lost = 0
        self.lock = RLock()  # re-entrant: a signal handler may record too
        self.idle = True
        self.fast = False
        self.patience = PATIENCE_S

    def put(self, line: bytes) -> int:
        """Queue a line; returns how many earlier ones turned out to be lost, raises if there is no room."""
        with self.lock:
            if self.bytes + len(line) > MAX_QUEUED_BYTES or len(self.lines) >= MAX_QUEUED_EVENTS:
                raise BlockingIOError(EAGAIN, "the device stalls and the queue is full")
            self.lines.append(line)
            self.bytes += len(line)
            if self.idle:
                self.idle = self.fast = False
                try:
                    start_new_thread(self._drain, ())
                except RuntimeError:  # no more threads, or the interpreter is shutting down
                    self._drain()
        self._wait()
        return self.take_lost()

    def _wait(self) -> None:
        begun = time.monotonic()
        while not self.idle and self.patience > 0:
            time.sleep(0.001)
            ended = time.monotonic()
            self.patience -= ended - begun
            begun = ended

    def is_over(self) -> bool:
        """True if all is written and the device is fast again; asked by the owner of the sink's lock."""
        return self.idle and self.fast

    def take_lost(self) -> int:
        """Return how many events were lost since the last time it was asked."""
        with self.lock:
            lost, self.lost = self.lost, 0
        return lost

    def _drain(self) -> None:
        """Write until the queue is empty. Never takes the sink's lock: its owner may be waiting for us."""
        while True:
            with self.lock:
                batch, self.lines, self.bytes = self.lines, [], 0
            begun = time.monotonic()
            if batch:
                self._write(batch)
            with self.lock:
                if not self.lines:
                    self.fast = time.monotonic() - begun < self.slow_s
                    self.idle = True
                    return

    def _write(self, batch: list[bytes]) -> None:
        # Not under the sink's lock: a caller must be able to queue while this waits. ``busy`` keeps
        # the descriptor from being closed meanwhile.
        sink = self.sink
        sink.busy += 1
        # Whole lines in one call, so that another process' lines never stand inside them.
        data = b"".join(batch)
        begun = sink.size
        try:
            if sink.fd < 0:
                sink.open()
                begun = sink.size
            sink.put(data)
        except Exception as exc:
            lost = len(batch) - data[: max(0, sink.size - begun)].count(b"\n")
            with self.lock:
                self.lost += lost
            guard.tell(
                f"stall:{type(exc).__name__}",
                f"could not write to {sink.path} ({guard.explain(exc)}); {lost} queued events are lost.",
            )
        finally:
            sink.busy -= 1

    def flush(self, timeout: float) -> bool:
        """Wait until all is written; False if the time ran out."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            with self.lock:
                if self.idle and not self.lines:
                    return True
            time.sleep(0.005)
        return False
