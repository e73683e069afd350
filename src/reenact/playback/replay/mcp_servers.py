"""MCP servers as the recording names them: by their commands, or their URLs."""

from __future__ import annotations

import os
import shlex
from urllib.parse import urlsplit

from ... import schema
from ...recording.recording import Recording
from ..matching.rules import PLACEHOLDER


def without_folders(server: str) -> str:
    """Return a server's command without what is this machine's: folders, and which Python runs it."""
    if _is_url(server):
        return server
    try:
        words = [os.path.basename(word) if os.path.isabs(word) else word for word in shlex.split(server)]
    except ValueError:
        return server
    return shlex.join(words[1:] if words and words[0].startswith(("python", "pypy")) else words)


def alike(server: str) -> str:
    """Return what of a server's name is the same elsewhere, or with another port or key."""
    try:
        place = urlsplit(server).path if _is_url(server) else without_folders(server)
    except ValueError:  # no address
        place = server
    return PLACEHOLDER.sub("", place)


def server_processes(recording: Recording) -> set[str]:
    """Return the writers that are MCP servers: where their sessions are answered, they are not there."""
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
