"""The tools an event begins: the one it records, else those its answer asked for that nobody recorded."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from .. import schema
from ..tracefile.calls import Call
from ..tracefile.event import Event
from ..tracefile.recording import Recording
from .heads import is_tool_begin, links_of


class ToolsAt:
    """Name and arguments of the tools that begin at each event of a recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def names(self, event: Event) -> list[str]:
        """Return the names of the tools that begin at an event."""
        if is_tool_begin(event):
            name = links_of(event).get("tool") or event.tool_name
            return [name] if type(name) is str else []
        return [call.tool or "" for call in self._derived_at(event)]

    def calls(self, event: Event) -> list[tuple[str, str]]:
        """Return (name, arguments) of the same, arguments as text that is the same in whatever order."""
        if is_tool_begin(event):
            return [(event.tool_name or "", _canonical(event.args))]
        return [(call.tool or "", _canonical(call.args)) for call in self._derived_at(event)]

    def _derived_at(self, event: Event) -> list[Call]:
        if event.kind != schema.MODEL_RESPONSE or event.index is None:
            return []
        return self._derived.get(event.index, [])

    @cached_property
    def _derived(self) -> dict[int, list[Call]]:
        found: dict[int, list[Call]] = {}
        for call in self._recording.calls(derived=True):
            if call.derived:
                found.setdefault(call.event.index or 0, []).append(call)
        return found


def _canonical(args: Any) -> str:
    try:
        return json.dumps(args, sort_keys=True)
    except (ValueError, TypeError, RecursionError):
        return repr(args)
