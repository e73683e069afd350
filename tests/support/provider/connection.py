"""HTTP/1.1 on one connection: requests in, answers out, exactly as the scenario says."""

from __future__ import annotations

import asyncio
import http
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from urllib.parse import unquote

from .answers import Answer, Ask, encoded, whole_answer
from .scenario import Scenario

HEAD_END = b"\r\n\r\n"
NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Received:
    """One request as it arrived, and what became of its answer."""

    connection: int
    at: float
    """On the clock of time.perf_counter()."""
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    status: int | None = None
    sent: list[tuple[float, bytes]] = field(default_factory=list)
    """The pieces of the answer's body with their times, before transfer encoding."""
    left: bool = False
    """The client went away before the whole answer was handed out."""
    over: bool = False

    @property
    def answer(self) -> bytes:
        return b"".join(piece for _, piece in self.sent)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class Connection(asyncio.Protocol):
    """Takes requests one after another; while one is answered it watches for the client leaving."""

    def __init__(
        self,
        number: int,
        note: Callable[[Received], int],
        route: Callable[[Ask], Answer],
        over: Callable[[Received], None],
    ) -> None:
        self._number = number
        self._note = note
        self._route = route
        self._over = over
        self._buffer = bytearray()
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._answering: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._answering is None:
            self._next()

    def eof_received(self) -> None:
        self._gone.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _next(self) -> None:
        end = self._buffer.find(HEAD_END)
        if end < 0:
            return
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = [(key, value.strip()) for key, _, value in (line.partition(":") for line in lines)]
        named = {key.lower(): value for key, value in headers}
        if named.get("expect") == "100-continue" and len(self._buffer) == end + len(HEAD_END):
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self._body(end + len(HEAD_END), named)
        if body is None:
            return
        received = Received(self._number, time.perf_counter(), method, target, headers, body)
        self._answering = asyncio.ensure_future(self._answer(received, named))

    def _body(self, start: int, headers: dict[str, str]) -> bytes | None:
        """The body, taken from the buffer with its head once all of it is there."""
        if headers.get("transfer-encoding", "").lower() != "chunked":
            end = start + int(headers.get("content-length", 0))
            if len(self._buffer) < end:
                return None
            body = bytes(self._buffer[start:end])
            del self._buffer[:end]
            return body
        parts = []
        while (line := self._buffer.find(b"\r\n", start)) >= 0:
            size = int(self._buffer[start:line].split(b";")[0], 16)
            after = line + 2 + size
            if len(self._buffer) < after + 2:
                return None
            parts.append(bytes(self._buffer[line + 2 : after]))
            start = after + 2
            if size == 0:
                del self._buffer[:start]
                return b"".join(parts)
        return None

    async def _answer(self, received: Received, headers: dict[str, str]) -> None:
        attempt = self._note(received)
        kept = False
        try:
            kept = await self._play(received, headers, attempt)
        finally:
            received.over = True
            self._over(received)
            self._answering = None
        if kept and not self._gone.is_set():
            self._next()
        elif not self._transport.is_closing():
            self._transport.close()

    async def _play(self, received: Received, headers: dict[str, str], attempt: int) -> bool:
        """Answer one request; whether the connection may be used for another."""
        try:
            scenario, path = _scenario_of(received.target)
        except ValueError as error:
            return await self._send(_blunder(error), received, Scenario(), keep=False)
        late = _sampled_late(scenario, attempt) if "sampled" in scenario else scenario.number("late")
        if "silent" in scenario or await self._left_within(late):
            await self._gone.wait()
            received.left = True
            return False
        if scenario.number("reset", 0) == 0:
            self._reset()
            return False
        path, _, query = path.partition("?")
        ask = Ask(received.method, unquote(path), query, headers, received.body, scenario, attempt)
        try:
            answer = encoded(self._route(ask), scenario)
        except Exception as error:
            answer = _blunder(error)
        return await self._send(answer, received, scenario, keep=headers.get("connection") != "close")

    async def _send(self, answer: Answer, received: Received, scenario: Scenario, *, keep: bool) -> bool:
        received.status = answer.status
        chunked = answer.length is None
        answer.headers["transfer-encoding" if chunked else "content-length"] = (
            "chunked" if chunked else str(answer.length)
        )
        if not keep:
            answer.headers["connection"] = "close"
        self._transport.write(_head(answer))
        stops = {word: scenario.number(word) for word in ("reset", "close", "hang")}
        for number, piece in enumerate(answer.pieces):
            if number in stops.values():
                break
            await self._writable.wait()
            if "endless" in scenario:
                await asyncio.sleep(
                    0
                )  # an event that is set is no pause, and the client's leaving has to be heard
            if self._gone.is_set() or (number and await self._left_within(scenario.number("drip", 5))):
                received.left = True
                return False
            received.sent.append((time.perf_counter(), piece))
            if piece:
                self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if stops["reset"] is not None:
            self._reset()
        elif stops["hang"] is not None:
            await self._gone.wait()
            received.left = True
        elif stops["close"] is None:
            if chunked:
                self._transport.write(b"0\r\n\r\n")
            return keep
        return False

    async def _left_within(self, milliseconds: int | None) -> bool:
        if milliseconds is None:
            return False
        try:
            await asyncio.wait_for(self._gone.wait(), milliseconds / 1000)
        except TimeoutError:
            return False
        return True

    def _reset(self) -> None:
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._transport.abort()


_TAKEN: dict[str, set[int]] = {}
"""The moments at which the answers of a scenario come, in steps."""
_STEP_MS = 20


def _sampled_late(scenario: Scenario, attempt: int) -> int:
    """How many milliseconds late a sampled answer comes."""
    taken, now = _TAKEN.setdefault(scenario.path, set()), time.monotonic() * 1000
    moment = int(now / _STEP_MS) + Random(f"{scenario.number('sampled')} {attempt}").randint(1, 4)
    while moment in taken:
        moment += 1
    taken.add(moment)
    return int(moment * _STEP_MS - now)


def _scenario_of(target: str) -> tuple[Scenario, str]:
    """The scenario a target names, and the rest of the path."""
    if not target.startswith("/s/"):
        return Scenario(), target
    words, _, rest = target[len("/s/") :].partition("/")
    return Scenario.parse(unquote(words)), "/" + rest


def _blunder(error: Exception) -> Answer:
    """What a mistake in a test or in a script answers; no provider has this status."""
    return whole_answer(f"the provider's script failed: {error!r}".encode(), "text/plain", 599)


def _head(answer: Answer) -> bytes:
    lines = [f"HTTP/1.1 {answer.status} {_reason(answer.status)}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _reason(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Overloaded" if status == 529 else "Unknown"
