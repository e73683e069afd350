"""From the words after ``reenact run`` to what the kernel executes."""

from __future__ import annotations

import os
import shutil
import sys

from ..errors import UsageError


def command_line(words: list[str], folder: str = "") -> list[str]:
    """Return what to execute: Python for a script, a module or code, else a program on the PATH.

    Paths are relative to ``folder``, where the command will run; by default the current one.
    """
    first = words[0]
    path = os.path.join(folder, first)
    if first in ("-m", "-c"):
        if len(words) < 2:
            raise UsageError(f"{first} of what", hint="for example: reenact run -m my_agent")
        return [sys.executable, *words]
    if first.endswith((".py", ".pyz")) or os.path.isdir(path):
        if not os.path.exists(path):
            raise UsageError(f"there is no script {first}", hint="paths are relative to the current folder")
        return [sys.executable, *words]
    beside_us = os.path.dirname(sys.executable)
    found = shutil.which(first) or shutil.which(first, path=beside_us)
    if found is not None:
        return [found, *words[1:]]
    if os.path.isfile(path):
        return [sys.executable, *words]
    raise UsageError(
        f"there is no script or program {first}", hint="name a script, -m a module, or a program on the PATH"
    )
