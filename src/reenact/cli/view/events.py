"""Events as lines: address, time, what happened, tokens, duration; and the flat listing of a run.

Shared by ``show``, ``tail``, ``demo`` and the prompt of ``debug``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from ... import schema
from ...recording.recording import Recording
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import address, describe
from ...tracefile.events.text import cut, offset_text, width_of
from ..output import Cell, Output

_LEAST = 20
"""Columns an error gets in any case."""

_STYLES = {"→": "cyan", "←": "cyan", "▸": "blue", "◂": "blue", "✗": "red", "✓": "green", "·": "dim"}


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
    figures = (found.tokens, found.source, found.duration)
    right = "" if is_narrow else "  ".join(part for part in figures if part)
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


FIRST, LAST = 20, 40
"""Of a long run: how it set out, and what led to its end."""


def show_events(recording: Recording, out: Output, *, everything: bool) -> None:
    """Write a line per event."""
    lines = recording.lines
    if everything or len(lines) <= FIRST + LAST + 2:
        print_events(lines, recording, out)
        return
    print_events(lines[:FIRST], recording, out)
    hidden = len(lines) - FIRST - LAST
    out.line(out.paint(f"       … {hidden:,} more events; --all shows them, --turn N one turn", "yellow"))
    print_events(lines[-LAST:], recording, out)


def print_events(events: Iterable[Event], recording: Recording, out: Output) -> None:
    """Write the events, a heading before each turn."""
    root, started = recording.first_writer, recording.started
    shown = -1
    for event, number in with_turns(events, recording):
        if event.kind in (schema.RUN_START, schema.RUN_END, schema.RUN_MORE):
            continue
        if number != shown and number:
            shown = number
            out.line(out.paint(f"turn {number}", "bold"))
        for line in event_lines(event, out, root=root, started=started):
            out.line(line)


def with_turns(events: Iterable[Event], recording: Recording) -> Iterator[tuple[Event, int]]:
    """Yield events, each with the number of its turn; bookkeeping has the latest turn so far."""
    latest = 0
    for event in events:
        number = latest if event.index is None else recording.index.turn_number(event)
        latest = max(latest, number)
        yield event, number
