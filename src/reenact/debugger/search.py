"""Looking for text in events: in every text a line holds, long ones kept elsewhere included.

A request is searched as it is stored, that is in what was new in it; else every later one would match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..tracefile.event import Event
from ..tracefile.requests import DELTA_FIELDS, PROOF_FIELDS
from .expressions import regex

_SKIPPED = frozenset(("ts", "run", "w", "step", "v", "tot", *DELTA_FIELDS, *PROOF_FIELDS))
"""Fields about storage, in which nobody looks for words."""

_MAX_VALUES = 200_000
"""Values of one event that are looked at."""


class TextSearch:
    """A regular expression sought in events."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._regex = regex(pattern)
        self._literal = _literal(pattern)

    def __call__(self, event: Event) -> bool:
        return not self._cannot_match(event) and self.match(event) is not None

    def match(self, event: Event) -> re.Match[str] | None:
        """Return the first match in an event."""
        return next((found for text in texts_of(event) if (found := self._regex.search(text))), None)

    def _cannot_match(self, event: Event) -> bool:
        """True if a line of ours can be passed over unread."""
        if self._literal is None or not event.is_ours:
            return False
        source, offset = event.stored_in.at(event.stored_at)
        line = source.line(offset)
        return self._literal not in line and b'"$blob"' not in line


def _literal(pattern: str) -> bytes | None:
    """Return bytes that a matching line must hold; None if the pattern does not tell."""
    simple = pattern.isascii() and pattern.isprintable() and not set(pattern) & set('\\".^$*+?{}[]|()')
    return pattern.encode("ascii") if simple else None


def texts_of(event: Event) -> Iterator[str]:
    """Yield the texts and numbers of an event in the order they stand."""
    fields = event.whole_fields
    waiting: list[Any] = [value for key, value in reversed(fields.items()) if key not in _SKIPPED]
    for _ in range(_MAX_VALUES):
        if not waiting:
            return
        value = waiting.pop()
        if type(value) is str:
            yield value
        elif type(value) is list:
            waiting.extend(reversed(value))
        elif type(value) is dict:
            is_text = "$blob" in value and "form" not in value
            whole = event.stored_in.blobs.text(value["$blob"]) if is_text else None
            if whole is not None:
                yield whole
            else:
                waiting.extend(part for pair in reversed(value.items()) for part in reversed(pair))
        elif type(value) in (int, float):
            yield str(value)
