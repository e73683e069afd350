"""Which recorded calls are used up, shared between the processes of one execution.

One file in the scratch folder, one line per claim. Under the file's lock a process reads the claims of the
others, finds its call and adds its own claim, so no call is answered twice. A process that dies releases the
lock.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Container
from threading import Lock
from types import TracebackType

HERE, CALL, WRITER = "here", "call", "writer"
"""Kinds of claims: a process started; a recorded call is used; this process stands for a recorded one."""
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Helper processes of Python itself, which make no calls."""


class Claims:
    """The file, as one process reads and writes it. Hold it (``with``) for anything but reading its lists.

    Do not use it after a fork: a child opens its own.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._lock = Lock()
        self._tail = b""
        self.pid = os.getpid()
        self.calls: list[tuple[int, int]] = []
        """Process and number of each used call."""
        self.writers: dict[str, int] = {}
        """Recorded processes, and the pid that stands for each now."""
        self.processes: list[int] = []

    def __enter__(self) -> Claims:
        self._lock.acquire()
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._read()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, kind: object, exc: BaseException | None, tb: TracebackType | None) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_UN)  # not by closing: a forked process may have it open, too
        finally:
            self._lock.release()

    def add(self, kind: str, value: object) -> None:
        """Add a claim for all processes to read; the file must be held."""
        os.write(self._file, f"{kind} {self.pid} {value}\n".encode())
        self._read()

    def here(self, *, is_forked: bool) -> None:
        """Announce this process, which may make calls.

        A worker forked by a fork server has the server's command line but is not a helper.
        """
        if is_forked or not any(helper in argument for argument in sys.orig_argv for helper in _HELPERS):
            with self:
                self.add(HERE, "")

    def has_other_live(self, ignored: Container[int] = ()) -> bool:
        """True if another process is alive and may still make calls."""
        return any(_is_alive(pid) for pid in self.processes if pid != self.pid and pid not in ignored)

    def _read(self) -> None:
        while more := os.read(self._file, 1 << 16):
            *lines, self._tail = (self._tail + more).split(b"\n")
            for line in lines:
                kind, pid, value = line.decode("ascii").split(" ", 2)
                if kind == CALL:
                    self.calls.append((int(pid), int(value)))
                elif kind == WRITER:
                    self.writers[value] = int(pid)
                else:
                    self.processes.append(int(pid))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
