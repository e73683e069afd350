"""What has come of a stream so far, on disk: ``<stem>.blobs/<call>.part``, until the answer is recorded.

SIGKILL leaves it there, and the reader shows it. Redacted as it is written; up to 256 bytes are held back,
so that a secret that arrives in two pieces of a line is seen whole.
"""

from __future__ import annotations

import errno
import os

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .redact import Redactor

HELD_BACK = 256
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
_may_stay_open = [True] * 32
"""One for each descriptor that may be kept: with a thousand streams at once, the agent needs its own."""


class Spill:
    """One stream's file."""

    def __init__(self, folder: str, call: str, redactor: Redactor | None) -> None:
        self.path = os.path.join(folder, f"{call}.part")
        self._redactor = redactor
        self._held = b""
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
        """Append what arrived, lines that are whole at once, of an unfinished one all but its end.

        A few pieces are looked at together; what waits for them is never more than is held back anyway.
        """
        if self._is_over:
            return
        self._held = held = self._held + data if self._held else data
        if len(held) <= HELD_BACK:
            return
        upto = held.rfind(b"\n") + 1
        if len(held) - upto > HELD_BACK:
            upto = len(held) - HELD_BACK
        self._held = held[upto:]
        try:
            self._write(self._clean(held[:upto]))
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

    def _clean(self, data: bytes) -> bytes:
        if self._redactor is None or not self._redactor.may_hold(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        cleaned = self._redactor.text(text)
        return data if cleaned is text else cleaned.encode("utf-8", "surrogateescape")

    def close(self) -> None:
        """Stop writing; what is there stays."""
        self._is_over = True
        if self._is_ours():
            fd = self._fd
            self._let_go()
            os.close(fd)

    def remove(self) -> None:
        """The answer is recorded: this is no longer needed."""
        self.close()
        try:
            os.unlink(self.path)
        except OSError as exc:
            guard.pass_on(exc)
