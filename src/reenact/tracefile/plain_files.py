"""Opening files: those that come with a trace only if they are plain, within a bound; own ones private.

A folder that somebody sent may hold a pipe, on which opening waits for ever, a device without an end, or a
link to a file of the reader's own.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)

SPECIAL = "a pipe or device, not a plain file"
LINK = "a link, which is followed only if it is named itself"


def open_plain(path: str, *, follow: bool = False) -> int:
    """Return a descriptor of a plain file, never waiting; OSError for anything else.

    ``follow`` is for paths that the user named; a link that comes with a trace is not followed.
    """
    try:
        fd = os.open(path, _FLAGS if follow else _FLAGS | _NO_LINK)
    except OSError as why:
        if why.errno == errno.ENXIO:  # a socket
            raise OSError(errno.ENXIO, SPECIAL, path) from None
        if why.errno in (errno.ELOOP, errno.EMLINK) and os.path.islink(path) and not follow:
            raise OSError(why.errno, LINK, path) from None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, SPECIAL, path)


def read_plain(path: str, most: int) -> bytes:
    """Return the first bytes of a plain file, at most so many."""
    with open(open_plain(path), "rb") as file:
        return file.read(most)


def create_private(path: str) -> BinaryIO:
    """Return a file to write, emptied if it was there; a new one is for the user alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    return open(os.open(path, flags, 0o600), "wb")


def is_plain(path: str) -> bool:
    """True for a plain file, not for a link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def not_plain(path: str) -> str | None:
    """Return why a file that was found in a folder is not read: it is a link, a pipe or a device."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None  # whoever opens it reports that
    if stat.S_ISLNK(mode):
        return LINK
    return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else SPECIAL


def is_special(path: str) -> bool:
    """True for a pipe, socket or device: opening it may wait for ever, and it cannot be read twice."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
