"""Recorded answers in the form each library expects them, while a run is replayed.

Seams of `capture` reach these modules through the responder that replay puts in place (``adapter``); imports
`capture` and nothing else of `playback`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...capture.import_lock import import_lock

CONNECTING = ("http_client", "websockets")
"""Libraries that connect before it is known who answers."""


def adapter(library: str) -> Any:
    """Return the module that answers for a library, loaded on first use: many processes never ask."""
    module: Any
    with import_lock:
        if library == "httpx":
            from . import httpx as module
        elif library == "http_client":
            from . import http_client as module
        elif library == "aiohttp":
            from . import aiohttp as module
        elif library == "websockets":
            from . import websockets as module
        elif library == "mcp":
            from . import mcp as module
        elif library == "tools":
            from . import tools as module
        else:
            raise ValueError(f"no adapter is called {library}")
    return module


def prepare(library: str, module: Any, watch: Any) -> Callable[[], None] | None:
    """Have the connections of a library's module lead to the recording; returns what undoes it."""
    if library not in CONNECTING:
        return None
    undo: Callable[[], None] = adapter(library).patch(module, watch)
    return undo
