"""What has come of a stream so far, on disk: ``<stem>.blobs/<call>.part``, until the answer is recorded.

SIGKILL leaves it there, and the reader shows it. Redacted as it is written; up to 512 bytes are held back,
so that a secret that arrives in two pieces of a line is seen whole, and the events of a word that is not
over, so that one is seen that is said a few letters at a time. With such a one the file ends.
"""

from __future__ import annotations

import errno
import os

from . import guard
from .said import Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .redact import Redactor

LOOKED_AT, LONG, HELD_BACK = 512, 8_192, 256
"""Bytes that are looked at together; of an event too long to wait for its end; of such a one that wait."""
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
_may_stay_open = [True] * 32
"""One for each descriptor that may be kept: with a thousand streams at once, the agent needs its own."""


class Spill:
    """One stream's file."""

    def __init__(self, folder: str, call: str, redactor: Redactor | None) -> None:
        self.path = os.path.join(folder, f"{call}.part")
        self._redactor = redactor
        self._held = b""
        self._said = None if redactor is None else Said(redactor)
        self._is_over = False
        self._fd = self._create(folder)
        state = os.fstat(self._fd)
        self._identity = state.st_dev, state.st_ino
        try:
            _may_stay_open.pop()
        except IndexError:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _create(self, folder: str) -> int:
        flags = _FLAGS | os.O_CREAT | os.O_EXCL
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return os.open(self.path, flags, 0o600)

    def add(self, data: bytes) -> None:
        """Append what arrived, events that are whole; of a long unfinished one all but its end.

        A few pieces are looked at together; what waits for them is little.
        """
        if self._is_over:
            return
        self._held = held = self._held + data if self._held else data
        if len(held) < LOOKED_AT:
            return
        upto = _end_of_events(held)
        if not upto:
            return
        self._held = held[upto:]
        block = held[:upto] if self._said is None else self._said.passes(held[:upto])
        try:
            if block:
                self._write(block)
            elif self._said is not None and self._said.holds_secret:
                self.close()
        except OSError as exc:
            self.close()
            guard.tell(f"part:{exc.errno}", f"a stream is not kept as it arrives ({guard.explain(exc)}).")

    def _write(self, data: bytes) -> None:
        """Append to the file, and to no other that has got its descriptor since."""
        fd = self._fd if self._is_ours() else os.open(self.path, _FLAGS)
        try:
            if os.write(fd, data) < len(data):  # what came after it would stand at a wrong place
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            if fd != self._fd:
                os.close(fd)

    def _is_ours(self) -> bool:
        """False without a descriptor of our own: an agent may close all it finds, and open others."""
        if self._fd < 0:
            return False
        try:
            state = os.fstat(self._fd)
        except OSError as exc:
            guard.pass_on(exc)
            self._let_go()
            return False
        if (state.st_dev, state.st_ino) == self._identity:
            return True
        self._let_go()
        return False

    def _let_go(self) -> None:
        self._fd = -1
        _may_stay_open.append(True)

    def close(self) -> None:
        """Stop writing; what is there stays."""
        self._is_over = True
        if self._is_ours():
            fd = self._fd
            self._let_go()
            os.close(fd)

    def __del__(self) -> None:
        """An answer that nobody ended, after a fault of ours: the agent gets the descriptor back."""
        try:
            self.close()
        except Exception:  # half made, or the interpreter ends
            pass

    def remove(self) -> None:
        """The answer is recorded: this is no longer needed."""
        try:
            self.close()
            os.unlink(self.path)
        except OSError as exc:
            guard.pass_on(exc)


def _end_of_events(data: bytes) -> int:
    """Return where the last whole event ends: a line, or the object in a frame of Bedrock's binary stream."""
    upto = data.rfind(b"\n") + 1
    if len(data) - upto > HELD_BACK and (at := data.rfind(b'"}', upto)) >= 0:
        upto = at + 2
    return upto if len(data) - upto <= LONG else len(data) - HELD_BACK
