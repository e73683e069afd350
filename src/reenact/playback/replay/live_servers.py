"""MCP servers started by a fork: they may act once the run is live, since their tools were allowed.

The process that starts a server writes its command to a file; a server recognises itself by its own command
or that of a parent process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_HIGHEST = 16


def note(path: str, command: Any) -> None:
    """Write the command of a server that is about to start."""
    words = [os.fsdecode(word) for word in command] if isinstance(command, list | tuple) else []
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, json.dumps(words).encode() + b"\n")
    finally:
        os.close(file)


def is_one(path: str) -> bool:
    """True if this process is such a server, or was started by one."""
    try:
        with open(path, encoding="utf-8") as file:
            commands = [json.loads(line)[1:] for line in file]
    except FileNotFoundError:
        return False
    return sys.orig_argv[1:] in commands or any(words[1:] in commands for words in _parent_commands())


def _parent_commands() -> list[list[str]]:
    """Return the commands of the parent processes, as far as they can be read."""
    found, pid = [], os.getppid()
    for _ in range(_HIGHEST):
        if pid <= 1:
            break
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found.append([os.fsdecode(word) for word in file.read().split(b"\0")[:-1]])
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found
