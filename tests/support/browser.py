"""The browser that pages are opened in: the one that REENACT_BROWSER names, else the system's.

``python -m support.browser`` sets one up: as root by apt. There is none on PyPI, so without apt it ends with the
name of the package.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = (
    "The tests of the pages need a browser: install the package chromium (as root: apt-get install chromium),\n"
    "or name one by REENACT_BROWSER.\n"
)


def path() -> str | None:
    """Where the browser is; None if there is none."""
    named = os.environ.get("REENACT_BROWSER")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def opened() -> Iterator[Any]:
    """A headless browser; it is closed at the end, with the loop that drives it."""
    from playwright.sync_api import sync_playwright

    found = path()
    assert found is not None, MISSING
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def set_up() -> int:
    if path() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *words], env=quiet, stdout=sys.stderr, check=False)
    found = path()
    sys.stderr.write(MISSING if found is None else f"browser: {found}\n")
    return found is None


if __name__ == "__main__":
    sys.exit(set_up())
