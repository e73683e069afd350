"""Programs that this user has run or allowed to run again, kept in the user's own state folder.

One small file for each program in a folder: ``$XDG_STATE_HOME/reenact/allowed/<digest>``. Recording a program
writes it; ``reenact replay``, ``fork`` and ``test`` look for it before they start anything. Nothing that a
trace or a project holds can make one.
"""

from __future__ import annotations

import os
import stat
import sys

from .. import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_marked: set[str] = set()
"""Files that this process has seen already: a server begins the same entry a thousand times."""


def python_program(words: Sequence[str]) -> list[str]:
    """Return the part of a Python's command line that names its program, without the program's arguments:
    a script, ``-m module`` or ``-c code``; [] for a bare interpreter."""
    rest = iter(words[1:])
    for word in rest:
        if word in ("-", "--") or word[:1] != "-":
            return [word] if word != "--" else [next(rest, "")]
        for at, letter in enumerate(word[1:], 2):
            if letter in "cm":  # its value is the rest of the word, or the next one
                return [f"-{letter}", word[at:] or next(rest, "")]
            if letter in "WX":
                if at == len(word):
                    next(rest, None)
                break
    return []


def is_python(program: str) -> bool:
    """True if a program is a Python, by its name."""
    return os.path.basename(program).startswith(("python", "pypy"))


def command_key(words: Sequence[str], folder: str) -> list[str]:
    """Return what identifies a command in a folder.

    A script is itself, whatever its arguments. Of anything else all words count: the arguments of ``sh -c``,
    ``python -c`` and ``python -m pytest`` are programs, too.
    """
    program = os.path.realpath(os.path.join(folder, words[0]))
    if program == os.path.realpath(sys.executable):
        program = "python"  # this one, in whatever environment
    named = python_program(words) if is_python(words[0]) else []
    if len(named) == 1:
        return ["script", program, os.path.realpath(os.path.join(folder, named[0])), os.path.realpath(folder)]
    return ["command", program, *words[1:], os.path.realpath(folder)]


def entry_key(entry: str, source: str | None) -> list[str]:
    """Return what identifies a function or application: its name, and the script or folder it is in."""
    folder = source or os.getcwd()
    return ["entry", entry, os.path.realpath(os.path.dirname(folder) if folder.endswith(".py") else folder)]


def is_allowed(key: Sequence[str]) -> bool:
    """True if this user has recorded the program there, or allowed it."""
    try:
        found = os.lstat(_path(key))
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def allow(key: Sequence[str]) -> None:
    """Remember a program. Never raises: where it cannot be kept, a replay asks."""
    path = _path(key)
    if path in _marked:
        return
    _marked.add(path)
    try:
        if is_allowed(key):
            return
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(path, flags, 0o600)
        try:
            # For people who look. Arguments may be secrets: the digest in the name covers them.
            shown = [*key[:2], key[-1], ""] if key[0] == "command" else [*key, ""]
            os.write(file, "\n".join(shown).encode("utf-8", "surrogateescape"))
        finally:
            os.close(file)
    except (OSError, ValueError) as exc:
        guard.pass_on(exc)


def _path(key: Sequence[str]) -> str:
    from _blake2 import blake2b  # the C half alone, as everywhere in capture

    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    digest = blake2b("\0".join(key).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
    return os.path.join(state, "reenact", "allowed", digest)
