"""The system programs that tests drive: ``python -m support.system_parts`` sets them up.

As root by apt. There are none of them on PyPI, so without apt it ends with the names of the packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from support import browser

PARTS = {"tmux": lambda: shutil.which("tmux"), "chromium": browser.path}
"""Packages, and where their program is; None if it is missing."""


def missing() -> list[str]:
    return [package for package, place in PARTS.items() if place() is None]


def set_up() -> int:
    if missing() and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing()]):
            subprocess.run(["apt-get", *words], env=quiet, stdout=sys.stderr, check=False)
    left = missing()
    if left:
        sys.stderr.write(
            f"The tests need the packages {' and '.join(left)}: install them, or run this as root.\n"
        )
    return bool(left)


if __name__ == "__main__":
    sys.exit(set_up())
