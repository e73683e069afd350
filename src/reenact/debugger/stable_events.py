"""Events without what differs between two equal runs: times, durations, ids, host, process.

Used by ``cat --stable``, so that a shell ``diff`` of two runs shows only what they did differently. Ids are
numbered in order of appearance, so that who refers to whom still shows.
"""

from __future__ import annotations

import re
from typing import Any

_DROPPED = frozenset("ts run pid host python argv0 duration_ms ttft_ms overhead_us chain parent_run".split())
_DROPPED_IN_BODY = frozenset(["created", "created_at", "completed_at", "createTime", "responseId"])
_OUR_IDS = ("call", "parent", "base")
_WRITERS = ("w", "parent_w")
_PROVIDER_ID = re.compile(
    r"\b(msg|toolu|srvtoolu|call|resp|req|run|fc|rs|ws|item|chatcmpl|gen)[_-](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{6,}"
)


class Stable:
    """Makes the events of one run comparable with those of another; feed them in order."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._run: str | None = None

    def event(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the comparable part of an event."""
        run = fields.get("run")
        self._run = run if type(run) is str and len(run) >= 8 else None
        result = {}
        for key, value in fields.items():
            if key in _DROPPED:
                continue
            if key in _OUR_IDS and type(value) is str:
                value = self._name("call", value)
            elif key in _WRITERS and type(value) is str:
                value = self._name("w", value)
            elif key == "body" and type(value) is dict:
                value = self._value({k: v for k, v in value.items() if not _is_volatile(k)})
            else:
                value = self._value(value)
            result[key] = value
        return result

    def _name(self, sort: str, value: str) -> str:
        name = self._names.get(value)
        if name is None:
            number = self._counts[sort] = self._counts.get(sort, 0) + 1
            name = self._names[value] = f"<{sort} {number}>"
        return name

    def _value(self, value: Any) -> Any:
        if type(value) is str:
            return self._text(value)
        if type(value) is list:
            return [self._value(item) for item in value]
        if type(value) is dict:
            return {key: self._value(item) for key, item in value.items()}
        return value

    def _text(self, text: str) -> str:
        if text in self._names:
            return self._names[text]
        if self._run is not None and self._run in text:
            text = text.replace(self._run, "<run>")
        return _PROVIDER_ID.sub(lambda found: self._name(found[1], found[0]), text)


def _is_volatile(key: str) -> bool:
    return key in _DROPPED_IN_BODY or key.endswith("_duration")
