"""What MCP servers said besides the results of tools: a handshake, lists, resources, prompts.

The same question gets what it got then, in the recorded order, and the last answer again and again: a list
may be asked for more often than it was, without anything else being different.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

from ... import schema
from ...lines import dumps
from ..matching.tape import Tape
from ..serve.replies import ServerReply, ServerRequest
from .mcp_servers import alike

_WITHHELD = frozenset({"$hash", "$none", "$cut", "$bytes", "$repr"})


class Servers:
    """The MCP servers of a recording."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._lock = Lock()
        self._said: dict[str, dict[tuple[str, str], list[int]]] | None = None
        """By server, method and parameters: where in the recording it is told."""
        self._next: dict[tuple[str, str, str], int] = {}
        self._last: dict[tuple[str, str, str], ServerReply] = {}

    def has(self, server: str, recorder: Any) -> bool:
        """True if it is recorded what a server said."""
        return self._named(server, recorder) is not None

    def reply(self, asked: ServerRequest) -> ServerReply | None:
        """Return what was said to a request; None if it was not made then."""
        server = self._named(asked.server, asked.recorder)
        if server is None:
            return None
        params = asked.recorder.texts.clean("params", asked.params, "full")
        key = (server, asked.method, dumps(params or None))
        with self._lock:
            places = self._all()[server].get(key[1:], [])
            at = self._next.get(key, 0)
            self._next[key] = at + 1
            if at < len(places):
                told = self._told(places[at])
                if told is not None:  # else it is the same as before
                    self._last[key] = told
            return self._last.get(key)

    def _named(self, server: str, recorder: Any) -> str | None:
        """Return a server as the recording calls it: elsewhere a command or a port may be another one."""
        with self._lock:
            known = list(self._all())
        name = recorder.texts.clean("server", server, "full")
        if name in known:
            return str(name)
        found = [each for each in known if alike(each) == alike(str(name))]
        return found[0] if len(found) == 1 else None

    def _all(self) -> dict[str, dict[tuple[str, str], list[int]]]:
        if self._said is None:
            self._said = {}
            recording = self._tape.recording
            with self._tape.lock:
                for at, kind in enumerate(recording.event_types()):
                    if kind == schema.MCP_ANSWER:
                        self._line_up(at)
        return self._said

    def _line_up(self, at: int) -> None:
        assert self._said is not None
        event = self._tape.recording.events[at]
        raw = event.stored_fields
        server, method = raw.get("server"), raw.get("method")
        if type(server) is str and type(method) is str and not _is_withheld(raw):
            params = event.restore_value(raw.get("params"))
            self._said.setdefault(server, {}).setdefault((method, dumps(params or None)), []).append(at)

    def _told(self, at: int) -> ServerReply | None:
        with self._tape.lock:
            event = self._tape.recording.events[at]
            told = event.payload
        if told.get("same") is True:
            return None
        result, refused = told.get("result"), told.get("refused")
        error = _well_formed(refused) if type(refused) is dict else None
        return ServerReply(result if type(result) is dict else {}, error)


def _well_formed(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error as JSON-RPC has it, whatever a trace says."""
    code = error.get("code")
    return {**error, "code": code if type(code) is int else 0, "message": str(error.get("message") or "")}


def _is_withheld(value: Any) -> bool:
    if type(value) is dict:
        return not _WITHHELD.isdisjoint(value) or any(map(_is_withheld, value.values()))
    return type(value) is list and any(map(_is_withheld, value))
