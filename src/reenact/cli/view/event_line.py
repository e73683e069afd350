"""An event as a line of a terminal or of ``--json``: address, time, what happened, tokens, duration.

Shared by ``show``, ``tail``, ``grep``, ``demo`` and the prompt of ``debug``.
"""

from __future__ import annotations

import textwrap
from typing import Any

from ...tracefile.event import ErrorText, Event
from ...tracefile.event_text import describe
from ...tracefile.text import cut, seconds, width_of
from ..output import Cell, Output

_LEAST = 20
"""Columns an error gets in any case."""

_STYLES = {"→": "cyan", "←": "cyan", "▸": "blue", "◂": "blue", "✗": "red", "✓": "green", "·": "dim"}


def offset_text(ts: float | None, started: float | None) -> str:
    """Return when an event happened, counted from the beginning of its run."""
    if ts is None or started is None or not abs(ts - started) < 1e9:
        return ""
    passed = ts - started
    return f"+{passed:.2f}s" if 0 <= passed < 60 else f"+{seconds(passed)}" if passed >= 0 else "before"


def address(event: Event, root: str | None) -> str:
    """Return how to name the event: its step, with its writer if that is not the first."""
    step = "?" if event.step is None else str(event.step)
    return step if root is None or event.writer == root else f"p{event.writer[:4]}:{step}"


def event_dict(event: Event, turn: int | None, root: str | None) -> dict[str, Any]:
    """Return an event's line as ``--json`` gives it."""
    error, found = event.error, describe(event)
    return {
        "address": address(event, root),
        "ts": event.timestamp,
        "kind": event.kind,
        "turn": turn,
        "summary": found.text or found.error,
        "duration_ms": event.duration_ms,
        "error": None if error is None else error_dict(error),
    }


def error_dict(error: ErrorText) -> dict[str, Any]:
    """Return an error as ``--json`` gives it."""
    return {"type": error.type, "message": str(error), "frames": error.frames}


def event_lines(
    event: Event,
    out: Output,
    *,
    root: str | None,
    started: float | None,
    mark: str = "",
    address_width: int = 7,
    is_narrow: bool = False,
) -> list[str]:
    """Return the line of an event as columns; an error may take two more.

    ``mark`` stands before the line and makes its text bold unless it is blank; a narrow line has neither
    time nor figures.
    """
    found = describe(event)
    left = f"{address(event, root):>{address_width}} "
    right = "" if is_narrow else "  ".join(part for part in (found.tokens, found.duration) if part)
    left += "" if is_narrow else f"{offset_text(event.timestamp, started):>8}  "
    indent = width_of(mark + left) + 2
    room = out.width - indent - (width_of(right) + 2 if right else 0)
    if found.error and room < _LEAST:  # the error is worth more than how long it took
        room, right = max(_LEAST, out.width - indent), ""
    text = f"{found.text}  {found.error}".strip() if found.error else found.text
    wrapped = textwrap.wrap(text, room, max_lines=3, placeholder=" …") if found.error else []
    first = wrapped[0] if wrapped else cut(text, room)
    style = "red" if found.error else "bold" if mark.strip() else "dim" if found.sign == "·" else ""
    space = " " * (room - width_of(first) + 2) if right else ""
    cells: list[Cell] = [(mark, "bold"), (left, "dim"), (found.sign + " ", _STYLES[found.sign])]
    line = out.cells([*cells, (first, style), (space + right, "dim")]).rstrip()
    return [line, *(out.paint(" " * indent + more, "red") for more in wrapped[1:])]
