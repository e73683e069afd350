"""Names of MCP servers in a recording: their commands or URLs, compared across machines."""

from __future__ import annotations

import os
import shlex
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from ... import schema
from ...lines import dumps
from ...recording.recording import Recording
from ..matching.equality_rules import PLACEHOLDER
from ..matching.tape import Tape
from ..serve.replies import ServerReply, ServerRequest


def without_folders(server: str) -> str:
    """Return a server's command without the parts specific to a machine: folders, and the Python."""
    if _is_url(server):
        return server
    try:
        words = [os.path.basename(word) if os.path.isabs(word) else word for word in shlex.split(server)]
    except ValueError:
        return server
    return shlex.join(words[1:] if words and words[0].startswith(("python", "pypy")) else words)


def alike(server: str) -> str:
    """Return the part of a server's name that stays the same on another machine, port or key."""
    try:
        place = urlsplit(server).path if _is_url(server) else without_folders(server)
    except ValueError:  # not a URL
        place = server
    return PLACEHOLDER.sub("", place)


def server_processes(recording: Recording) -> set[str]:
    """Return the writers that are MCP servers: a replay answers their sessions and does not start them."""
    servers, commands = set(), {}
    if schema.MCP_ANSWER not in recording.event_types():
        return set()
    for event in recording.lines:
        raw = event.stored_fields if event.kind in (schema.MCP_ANSWER, schema.PROC_START) else {}
        command, server = raw.get("command"), raw.get("server")
        if type(server) is str:
            servers.add(without_folders(server))
        if type(command) is list and all(type(word) is str for word in command):
            commands[event.writer] = without_folders(shlex.join(command))
    return {writer for writer, command in commands.items() if command in servers}


def _is_url(server: str) -> bool:
    return server.startswith(("http://", "https://", "ws://", "wss://"))


# Recorded replies of MCP servers besides tool results: handshakes, lists, resources, prompts.
#
# Equal requests get their recorded replies in order, then the last one repeatedly: a list may be requested
# more
# often than in the recording.

_WITHHELD = frozenset({"$hash", "$none", "$cut", "$bytes", "$repr"})


class Servers:
    """The MCP servers of a recording."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._lock = Lock()
        self._places: dict[str, dict[tuple[str, str], list[int]]] | None = None
        """Positions in the recording by server, method and parameters."""
        self._next: dict[tuple[str, str, str], int] = {}
        self._last: dict[tuple[str, str, str], ServerReply] = {}

    def has(self, server: str, recorder: Any) -> bool:
        """True if replies of a server are recorded."""
        return self._named(server, recorder) is not None

    def reply(self, request: ServerRequest) -> ServerReply | None:
        """Return the recorded reply to a request; None if it is not recorded."""
        server = self._named(request.server, request.recorder)
        if server is None:
            return None
        params = request.recorder.texts.clean("params", request.params, "full")
        key = (server, request.method, dumps(params or None))
        with self._lock:
            places = self._all()[server].get(key[1:], [])
            at = self._next.get(key, 0)
            self._next[key] = at + 1
            if at < len(places):
                reply = self._reply_at(places[at])
                if reply is not None:  # else it is the same as before
                    self._last[key] = reply
            return self._last.get(key)

    def _named(self, server: str, recorder: Any) -> str | None:
        """Return the recorded name of a server: on another machine its command or port may differ."""
        with self._lock:
            known = list(self._all())
        name = recorder.texts.clean("server", server, "full")
        if name in known:
            return str(name)
        found = [each for each in known if alike(each) == alike(str(name))]
        return found[0] if len(found) == 1 else None

    def _all(self) -> dict[str, dict[tuple[str, str], list[int]]]:
        if self._places is None:
            self._places = {}
            recording = self._tape.recording
            with self._tape.lock:
                for at, kind in enumerate(recording.event_types()):
                    if kind == schema.MCP_ANSWER:
                        self._add(at)
        return self._places

    def _add(self, at: int) -> None:
        assert self._places is not None
        event = self._tape.recording.events[at]
        raw = event.stored_fields
        server, method = raw.get("server"), raw.get("method")
        if type(server) is str and type(method) is str and not _is_withheld(raw):
            params = event.restore_value(raw.get("params"))
            self._places.setdefault(server, {}).setdefault((method, dumps(params or None)), []).append(at)

    def _reply_at(self, at: int) -> ServerReply | None:
        with self._tape.lock:
            event = self._tape.recording.events[at]
            fields = event.payload
        if fields.get("same") is True:
            return None
        result, refused = fields.get("result"), fields.get("refused")
        error = _well_formed(refused) if type(refused) is dict else None
        return ServerReply(result if type(result) is dict else {}, error)


def _well_formed(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error in the form of JSON-RPC, whatever the trace holds."""
    code = error.get("code")
    return {**error, "code": code if type(code) is int else 0, "message": str(error.get("message") or "")}


def _is_withheld(value: Any) -> bool:
    if type(value) is dict:
        return not _WITHHELD.isdisjoint(value) or any(map(_is_withheld, value.values()))
    return type(value) is list and any(map(_is_withheld, value))
