"""Test files on disk: written whole or not at all, and never over what somebody has changed."""

from __future__ import annotations

import os
import re
from hashlib import sha256

from ...errors import UsageError

_STAMP = re.compile(r"# reenact test: ([0-9a-f]{16}) of ([0-9a-f, ]*)\n\Z")


def stamped(text: str, runs: list[str]) -> str:
    """Return the text of a test with a last line by which a change is known later."""
    of = ", ".join(run[:12] for run in runs)
    return f"{text}\n\n# reenact test: {_digest(text)} of {of}\n"


def check_free(path: str, runs: list[str]) -> None:
    """Raise UsageError if a file is there that is not ours to write: changed, another's, or of other runs."""
    try:
        with open(path, encoding="utf-8") as file:
            there = file.read()
    except FileNotFoundError:
        return
    except UnicodeDecodeError:
        there = ""
    found = _STAMP.search(there)
    other = os.path.join(os.path.dirname(path), "test_another.py")
    hint = f"--force writes over it; -o {other} makes another file"
    if found is None:
        raise UsageError(f"{path} is there already, and was not made by reenact test", hint=hint)
    if _digest(there[: found.start()].removesuffix("\n\n")) != found[1]:
        raise UsageError(f"{path} was changed since it was made", hint=hint)
    if found[2] != ", ".join(run[:12] for run in runs):
        raise UsageError(f"{path} is there already, made from {found[2] or 'another run'}", hint=hint)


def write(path: str, text: str) -> None:
    """Write a file by one rename."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    partial = f"{path}.{os.getpid()}.tmp"
    try:
        with open(partial, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
