"""Names of MCP servers in a recording: their commands or URLs, compared across machines."""

from __future__ import annotations

import os
import shlex
from urllib.parse import urlsplit

from ... import schema
from ...recording.recording import Recording
from ..matching.rules import PLACEHOLDER


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
