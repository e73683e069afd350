"""How a run ended, as far as its file and this machine can tell."""

from __future__ import annotations

import os
from typing import Any

OK, ERROR, UNCLOSED, CANCELLED = "ok", "error", "unclosed", "cancelled"
RUNNING, KILLED, UNKNOWN = "running", "killed", "unknown"
STOPPED = "stopped"
"""It was sent SIGTERM, handled it, and ended: no failure."""
FOREIGN, UNREADABLE = "foreign", "unreadable"

FAILED = frozenset((ERROR, KILLED))


def status_of(start: dict[str, Any] | None, end: dict[str, Any] | None, started: float | None) -> str:
    """Return the status from the fields of ``run.start`` and ``run.end``, either of which may be lost."""
    if end is not None:
        status = end.get("status")
        return status if type(status) is str and status.isprintable() and len(status) <= 20 else UNKNOWN
    if start is None:
        return UNKNOWN
    host, pid = start.get("host"), start.get("pid")
    if (host is not None and host != os.uname().nodename) or type(pid) is not int:
        return UNKNOWN
    return RUNNING if is_alive(pid, started) else KILLED


def is_alive(pid: int, since: float | None) -> bool:
    """True if the process exists and is not a later one with a re-used number."""
    if not 0 < pid < 2**31:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass
    except OSError:
        return False
    born = _born(pid)
    if born is None:
        return True  # not Linux: all we know is that there is such a process
    return born >= 0 and (since is None or born <= since + 2.0)


def _born(pid: int) -> float | None:
    """Return when a process began, seconds since the epoch; -1 for a dead one not yet buried."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, spaces and parentheses too.
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return -1.0
        with open("/proc/stat", "rb") as file:
            boot = next(line for line in file if line.startswith(b"btime "))
        return int(boot.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, StopIteration, ValueError, IndexError):
        return None
