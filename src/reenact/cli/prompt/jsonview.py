"""The same as ``view`` for programs: one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...debugger.breakpoints import Breakpoint
from ...debugger.stepper import Move
from ...tracefile.event import Event
from ..ending import first_writer
from ..eventline import event_dict
from .view import View, plain_value


class JsonView(View):
    """Writes JSON lines."""

    def note(self, text: str) -> None:
        self.out.json_line({"note": text})

    def move(self, move: Move) -> None:
        reasons = []
        for point, change in move.reasons:
            sort = "breakpoint" if isinstance(point, Breakpoint) else "watch"
            told: dict[str, Any] = {"sort": sort, "number": point.number, "text": point.text}
            reasons.append(
                told
                if change is None
                else told | {"old": plain_value(change.old), "new": plain_value(change.new)}
            )
        event = self.event_dict(self.stepper.event) if self.stepper.events else None
        self.out.json_line({"moved": move.moved, "note": move.note, "reasons": reasons, "event": event})

    def here(self) -> None:
        self.events([self.stepper.event])

    def events(self, events: Iterable[Event]) -> None:
        for event in events:
            self.out.json_line(self.event_dict(event))

    def event_dict(self, event: Event) -> dict[str, Any]:
        """Return what a line says of an event."""
        index = event.index or 0
        told = event_dict(event, self.stepper.lanes.turn(index), first_writer(self.stepper.recording))
        lane = self.stepper.lanes.of(index)
        return {**told, "index": event.index, "lane": lane, "here": index == self.stepper.index}

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

    def row(self, values: dict[str, Any]) -> None:
        self.out.json_line({name: plain_value(value) for name, value in values.items()})
