"""An interrupt may end ``__init__`` at any moment: what is half made is dropped without a word."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from reenact import capture, playback


def test_what_is_half_made_is_dropped_without_an_exception() -> None:
    kinds: dict[str, Any] = {
        name: kind
        for room in (capture, playback)
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
        for name, kind in vars(importlib.import_module(found.name)).items()
        if isinstance(kind, type) and kind.__module__.startswith("reenact.") and "__del__" in vars(kind)
    }
    assert {"Exchange", "Recorder"} <= kinds.keys()
    for kind in kinds.values():
        kind.__new__(kind).__del__()
