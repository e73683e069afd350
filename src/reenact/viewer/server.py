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
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from ..compare.diff import diff
from ..compare.moments import diff_turns
from ..errors import ReenactError, TraceFileError, UsageError
from ..pages.comparison.moments_page import moments_page
from ..pages.comparison.run_diff_page import run_diff_page
from ..pages.document import RUNS_STYLE, SCRIPTS, STYLE, VIEWER_STYLE, asset
from ..pages.html import line, tag
from ..pages.run.viewer_pages import message_page
from ..tracefile import status as states
from .guard import Guard
from .open_runs import OpenRun, Runs
from .run_parts import RunParts, number_in
from .runs_list import RunsList

_EVERY = 0.5
"""Seconds between two looks whether a run has grown."""
_STATIC = {
    **dict.fromkeys((STYLE, VIEWER_STYLE, RUNS_STYLE), "text/css"),
    **dict.fromkeys(SCRIPTS, "text/javascript"),
}


class Viewer:
    """Answers requests about the runs of one place."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.list = RunsList(runs)
        self.parts = RunParts(runs)
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
            at("/run/{key}", self.parts.page),
            *(at(f"/run/{{key}}/{path}", answer) for path, answer in self.parts.by_path().items()),
            at("/run/{key}/turns", self.turns_page),
            Route("/run/{key}/live", self.run_live),
        ]

    def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            return Response("Not found.\n", 404, media_type="text/plain")
        return Response(asset(name), media_type=_STATIC[name])

    def turns_page(self, request: Request) -> Response:
        run, query = self._run(request), request.query_params
        then, now = number_in(query.get("then")), number_in(query.get("now"))
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
                try:
                    is_more = run.refresh()
                except (ReenactError, OSError) as why:
                    return json.dumps({"gone": f"The file can no longer be read: {why}."})
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
