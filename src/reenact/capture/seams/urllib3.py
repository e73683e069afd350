"""urllib3's pools, and what holds them: where the connections of requests and botocore come from.

``patch`` listens to every pool (``install``), ``tap`` to one (``tap.wrap``). Connections are made when they
are needed, so ``tap`` listens to their makers: what an adapter, a manager or a pool hands out is tapped in
turn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from .. import guard
from ..http.watch import Watch
from .http_client import PoolRequest, open_in_pool, tap_connection, untap_connection
from .patching import genuine, listen, need_called, override, real, restore

_CONNECTIONS = "_get_conn"
MAKERS = (
    ("http.client", "HTTPConnection", ""),
    ("urllib3.connectionpool", "HTTPConnectionPool", _CONNECTIONS),
    ("urllib3.poolmanager", "PoolManager", "connection_from_pool_key"),
    ("requests.adapters", "HTTPAdapter", "get_connection_with_tls_context get_connection"),
    ("requests.sessions", "Session", "get_adapter"),
    ("botocore.httpsession", "URLLib3Session", "_get_connection_manager"),
)
"""Module, class, and the method that hands out what is to be tapped, an older name after it; a connection
is tapped itself."""


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every pool of ``urllib3.connectionpool``; returns what undoes it."""
    owner = genuine(module.HTTPConnectionPool)
    need_called(owner, "urlopen")
    return listen(owner, {"urlopen": _urlopen})


def _urlopen(pool: Any, original: Any, method: Any, url: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a pool's ``urlopen``, and remember meanwhile what it requests."""
    request = PoolRequest(pool, method, url, args, kwargs)
    return open_in_pool(request, partial(original, pool, method, url, *args, **kwargs))


def kinds() -> tuple[type, ...]:
    """Return the classes that can be tapped, of the modules that are loaded."""
    return tuple(kind for kind, _ in _makers())


def tap(held: Any, watch: Watch) -> None:
    """Listen to one of them; raises if it is not as expected."""
    for kind, method in _makers():
        if isinstance(held, kind):
            if method:
                _tap_maker(held, method, watch)
                if method == _CONNECTIONS:
                    override(held, "urlopen", _urlopen)
            else:
                tap_connection(held, watch)
            return


def untap(held: Any) -> None:
    """Restore it, and what it has handed out and still holds."""
    for kind, method in _makers():
        if isinstance(held, kind):
            if method:
                restore(held, method)
                restore(held, "urlopen")
            else:
                untap_connection(held)
            for each in _handed_out(held):
                untap(each)


def _makers() -> list[tuple[type, str]]:
    found = []
    for module, name, methods in MAKERS:
        if module in sys.modules:
            kind = genuine(getattr(sys.modules[module], name))
            found.append((kind, next((each for each in methods.split() if hasattr(kind, each)), methods)))
    return found


def _tap_maker(maker: Any, method: str, watch: Watch) -> None:
    def hand_out(owner: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        handed_out = original(owner, *args, **kwargs)
        with guard.Swallowing("listen to a connection"):
            tap(real(handed_out), watch)
        return handed_out

    override(maker, method, hand_out)


def _handed_out(held: Any) -> list[Any]:
    own = vars(held)
    idle = getattr(own.get("pool"), "queue", ())
    pools = getattr(own.get("pools"), "_container", {})
    others = [own.get("poolmanager"), own.get("_manager")]
    for name in ("adapters", "proxy_manager", "_proxy_managers"):
        others += list((own.get(name) or {}).values())
    return [real(each) for each in (*idle, *pools.values(), *others) if each is not None]
