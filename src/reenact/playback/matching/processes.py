"""One recording shared by the processes of one execution: which process uses which recorded call.

Light: a process that makes no call loads nothing else to take part.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ... import schema
from ...capture.runs.location import how_started
from ...tracefile.status import is_alive

if TYPE_CHECKING:
    from ...recording.recording import Recording
    from .tape import RecordedCall, Tape


# The calls that are used up, in one file of the scratch folder, one line per claim.
#
# Under the file's lock a process reads the claims of the others, finds its call and adds its own claim, so no
# call is answered twice. A process that dies releases the lock.

HERE, CALL, WRITER = "here", "call", "writer"
"""Kinds of claims: a process started; a recorded call is used; this process stands for a recorded one."""
_HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Helper processes of Python itself, which make no calls."""


def claims_path(scratch: str) -> str:
    """Return the file of the claims in a scratch folder."""
    return os.path.join(scratch, "claims")


class Claims:
    """The file, as one process reads and writes it. Hold it (``with``) for anything but reading its lists.

    Do not use it after a fork: a child opens its own.
    """

    def __init__(self, scratch: str) -> None:
        self._path = claims_path(scratch)
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

    def has_other_live(self) -> bool:
        """True if another process is alive and may still make calls."""
        return any(is_alive(pid, None) for pid in self.processes if pid != self.pid)

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


# Which process uses which calls.
#
# The first process uses the calls of the first recorded one. All others share the rest: a process is
# recognised by how it was started, else by the calls it makes, and a pool may spread its work differently
# over its workers.


class Shared:
    """The calls used by this process and by others; for its frontier, under its lock."""

    def __init__(
        self,
        claims: Claims,
        calls: list[RecordedCall],
        origins: Origins | None = None,
        root: str | None = None,
    ) -> None:
        self._claims = claims
        self._calls = {call.number: call for call in calls}
        self._origins = origins
        self._root = root
        self.is_first = origins is None
        self._seen = 0
        self._users: dict[str, set[int]] = {}
        """Recorded processes, and the pids that have used their calls."""

    @contextmanager
    def held(self, use: Callable[[RecordedCall], None]) -> Iterator[None]:
        """Keep other processes from using a call; first ``use`` the calls that they have used meanwhile."""
        with self._claims:
            claimed = self._claims.calls[self._seen :]
            self._seen += len(claimed)
            for pid, number in claimed:
                call = self._calls.get(number)
                if call is not None:
                    self._users.setdefault(call.process, set()).add(pid)
                    if pid != self._claims.pid:
                        use(call)
            yield

    def take(self, call: RecordedCall) -> None:
        """Claim a call; the claims must be held."""
        self._claims.add(CALL, call.number)
        self._users.setdefault(call.process, set()).add(self._claims.pid)

    def nearest(self, equal: list[RecordedCall]) -> list[RecordedCall]:
        """Return those of equal calls that most likely belong to this process."""
        first = [call for call in equal if self.is_first and call.process == self._root]
        if first:
            return first
        for is_near in (self._is_ours, self._is_alike, self._is_unclaimed):
            near = [call for call in equal if is_near(call.process)]
            if near:
                return near
        return equal

    def is_only_maker_of(self, call: RecordedCall) -> bool:
        """True if only this process uses calls of the recorded process that made this call."""
        return self._users.get(call.process) == {self._claims.pid}

    def writer(self) -> str | None:
        """Return the recorded process that this one stands for, None if nothing shows it."""
        if self._origins is None:
            return self._root
        used = [writer for writer, pids in list(self._users.items()) if self._claims.pid in pids]
        return self._origins.take(self._claims, used)

    def may_come(self) -> bool:
        """True if another process is alive and may still make a call."""
        return self._claims.has_other_live()

    def _is_ours(self, writer: str) -> bool:
        users = self._users.get(writer, set())
        return self._claims.pid in users or self._claims.writers.get(writer) == self._claims.pid

    def _is_alike(self, writer: str) -> bool:
        return (
            self._origins is not None
            and self._is_unclaimed(writer)
            and self._origins.is_started_alike(writer)
        )

    def _is_unclaimed(self, writer: str) -> bool:
        return writer not in self._users and writer not in self._claims.writers


class Origins:
    """The recorded processes after the first, and which of them was started like this one."""

    def __init__(self, recording: Recording) -> None:
        self._started: dict[str, Any] = {}
        for at, kind in enumerate(recording.event_types(system=True)):
            if kind == schema.PROC_START:
                event = recording.lines[at]
                self._started.setdefault(event.writer, _label(event.stored_fields))
        self._here: Any = None

    def is_started_alike(self, writer: str) -> bool:
        """True if the recorded process had the same name among its siblings, or else the same command."""
        if self._here is None:
            self._here = _label(how_started())
        return bool(self._started.get(writer) == self._here)

    def take(self, claims: Claims, used: list[str]) -> str | None:
        """Claim and return the recorded process that this one stands for; None if none is left.

        ``used`` are the recorded processes that made the calls used here.
        """
        with claims:
            mine = [writer for writer, pid in claims.writers.items() if pid == claims.pid]
            if mine:
                return mine[0]
            left = [writer for writer in (*used, *self._started) if writer not in claims.writers]
            found = next((writer for writer in left if writer in used or self.is_started_alike(writer)), None)
            if found is not None:
                claims.add(WRITER, found)
            return found


def _label(start: dict[str, Any]) -> Any:
    return start.get("process") or start.get("command")


def calls_of(tape: Tape, *, is_first: bool, live: Container[str]) -> list[RecordedCall]:
    """Return the calls for the first process, or else those for all others."""
    root = tape.recording.first_writer
    return [call for call in tape.calls if (call.process == root) == is_first and call.tool not in live]


def shared_by(tape: Tape, calls: list[RecordedCall], claims: Claims, *, is_first: bool) -> Shared:
    """Return the shared state of one process."""
    root = tape.recording.first_writer
    return Shared(claims, calls, None if is_first else Origins(tape.recording), root)
