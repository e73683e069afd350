"""openai's ``responses.connect()`` and ``realtime.connect()`` for ``tap.wrap``: sockets a client opens.

What opens them knows its client, and a wrapped client, or a copy of one, is told by its tapped transport. So
it is asked when a socket is there. What is not imported yet is waited for; nothing is imported for our sake.
"""

from __future__ import annotations

import sys

from .. import guard
from ..import_lock import import_lock
from . import websockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..http.watch import Watch

MODULES = ("openai.resources.responses.responses", "openai.resources.realtime.realtime")
_OPENERS = (
    "ResponsesConnectionManager", "AsyncResponsesConnectionManager",
    "RealtimeConnectionManager", "AsyncRealtimeConnectionManager",
)  # fmt: skip
_waits = False


def expect() -> None:
    """Be asked about every socket that an openai client opens from now on. Twice is fine."""
    global _waits
    if _waits or "openai" not in sys.modules:
        return
    _waits = True
    with import_lock:
        from .libraries import AfterImport

    missing = [name for name in MODULES if name not in sys.modules]
    sys.meta_path.insert(0, AfterImport(missing, lambda _, module: _prepare(module)))
    for name in MODULES:
        if name not in missing:
            _prepare(sys.modules[name])


def _prepare(module: ModuleType) -> None:
    for name in _OPENERS:
        opener = getattr(module, name, None)
        original = getattr(opener, "_connect_ws", None)
        if opener is not None and original is not None:
            make = _async_opening if name.startswith("Async") else _opening
            opener._connect_ws = make(original)


def _opening(original: Any) -> Any:
    def _connect_ws(self: Any, *args: Any, **given: Any) -> Any:
        return _listen(self, original(self, *args, **given))

    return _connect_ws


def _async_opening(original: Any) -> Any:
    async def _connect_ws(self: Any, *args: Any, **given: Any) -> Any:
        return _listen(self, await original(self, *args, **given))

    return _connect_ws


def _listen(opener: Any, socket: Any) -> Any:
    try:
        watch = _watch_of(opener)
        if watch is not None:
            websockets.tap(socket, watch)
    except Exception as exc:
        guard.swallow("listen to a socket", exc)
    return socket


def _watch_of(opener: Any) -> Watch | None:
    """Return who listens to the client that opens a socket."""
    client = next(value for name, value in vars(opener).items() if name.endswith("__client"))
    found: Watch | None = getattr(vars(client._client).get("_transport"), "_watch", None)
    return found
