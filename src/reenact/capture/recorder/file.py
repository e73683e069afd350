"""The trace file: one write call per line, a healed tail, few descriptors.

``write`` is called with one whole line under ``lock``; it raises OSError when the line is not in the
kernel's hands, and the recorder counts the loss.
"""

from __future__ import annotations

import os
import time
from _thread import RLock, start_new_thread
from os import write as os_write
from time import monotonic

from .. import guard
from ..import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

MAX_OPEN_FILES = 64
"""Descriptors all recorders of the process share; a thousand runs must not eat the agent's limit."""
LOOK_EVERY_S = 1.0
"""How often a file is checked for having been moved or deleted under us."""
STALL_S = 0.05
"""A write slower than this turns on the queue, so that only one call waits for a stalled device."""
FAR = 512
"""Our descriptors begin here, if the process may have that many."""
MAX_QUEUED_BYTES = 16 << 20
MAX_QUEUED_EVENTS = 10_000
PATIENCE_S = 1.0
"""How long callers wait, all together, before events are left to the queue. One slow write is mostly a
busy machine, not a dead device, and an event that was waited for cannot be lost."""
_REGULAR, _KIND_MASK = 0o100000, 0o170000
_EBADF = 9  # the same number everywhere; the errno module would be one more import


class FileSink:
    """Append to one file: one write call per line, healed tail, few descriptors, mode 0600."""

    wants_full = False

    def __init__(self, path: str, durability: str = "auto") -> None:
        self.path = path
        self.durability = durability
        self.lock = RLock()
        self.fd = -1
        self.busy = 0
        """Writes under way: more than one if a signal handler records, too."""
        self.used = 0.0
        self.torn = False
        self.regular = True
        self.own_from_start = False
        """True if the file was empty when we opened it, so that it may rotate."""
        self.size = 0
        """What the file should measure if nobody else writes to it."""
        self.looked = 0.0
        self.unseen = 0
        """Events written since the file was last known to be in its place."""
        self.identity = (0, 0)
        """Device and inode of the file that was opened."""
        self.renewed = False
        """True once another file had to be begun; what stands in the old one cannot be referred to."""
        self.queue: StallQueue | None = None

    def write(self, line: bytes) -> int:
        """Put the line into the file; returns how many earlier events turned out to be lost."""
        if self.queue is not None:
            if not self.queue.is_over():
                return self.queue.put(line)
            self.queue = None
        lost = 0
        begun = monotonic()
        self.busy += 1
        try:
            if self.fd < 0:
                self.open()
                begun = monotonic()  # an import and a new folder take their time on any device
            elif begun - self.looked > LOOK_EVERY_S:
                lost = self._look(begun)
            if self.torn or self.durability == "fsync":
                self.put(line)
            else:
                done = os_write(self.fd, line)
                self.size += done
                if done != len(line):
                    self._put_rest(line, done)
        except OSError as exc:
            if exc.errno != _EBADF:
                raise
            self.fd = -1  # closed by the agent, os.closerange() for instance: not ours to close any more
            self.open()
            self.put(line)
        finally:
            self.busy -= 1
        self.unseen += 1
        self.used = ended = monotonic()
        if ended - begun > STALL_S and self.durability == "auto" and _interpreter_is_free():
            self._start_queue()
        return lost

    def put(self, line: bytes) -> None:
        """Write whole lines to the open file in one call; raises OSError."""
        if self.torn:
            line = b"\n" + line
        done = os.write(self.fd, line)
        self.size += done
        if done != len(line):
            self._put_rest(line, done)
        elif self.torn:
            self.torn = False
        if self.durability == "fsync" and self.regular:
            os.fsync(self.fd)

    def _put_rest(self, line: bytes, done: int) -> None:
        """After a short write: the line is torn until its end is written too."""
        self.torn = True
        while done < len(line):
            more = os.write(self.fd, memoryview(line)[done:])
            self.size += more
            done += more
        self.torn = False

    def open(self) -> None:
        """Open the file, or begin it; raises OSError."""
        with import_lock:
            import fcntl  # noqa: F401  before a descriptor is taken: an import needs one, too

        make_room()
        # Write-only and non-blocking, so that a FIFO without a reader is an error, not a wait or a void.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        try:
            fd = os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path) or ".", mode=0o700, exist_ok=True)
            fd = os.open(self.path, flags, 0o600)
        fd = far_descriptor(fd)
        state = os.fstat(fd)
        if self.durability == "fsync" and state.st_size == 0:
            with import_lock:
                from .long_strings import fsync_folder

            fsync_folder(os.path.dirname(self.path))
        identity = (state.st_dev, state.st_ino)
        regular = state.st_mode & _KIND_MASK == _REGULAR
        size = state.st_size if regular else 0
        ours = identity == self.identity and size == self.size
        torn = self.torn if ours else size > 0 and not _ends_with_newline(self.path, size)
        now = monotonic()
        if self.fd >= 0:  # a signal handler of this thread has recorded meanwhile and was quicker
            os.close(fd)
            return
        if identity != self.identity:
            self.own_from_start = size == 0
        elif size != self.size:
            self.own_from_start = False  # somebody wrote to it while we had it closed
        self.fd, self.identity, self.regular, self.size, self.torn = fd, identity, regular, size, torn
        self.looked = now
        _open_sinks[id(self)] = self

    def look(self) -> int:
        """See that the file is still in its place, if it is time; returns how many events are lost."""
        now = monotonic()
        return self._look(now) if now - self.looked > LOOK_EVERY_S else 0

    def _look(self, now: float) -> int:
        """Reopen if the file was moved or deleted; returns how many events went down with it."""
        self.looked = now
        lost = 0
        if not self._holds(self.fd):
            lost = self.unseen
            guard.tell(
                f"closed:{self.path}",
                f"the descriptor of {self.path} was closed by somebody else; {lost} events are lost.",
            )
            self.fd = -1
        elif self.regular and not self._in_place():
            if os.fstat(self.fd).st_nlink == 0:
                lost = self.unseen
                guard.tell(
                    f"vanished:{self.path}",
                    f"{self.path} was deleted while recording; {lost} events are lost, a new file is begun.",
                )
            self.release()
        if self.fd < 0:
            self.renewed = True
            self.open()
        self.unseen = 0
        return lost

    def _in_place(self) -> bool:
        try:
            state = os.stat(self.path)
        except OSError as exc:
            guard.pass_on(exc)
            return False
        return (state.st_dev, state.st_ino) == self.identity

    def _holds(self, fd: int) -> bool:
        """True if the descriptor is still our file: an agent may close all it finds, and open others."""
        try:
            state = os.fstat(fd)
        except OSError as exc:
            guard.pass_on(exc)
            return False
        return (state.st_dev, state.st_ino) == self.identity

    def is_shared(self) -> bool:
        """True if someone else writes to this file too; such a file does not rotate."""
        if not self.own_from_start or self.fd < 0:
            return True
        return os.fstat(self.fd).st_size != self.size

    def move_to(self, path: str) -> None:
        """Write to another file from now on."""
        self.release()
        self.path = path

    def release(self) -> None:
        """Give the descriptor back; the next write opens the file again."""
        fd, self.fd = self.fd, -1
        _open_sinks.pop(id(self), None)
        if fd >= 0 and self._holds(fd):
            os.close(fd)

    def close(self, timeout: float = 5.0) -> None:
        if self.flush(timeout):
            self.release()

    def flush(self, timeout: float) -> bool:
        return self.queue is None or self.queue.flush(timeout)

    def _start_queue(self) -> None:
        self.queue = StallQueue(self, STALL_S)

    def after_fork(self) -> None:
        """In a child: the descriptor is the parent's, and so is a lock another thread held."""
        self.lock = RLock()
        self.queue = None
        self.busy = 0
        self.release()


def far_descriptor(fd: int) -> int:
    """Return the same file under a high number, if the process may have that many.

    An agent that closes all it finds must not get ours back as its own file.
    """
    with import_lock:
        import fcntl

    try:
        far = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FAR)
    except OSError as exc:
        guard.pass_on(exc)
        return fd
    os.close(fd)
    return far


class StallQueue:
    """A bounded queue for the time a device stalls: the agent continues, the loss is bounded.

    Lines wait for the device, one thread writes them. Begun after one slow write and left as soon as writes
    are fast again.
    """

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
                with import_lock:
                    from errno import EAGAIN

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
        begun = monotonic()
        while not self.idle and self.patience > 0:
            time.sleep(0.001)
            ended = monotonic()
            self.patience -= ended - begun
            begun = ended

    def is_over(self) -> bool:
        """True if all is written and the device is fast again; called by the owner of the sink's lock."""
        return self.idle and self.fast

    def take_lost(self) -> int:
        """Return how many events were lost since the last time this was called."""
        with self.lock:
            lost, self.lost = self.lost, 0
        return lost

    def _drain(self) -> None:
        """Write until the queue is empty. Never takes the sink's lock: its owner may be waiting for us."""
        while True:
            with self.lock:
                batch, self.lines, self.bytes = self.lines, [], 0
            begun = monotonic()
            if batch:
                self._write(batch)
            with self.lock:
                if not self.lines:
                    self.fast = monotonic() - begun < self.slow_s
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
        until = monotonic() + timeout
        while monotonic() < until:
            with self.lock:
                if self.idle and not self.lines:
                    return True
            time.sleep(0.005)
        return False


_open_sinks: dict[int, FileSink] = {}
_pool_lock = RLock()


def make_room() -> None:
    """Close the least recently used descriptors until one more may be opened."""
    if len(_open_sinks) < MAX_OPEN_FILES:
        return
    with _pool_lock:
        for sink in sorted(_open_sinks.copy().values(), key=lambda each: each.used):
            if len(_open_sinks) < MAX_OPEN_FILES:
                return
            # Never wait here: that thread may be waiting for us.
            if sink.lock.acquire(blocking=False):
                try:
                    if not sink.busy and sink.queue is None:
                        sink.release()
                finally:
                    sink.lock.release()


def after_fork_in_child() -> None:
    global _pool_lock
    _pool_lock = RLock()


def _interpreter_is_free() -> bool:
    """False if other threads keep the interpreter busy: then a slow write says nothing about the device."""
    begun = monotonic()
    time.sleep(0)
    return monotonic() - begun < STALL_S / 10


def _ends_with_newline(path: str, size: int) -> bool:
    """False for a torn tail, and if we may not look: an empty line more does no harm."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            return os.pread(fd, 1, size - 1) == b"\n"
        finally:
            os.close(fd)
    except OSError as exc:
        guard.pass_on(exc)
        return False
