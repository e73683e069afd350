"""The runs of a folder as a table: how each ended, its figures, and those made from it below it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from ..recording.listing import RunRow, input_text
from ..tracefile.events.text import age, compact, count, moment, plain, seconds, short_json
from .html import Html, line, tag
from .run_header import status_badge

MOST_ROWS = 500
COLUMNS = ("status", "name", "input", "model", "turns", "tokens", "errors", "time", "age")
_NUMBERS = frozenset(("turns", "tokens", "errors", "time", "age"))
SORTS: dict[str, Callable[[RunRow], Any]] = {
    "status": lambda row: row.status,
    "name": lambda row: row.name.lower(),
    "turns": lambda row: -row.turns,
    "tokens": lambda row: -(row.tokens_in + row.tokens_out),
    "errors": lambda row: -row.errors,
    "time": lambda row: -(duration(row) or 0.0),
    "age": lambda row: -(row.started or 0.0),
}
"""What runs are sorted by, the largest or newest first."""


def duration(row: RunRow) -> float | None:
    """Return how long a run took, or takes so far."""
    if row.started is None or row.ended is None or not 0 <= row.ended - row.started < 1e9:
        return None
    return row.ended - row.started


def runs_table(rows: Sequence[tuple[RunRow, bool]], key_of: Callable[[RunRow], str], sort: str) -> Html:
    """Return the table; each row with whether it stands below the run it was made from."""
    now = time.time()
    head = [_column(name, sort) for name in COLUMNS]
    body = [_row(row, key_of(row), now, is_below=below) for row, below in rows[:MOST_ROWS]]
    more = len(rows) - len(body)
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), class_="runs")
    note = (
        tag("p", f"{count(more, 'more run')}: narrow the search to see them.", class_="soft")
        if more
        else None
    )
    return tag("div", table if rows else _nothing(), note, id="runs")


def _nothing() -> Html:
    return tag("p", "No run is here, or none matches.", class_="soft empty-note")


def _column(name: str, sort: str) -> Html:
    if name not in SORTS:
        return tag("th", name, scope="col")
    button = tag("button", name, type="submit", name="sort", value=name, form="filter")
    is_sorted = "descending" if name == sort else None
    return tag("th", button, scope="col", class_="figure" if name in _NUMBERS else None, aria_sort=is_sorted)


def _row(row: RunRow, key: str, now: float, *, is_below: bool) -> Html:
    if row.id is None and row.reason is not None:
        reason = tag("td", line(row.reason), colspan=str(len(COLUMNS) - 2), class_="soft")
        return tag("tr", tag("td", status_badge(row.status)), tag("td", line(row.name)), reason)
    link = tag("a", line(plain(row.name, 80) or row.id or "-"), href=f"/run/{key}")
    how = "fork " if row.is_fork else "replay " if row.made_from is not None else ""
    took = duration(row)
    damage = tag("span", " !", title="the file is damaged; `reenact doctor` shows where", class_="bad")
    return tag(
        "tr",
        tag("td", status_badge(row.status), damage if row.findings else None),
        tag("td", tag("span", f"└ {how}", class_="soft") if is_below else None, link),
        tag("td", _input(row), class_="input"),
        tag("td", plain(row.model or "", 40), class_="soft"),
        *(
            tag("td", text, class_="figure")
            for text in (compact(row.turns), compact(row.tokens_in + row.tokens_out))
        ),
        tag("td", compact(row.errors), class_="figure bad" if row.errors else "figure soft"),
        tag("td", seconds(took) if took is not None else "", class_="figure"),
        tag("td", age(row.started, now), class_="figure", title=moment(row.started)),
        class_="below" if is_below else None,
        title=short_json(row.meta, 200) if row.meta else None,
    )


def _input(row: RunRow) -> Html:
    error = tag("span", f" ✗ {plain(row.error, 160)}", class_="bad") if row.error else None
    return tag("div", plain(input_text(row), 160), error)
