"""The list of runs: which are shown, in which order, and what is known of those in sight."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from ..errors import UsageError
from ..pages.html import Html
from ..pages.runs.runs_page import period, runs_page
from ..pages.runs.runs_table import LazyCells, Line, duration, lazy_cells, runs_row, runs_table
from ..pages.runs.sparkline import runs_over_time
from ..recording.listing import RunRow, with_copies
from ..stats.run_filters import DEEP, Filter, parse_filter
from ..tracefile.events.text import count
from .open_runs import Runs
from .run_figures import Figures, RunFigures

_FIRST = 60
"""Rows that the page comes with; the script fetches the others."""
_MOST_ROWS = 200
_SLICE = 0.3
"""Seconds that one request may spend on reading runs; the next one continues."""
_QUERY = ("q", "status", "sort", "since", "until")
_STATUSES: dict[str, Callable[[RunRow], bool]] = {
    "": lambda row: True,
    "failed": lambda row: row.failed,
    "running": lambda row: row.status == "running",
    "ok": lambda row: row.status == "ok",
}
_WORD = re.compile(r'[^\s"]+(?:"[^"]*")?|"[^"]*"')
_COMPARES = re.compile(r"\w[\w.-]*(?:!=|>=|<=|==?|~|>|<)")

_SORTS: dict[str, Callable[[RunRow], Any]] = {
    "status": lambda row: row.status,
    "name": lambda row: row.name.lower(),
    "model": lambda row: (row.model or "").lower(),
    "turns": lambda row: -row.turns,
    "tokens": lambda row: -(row.tokens_in + row.tokens_out),
    "errors": lambda row: -row.errors,
    "duration": lambda row: -(duration(row) or 0.0),
    "age": lambda row: -(row.started or 0.0),
}
"""What runs are sorted by, the largest or newest first."""
_LAZY_SORTS: dict[str, Callable[[Figures], float]] = {
    "money": lambda found: -(found.usd or 0.0),
    "suspects": lambda found: -(found.suspects.number if found.suspects is not None else 0),
}
"""The same for what only whole files show."""


class Chosen(NamedTuple):
    """The runs that a query means, in order."""

    rows: list[RunRow]
    lines: list[tuple[RunRow, RunRow | None]]
    """The same as they are listed: replays and forks below their origin, each with that run."""
    counts: dict[str, int]
    """Runs by status that match the rest of the query."""
    unread: int
    """Runs that have to be read before the order is final."""
    hint: str


class RunsList:
    """Answers requests about the list of runs."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._figures = RunFigures()
        self._words: dict[str, tuple[RunRow, str]] = {}
        self._last: tuple[list[RunRow], dict[str, str], Chosen] | None = None

    def page(self, request: Request) -> Response:
        query = _query(request)
        chosen = self._chosen(query)
        lines = chosen.lines
        table = runs_table(self._rows(lines, 0, _FIRST), len(lines), query["sort"] or "age")
        place, over_time = self.runs.place, _over_time(chosen.rows)
        return HTMLResponse(runs_page(place, table, over_time, _summary(chosen), chosen.counts, query))

    def rows(self, request: Request) -> Response:
        """Answer with some rows, and what stands around them."""
        query, words = _query(request), request.query_params
        begin, number = _whole(words.get("from")), min(_whole(words.get("n")), _MOST_ROWS)
        chosen = self._chosen(query)
        lines = chosen.lines
        rows = self._rows(lines, begin, number)
        found: dict[str, object] = {"total": len(lines), "rows": rows, "unread": chosen.unread}
        if begin == 0:
            found |= {
                "counts": chosen.counts,
                "summary": _summary(chosen),
                "overTime": _over_time(chosen.rows) or "",
                "period": period(query),
                "head": runs_table([], len(lines), query["sort"] or "age"),
            }
        return JSONResponse(found)

    def figures(self, request: Request) -> Response:
        """Answer with the cells that only whole files show; null for a run that is not read yet."""
        keys = dict.fromkeys(request.query_params.get("keys", "").split(",")[:_MOST_ROWS])
        by_key = {self.runs.key_of(row): row for row in self.runs.rows()}
        rows = {key: by_key[key] for key in keys if key in by_key}
        self._figures.look(list(rows.values()), _SLICE)
        known = {key: self._cells(row) for key, row in rows.items()}
        return JSONResponse(
            {key: None if cells is None else lazy_cells(cells) for key, cells in known.items()}
        )

    def _chosen(self, query: dict[str, str]) -> Chosen:
        runs = self.runs.rows()
        last = self._last
        if last is not None and last[0] is runs and last[1] == query and not last[2].unread:
            return last[2]  # the next rows of the same list
        chosen = self._choose(runs, query)
        self._last = runs, query, chosen
        return chosen

    def _choose(self, runs: list[RunRow], query: Mapping[str, str]) -> Chosen:
        filters, words = _parsed(query["q"])
        begin, end = (float(query[name]) if query[name] else None for name in ("since", "until"))
        matching = [
            row
            for row in runs
            if (begin is None or (row.started or 0.0) >= begin)
            and (end is None or (row.started or 0.0) < end)
            and all(each.holds(row) for each in filters)
            and (not words or self._holds(row, words))
        ]
        counts = {name: sum(map(test, matching)) for name, test in _STATUSES.items()}
        rows = list(filter(_STATUSES.get(query["status"], _STATUSES[""]), matching))
        unread = self._sort(rows, query["sort"] or "age")
        deep = [each.key for each in filters if each.key in DEEP and each.key not in ("model", "error")]
        hint = f"{', '.join(deep)}: only `reenact stats` knows it, since it reads whole files" if deep else ""
        return Chosen(rows, _lines(rows), counts, unread, hint)

    def _sort(self, rows: list[RunRow], sort: str) -> int:
        """Sort in place and return how many runs are still to be read for that."""
        name, is_reversed = sort.removeprefix("-"), sort.startswith("-")
        if name in _SORTS:
            rows.sort(key=_SORTS[name], reverse=is_reversed)
            return 0
        self._figures.look(rows, _SLICE)
        known = {id(row): self._figures.known(row) for row in rows}
        of = _LAZY_SORTS[name]

        def rank(row: RunRow) -> float:
            found = known[id(row)]
            return float("-inf") if is_reversed and found is None else 1.0 if found is None else of(found)

        rows.sort(key=rank, reverse=is_reversed)
        return sum(found is None for found in known.values())

    def _holds(self, row: RunRow, words: list[str]) -> bool:
        key = self.runs.key_of(row)
        found = self._words.get(key)
        if found is None or found[0] is not row:
            facts = (row.name, row.id, row.model, row.input, row.error, row.status, row.meta)
            found = self._words[key] = row, " ".join(map(str, facts)).lower()
        return all(word in found[1] for word in words)

    def _rows(self, lines: list[tuple[RunRow, RunRow | None]], begin: int, number: int) -> list[Html]:
        now, key_of = time.time(), self.runs.key_of
        shown = [
            Line(row, key_of(row), above, key_of(above) if above is not None else "", self._cells(row))
            for row, above in lines[begin : begin + number]
        ]
        return [runs_row(each, at, now) for at, each in enumerate(shown, begin)]

    def _cells(self, row: RunRow) -> LazyCells | None:
        found = self._figures.known(row)
        return None if found is None else LazyCells(found.money, found.turns, found.suspects)


def _query(request: Request) -> dict[str, str]:
    found = {name: request.query_params.get(name, "") for name in _QUERY}
    for name in ("since", "until"):
        if not re.fullmatch(r"\d{1,11}(\.\d{1,6})?", found[name]):
            found[name] = ""
    if found["sort"].removeprefix("-") not in (*_SORTS, *_LAZY_SORTS):
        found["sort"] = ""
    return found


def _parsed(text: str) -> tuple[list[Filter], list[str]]:
    """Return the comparisons of a search, and its other words, which are sought in all texts."""
    filters, words = [], []
    for word in _WORD.findall(text):
        try:
            filters.append(parse_filter(word if _COMPARES.match(word) else ""))
        except UsageError:
            words.append(word.strip('"').lower())
    return filters, [word for word in words if word]


def _lines(rows: list[RunRow]) -> list[tuple[RunRow, RunRow | None]]:
    return [
        pair for row, copies in with_copies(rows) for pair in ((row, None), *((each, row) for each in copies))
    ]


def _over_time(rows: list[RunRow]) -> Html | None:
    return runs_over_time([(row.started, row.failed) for row in rows if row.started is not None])


def _summary(chosen: Chosen) -> str:
    rows = chosen.rows
    tokens = sum(row.tokens_in + row.tokens_out for row in rows)
    facts = [count(len(rows), "run"), f"{tokens:,} tokens", f"{sum(row.failed for row in rows):,} failed"]
    if chosen.unread:
        facts.append(f"{len(rows) - chosen.unread:,} read so far")
    if not rows:
        facts = ["No run is here, or none matches."]
    return " · ".join([*facts, *([chosen.hint] if chosen.hint else [])])


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else 0
