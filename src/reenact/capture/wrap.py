"""``tap.wrap(client)``: the transport inside a client is listened to; the client stays the same object."""

from __future__ import annotations

import os

from . import guard
from .exchange import Watch
from .locate import http_clients
from .seams import httpx_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .tap import Tap


def wrap(tap: Tap, client: Any) -> None:
    """Tap what carries a client's calls. Never raises; a client without such a part is told of."""
    if os.environ.get("REENACT_OFF") == "1":
        return
    try:
        watch = Watch(tap._recorder)
        if not sum([httpx_like.tap_client(each, watch) for each in http_clients(client)]):
            _tell_nothing_found(client)
    except Exception as exc:
        guard.swallow(f"wrap a {type(client).__name__}", exc)


def unwrap(client: Any) -> None:
    """Undo ``wrap``. Never raises."""
    try:
        for each in http_clients(client):
            httpx_like.untap_client(each)
    except Exception as exc:
        guard.swallow(f"unwrap a {type(client).__name__}", exc)


def _tell_nothing_found(client: Any) -> None:
    kind = type(client)
    guard.tell(
        f"wrap:{kind.__module__}.{kind.__qualname__}",
        f"found nothing to listen to in a {kind.__module__}.{kind.__qualname__}: looked for clients of "
        f"{' and '.join(httpx_like.MODULES)} inside it. Its calls are not recorded.",
    )
