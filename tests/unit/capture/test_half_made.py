"""An interrupt may end ``__init__`` at any moment: what is half made is dropped without a word."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from reenact import capture, playback, recording, tracefile


def test_what_is_half_made_is_dropped_without_an_exception() -> None:
    kinds: set[Any] = {
        kind
        for room in (capture, playback, recording, tracefile)
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
        for kind in vars(importlib.import_module(found.name)).values()
        if isinstance(kind, type) and kind.__module__.startswith("reenact.") and hasattr(kind, "__del__")
    }
    assert {"Exchange", "Recorder", "Source"} <= {kind.__name__ for kind in kinds}
    for kind in kinds:
        kind.__new__(kind).__del__()
