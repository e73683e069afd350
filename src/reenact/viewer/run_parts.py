"""The page of a run and its parts: head, rows, events, contexts, streams, plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from ..debugger.turn_table import TurnTable
from ..errors import NotIndexed, UsageError
from ..pages.comparison.changed_text import LeftOut
from ..pages.html import Html, join, line, tag
from ..pages.run.context_cards import context_cards
from ..pages.run.event_card import all_fields, event_card
from ..pages.run.run_header import findings_list, run_header
from ..pages.run.stream_player import stream_offer, stream_player
from ..pages.run.timeline_rows import timeline_rows
from ..pages.run.turn_charts import MEASURES, Span, lanes_chart, span_of, turn_plots
from ..pages.run.viewer_pages import run_page
from ..recording.derived_events import Place
from ..recording.played_streams import played_stream
from ..tracefile import status as states
from ..tracefile.events.event import Event
from ..tracefile.events.text import clean, dump
from .event_list import Shown
from .open_runs import OpenRun, Runs
from .request_copies import as_curl, as_python

_MOST_ROWS = 400
"""Rows of one request."""
_WAIT = "This part of the run is still being indexed; it will be shown here."


class RunParts:
    """Answers requests about one run."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    def by_path(self) -> dict[str, Callable[[Request], Response]]:
        """Return what answers below the address of a run."""
        return {
            "head": self.head,
            "findings": self.findings,
            "work": self.work,
            "rows": self.rows,
            "go": self.go,
            "event/{address}": self.event,
            "context/{address}": self.context,
            "copy/{address}": self.copy,
            "stream/{address}": self.stream,
            "lanes": self.lanes,
            "plots": self.plots,
        }

    def page(self, request: Request) -> Response:
        run = self._run(request)
        with run.lock:
            run.refresh()
            recording = run.recording
            return HTMLResponse(
                run_page(
                    recording.name,
                    self._head(run),
                    key=request.path_params["key"],
                    opens_at=run.opens_at,
                    is_live=recording.status == states.RUNNING,
                )
            )

    def head(self, request: Request) -> Response:
        run = self._run(request)
        with run.lock:
            return HTMLResponse(self._head(run))

    def _head(self, run: OpenRun) -> Html:
        is_priced = run.is_indexed and run.table.is_done
        return run_header(run.recording, None, run.table.bill if is_priced else None)

    def findings(self, request: Request) -> Response:
        return HTMLResponse(findings_list(self._run(request).findings()))

    def work(self, request: Request) -> Response:
        """Do a little of what is left, and answer how much there is now."""
        run = self._run(request)
        with run.lock:
            run.work()
            facts = {"indexed": run.is_indexed, "share": run.share, "done": False, "version": run.version}
            if run.is_indexed:
                facts |= {"share": run.table.share, "done": run.table.is_done}
            return JSONResponse(facts)

    def rows(self, request: Request) -> Response:
        """Answer with some rows of the list, and how long the list is as far as is known."""
        run, query = self._run(request), request.query_params
        first = number_in(query.get("from"))
        with run.lock:
            listed = run.listed(_shown(request))
            places = listed[first : first + min(number_in(query.get("n")), _MOST_ROWS)]
            return JSONResponse(
                {
                    "total": len(listed),
                    "events": run.recording.count(),
                    "done": listed.is_done,
                    "seen": listed.seen,
                    "rows": _rows(run, places),
                }
            )

    def go(self, request: Request) -> Response:
        """Answer where a move leads: the address of an event and its row in the list."""
        run, query = self._run(request), request.query_params
        with run.lock:
            stepper = run.stepper
            try:
                stepper.go(query.get("at") or "first")
                move, note = query.get("move", ""), ""
                if move in ("lane+", "lane-"):
                    note = stepper.next(1 if move[-1] == "+" else -1).note
                elif move in ("turn+", "turn-"):
                    note = stepper.turn(1 if move[-1] == "+" else -1).note
                elif move == "failure":
                    stepper.go(run.opens_at)
                row = run.listed(_shown(request)).row_of(stepper.place)
                return JSONResponse({"at": run.address(stepper.place), "row": row, "note": note})
            except NotIndexed:
                return JSONResponse({"wait": _WAIT})

    def event(self, request: Request) -> Response:
        return self._card(
            request,
            lambda run, event: join(
                event_card(run.recording, event, LeftOut()), stream_offer(event), all_fields(event)
            ),
        )

    def context(self, request: Request) -> Response:
        only_new, everything = (request.query_params.get(name) == "1" for name in ("new", "all"))
        return self._card(
            request,
            lambda run, event: context_cards(
                run.recording, event, LeftOut(), only_new=only_new, everything=everything
            ),
        )

    def _card(self, request: Request, made: Callable[[OpenRun, Event], Html]) -> Response:
        run = self._run(request)
        with run.lock:
            try:
                return HTMLResponse(made(run, run.recording.event(request.path_params["address"])))
            except NotIndexed:
                return HTMLResponse(tag("p", line(_WAIT), class_="soft wait"))

    def copy(self, request: Request) -> Response:
        """Answer with an event as text for the clipboard: as JSON, or its request as cURL or Python."""
        run, form = self._run(request), request.query_params.get("as", "json")
        with run.lock:
            event = run.recording.event(request.path_params["address"])
            if form == "json":
                text = dump(event.payload, indent=2, ensure_ascii=False)
            else:
                sent = run.recording.request_before(event)
                if sent is None:
                    raise UsageError("no request to a model led to this event")
                text = as_curl(sent) if form == "curl" else as_python(sent)
        return Response(text, media_type="text/plain")

    def stream(self, request: Request) -> Response:
        """Answer with the player of a streamed response, and its pieces with their times."""
        run = self._run(request)
        with run.lock:
            found = played_stream(run.recording.event(request.path_params["address"]))
            pieces = [(piece.ms, piece.sort, clean(piece.text)) for piece in found.pieces]
            return JSONResponse({"html": stream_player(found), "pieces": pieces})

    def lanes(self, request: Request) -> Response:
        by = request.query_params.get("by", "")
        return self._chart(
            request, lambda table, span: lanes_chart(table, by if by in MEASURES else "duration", span)
        )

    def plots(self, request: Request) -> Response:
        return self._chart(request, turn_plots)

    def _chart(self, request: Request, drawn: Callable[[TurnTable, Span], Html]) -> Response:
        run, query = self._run(request), request.query_params
        with run.lock:
            if not run.is_indexed:
                return HTMLResponse(tag("p", line(_WAIT), class_="soft wait"))
            if not len(run.table):
                run.work()
            span = span_of(run.table, number_in(query.get("from")), number_in(query.get("to")))
            return HTMLResponse(drawn(run.table, span))

    def _run(self, request: Request) -> OpenRun:
        return self.runs.open(request.path_params["key"])


def _rows(run: OpenRun, places: Sequence[Place]) -> list[tuple[str, Html] | None]:
    """Return the rows of entries, None for those that cannot be read yet."""
    execution = run.recording.execution
    unread = execution.unread
    if not unread:
        return list(timeline_rows(run.recording, places))
    known = [place for place in places if execution.position(place[0]) not in unread]
    rows = iter(timeline_rows(run.recording, known))
    return [None if execution.position(place[0]) in unread else next(rows) for place in places]


def _shown(request: Request) -> Shown:
    query = request.query_params
    return Shown(query.get("show", ""), query.get("lane", ""), query.get("q", ""))


def number_in(text: str | None) -> int:
    """Return the number in a query, 0 if there is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else 0
