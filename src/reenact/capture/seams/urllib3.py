"""urllib3 makes a TLS connection, or one through a proxy, before it makes a request of it.

A call that gets no further than that is a call, too. What is about to be asked is known to its pool's
``urlopen``, which calls itself again for each attempt; the connection takes it from there.
"""

from __future__ import annotations

from _contextvars import ContextVar

from ..http.exchange import CLOSED, how_raised
from .http_client_bodies import outgoing
from .patching import genuine, need_asked, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..http.exchange import Exchange
    from ..http.watch import Watch

_asked: ContextVar[Asked | None] = ContextVar("reenact_asked", default=None)


class Asked:
    """What a pool is asked for: method, URL, body, headers."""

    def __init__(self, pool: Any, method: Any, url: Any, args: Any, given: Any) -> None:
        body = args[0] if args else given.get("body")
        headers = args[1] if len(args) > 1 else given.get("headers")
        self.request = method, url, (body, getattr(pool, "headers", None) if headers is None else headers)
        self.is_begun = False
        """True if its connection has begun the exchange, and no request has taken it yet."""
        self.exchange: Exchange | None = None

    def give_up(self, how: str, exc: BaseException | None = None) -> None:
        """There is a connection, and nobody has asked anything of it."""
        if self.is_begun and self.exchange is not None:
            self.exchange.end(how, exc)


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every pool of ``urllib3.connectionpool``; returns what undoes it."""
    owner = genuine(module.HTTPConnectionPool)
    need_asked(owner, "urlopen")
    original = owner.urlopen

    def tapped(self: Any, *args: Any, **given: Any) -> Any:
        return urlopen(self, original, *args, **given)

    return replace(owner, {"urlopen": tapped})


def urlopen(pool: Any, original: Any, method: Any, url: Any, *args: Any, **given: Any) -> Any:
    """Call a pool's ``urlopen``, and remember meanwhile what was asked."""
    before, asked = _asked.get(), Asked(pool, method, url, args, given)
    _asked.set(asked)
    try:
        return original(pool, method, url, *args, **given)
    except BaseException as exc:
        asked.give_up(how_raised(exc), exc)
        raise
    finally:
        _asked.set(before)
        asked.give_up(CLOSED)


def connect(connection: Any, original: Callable[[], Any], begin: Callable[..., Exchange | None]) -> Any:
    """Let a connection connect; what has been asked is begun before."""
    asked = _asked.get()
    is_within = outgoing(connection) is not None  # a request connects if nobody has
    if asked is None or asked.is_begun or is_within:
        return original()
    method, url, more = asked.request
    asked.is_begun, asked.exchange = True, begin(connection, method, url, more, {})
    try:
        return original()
    except BaseException as exc:
        if asked.exchange is not None:
            asked.exchange.raised(exc)
        raise


def taken() -> Asked | None:
    """Return what a connection has begun before the request at hand, once."""
    asked = _asked.get()
    if asked is None or not asked.is_begun:
        return None
    asked.is_begun = False
    return asked
