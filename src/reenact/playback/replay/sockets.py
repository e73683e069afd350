"""What servers said unasked over sockets, connection by connection, in the order they were opened."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from ... import schema
from ...protocols import Unasked
from ..matching.tape import Tape


class Sockets:
    """The recorded connections of one process; each is given to one that is opened at its address."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._lock = Lock()
        self._waiting: dict[str, deque[list[Unasked]]] | None = None

    def next(self, url: str, recorder: Any) -> list[Unasked]:
        """Return what is said over the next connection to a URL."""
        with self._lock:
            if self._waiting is None:
                self._waiting = self._line_up()
            queue = self._waiting.get(_address(recorder.texts.clean("url", url, "full")))
            return queue.popleft() if queue else []

    def _line_up(self) -> dict[str, deque[list[Unasked]]]:
        waiting: dict[str, deque[list[Unasked]]] = {}
        known: dict[tuple[str, str], list[Unasked]] = {}
        recording = self._tape.recording
        with self._tape.lock:
            for at, kind in enumerate(recording.event_types()):
                if kind != schema.SOCKET_MESSAGE:
                    continue
                event = recording.events[at]
                told, which = event.payload, (event.writer, str(event._raw().get("socket")))
                event._forget()
                url, asked, sent = told.get("url"), told.get("asked"), told.get("sent")
                if type(url) is not str or type(asked) is not int or type(sent) is not int:
                    continue
                if which not in known:
                    known[which] = []
                    waiting.setdefault(_address(url), deque()).append(known[which])
                if "body" in told:
                    known[which].append(Unasked(asked, sent, told["body"]))
        return waiting


def _address(url: str) -> str:
    """Return what of a URL is the same where the server is another one."""
    try:
        parts = urlsplit(url)
    except ValueError:  # no address
        return url
    return f"{parts.path}?{parts.query}"
