"""Files in the user's own cache folder: what takes a while to find out again, and may be deleted at any time.

Readers write nowhere else. An entry is made under a random name, for the user alone, and renamed when whole;
one that is not the user's own plain file is not believed. Who loads an entry checks what it says.
"""

from __future__ import annotations

import hashlib
import os
import stat
from array import array
from contextlib import suppress

from .. import lines
from .plain_files import open_plain

_MOST = 256
"""Entries of one kind; the oldest go."""


def folder() -> str:
    """Return the folder: ``$XDG_CACHE_HOME/reenact``, else ``~/.cache/reenact``."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(root):
        root = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "reenact")


def name_of(what: str, kind: str) -> str:
    """Return the name of the entry of one kind for something."""
    return f"{hashlib.sha256(os.fsencode(what)).hexdigest()[:32]}.{kind}"


def load(name: str, most: int) -> bytes | None:
    """Return the bytes of an entry; None if there is none, or one that is too large or not the user's."""
    try:
        with open(open_plain(os.path.join(folder(), name)), "rb") as file:
            state = os.fstat(file.fileno())
            if state.st_size > most or (hasattr(os, "geteuid") and state.st_uid != os.geteuid()):
                return None
            return file.read(state.st_size)  # a buffer of ``most`` bytes may be more than the machine has
    except (OSError, ValueError):
        return None


def store(name: str, *pieces: bytes | array[int] | array[float]) -> None:
    """Make or replace an entry; where that is not possible there is none, which is no error."""
    place = folder()
    fresh = os.path.join(place, f"{name}.{lines.new_id(8)}.tmp")
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        return
    try:
        with open(fd, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(fresh, os.path.join(place, name))
        _prune(place, os.path.splitext(name)[1])
    except OSError:
        with suppress(OSError):
            os.unlink(fresh)


def _prune(place: str, ending: str) -> None:
    with os.scandir(place) as entries:
        found = [entry for entry in entries if entry.name.endswith(ending)]
    if len(found) <= _MOST:
        return
    states = [(entry.stat(follow_symlinks=False), entry.path) for entry in found]
    plain = sorted((state.st_mtime, path) for state, path in states if stat.S_ISREG(state.st_mode))
    for _, path in plain[:-_MOST]:
        os.unlink(path)
