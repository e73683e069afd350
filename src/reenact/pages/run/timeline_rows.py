"""Events as rows of equal height, for a list that holds only those in sight."""

from __future__ import annotations

from collections.abc import Iterable

from ...recording.derived_events import Place
from ...recording.index import MAIN
from ...recording.recording import Recording
from ...tracefile.events.event_text import address, describe
from ...tracefile.events.text import plain
from ..html import Html, tag

_WIDE = 160
_SIGNS = {"→": "request", "←": "response", "▸": "call", "◂": "result", "✗": "bad", "✓": "good", "·": "note"}


def timeline_rows(recording: Recording, places: Iterable[Place]) -> list[tuple[str, Html]]:
    """Return the address and the row of each entry; the first entry of a turn bears its number."""
    root, rows = recording.first_writer, []
    before: int | None = None
    for place in places:
        event = recording.entries[place]
        where = recording.index.nearby(event.index or 0)
        turn, lane = where if where is not None else (0, MAIN)
        if before is None and place[0] > 0 and place[1] == 0:
            above = recording.index.nearby(place[0] - 1)
            before = above[0] if above is not None else 0
        found = describe(event)
        at = address(event, root)
        figures = "  ".join(part for part in (found.tokens, found.duration) if part)
        text = " ".join(part for part in (found.text, found.error) if part)
        is_first = turn != before and turn > 0
        before = turn
        row = tag(
            "div",
            tag("span", str(turn) if is_first else "", class_="turn", title=f"turn {turn}" if turn else None),
            tag("span", at, class_="at"),
            tag("span", found.sign, class_="sign", aria_hidden="true"),
            tag("span", plain(text, _WIDE), class_="what"),
            tag("span", plain(lane, 24), class_="lane") if lane != MAIN else None,
            tag("span", figures, class_="figures") if figures else None,
            class_=f"row {_SIGNS.get(found.sign, 'note')}{' first' if is_first else ''}",
            role="option",
            data_at=at,
        )
        rows.append((at, row))
    return rows
