"""Recorded answers in the form each library expects them, while a run is replayed.

Seams of `capture` reach these modules through the responder that replay puts in place (``adapter``); imports
`capture` and nothing else of `playback`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...capture.import_lock import import_lock

LIBRARIES = ("httpx", "http_client", "aiohttp", "websockets", "mcp", "tools")
CONNECTING = ("http_client", "websockets")
"""Libraries that connect before it is known who answers."""


def adapter(library: str) -> Any:
    """Return the module that answers for a library, loaded on first use: many processes never ask."""
    assert library in LIBRARIES
    with import_lock:
        return import_module(f".{library}", __name__)


def prepare(library: str, module: Any, watch: Any) -> Callable[[], None] | None:
    """Have the connections of a library's module lead to the recording; returns what undoes it."""
    if library not in CONNECTING:
        return None
    undo: Callable[[], None] = adapter(library).patch(module, watch)
    return undo
