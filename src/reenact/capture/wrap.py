"""``tap.wrap(client)``: what carries a client's calls is listened to; the client stays the same object."""

from __future__ import annotations

import os

from . import guard
from .locate import carriers
from .seams import aiohttp_client, httpx_like, openai_sockets, pools
from .watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .tap import Tap

_SEAMS: tuple[Any, ...] = (httpx_like, aiohttp_client, pools)
_LOOKED_FOR = "clients of httpx and httpx2, sessions of aiohttp, and connections of urllib3 and http.client"


def wrap(tap: Tap, client: Any) -> None:
    """Tap what carries a client's calls. Never raises; a client without such a part is told of."""
    if os.environ.get("REENACT_OFF") == "1":
        return
    try:
        watch = Watch(tap._recorder)
        openai_sockets.expect()
        if not _each_carrier(client, lambda seam, held: seam.tap(held, watch)):
            _tell_nothing_found(client)
    except Exception as exc:
        guard.swallow(f"wrap a {type(client).__name__}", exc)


def unwrap(client: Any) -> None:
    """Undo ``wrap``. Never raises."""
    try:
        _each_carrier(client, lambda seam, held: seam.untap(held))
    except Exception as exc:
        guard.swallow(f"unwrap a {type(client).__name__}", exc)


def _each_carrier(client: Any, do: Callable[[Any, Any], object]) -> int:
    """Do something to whatever carries a client's calls; returns how many such parts it has."""
    known = [(seam, seam.kinds()) for seam in _SEAMS]
    found = carriers(client, tuple(kind for _, kinds in known for kind in kinds), aiohttp_client.holders())
    for held in found:
        for seam, kinds in known:
            if isinstance(held, kinds):
                do(seam, held)
    return len(found)


def _tell_nothing_found(client: Any) -> None:
    kind = type(client)
    guard.tell(
        f"wrap:{kind.__module__}.{kind.__qualname__}",
        f"found nothing to listen to in a {kind.__module__}.{kind.__qualname__}: looked for {_LOOKED_FOR} "
        "inside it. Its calls are not recorded.",
    )
