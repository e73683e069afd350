"""Where to go, as it is typed: an address, ``#index``, ``-1``, ``%50``, ``first``, ``last`` or ``@mark``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import NoSuchEvent, UsageError
from ..tracefile.event import Event
from ..tracefile.recording import Recording

_MARK = re.compile(r"[A-Za-z_]\w*\Z")
_RESERVED = ("error", "first", "last")
_COUNTED = re.compile(r"([#%-])(\d{1,18})\Z", re.ASCII)


def mark_name(name: str, marks: Mapping[str, int]) -> str:
    """Return the name for a mark as given, or the next free one."""
    if not name:
        return next(f"m{n}" for n in range(1, len(marks) + 2) if f"m{n}" not in marks)
    if not _MARK.match(name) or name in _RESERVED:
        raise UsageError(f"{name!r} cannot be the name of a mark", hint="a word, for instance: before")
    return name


def resolve(recording: Recording, marks: Mapping[str, int], address: str) -> int:
    """Return the index of the event meant."""
    text, count = address.strip(), recording.count()
    if not count:
        raise NoSuchEvent("there is no event in this run", asked=text)
    if text in ("first", "last"):
        return 0 if text == "first" else count - 1
    if (counted := _COUNTED.match(text)) is not None:
        return _counted(counted[1], int(counted[2]), count)
    if text.startswith("@") and text != "@error":
        if text[1:] in marks:
            return marks[text[1:]]
        known = ", ".join(f"@{name}" for name in marks) or "none yet; `mark NAME` sets one"
        raise NoSuchEvent(f"there is no mark {text}", asked=text, hint=f"marks: {known}")
    found = recording.event(text)
    return _beside(recording, found) if found.index is None else found.index


def _counted(sign: str, number: int, count: int) -> int:
    if sign == "%" and number <= 100:
        return round((count - 1) * number / 100)
    index = number if sign == "#" else count - number
    if sign == "%" or not 0 <= index < count:
        told = f"no event is at {sign}{number}"
        raise NoSuchEvent(told, asked=f"{sign}{number}", hint=f"the run has {count:,} events")
    return index


def _beside(recording: Recording, event: Event) -> int:
    """Return the event next to one of the recorder's own lines."""
    step = event.step or 0
    for near in (*range(step + 1, step + 10), *range(step - 1, step - 10, -1)):
        found = recording.at_step(near, event.writer) if near > 0 else None
        if found is not None and found.index is not None:
            return found.index
    return 0
