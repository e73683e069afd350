"""The list of runs: which are shown, in which order."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..pages.html import Html
from ..pages.runs_page import runs_page
from ..pages.runs_table import SORTS, runs_table
from ..recording.listing import with_copies
from .open_runs import Runs, key_of


class RunsList:
    """Answers requests about the list of runs."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    def page(self, request: Request) -> Response:
        words = {name: request.query_params.get(name, "") for name in ("q", "status", "sort")}
        return HTMLResponse(runs_page(self.runs.place, self._table(request), **words))

    def table(self, request: Request) -> Response:
        return HTMLResponse(self._table(request))

    def _table(self, request: Request) -> Html:
        query = request.query_params
        text, status = query.get("q", "").lower(), query.get("status", "")
        sort = query.get("sort", "") if query.get("sort") in SORTS else "age"
        rows = sorted(self.runs.rows(), key=SORTS[sort])
        if status == "failed":
            rows = [row for row in rows if row.failed]
        elif status:
            rows = [row for row in rows if row.status == status]
        if text:
            rows = [row for row in rows if text in _words(row)]
        shown = [
            pair
            for row, copies in with_copies(rows)
            for pair in ((row, False), *((each, True) for each in copies))
        ]
        return runs_table(shown, key_of, sort)


def _words(row: Any) -> str:
    return " ".join(
        map(str, (row.name, row.id, row.model, row.input, row.error, row.status, row.meta))
    ).lower()
