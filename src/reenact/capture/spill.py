"""What has come of a stream so far, on disk: ``<stem>.blobs/<call>.part``, until the answer is recorded.

SIGKILL leaves it there, and the reader shows it. Redacted as it is written; up to 256 bytes are held back,
so that a secret that arrives in two pieces of a line is seen whole.
"""

from __future__ import annotations

import os

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .redact import Redactor

HELD_BACK = 256


class Spill:
    """One stream's file."""

    def __init__(self, folder: str, call: str, redactor: Redactor | None) -> None:
        self.path = os.path.join(folder, f"{call}.part")
        self._redactor = redactor
        self._held = b""
        self._fd = self._open(folder)

    def _open(self, folder: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return os.open(self.path, flags, 0o600)

    def add(self, data: bytes) -> None:
        """Append what arrived, lines that are whole at once, of an unfinished one all but its end.

        A few pieces are looked at together; what waits for them is never more than is held back anyway.
        """
        self._held = held = self._held + data if self._held else data
        if len(held) <= HELD_BACK or self._fd < 0:
            return
        upto = held.rfind(b"\n") + 1
        if len(held) - upto > HELD_BACK:
            upto = len(held) - HELD_BACK
        self._held = held[upto:]
        try:
            os.write(self._fd, self._clean(held[:upto]))
        except OSError as exc:
            self.close()
            guard.tell(f"part:{exc.errno}", f"a stream is not kept as it arrives ({guard.explain(exc)}).")

    def _clean(self, data: bytes) -> bytes:
        if self._redactor is None or not self._redactor.may_hold(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        cleaned = self._redactor.text(text)
        return data if cleaned is text else cleaned.encode("utf-8", "surrogateescape")

    def close(self) -> None:
        """Stop writing; what is there stays."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def remove(self) -> None:
        """The answer is recorded: this is no longer needed."""
        self.close()
        try:
            os.unlink(self.path)
        except OSError as exc:
            guard.pass_on(exc)
