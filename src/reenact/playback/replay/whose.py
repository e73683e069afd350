"""Who asks for something that a re-enacted agent must not do: told by the frames at hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

from ...capture.coverage import says_to_ignore_us
from ...capture.failure import is_agents

_LIBRARIES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_STDLIB = os.path.dirname(os.__file__) + os.sep
_LOOKING = tuple(_STDLIB + name for name in ("platform.py", "uuid.py", os.path.join("ctypes", "util.py")))
"""Modules that start programs only to look around."""
_WORKERS = (os.path.join("concurrent", "futures"), os.path.join("anyio", "_backends"))
"""Threads that work for whoever waits."""
_PYTHONS = ("python", "pypy")
_BOOTSTRAP = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "capture", "bootstrap"
)
_WATCHING = (__file__, os.path.join(os.path.dirname(__file__), "guard.py"))


def frames() -> Iterable[FrameType]:
    """Return the frames that led here, the nearest first, without those of whoever looks."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename not in _WATCHING:
            yield frame
        frame = frame.f_back


def is_mcp_server() -> bool:
    """True if a session of the MCP library starts its server: what is asked of that is answered here."""
    place = os.path.join("mcp", "client", "stdio")
    return any(place in frame.f_code.co_filename for frame in frames())


def is_library(name: str) -> bool:
    """True for a file of a package that is installed."""
    return any(part in name for part in _LIBRARIES)


def is_librarys_folder(path: str) -> bool:
    """True where libraries keep what is theirs: caches, and small databases as CrewAI's."""
    home, known = os.path.expanduser("~"), os.environ.get
    folders = [
        known("XDG_CACHE_HOME") or os.path.join(home, ".cache"),
        known("XDG_DATA_HOME") or os.path.join(home, ".local", "share"),
        known("XDG_STATE_HOME") or os.path.join(home, ".local", "state"),
    ]
    return any(f"{path}{os.sep}".startswith(os.path.realpath(each) + os.sep) for each in folders)


def is_librarys_own() -> bool:
    """True if a library asks unbidden, in a thread of its own or while it is imported: reports, price lists.

    It gets what it would get from a network that is down, for which such code is made.
    """
    for frame in frames():
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return True
        if is_agents(name) or any(part in name for part in _WORKERS):
            return False
    return True


def only_looks() -> bool:
    """True if Python itself asks what machine this is, as SDKs do for their headers: ``uname -p``."""
    for frame in frames():
        name = frame.f_code.co_filename
        if name in _LOOKING:
            return True
        if not name.startswith(_STDLIB):
            return False
    return False


def is_guarded_python(args: tuple[Any, ...]) -> bool:
    """True if a Python is started that begins as this one did: it is answered and guarded itself."""
    program, words, _, env = args
    try:
        command = [os.fsdecode(word) for word in words] if isinstance(words, list | tuple) else []
    except TypeError:
        return False
    if not is_python(program) or says_to_ignore_us(command):
        return False
    known = os.environ if env is None else env
    return "REENACT_REPLAY" in known and _BOOTSTRAP in known.get("PYTHONPATH", "").split(os.pathsep)


def is_python(program: Any) -> bool:
    """True if a program is a Python, by its name."""
    try:
        return os.path.basename(os.fsdecode(program)).startswith(_PYTHONS)
    except TypeError:
        return False
