"""The browser that pages are opened in: the one that REENACT_BROWSER names, else the system's."""

from __future__ import annotations

import os
import shutil
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
