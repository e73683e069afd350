"""The process of a stdio MCP server: how it ended, if that was before its session did.

We only look: the library that has started the process waits for it; its stderr goes where the agent wants it.
What the server wrote there can be read if that is a file. A pipe of ours in between would show more, but the
server would see that it no longer writes to a terminal, and would lose its stderr with the agent.
"""

from __future__ import annotations

import os
import signal
import stat
from typing import Any

from ... import schema
from ..recorder.recorder import Recorder

_MOST_LINES, _MOST_BYTES = 20, 4096
_CLOSED = (-32000, "Connection closed")
"""Code and message with which the library ends the requests of a lost connection."""
_OF_LIBRARY = (-signal.SIGTERM, -signal.SIGKILL) if hasattr(signal, "SIGKILL") else ()
"""How it ends a server that does not end with its session."""


class ServerProcess:
    """The process behind a transport; there is none behind a transport over the network."""

    def __init__(self, server: str, transport: Any) -> None:
        """``transport`` is a context manager of ``contextlib`` that is not entered yet."""
        self._server = server
        self._transport = transport
        self._process: Any = None
        self._code: int | None = None
        self._is_recorded = False
        self._is_lost = False
        """True once a request has failed because the connection is closed."""
        self._failed: str | None = None
        """The call that failed so."""
        self._stderr: dict[str, Any] = {}
        self._log = _Log(self._local("errlog"))

    def _local(self, name: str) -> Any:
        frame = getattr(getattr(self._transport, "gen", None), "ag_frame", None)
        return None if frame is None else frame.f_locals.get(name)

    def has_ended(self) -> bool:
        """True if the process has ended; its exit code may be known only later."""
        self._process = self._process or self._local("process")
        pid = getattr(self._process, "pid", None)
        if type(pid) is not int:
            return False
        self._code = self._process.returncode
        if self._code is not None or not hasattr(os, "waitid"):
            return self._code is not None
        try:  # WNOWAIT: the library can still wait for it
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        if ended is not None:
            self._code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return ended is not None

    def request_failed(self, exc: BaseException, recorder: Recorder, call: str | None = None) -> None:
        """Take in that a request failed, and record how the process has ended, if that is known already.

        The pipes of a process are closed a little before its exit code can be seen.
        """
        error = getattr(exc, "error", None)
        if (getattr(error, "code", None), getattr(error, "message", None)) == _CLOSED and not self._is_lost:
            self._is_lost, self._failed, self._stderr = True, call, self._log.last_lines()
        self.record_end(recorder, by_itself=self.has_ended())

    def record_end(self, recorder: Recorder, *, by_itself: bool) -> None:
        """Record once how the process has ended; ``by_itself``: it was seen before its session was closed."""
        if self._is_recorded or not self.has_ended() or self._code is None:
            return
        if not by_itself and (not self._is_lost or self._code in _OF_LIBRARY):
            return
        self._is_recorded = True
        fields: dict[str, Any] = {"server": self._server}
        fields |= {"parent": self._failed} if self._failed is not None else {}
        fields |= {"code": self._code} if self._code >= 0 else {"signal": _signal_name(-self._code)}
        recorder.emit(schema.MCP_EXIT, fields | (self._stderr or self._log.last_lines()))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


class _Log:
    """The file that a server's stderr goes to, from where it stood when the server was started."""

    def __init__(self, errlog: Any) -> None:
        self._fd: int | None = None
        try:
            fd = errlog.fileno()
            self._at_start = os.fstat(fd)
            if stat.S_ISREG(self._at_start.st_mode):
                self._fd = fd
        except (AttributeError, OSError, ValueError):
            pass

    def last_lines(self) -> dict[str, Any]:
        """Return the last lines since then as fields; none if it is not a file, or is closed."""
        if self._fd is None:
            return {}
        try:
            now = os.fstat(self._fd)
            if not os.path.samestat(now, self._at_start):
                return {}
            with open(f"/proc/self/fd/{self._fd}", "rb") as file:  # opened again, so that nothing moves
                since = self._at_start.st_size if now.st_size >= self._at_start.st_size else 0
                file.seek(max(since, now.st_size - _MOST_BYTES))
                text = file.read(_MOST_BYTES).decode("utf-8", "replace")
            is_shared = os.path.samestat(now, os.fstat(2))
        except OSError:
            return {}
        lines = text.splitlines()[-_MOST_LINES:]
        return {"stderr": lines} | ({"shared": True} if is_shared else {}) if lines else {}
