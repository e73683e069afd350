"""Recorded events besides calls, returned in their order: times and random values, unprompted messages of
sockets, replies of MCP servers.
"""

from __future__ import annotations

import os
import shlex
from collections import deque
from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from ... import schema
from ...lines import dumps
from ...recording.recording import Recording
from ...tracefile.events.event import Event
from ...wire.equality_rules import PLACEHOLDER
from ...wire.json_values import mapping
from ..matching.tape import Tape
from ..serve.replies import ServerReply, ServerRequest, Unprompted


class Ambient:
    """The recorded times and random values of one process; ``writer`` returns which recorded process it is.

    Each thread gets those of the recorded thread with its name, a thread pool those of its pool; without such
    a thread in the recording, the next unused value of that name.
    """

    def __init__(self, tape: Tape, writer: Callable[[], str | None]) -> None:
        self._tape = tape
        self._writer = writer
        self._lock = Lock()
        self._taken: set[int | None] = set()

    def next(self, name: str, thread: str | None) -> Any:
        """Return the next value of a name, None if none is left."""
        with self._lock:
            for key in ((name, thread), (name,)):
                queue = self._queues.get(key)
                while queue:
                    event = queue.popleft()
                    if event.index not in self._taken:
                        self._taken.add(event.index)
                        with self._tape.lock:
                            return event.stored_fields.get("value")
            return None

    @cached_property
    def _queues(self) -> dict[tuple[object, ...], deque[Event]]:
        """The events by name and thread, and by name alone."""
        found: dict[tuple[object, ...], deque[Event]] = {}
        writer = self._writer()
        for event in self._tape.events_of(schema.AMBIENT):
            name, thread = event.stored_fields.get("name"), event.stored_fields.get("thread")
            if self._tape.process_of(event.writer) == writer and type(name) is str:
                found.setdefault((name, thread), deque()).append(event)
                found.setdefault((name,), deque()).append(event)
        return found


class Sockets:
    """The recorded connections of one process in the order they were opened.

    Each answers one new connection to its address, with the messages that its server sent unprompted.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._lock = Lock()

    def next(self, url: str, recorder: Any) -> list[Unprompted]:
        """Return the messages of the next connection to a URL."""
        with self._lock:
            queue = self._waiting.get(_address(recorder.texts.clean("url", url, "full")))
            return queue.popleft() if queue else []

    @cached_property
    def _waiting(self) -> dict[str, deque[list[Unprompted]]]:
        waiting: dict[str, deque[list[Unprompted]]] = {}
        known: dict[tuple[str, str], list[Unprompted]] = {}
        for event in self._tape.events_of(schema.SOCKET_MESSAGE):
            fields, which = event.payload, (event.writer, str(event.stored_fields.get("socket")))
            url, requests, sent = fields.get("url"), fields.get("asked"), fields.get("sent")
            if type(url) is not str or type(requests) is not int or type(sent) is not int:
                continue
            if which not in known:
                known[which] = []
                waiting.setdefault(_address(url), deque()).append(known[which])
            if "body" in fields:
                known[which].append(Unprompted(requests, sent, fields["body"]))
        return waiting


def _address(url: str) -> str:
    """Return the part of a URL that stays the same on another server."""
    try:
        parts = urlsplit(url)
    except ValueError:  # not a URL
        return url
    return f"{parts.path}?{parts.query}"


# MCP servers by name: their commands or URLs, compared across machines.


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
# more often than in the recording.

_WITHHELD = frozenset({"$hash", "$none", "$cut", "$bytes", "$repr"})


class Servers:
    """The MCP servers of a recording."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._lock = Lock()
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
            events = self._events[server].get(key[1:], [])
            at = self._next.get(key, 0)
            self._next[key] = at + 1
            if at < len(events):
                reply = self._reply_of(events[at])
                if reply is not None:  # else it is the same as before
                    self._last[key] = reply
            return self._last.get(key)

    def _named(self, server: str, recorder: Any) -> str | None:
        """Return the recorded name of a server: on another machine its command or port may differ."""
        with self._lock:
            known = list(self._events)
        name = recorder.texts.clean("server", server, "full")
        if name in known:
            return str(name)
        found = [each for each in known if alike(each) == alike(str(name))]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _events(self) -> dict[str, dict[tuple[str, str], list[Event]]]:
        """The recorded replies by server, and by method and parameters."""
        found: dict[str, dict[tuple[str, str], list[Event]]] = {}
        for event in self._tape.events_of(schema.MCP_ANSWER):
            fields = event.stored_fields
            server, method = fields.get("server"), fields.get("method")
            if type(server) is str and type(method) is str and not _is_withheld(fields):
                params = event.restore_value(fields.get("params"))
                found.setdefault(server, {}).setdefault((method, dumps(params or None)), []).append(event)
        return found

    def _reply_of(self, event: Event) -> ServerReply | None:
        with self._tape.lock:
            fields = event.payload
        if fields.get("same") is True:
            return None
        refused = fields.get("refused")
        error = _well_formed(refused) if type(refused) is dict else None
        return ServerReply(mapping(fields.get("result")), error)


def _well_formed(error: dict[str, Any]) -> dict[str, Any]:
    """Return an error in the form of JSON-RPC, whatever the trace holds."""
    code = error.get("code")
    return {**error, "code": code if type(code) is int else 0, "message": str(error.get("message") or "")}


def _is_withheld(value: Any) -> bool:
    if type(value) is dict:
        return not _WITHHELD.isdisjoint(value) or any(map(_is_withheld, value.values()))
    return type(value) is list and any(map(_is_withheld, value))
