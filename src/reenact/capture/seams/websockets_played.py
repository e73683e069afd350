"""The other end of a socket that a recording answers: in this process, until a fork goes live.

It says what was said then, in answer to what is asked and unasked. A request that is to leave has the real
server connected through: what the agent had sent before is sent first.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter, deque

from ... import protocols
from ...protocols import BREAKS, RAISES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ...protocols import Reply, Unasked
    from ..exchange import Exchange

MAX_HELD = 10_000
_ASK = b"response.create"
_CLOSED = re.compile(r"received (\d{4}) \([^)]*\)(?: (.*?))?(?:; then sent|; no close frame sent)")


class Played:
    """``reach`` connects to the real server; ``is_live`` has it connected from the beginning."""

    def __init__(
        self, end: socket.socket, unasked: list[Unasked], reach: Callable[[], Any], *, is_live: bool = False
    ) -> None:
        from websockets.server import ServerProtocol

        self._end = end
        self._unasked = deque(unasked)
        self._reach = reach
        self._protocol = ServerProtocol(max_size=None)
        self._lock = threading.Lock()
        self._order = threading.Lock()
        self._latest: threading.Thread | None = None
        self._sent = self._answered = 0
        self._verdicts: deque[bool] = deque()
        """Of each request that is about to come: is it for the real server?"""
        self._parts: list[bytes] = []
        self._is_text = True
        self._held: list[str | bytes] = []
        """Other messages, for a server that is not there yet."""
        self._said: Counter[str] = Counter()
        """What was said unasked, by its type."""
        self._is_live = is_live
        self._real: Any = None
        self.answers = 0
        """Requests that were not asked of the real server."""
        self.fault: BaseException | None = None
        """Why there is no answer."""
        threading.Thread(target=self._listen, name="reenact-socket", daemon=True).start()

    def expect(self, exchange: Exchange) -> None:
        """Say where a request goes, before it is sent."""
        self._verdicts.append(exchange.live is not None)

    def ask(self, exchange: Exchange) -> None:
        """Have an exchange answered by the recording, after those before it."""
        self.answers += 1
        self._then(self._answer, exchange)

    def heard(self) -> None:
        """The agent has sent something that is no request."""
        self._sent += 1
        if self._unasked:
            self._then(self._say_unasked)

    def _then(self, do: Callable[..., None], *args: Any) -> None:
        """Do something in a thread of its own; it is given the thread that speaks before it."""
        with self._order:
            before = self._latest
            self._latest = threading.Thread(target=do, args=(before, *args), daemon=True)
            self._latest.start()

    def _answer(self, before: threading.Thread | None, exchange: Exchange) -> None:
        try:
            responder = protocols.responder
            assert responder is not None
            reply = responder.reply(exchange)
            if before is not None:
                before.join()
            for message in _messages(reply):
                self._do(self._protocol.send_text, message)
            self._answered += 1
            if reply.then in (BREAKS, RAISES):
                self._hang_up(str(reply.error or ""))
            self._say_unasked(None)
        except OSError:
            pass  # the agent has gone
        except BaseException as exc:  # for who waits for the answer, not for this thread
            self.fault = exc
            self._hang_up("")

    def _say_unasked(self, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        try:
            while self._unasked and self._is_next(self._unasked[0]):
                said = json.dumps(self._unasked.popleft().body).encode()
                self._said[_type(said)] += 1
                self._do(self._protocol.send_text, said)
        except OSError:
            pass

    def _is_next(self, unasked: Unasked) -> bool:
        return unasked.asked <= self._answered and unasked.sent <= self._sent

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
            said = (exc.response.body or b"").decode("utf-8", "replace")
            answer = self._protocol.reject(exc.response.status_code, said)
        except Exception as exc:
            self.fault = exc
            self._end.shutdown(socket.SHUT_RDWR)
            return
        self._do(self._protocol.send_response, answer)
        if self._real is not None:
            self._hear_of()
        self._then(self._say_unasked)

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
        if _ASK in message and _type(message) == _ASK.decode():
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
        said = message.decode() if self._is_text else message
        if self._real is not None:
            self._real.send(said)
        elif len(self._held) < MAX_HELD:
            self._held.append(said)

    def _connect(self) -> None:
        """Have the real server there, and tell it what the agent has said so far."""
        if self._latest is not None:
            self._latest.join()
        real = self._reach()
        for message in self._held:
            real.send(message)
        self._real = real

    def _hear_of(self) -> None:
        """Have the agent hear what the real server says from now on."""
        threading.Thread(target=self._pass_on, name="reenact-socket", daemon=True).start()

    def _pass_on(self) -> None:
        from websockets.exceptions import ConnectionClosed, WebSocketException

        try:
            while True:
                message = self._real.recv()
                kind = _type(message)
                if self._said[kind]:  # the recording has said it in its place
                    self._said[kind] -= 1
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
        """Do something with the protocol, and send what comes of it."""
        with self._lock:
            something(*args)
            for data in self._protocol.data_to_send():
                if data:
                    self._end.sendall(data)
                else:
                    self._end.shutdown(socket.SHUT_WR)


def _type(message: str | bytes) -> str:
    try:
        said = json.loads(message)
    except ValueError:
        return ""
    return str(said.get("type")) if isinstance(said, dict) else ""


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
