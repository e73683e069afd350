"""Answers of a recording for websockets: genuine connections, whose other end is in this process.

``connect`` is given one end of a pair of sockets, so nothing leaves: no look-up, no TLS. At the other end a
thread shakes hands and says what was said then, in answer to what is asked.
"""

from __future__ import annotations

import inspect
import re
import socket
import threading

from ... import protocols
from ...errors import Diverged
from ...protocols import BREAKS, RAISES
from .methods import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ...protocols import Reply
    from ..exchange import Exchange
    from ..watch import Watch

_PLAYED = "_reenact_played"
"""Attribute of a connection: its other end."""
_ELSEWHERE = (
    "ssl", "ssl_context", "server_hostname", "ssl_handshake_timeout", "ssl_shutdown_timeout", "host", "port",
    "proxy_ssl", "proxy_server_hostname",
)  # fmt: skip
"""Arguments of ``connect`` about the way to a server, which there is none now."""
_CLOSED = re.compile(r"received (\d{4}) \([^)]*\)(?: (.*?))?(?:; then sent|; no close frame sent)")
_HERE = ("localhost", "127.0.0.1", "::1")


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Have sockets to a model's API opened to the recording; returns what undoes it."""
    connect: Any = getattr(
        module, "reconnect", module.connect
    )  # what makes connections, for who has its name
    way = {"proxy": None} if "proxy" in inspect.signature(connect).parameters else {}
    if not inspect.isclass(connect):

        def connect_here(uri: Any, *args: Any, **given: Any) -> Any:
            return connect(_led(module, watch, uri, given, way), *args, **given)

        return replace(module, {"connect": connect_here})
    original: Any = connect.__init__

    def __init__(self: Any, uri: Any, *args: Any, **given: Any) -> None:
        original(self, _led(module, watch, uri, given, way), *args, **given)

    return replace(connect, {"__init__": __init__})


def _led(module: Any, watch: Watch, uri: Any, given: dict[str, Any], way: dict[str, None]) -> Any:
    """Return where to connect to; ``given`` is changed so that it leads to our end, if it is a model's."""
    if protocols.responder is None or given.get("sock") is not None or not _is_model(watch, uri):
        return uri
    ours, theirs = socket.socketpair()
    played, make = Played(theirs), given.get("create_connection") or module.ClientConnection

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


def _is_model(watch: Watch, uri: Any) -> bool:
    """True if what is asked over a socket would be recorded; another server of this machine is none of it."""
    from ...wire.routes import route_of

    hosts = [host for host in watch.hosts if host not in _HERE]
    return isinstance(uri, str) and route_of("POST", uri, {"input": ""}, hosts) is not None


class _End(socket.socket):
    """An end of a pair that is taken for a connection over TCP."""

    def setsockopt(self, level: int, *option: Any) -> None:
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *option)


class Played:
    """The other end of a connection: says what the recording has in answer to what is asked."""

    def __init__(self, end: socket.socket) -> None:
        from websockets.server import ServerProtocol

        self._end = end
        self._protocol = ServerProtocol(max_size=None)
        self._lock = threading.Lock()
        self._latest: threading.Thread | None = None
        self.fault: BaseException | None = None
        """Why there is no answer."""
        threading.Thread(target=self._listen, name="reenact-socket", daemon=True).start()

    def ask(self, exchange: Exchange) -> None:
        """Have an exchange answered, after those before it."""
        if exchange.live is not None:
            raise Diverged("a WebSocket that was opened to a recording cannot go live")
        before = self._latest
        self._latest = threading.Thread(target=self._answer, args=(exchange, before), daemon=True)
        self._latest.start()

    def _answer(self, exchange: Exchange, before: threading.Thread | None) -> None:
        try:
            responder = protocols.responder
            assert responder is not None
            reply = responder.reply(exchange)
            if before is not None:
                before.join()
            for message in _messages(reply):
                self._do(self._protocol.send_text, message)
            if reply.then in (BREAKS, RAISES):
                self._hang_up(str(reply.error or ""))
        except OSError:
            pass  # the agent has gone
        except BaseException as exc:  # for who waits for the answer, not for this thread
            self.fault = exc
            self._hang_up("")

    def _hang_up(self, said: str) -> None:
        found = _CLOSED.search(said)
        if found is not None:
            self._do(self._protocol.send_close, int(found[1]), found[2] or "")
        else:
            self._end.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> None:
        from websockets.http11 import Request

        with self._end:
            try:
                while data := self._end.recv(65_536):
                    self._do(self._protocol.receive_data, data)
                    for event in self._protocol.events_received():
                        if isinstance(event, Request):
                            self._do(self._protocol.send_response, self._protocol.accept(event))
            except OSError:
                pass

    def _do(self, something: Any, *args: Any) -> None:
        """Do something with the protocol, and send what comes of it."""
        with self._lock:
            something(*args)
            for data in self._protocol.data_to_send():
                if data:
                    self._end.sendall(data)
                else:
                    self._end.shutdown(socket.SHUT_WR)


def _messages(reply: Reply) -> Iterator[bytes]:
    """Yield what came as messages: each is recorded as one event of a stream."""
    pieces = [data for data, _ in reply.pieces]
    if not all(each.startswith(b"data: ") and each.endswith(b"\n\n") for each in pieces):
        events = [b"\n" + each for each in b"".join(pieces).split(b"\n\n") if each]
        if all(b"\ndata: " not in each for each in events):
            yield from pieces  # a refusal, for instance
            return
        pieces = [b"data: %b\n\n" % each.partition(b"\ndata: ")[2] for each in events]
    for each in pieces:
        if each[6:-2] != b"[DONE]":
            yield each[6:-2]


def played(connection: Any) -> Played | None:
    """Return the other end of a connection that the recording answers."""
    found: Played | None = vars(connection).get(_PLAYED)
    return found
