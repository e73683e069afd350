"""What the prompt shows, as text for a terminal of any width: events with the current one marked, values.

``JsonView`` writes the same as JSON lines: verbs name what to show, never how.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from ...compare.moments import MomentsDiff
from ...debugger.breakpoints import Breakpoint, Reason
from ...debugger.stepper import Move, Stepper
from ...explain.uses import Uses
from ...explain.why import Why
from ...recording.index import MAIN
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import address, event_dict
from ...tracefile.events.text import clean, cut, pad, pretty_json, short_json, width_of
from ..output import Output, terminal_size
from ..view.events import event_lines
from ..view.explained import show_uses, show_why, uses_dict, why_dict
from ..view.moments import show_moments

_NARROW = 60
"""Below so many columns times and durations give way to what happened."""

_LEAST = 16
"""Columns of a value before its size is left out."""

_SCREEN = 24

_Heading = tuple[int, str]
"""A turn and a lane."""


class View:
    """Writes plain text."""

    def __init__(self, out: Output, stepper: Stepper) -> None:
        self.out = out
        self.stepper = stepper
        self._heading: _Heading | None = None

    @property
    def height(self) -> int:
        """Lines of the terminal."""
        return terminal_size()[1] if self.out.is_terminal else _SCREEN

    def note(self, text: str) -> None:
        """Write a sentence; a terminal gets it broken between words."""
        text = clean(text)
        is_long = self.out.is_terminal and width_of(text) > self.out.width
        for line in textwrap.wrap(text, self.out.width) if is_long else [text]:
            self.out.line(line)

    def move(self, move: Move) -> None:
        """Show where a move ended, and why there."""
        for reason in move.reasons:
            self.out.line(self.out.paint(self._reason(reason), "yellow"))
        if move.moved:
            self.here()
        if move.note:
            self.note(move.note)

    def here(self) -> None:
        """Show the current event."""
        self._heading = self._show([self.stepper.event], self._heading)

    def events(self, events: Iterable[Event]) -> None:
        """Show events, a heading wherever turn or lane is another one."""
        self._show(events, None)
        self._heading = None

    def _show(self, events: Iterable[Event], shown: _Heading | None) -> _Heading | None:
        for event in events:
            index = event.index or 0
            heading = self.stepper.turn_at(index), self.stepper.lane_at(index)
            if heading != shown:
                shown = heading
                if self.stepper.recording.index.has_turns or heading[1] != MAIN:
                    self.out.line(self.out.paint(_heading(*heading), "bold"))
            for line in self.event_lines(event):
                self.out.line(line)
        return shown

    def event_lines(self, event: Event) -> list[str]:
        """Return an event in columns; an error may take two more lines."""
        recording = self.stepper.recording
        return event_lines(
            event,
            self.out,
            root=recording.first_writer,
            started=recording.started,
            mark="> " if event == self.stepper.event else "  ",
            address_width=self._address_width(),
            is_narrow=self.out.width < _NARROW,
        )

    def address(self, event: Event) -> str:
        """Return how to name an event."""
        return address(event, self.stepper.recording.first_writer)

    def _address_width(self) -> int:
        several = len(self.stepper.recording.writers) > 1
        return max(4, len(str(self.stepper.recording.count(system=True))) + (6 if several else 0))

    def _reason(self, reason: Reason) -> str:
        point = reason.point
        if isinstance(point, Breakpoint):
            sort = "temporary breakpoint" if point.temporary else "breakpoint"
            return cut(clean(f"{sort} {point.number}: {point.text}"), self.out.width)
        assert reason.change is not None
        old, new = (short_json(plain_value(value), 200) for value in (reason.change.old, reason.change.new))
        room = max(10, (self.out.width - width_of(point.text) - 18) // 2)
        return f"watch {point.number}: {clean(point.text)}  {cut(old, room)} → {cut(new, room)}"

    def fact(self, name: str, text: str) -> None:
        """Show a name and what belongs to it."""
        wrapped = textwrap.wrap(text, max(20, self.out.width - 12)) or [""]
        self.out.line(self.out.paint(f"{name:10}", "dim") + wrapped[0])
        for line in wrapped[1:]:
            self.out.line(" " * 10 + line)

    def raw(self, line: bytes) -> None:
        """Show a stored line as it is."""
        self.out.raw()(line + b"\n")

    def value(self, name: str, value: Any) -> None:
        """Show a value on one line, cut to the width."""
        value = plain_value(value)
        text = short_json(value, 4 * self.out.width)
        left = f"{clean(name)} = " if name else ""
        size = _size(value)
        room = self.out.width - width_of(left)
        if width_of(text) <= room and size <= 4 * self.out.width:
            self.out.line(left + text)
            return
        much = f"  ({size:,} characters; pp shows all)"
        if room - len(much) < _LEAST:
            much = "  (pp shows all)"
        self.out.line(left + cut(text, max(4, room - len(much))) + self.out.paint(much, "dim"))

    def pretty(self, value: Any) -> None:
        """Show a value in full; a text as text."""
        if isinstance(value, str):
            self.out.line(clean(value))
        else:
            self.out.pretty(plain_value(value))

    def rows(
        self, head: Sequence[str], rows: Sequence[Sequence[Any]], *, flexible: int, less: Sequence[str] = ()
    ) -> None:
        """Show a table; columns that begin with ``>`` stand right.

        Where there is no room, those of ``less`` are left out in turn, then the flexible one gives way.
        """
        cells = [[("" if cell is None else clean(str(cell)), "") for cell in row] for row in rows]
        self.out.table(head, cells, flexible=flexible, less=less)

    def moments(self, diff: MomentsDiff) -> None:
        """Show how two prompts differ."""
        show_moments(diff, self.out, hint=f"j turn:{diff.now.turn}; ctx N shows one in full")

    def why(self, why: Why) -> None:
        """Show where a text or an event came from."""
        show_why(why, self.stepper.recording.first_writer, self.out)

    def uses(self, uses: Uses) -> None:
        """Show where later events contain what an event brought."""
        show_uses(uses, self.stepper.recording.first_writer, self.out)

    def row(self, values: dict[str, Any]) -> None:
        """Show one row of a table that is not held as a whole; the last value is cut."""
        *some, last = values.values()
        left = (
            "  ".join(pad(clean(str(cell)), width) for cell, width in zip(some, (6, 16), strict=False)) + "  "
        )
        text = cut(short_json(plain_value(last), 2 * self.out.width), self.out.width - width_of(left))
        self.out.line(left + text)


def plain_value(value: Any) -> Any:
    """Return a value of an expression as JSON has it; events in it whole."""
    if isinstance(value, Event):
        return value.payload
    return [plain_value(item) for item in value] if isinstance(value, list) else value


def _heading(turn: int, lane: str) -> str:
    where = "" if lane == MAIN else f"  lane {clean(lane)}"
    return (f"turn {turn}" if turn else "outside any turn") + where


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return len(pretty_json(value, None)) if isinstance(value, dict | list) else 0


class JsonView(View):
    """Writes the same for programs: one JSON object per line."""

    def note(self, text: str) -> None:
        self.out.json_line({"note": text})

    def move(self, move: Move) -> None:
        reasons = []
        for point, change in move.reasons:
            sort = "breakpoint" if isinstance(point, Breakpoint) else "watch"
            reason: dict[str, Any] = {"sort": sort, "number": point.number, "text": point.text}
            if change is not None:
                reason |= {"old": plain_value(change.old), "new": plain_value(change.new)}
            reasons.append(reason)
        event = self.event_dict(self.stepper.event) if self.stepper.events else None
        self.out.json_line({"moved": move.moved, "note": move.note, "reasons": reasons, "event": event})

    def here(self) -> None:
        self.events([self.stepper.event])

    def events(self, events: Iterable[Event]) -> None:
        for event in events:
            self.out.json_line(self.event_dict(event))

    def event_dict(self, event: Event) -> dict[str, Any]:
        """Return the line of an event."""
        index = event.index or 0
        facts = event_dict(event, self.stepper.turn_at(index), self.stepper.recording.first_writer)
        lane = self.stepper.lane_at(index)
        more = {"derived": True} if event.derived_number is not None else {}
        return {**facts, "index": event.index, "lane": lane, "here": event == self.stepper.event, **more}

    def fact(self, name: str, text: str) -> None:
        self.out.json_line({name: text})

    def raw(self, line: bytes) -> None:
        self.out.json_line({"raw": line.decode("utf-8", "replace")})

    def value(self, name: str, value: Any) -> None:
        self.out.json_line({"name": name, "value": plain_value(value)})

    def pretty(self, value: Any) -> None:
        self.out.json_line({"value": plain_value(value)})

    def rows(
        self, head: Sequence[str], rows: Sequence[Sequence[Any]], *, flexible: int, less: Sequence[str] = ()
    ) -> None:
        names = [name.lstrip(">") for name in head]
        for row in rows:
            self.out.json_line(dict(zip(names, row, strict=True)))

    def moments(self, diff: MomentsDiff) -> None:
        self.out.json_line(diff.as_dict())

    def why(self, why: Why) -> None:
        self.out.json_line(why_dict(why, self.stepper.recording.first_writer))

    def uses(self, uses: Uses) -> None:
        self.out.json_line(uses_dict(uses, self.stepper.recording.first_writer))

    def row(self, values: dict[str, Any]) -> None:
        self.out.json_line({name: plain_value(value) for name, value in values.items()})
