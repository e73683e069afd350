"""Answers of a recording for websockets: genuine connections, whose other end is in this process.

``connect`` is given one end of a pair of sockets, so nothing leaves: no look-up, no TLS. At the other end is
``Played``, which shakes hands and says what was said then; where a fork goes live, it connects for real.
"""

from __future__ import annotations

import inspect
import re
import socket

from ... import protocols
from .methods import replace
from .websockets_played import Played
from .websockets_unasked import is_models

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..watch import Watch

_PLAYED, _WATCH = "_reenact_played", "_reenact_watch"
"""Attributes of a connection: its other end; who listens to this one."""
_ASKED, _ENTERED = "_reenact_asked", "_reenact_entered"
"""Attributes of what makes connections, one after the other: what it was given; that it has made one."""
_ELSEWHERE = (
    "ssl", "ssl_context", "server_hostname", "ssl_handshake_timeout", "ssl_shutdown_timeout", "host", "port",
    "proxy_ssl", "proxy_server_hostname",
)  # fmt: skip
"""Arguments of ``connect`` about the way to a server, which there is none now."""
_REAL = (
    "ssl", "ssl_context", "server_hostname", "origin", "extensions", "subprotocols", "compression",
    "additional_headers", "user_agent_header", "proxy", "proxy_ssl", "proxy_server_hostname", "open_timeout",
)  # fmt: skip
"""Arguments that are those of a real connection, too, in a thread as in an event loop."""


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Have sockets to a model's API opened to the recording; returns what undoes it."""
    connect = _maker(module)
    way = {"proxy": None} if "proxy" in inspect.signature(connect).parameters else {}
    if not inspect.isclass(connect):

        def connect_here(uri: Any, *args: Any, **given: Any) -> Any:
            return connect(_led(module, watch, uri, given, way), *args, **given)

        return replace(module, {"connect": connect_here})
    original: Any = connect.__init__

    def __init__(self: Any, uri: Any, *args: Any, **given: Any) -> None:
        asked = uri, args, dict(given)
        original(self, _led(module, watch, uri, given, way), *args, **given)
        vars(self)[_ASKED] = asked if isinstance(given.get("sock"), _End) else None

    def entering(enter: Any) -> Any:
        def entered(self: Any) -> Any:
            asked = vars(self).get(_ASKED)
            if asked is not None and vars(self).get(_ENTERED):
                __init__(self, asked[0], *asked[1], **asked[2])  # an end of its own for each connection
            vars(self)[_ENTERED] = True
            return enter(self)

        return entered

    enters = [name for name in ("__enter__", "__aenter__") if hasattr(connect, name)]
    return replace(
        connect, {"__init__": __init__, **{name: entering(getattr(connect, name)) for name in enters}}
    )


def _maker(module: Any) -> Any:
    """Return what makes connections, for who has its name."""
    return getattr(module, "reconnect", module.connect)


def _led(module: Any, watch: Watch, uri: Any, given: dict[str, Any], way: dict[str, None]) -> Any:
    """Return where to connect to; ``given`` is changed so that it leads to our end, if it is a model's."""
    responder, make = protocols.responder, given.get("create_connection") or module.ClientConnection
    is_ours = responder is not None and not hasattr(make, "is_really_there")
    if responder is None or not is_ours or given.get("sock") is not None or not is_models(watch, uri):
        return uri
    ours, theirs = socket.socketpair()
    is_live = responder.opens(uri)
    unasked = [] if is_live else responder.unasked(uri, watch.recorder())
    played = Played(theirs, unasked, _reaching(uri, dict(given)), is_live=is_live)

    def create_connection(*args: Any, **options: Any) -> Any:
        from websockets.uri import parse_uri

        connection = make(*args, **options)
        name = "uri" if hasattr(connection.protocol, "uri") else "wsuri"
        setattr(connection.protocol, name, parse_uri(uri))
        vars(connection)[_PLAYED] = played
        return connection

    for name in _ELSEWHERE:
        given.pop(name, None)
    given.update(way, sock=_End(fileno=ours.detach()), create_connection=create_connection)
    return re.sub("^wss:", "ws:", uri, flags=re.IGNORECASE)


def _reaching(uri: str, given: dict[str, Any]) -> Callable[[], Any]:
    """Return what connects to the real server as the agent would have done."""

    def reach() -> Any:
        from websockets.sync import client

        class Real(client.ClientConnection):
            is_really_there = True

            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **options)
                vars(self)[_WATCH] = None  # what passes is recorded at the agent's end

        known = inspect.signature(_maker(client)).parameters
        told = {name: given[name] for name in _REAL if name in given and name in known}
        if not hasattr(told.get("ssl"), "wrap_socket"):
            told.pop("ssl", None)  # True, as an event loop has it
        return client.connect(uri, create_connection=Real, max_size=None, **told)

    return reach


class _End(socket.socket):
    """An end of a pair that is taken for a connection over TCP."""

    def setsockopt(self, level: int, *option: Any) -> None:
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *option)


def played(connection: Any) -> Played | None:
    """Return the other end of a connection that the recording answers."""
    found: Played | None = vars(connection).get(_PLAYED)
    return found


def lost(connection: Any, url: str, body: dict[str, Any]) -> str | None:
    """Return why a request cannot be asked of a server that has not heard what came before it."""
    other = played(connection)
    if other is None or not other.answers:
        return None
    if not url.partition("?")[0].endswith("/responses"):
        return "what was said before is kept by the server's side of the connection, and that was never made"
    if body.get("previous_response_id") and body.get("store") is False:
        return "it goes on with an answer that only its connection keeps (store is false)"
    return None
