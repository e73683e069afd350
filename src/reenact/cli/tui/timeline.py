"""The timeline: the entries around the cursor, one line each, however long the run is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from rich.text import Text
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ...debugger.stepper import Stepper
from ...recording.derived_events import Place
from ...recording.index import MAIN
from ...tracefile.events.event_text import address
from ...tracefile.events.text import clean
from ..view.events import event_lines
from .captured import CapturedOutput

_WHEEL = 3
"""Entries that one turn of the wheel passes."""


class Row(NamedTuple):
    """One line: an entry with its address, or the heading of a turn."""

    text: Text
    address: str | None


class Timeline(Widget, can_focus=True):
    """Shows a window of the run around the cursor; only what is in the window is read."""

    class Chosen(Message):
        """An entry was clicked."""

        def __init__(self, address: str) -> None:
            super().__init__()
            self.address = address

    def __init__(self, stepper: Stepper, is_busy: Callable[[], bool]) -> None:
        """``is_busy`` is true while a thread uses the stepper; the timeline is drawn again after that."""
        super().__init__(id="timeline")
        self.border_title = "timeline"
        self._stepper = stepper
        self._is_busy = is_busy
        self._top: Place | None = None
        self._rows: list[Row] = []

    def show(self) -> None:
        """Draw the entries around the cursor; the window moves only if the cursor has left it."""
        if self._is_busy():
            return
        stepper, height = self._stepper, max(1, self.size.height)
        if not stepper.events:
            self._rows = [Row(Text("No event yet."), None)]
            self.refresh()
            return
        if self._top is None or not self._holds(stepper.place):
            before = islice(stepper.entries.walk(stepper.place, -1), height // 3)
            self._top = [stepper.place, *before][-1]
        self._rows = self._drawn(self._top, height)
        self.border_subtitle = f"{stepper.index + 1:,} of {len(stepper.events):,}"
        self.refresh()

    def _holds(self, place: Place) -> bool:
        """True if a place stands in the window, with room for the headings above it."""
        here = self._address(place)
        return any(row.address == here for row in self._rows) and place[0] < len(self._stepper.events)

    def _drawn(self, top: Place, height: int) -> list[Row]:
        stepper, rows = self._stepper, list[Row]()
        heading: tuple[int, str] | None = None
        for place in [top, *islice(stepper.entries.walk(top), height)]:
            index = stepper.entries[place].index or 0
            now = stepper.turn_at(index), stepper.lane_at(index)
            if now != heading and (stepper.recording.index.has_turns or now[1] != MAIN):
                rows.append(Row(_heading(*now), None))
            heading = now
            rows.append(Row(self._line(place), self._address(place)))
        return rows[:height]

    def _line(self, place: Place) -> Text:
        stepper, recording = self._stepper, self._stepper.recording
        out = CapturedOutput(max(20, self.size.width))
        is_here = place == stepper.place
        mark = "▌" if is_here else " "
        line = event_lines(
            stepper.entries[place],
            out,
            root=recording.first_writer,
            started=recording.started,
            mark=mark,
            address_width=len(str(recording.count(system=True))) + 1,
            is_narrow=self.size.width < 70,
        )[0]
        text = Text.from_ansi(line)
        text.truncate(self.size.width, overflow="ellipsis", pad=True)
        if is_here:
            text.stylize("reverse" if self.has_focus else "bold")
        return text

    def _address(self, place: Place) -> str:
        return address(self._stepper.entries[place], self._stepper.recording.first_writer)

    def render_line(self, y: int) -> Strip:
        if y >= len(self._rows):
            return Strip.blank(self.size.width, self.rich_style)
        segments = self._rows[y].text.render(self.app.console)
        return (
            Strip(segments).apply_style(self.rich_style).adjust_cell_length(self.size.width, self.rich_style)
        )

    def on_resize(self) -> None:
        self._top = None
        self.show()

    def on_focus(self) -> None:
        self.show()

    def on_blur(self) -> None:
        self.show()

    def on_click(self, event: events.Click) -> None:
        where = event.get_content_offset(self)
        if where is not None and where.y < len(self._rows) and (chosen := self._rows[where.y].address):
            self.post_message(self.Chosen(chosen))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll(1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll(-1)

    def _scroll(self, direction: int) -> None:
        if self._top is not None and not self._is_busy() and self._stepper.events:
            self._top = [self._top, *islice(self._stepper.entries.walk(self._top, direction), _WHEEL)][-1]
            self._rows = self._drawn(self._top, max(1, self.size.height))
            self.refresh()


def _heading(turn: int, lane: str) -> Text:
    where = "" if lane == MAIN else f"  lane {clean(lane)}"
    return Text((f"turn {turn}" if turn else "outside any turn") + where, "bold")
