"""A bounded queue for the time a device stalls: the agent goes on, the loss bound is known.

Started by FileSink after one slow write and left as soon as writes are fast again.
"""

from __future__ import annotations

import time
from _thread import RLock, start_new_thread

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .sinks import FileSink

MAX_QUEUED_BYTES = 16 << 20
MAX_QUEUED_EVENTS = 10_000


class StallQueue:
    """Lines that wait for the device, and the one thread that writes them."""

    def __init__(self, sink: FileSink) -> None:
        self.sink = sink
        self.lines: list[bytes] = []
        self.bytes = 0
        self.lost = 0
        self.lock = RLock()  # re-entrant: a signal handler may record too
        self.idle = True

    def put(self, line: bytes) -> int:
        """Queue a line; returns how many are lost because the queue is full."""
        with self.lock:
            if self.bytes + len(line) > MAX_QUEUED_BYTES or len(self.lines) >= MAX_QUEUED_EVENTS:
                guard.tell(
                    f"stall:{self.sink.path}",
                    f"{self.sink.path} takes too long to write and the queue is full; events are being lost.",
                )
                self.lost += 1
                raise BlockingIOError("the queue for a stalled device is full")
            self.lines.append(line)
            self.bytes += len(line)
            if self.idle:
                self.idle = False
                start_new_thread(self._drain, ())
        return 0

    def _drain(self) -> None:
        """Write until the queue is empty; once writes are fast again, callers write for themselves."""
        from .sinks import STALL_S

        while True:
            with self.lock:
                batch, self.lines, self.bytes = self.lines, [], 0
            begun = time.monotonic()
            try:
                # Whole lines in one call, so that another process' lines never stand inside them.
                if batch:
                    self._write(b"".join(batch))
            except Exception as exc:
                self.lost += len(batch)
                guard.tell(
                    f"stall:{type(exc).__name__}", f"{len(batch)} events are lost ({guard.explain(exc)})."
                )
            fast = time.monotonic() - begun < STALL_S
            with self.sink.lock, self.lock:
                if not self.lines:
                    self.idle = True
                    if fast and self.sink.queue is self:
                        self.sink.queue = None
                    return

    def _write(self, data: bytes) -> None:
        # Not under the sink's lock: a caller must be able to queue while this waits. ``busy`` keeps
        # the descriptor from being closed meanwhile.
        sink = self.sink
        sink.busy = True
        try:
            if sink.fd < 0:
                sink._open()
            sink._put(data)
        finally:
            sink.busy = False

    def flush(self, timeout: float) -> bool:
        """Wait until all is written; False if the time ran out."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            with self.lock:
                if self.idle and not self.lines:
                    return True
            time.sleep(0.005)
        return False
