"""Which recorded calls have been made, told between the processes of one execution.

One file in the scratch folder, a line for each word. Under its lock a process reads what others have added,
finds its call and adds that, so no call is answered twice; a process that dies lets go of the lock.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Container
from threading import Lock
from types import TracebackType

HERE, CALL, WRITER = "here", "call", "writer"
"""A process has begun; a recorded call was made; a recorded process is the one that this process is now."""
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Processes of Python's own, which ask for nothing."""


class Claims:
    """The file, as one process reads and writes it; to be held (``with``) for anything but reading its lists.

    Not to be used after a fork: a child makes one of its own.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._lock = Lock()
        self._tail = b""
        self.pid = os.getpid()
        self.calls: list[tuple[int, int]] = []
        """Process and number of each call that was made."""
        self.writers: dict[str, int] = {}
        """Recorded processes, and who goes on in their place."""
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

    def add(self, word: str, what: object) -> None:
        """Tell all others; the file is held."""
        os.write(self._file, f"{word} {self.pid} {what}\n".encode())
        self._read()

    def here(self, *, is_forked: bool) -> None:
        """Tell that this process has begun, and may come to make calls.

        A worker that a fork server forked has the server's command, but is none.
        """
        if is_forked or not any(helper in word for word in sys.orig_argv for helper in _HELPERS):
            with self:
                self.add(HERE, "")

    def others_alive(self, but: Container[int] = ()) -> bool:
        """True if another process is there that may yet make calls."""
        return any(_is_alive(pid) for pid in self.processes if pid != self.pid and pid not in but)

    def _read(self) -> None:
        while more := os.read(self._file, 1 << 16):
            *lines, self._tail = (self._tail + more).split(b"\n")
            for line in lines:
                word, pid, what = line.decode("ascii").split(" ", 2)
                if word == CALL:
                    self.calls.append((int(pid), int(what)))
                elif word == WRITER:
                    self.writers[what] = int(pid)
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
