"""Recorded responses for websockets: genuine connections, whose other end is in this process.

``connect`` gets one end of a pair of sockets, so nothing is sent: no look-up, no TLS. At the other end is
``RecordedServer``, which does the handshake and sends the recorded messages; where a fork goes live, it
connects to the real server.
"""

from __future__ import annotations

import inspect
import json
import re
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...capture import replay_hook
from ...capture.seams.patching import replace
from ...capture.seams.websockets import ASK, OTHER_END, WATCH, is_models
from .replies import BREAKS, RAISES, responder

if TYPE_CHECKING:
    from ...capture.http.exchange import Exchange
    from ...capture.http.watch import Watch
    from .replies import Reply, Unprompted


# The other end of a socket that a recording answers: in this process, until a fork goes live.
#
# It sends the recorded replies, and the messages that the server sent without a request. For a request that
# is live it connects the real server through, and first sends it what the agent had sent before.

MAX_HELD = 10_000
_CLOSED = re.compile(r"received (\d{4}) \([^)]*\)(?: (.*?))?(?:; then sent|; no close frame sent)")


class RecordedServer:
    """``reach`` connects to the real server; ``is_live`` has it connected from the beginning."""

    def __init__(
        self,
        end: socket.socket,
        unprompted: list[Unprompted],
        reach: Callable[[], Any],
        *,
        is_live: bool = False,
    ) -> None:
        from websockets.server import ServerProtocol

        self._end = end
        self._unprompted = deque(unprompted)
        self._reach = reach
        self._protocol = ServerProtocol(max_size=None)
        self._lock = threading.Lock()
        self._order = threading.Lock()
        self._latest: threading.Thread | None = None
        self._sent = self._answered = 0
        self._verdicts: deque[bool] = deque()
        """Of each request that is about to arrive: True if it is for the real server."""
        self._parts: list[bytes] = []
        self._is_text = True
        self._held: list[str | bytes] = []
        """Other messages, for a server that is not there yet."""
        self._sent_types: Counter[str] = Counter()
        """Number of messages sent without a request, by type."""
        self._is_live = is_live
        self._real: Any = None
        self.answers = 0
        """Requests that the recording has answered."""
        self.fault: BaseException | None = None
        """Why there is no answer."""
        threading.Thread(target=self._listen, name="reenact-socket", daemon=True).start()

    def lost(self, url: str, body: bytes) -> str | None:
        """Return why a request cannot be sent to a server that has not heard what came before it."""
        if not self.answers:
            return None
        if not url.partition("?")[0].endswith("/responses"):
            return "the server's side of the connection keeps earlier messages, and there was no connection"
        request = json.loads(body)
        if request.get("previous_response_id") and request.get("store") is False:
            return "it continues a response that only its connection keeps (store is false)"
        return None

    def expect(self, exchange: Exchange) -> None:
        """Learn where a request goes, before it is sent."""
        self._verdicts.append(exchange.live is not None)

    def ask(self, exchange: Exchange) -> None:
        """Have an exchange answered by the recording, after those before it."""
        self.answers += 1
        self._then(self._answer, exchange)

    def heard(self) -> None:
        """The agent has sent something that is not a request."""
        self._sent += 1
        if self._unprompted:
            self._then(self._send_unprompted)

    def _then(self, do: Callable[..., None], *args: Any) -> None:
        """Run ``do`` in a thread of its own; its first argument is the thread that sends before it."""
        with self._order:
            before = self._latest
            self._latest = threading.Thread(target=do, args=(before, *args), daemon=True)
            self._latest.start()

    def _answer(self, before: threading.Thread | None, exchange: Exchange) -> None:
        try:
            reply = responder().reply(exchange)
            if before is not None:
                before.join()
            for message in _messages(reply):
                self._do(self._protocol.send_text, message)
            self._answered += 1
            if reply.then in (BREAKS, RAISES):
                self._hang_up(str(reply.error or ""))
            self._send_unprompted(None)
        except OSError:
            pass  # the agent has gone
        except BaseException as exc:  # for the thread that waits for the response
            self.fault = exc
            self._hang_up("")

    def _send_unprompted(self, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        try:
            while self._unprompted and self._is_next(self._unprompted[0]):
                message = json.dumps(self._unprompted.popleft().body).encode()
                self._sent_types[_type(message)] += 1
                self._do(self._protocol.send_text, message)
        except OSError:
            pass

    def _is_next(self, unprompted: Unprompted) -> bool:
        return unprompted.requests <= self._answered and unprompted.sent <= self._sent

    def _hang_up(self, error_text: str) -> None:
        found = _CLOSED.search(error_text)
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
                            self._welcome(event)
                        else:
                            self._take(event)
            except OSError:
                pass
            finally:
                if self._real is not None:
                    self._real.close()

    def _welcome(self, request: Any) -> None:
        from websockets.exceptions import InvalidStatus

        answer = self._protocol.accept(request)
        try:
            if self._is_live:
                self._connect()
        except InvalidStatus as exc:
            body = (exc.response.body or b"").decode("utf-8", "replace")
            answer = self._protocol.reject(exc.response.status_code, body)
        except Exception as exc:
            self.fault = exc
            self._end.shutdown(socket.SHUT_RDWR)
            return
        self._do(self._protocol.send_response, answer)
        if self._real is not None:
            self._hear_of()
        self._then(self._send_unprompted)

    def _take(self, frame: Any) -> None:
        """Take in a frame; a whole message goes to the real server, or is kept for it."""
        from websockets.frames import DATA_OPCODES, Opcode

        if frame.opcode not in DATA_OPCODES:
            return
        if frame.opcode != Opcode.CONT:
            self._parts, self._is_text = [], frame.opcode == Opcode.TEXT
        self._parts.append(bytes(frame.data))
        if not frame.fin:
            return
        message = b"".join(self._parts)
        if ASK.encode() in message and _type(message) == ASK:
            if not self._verdicts or not self._verdicts.popleft():
                return  # the recording answers it
            try:
                if self._real is None:
                    self._connect()
                    self._hear_of()
            except Exception as exc:
                self.fault = exc
                self._hang_up("")
                return
        message_text = message.decode() if self._is_text else message
        if self._real is not None:
            self._real.send(message_text)
        elif len(self._held) < MAX_HELD:
            self._held.append(message_text)

    def _connect(self) -> None:
        """Connect to the real server, and send it what the agent has sent so far."""
        if self._latest is not None:
            self._latest.join()
        real = self._reach()
        for message in self._held:
            real.send(message)
        self._real = real

    def _hear_of(self) -> None:
        """Pass messages of the real server on to the agent from now on."""
        threading.Thread(target=self._pass_on, name="reenact-socket", daemon=True).start()

    def _pass_on(self) -> None:
        from websockets.exceptions import ConnectionClosed, WebSocketException

        try:
            while True:
                message = self._real.recv()
                kind = _type(message)
                if self._sent_types[kind]:  # the recording has sent it already
                    self._sent_types[kind] -= 1
                elif isinstance(message, str):
                    self._do(self._protocol.send_text, message.encode())
                else:
                    self._do(self._protocol.send_binary, message)
        except ConnectionClosed as exc:
            try:
                if exc.rcvd is None:
                    self._hang_up("")
                else:
                    self._do(self._protocol.send_close, exc.rcvd.code, exc.rcvd.reason)
            except (OSError, WebSocketException):
                pass
        except (OSError, WebSocketException):
            pass  # the agent has gone

    def _do(self, something: Any, *args: Any) -> None:
        """Call a method of the protocol, and send the bytes it produces."""
        with self._lock:
            something(*args)
            for data in self._protocol.data_to_send():
                if data:
                    self._end.sendall(data)
                else:
                    self._end.shutdown(socket.SHUT_WR)


def _type(message: str | bytes) -> str:
    try:
        parsed = json.loads(message)
    except ValueError:
        return ""
    return str(parsed.get("type")) if isinstance(parsed, dict) else ""


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


_CONNECT_ARGS, _ENTERED = "_reenact_connect_args", "_reenact_entered"
"""Attributes of an object that makes connections: its arguments; that it has made one."""
_ELSEWHERE = (
    "ssl", "ssl_context", "server_hostname", "ssl_handshake_timeout", "ssl_shutdown_timeout", "host", "port",
    "proxy_ssl", "proxy_server_hostname",
)  # fmt: skip
"""Arguments of ``connect`` about the way to a server, which is not used now."""
_REAL = (
    "ssl", "ssl_context", "server_hostname", "origin", "extensions", "subprotocols", "compression",
    "additional_headers", "user_agent_header", "proxy", "proxy_ssl", "proxy_server_hostname", "open_timeout",
)  # fmt: skip
"""Arguments that are those of a real connection, too, in a thread as in an event loop."""


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Connect sockets to a model's API to the recording; returns what undoes it."""
    connect = _maker(module)
    way = {"proxy": None} if "proxy" in inspect.signature(connect).parameters else {}
    if not inspect.isclass(connect):

        def connect_here(uri: Any, *args: Any, **kwargs: Any) -> Any:
            return connect(_led_here(module, watch, uri, kwargs, way), *args, **kwargs)

        return replace(module, {"connect": connect_here})
    original: Any = connect.__init__

    def __init__(self: Any, uri: Any, *args: Any, **kwargs: Any) -> None:
        connect_args = uri, args, dict(kwargs)
        original(self, _led_here(module, watch, uri, kwargs, way), *args, **kwargs)
        vars(self)[_CONNECT_ARGS] = connect_args if isinstance(kwargs.get("sock"), _End) else None

    def entering(enter: Any) -> Any:
        def entered(self: Any) -> Any:
            connect_args = vars(self).get(_CONNECT_ARGS)
            if connect_args is not None and vars(self).get(_ENTERED):
                __init__(
                    self, connect_args[0], *connect_args[1], **connect_args[2]
                )  # an end of its own for each connection
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


def _led_here(module: Any, watch: Watch, uri: Any, kwargs: dict[str, Any], way: dict[str, None]) -> Any:
    """Return where to connect to; for a model's API ``kwargs`` is changed so that it leads to our end."""
    make = kwargs.get("create_connection") or module.ClientConnection
    is_ours = replay_hook.responder is not None and not hasattr(make, "is_really_there")
    if not is_ours or kwargs.get("sock") is not None or not is_models(watch, uri):
        return uri
    ours, theirs = socket.socketpair()
    is_live = responder().opens(uri)
    unprompted = [] if is_live else responder().unprompted(uri, watch.recorder())
    recorded_server = RecordedServer(theirs, unprompted, _reaching(uri, dict(kwargs)), is_live=is_live)

    def create_connection(*args: Any, **options: Any) -> Any:
        from websockets.uri import parse_uri

        connection = make(*args, **options)
        name = "uri" if hasattr(connection.protocol, "uri") else "wsuri"
        setattr(connection.protocol, name, parse_uri(uri))
        vars(connection)[OTHER_END] = recorded_server
        return connection

    for name in _ELSEWHERE:
        kwargs.pop(name, None)
    kwargs.update(way, sock=_End(fileno=ours.detach()), create_connection=create_connection)
    return re.sub("^wss:", "ws:", uri, flags=re.IGNORECASE)


def _reaching(uri: str, kwargs: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that connects to the real server as the agent would have done."""

    def reach() -> Any:
        from websockets.sync import client

        class Real(client.ClientConnection):
            is_really_there = True

            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **options)
                vars(self)[WATCH] = None  # what passes is recorded at the agent's end

        known = inspect.signature(_maker(client)).parameters
        options = {name: kwargs[name] for name in _REAL if name in kwargs and name in known}
        if not hasattr(options.get("ssl"), "wrap_socket"):
            options.pop("ssl", None)  # True, as an event loop has it
        return client.connect(uri, create_connection=Real, max_size=None, **options)

    return reach


class _End(socket.socket):
    """An end of a pair that is taken for a connection over TCP."""

    def setsockopt(self, level: int, *option: Any) -> None:
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *option)
