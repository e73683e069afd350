"""The addresses of the viewer, and the server that listens on them until Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..compare.diff import diff
from ..compare.moments import diff_turns
from ..debugger.run_findings import run_findings
from ..debugger.story import bill_of, spent_ms, story_of
from ..errors import ReenactError, TraceFileError, UsageError
from ..money.ledger import Ledger
from ..pages.changed_text import LeftOut
from ..pages.context_cards import context_cards
from ..pages.document import RUNS_STYLE, STYLE, VIEWER_STYLE, asset
from ..pages.event_card import all_fields, event_card
from ..pages.html import Html, join, line, tag
from ..pages.lanes_chart import MEASURES, Bar, lanes_chart
from ..pages.moments_page import moments_page
from ..pages.run_diff_page import run_diff_page
from ..pages.run_header import findings_list, run_header
from ..pages.timeline_rows import timeline_rows
from ..pages.viewer_pages import message_page, run_page
from ..recording.calls import tokens_of
from ..tracefile import status as states
from ..tracefile.events.event_text import address
from ..tracefile.events.text import dump
from .guard import Guard
from .open_runs import OpenRun, Runs, Shown
from .request_copies import as_curl, as_python
from .runs_list import RunsList

_EVERY = 0.5
"""Seconds between two looks whether a run has grown."""
_MOST_ROWS = 400
"""Rows of one request."""
_STATIC = {
    **dict.fromkeys((STYLE, VIEWER_STYLE, RUNS_STYLE), "text/css"),
    **dict.fromkeys(("common.js", "viewer.js", "runs.js"), "text/javascript"),
}


class Viewer:
    """Answers requests about the runs of one place."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.list = RunsList(runs)
        self.is_ending = False

    def routes(self) -> list[Route]:
        def at(path: str, answer: Callable[[Request], Response]) -> Route:
            async def endpoint(request: Request) -> Response:
                return await run_in_threadpool(_safely, answer, request)

            return Route(path, endpoint, methods=["GET"])

        return [
            at("/", self.list.page),
            at("/runs", self.list.rows),
            at("/runs/figures", self.list.figures),
            Route("/live", self.list_live),
            at("/static/{name}", self.static),
            at("/favicon.ico", lambda request: Response(status_code=204)),
            at("/diff", self.diff_page),
            at("/run/{key}", self.run_page),
            at("/run/{key}/head", self.head),
            at("/run/{key}/rows", self.rows),
            at("/run/{key}/go", self.go),
            at("/run/{key}/event/{address}", self.event),
            at("/run/{key}/context/{address}", self.context),
            at("/run/{key}/copy/{address}", self.copy),
            at("/run/{key}/lanes", self.lanes),
            at("/run/{key}/turns", self.turns_page),
            Route("/run/{key}/live", self.run_live),
        ]

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            return Response("Not found.\n", 404, media_type="text/plain")
        return Response(asset(name), media_type=_STATIC[name])

    # one run --------------------------------------------------------------------------------------

    def run_page(self, request: Request) -> Response:
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
        recording = run.recording
        story = story_of(recording)
        header = run_header(recording, story, bill_of(story, Ledger()))
        return join(header, findings_list(run_findings(recording)))

    def rows(self, request: Request) -> Response:
        """Answer with some rows of the list, and how long the list is as far as is known."""
        run, query = self._run(request), request.query_params
        first = _number(query.get("from"))
        with run.lock:
            listed = run.listed(_shown(request))
            rows = timeline_rows(
                run.recording, listed[first : first + min(_number(query.get("n")), _MOST_ROWS)]
            )
            return JSONResponse(
                {
                    "total": len(listed),
                    "events": run.recording.count(),
                    "done": listed.is_done,
                    "seen": listed.seen,
                    "version": run.version,
                    "rows": rows,
                }
            )

    def go(self, request: Request) -> Response:
        """Answer where a move leads: the address of an event and its row in the list."""
        run, query = self._run(request), request.query_params
        with run.lock:
            stepper = run.stepper
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

    def event(self, request: Request) -> Response:
        run = self._run(request)
        with run.lock:
            event = run.recording.event(request.path_params["address"])
            return HTMLResponse(join(event_card(run.recording, event, LeftOut()), all_fields(event)))

    def context(self, request: Request) -> Response:
        run, query = self._run(request), request.query_params
        with run.lock:
            event = run.recording.event(request.path_params["address"])
            only_new, everything = query.get("new") == "1", query.get("all") == "1"
            return HTMLResponse(
                context_cards(run.recording, event, LeftOut(), only_new=only_new, everything=everything)
            )

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
                    raise UsageError("no sent to a model led to this event")
                text = as_curl(sent) if form == "curl" else as_python(sent)
        return Response(text, media_type="text/plain")

    def lanes(self, request: Request) -> Response:
        run = self._run(request)
        by = request.query_params.get("by", "duration")
        with run.lock:
            story, ledger = story_of(run.recording), Ledger()
            root = run.recording.first_writer
            bars = []
            for block in story.blocks:
                if block.turn is not None:
                    tokens = tokens_of(block.turn.attempts)
                    values = {"duration": spent_ms(block.turn) or 0.0}
                    values["tokens"] = float(tokens.tokens_in + tokens.tokens_out)
                    if by == "money":
                        values["money"] = float(ledger.bill(block.turn.attempts).usd)
                    at, failed = address(block.turn.request, root), block.turn.error is not None
                    bars.append(Bar(block.lane, block.number, at, values, failed))
        return HTMLResponse(lanes_chart(bars, by if by in MEASURES else "duration"))

    def turns_page(self, request: Request) -> Response:
        run, query = self._run(request), request.query_params
        then, now = _number(query.get("then")), _number(query.get("now"))
        with run.lock:
            recording = run.recording
            found = diff_turns(recording, then, now or None)
            path = f"/run/{request.path_params['key']}"
            return HTMLResponse(moments_page(found, path, recording.tot["turns"]))

    def diff_page(self, request: Request) -> Response:
        """Answer with the comparison of two runs; without a second one, with the run before."""
        keys = [request.query_params.get(name, "") for name in ("a", "b")]
        if not keys[0]:
            raise UsageError("two runs are needed", hint="choose them on the page of runs")
        left = self.runs.open(keys[0])
        if not keys[1]:
            with left.lock:
                return HTMLResponse(run_diff_page(diff(left.recording)))
        right = self.runs.open(keys[1])
        with ExitStack() as locks:
            runs = {keys[0]: left, keys[1]: right}
            for key in sorted(runs):  # in one order, whoever compares them the other way round
                locks.enter_context(runs[key].lock)
                runs[key].refresh()
            found = diff(left.recording, runs[keys[1]].recording)
            return HTMLResponse(run_diff_page(found, (f"/run/{keys[0]}", f"/run/{keys[1]}")))

    async def list_live(self, request: Request) -> Response:
        async def changes() -> AsyncIterator[str]:
            before = await run_in_threadpool(self.runs.signature)
            took = 0.0
            while not self.is_ending:
                await asyncio.sleep(max(2 * _EVERY, 10 * took))
                begin = time.monotonic()
                now = await run_in_threadpool(self.runs.signature)
                took = time.monotonic() - begin
                if now != before:
                    before = now
                    yield "data: changed\n\n"

        return _stream(changes())

    async def run_live(self, request: Request) -> Response:
        """Answer with a line whenever the run has grown, until it ends."""
        run = await run_in_threadpool(self._run, request)

        def look() -> str | None:
            with run.lock:
                is_more = run.refresh()
                is_over = run.recording.status != states.RUNNING
                facts = {"events": run.recording.count(), "version": run.version, "over": is_over}
            return json.dumps(facts) if is_more or is_over else None

        async def changes() -> AsyncIterator[str]:
            while not self.is_ending:
                found = await run_in_threadpool(look)
                if found is not None:
                    yield f"data: {found}\n\n"
                await asyncio.sleep(_EVERY)

        return _stream(changes())

    def _run(self, request: Request) -> OpenRun:
        return self.runs.open(request.path_params["key"])


def _stream(lines: AsyncIterator[str]) -> Response:
    return StreamingResponse(lines, media_type="text/event-stream")


def _safely(answer: Callable[[Request], Response], request: Request) -> Response:
    """Answer bad input with a sentence in place of a failure: the rest of the page goes on."""
    try:
        return answer(request)
    except (ReenactError, OSError) as why:
        hint = getattr(why, "hint", None)
        status = 404 if isinstance(why, LookupError) else 409
        text = str(why) or type(why).__name__
    except Exception as fault:
        hint, status, text = None, 500, f"reenact met a fault of its own ({type(fault).__name__}: {fault})"
    sentences = [text[:1].upper() + text[1:] + "."] + ([f"Hint: {hint}."] if hint else [])
    if request.headers.get("sec-fetch-mode") == "navigate":
        return HTMLResponse(message_page(sentences), status)
    words = tag("div", *(tag("p", line(each)) for each in sentences), class_="failure")
    return HTMLResponse(words, status)


def _shown(request: Request) -> Shown:
    query = request.query_params
    return Shown(query.get("show", ""), query.get("lane", ""), query.get("q", ""))


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else 0


# Listening.


def bound_socket(port: int) -> socket.socket:
    """Return a socket on the loopback interface; UsageError if the port is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as why:
        listening.close()
        raise UsageError(
            f"cannot listen on port {port}: {(why.strerror or str(why)).lower()}",
            hint="leave out --port to get one that is free",
        ) from None
    return listening


def serve(
    place: str, port: int, opened: Callable[[str], None], run: tuple[str, str | None] | None = None
) -> None:
    """Serve the runs of a place until Ctrl-C; ``opened`` is called with the address once it can be opened.

    The address is that of ``run``, a path and an id, if there is one.
    """
    runs = Runs(place)
    listening = bound_socket(port)
    number = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    viewer = Viewer(runs)
    app = Guard(Starlette(routes=viewer.routes()), token, f"reenact-{number}")
    page = ""
    if run is not None:
        path = os.path.abspath(run[0])
        rows = [row for row in runs.rows() if os.path.abspath(row.path) == path and run[1] in (None, row.id)]
        keys = [runs.key_of(row) for row in rows]
        if not keys:
            raise TraceFileError(f"{run[0]} holds no run", path=run[0])
        page = f"run/{keys[0]}"
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    server = _Server(config, viewer, lambda: opened(f"http://127.0.0.1:{number}/{page}?token={token}"))
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises it again after a clean end
        pass
    finally:
        listening.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, viewer: Viewer, opened: Callable[[], None]) -> None:
        super().__init__(config)
        self._viewer = viewer
        self._opened = opened

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._opened()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._viewer.is_ending = True
        await super().shutdown(sockets)
