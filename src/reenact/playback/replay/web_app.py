"""Send a recorded request to a web application, in this process and without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from ...capture.runs.current import current_run
from ...capture.runs.run import RunContext
from ...capture.runs.web_request import REDACTED
from ...errors import UsageError
from ...messages.whole import placeholders
from ...wire.multipart import boundary_of

LEFT_S = 5.0
"""Seconds that tasks of a handler may run on after its response."""


class NotStarted(UsageError):
    """An application failed to start."""


@dataclass(slots=True)
class Response:
    """The response of an application."""

    status: int | None = None
    """None if it sent nothing."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    exception: Exception | None = None
    """The exception that the application raised, even after a response."""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.body)


def call_asgi(app: Any, request: dict[str, Any]) -> Response:
    """Start an application, send it a recorded request, and return the response."""
    return asyncio.run(call_asgi_async(app, request))


async def call_asgi_async(app: Any, request: dict[str, Any]) -> Response:
    """Return the same, inside a running event loop."""
    token = current_run.set(current_run.get() or _ProcessRun())
    try:
        async with _started(app) as state:
            return await _answered(app, scope_of(request, state), body_of(request))
    finally:
        current_run.reset(token)


class _ProcessRun(RunContext):
    """The process's own run as the current one: a request inside it starts no run of its own."""

    def recorder(self) -> Any:
        from ...capture.runs.current import process_recorder

        return process_recorder()

    def id_for_inner_runs(self) -> None:
        return None


def scope_of(request: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """Return the scope of a recorded request."""
    path, _, query = str(request.get("url") or "/").partition("?")
    body = body_of(request)
    headers = {str(name): str(value) for name, value in (request.get("headers") or {}).items()}
    if body:
        headers["content-length"] = str(len(body))
    host, _, port = headers.get("host", "127.0.0.1").partition(":")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": str(request.get("method") or "GET"),
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("ascii", "replace"),
        "query_string": query.encode("ascii", "replace"),
        "root_path": str(request.get("root_path") or ""),
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in headers.items()
        ],
        "client": ("127.0.0.1", 0),
        "server": (host, int(port) if port.isdigit() else 80),
        "state": dict(state),
    }


def body_of(request: dict[str, Any]) -> bytes:
    """Return the bytes of a recorded request's body, as far as recorded."""
    if "body" in request:
        return _bytes(request["body"])
    sent = request.get("sent") or {}
    if "parts" in sent:
        return _form(sent["parts"], boundary_of((request.get("headers") or {}).get("content-type")) or "part")
    return _bytes(sent["body"]) if "body" in sent else b""


def inexact_parts(request: dict[str, Any]) -> list[str]:
    """Return the parts of a recorded request that are not exactly as they were."""
    headers = request.get("headers") or {}
    parts = [f"header {name}" for name, value in headers.items() if value == REDACTED]
    sent = request.get("sent") or {}
    gone = [part for part in sent.get("parts") or () if "value" not in part]
    parts += [f"file {part.get('filename') or part.get('name')}" for part in gone]
    if sent.get("cut") or "sha256" in sent:
        parts.append("body")
    rest = {name: value for name, value in request.items() if name != "headers"}
    return parts + (["secrets in it"] if placeholders(rest) else [])


def _bytes(body: Any) -> bytes:
    if type(body) is bytes:
        return body
    text = body if type(body) is str else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _form(parts: list[dict[str, Any]], boundary: str) -> bytes:
    body = b""
    for part in parts:
        named = f'; filename="{part["filename"]}"' if "filename" in part else ""
        kind = f"Content-Type: {part['type']}\r\n" if "type" in part else ""
        name = f'name="{part.get("name", "")}"{named}'
        head = f"--{boundary}\r\nContent-Disposition: form-data; {name}\r\n{kind}\r\n"
        body += head.encode() + _bytes(part.get("value", "")) + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()


async def _answered(app: Any, scope: dict[str, Any], body: bytes) -> Response:
    response, over = Response(), asyncio.Event()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        message = next(messages, None)
        if message is None:
            await over.wait()
        return message or {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            response.status = message["status"]
            pairs = message.get("headers") or ()
            response.headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]
        elif message["type"] == "http.response.body":
            response.body += message.get("body") or b""
            if not message.get("more_body"):
                over.set()

    before = asyncio.all_tasks()
    try:
        await app(scope, receive, send)
    except Exception as exc:
        response.exception = exc
    left = asyncio.all_tasks() - before
    if left:
        await asyncio.wait(left, timeout=LEFT_S)
    return response


@asynccontextmanager
async def _started(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Start an application as a server does, and shut it down."""
    state: dict[str, Any] = {}
    life = _Lifespan(app, state)
    task = asyncio.create_task(life.run())
    await asyncio.wait({task, began := asyncio.create_task(life.began.wait())}, return_when="FIRST_COMPLETED")
    began.cancel()
    if life.failed is not None:
        task.cancel()
        raise NotStarted(
            f"the application does not start: {life.failed}",
            hint="its startup is not recorded: it must work here, or be skipped",
        )
    if task.done() and not task.cancelled() and not isinstance(task.exception(), Exception | None):
        task.result()  # a divergence
    try:
        yield state
    finally:
        life.ending.set()
        await asyncio.wait({task})


class _Lifespan:
    def __init__(self, app: Any, state: dict[str, Any]) -> None:
        self._app = app
        self._state = state
        self._is_started = False
        self.began, self.ending = asyncio.Event(), asyncio.Event()
        self.failed: str | None = None

    async def run(self) -> None:
        """Run until it ends; an application without a lifespan raises or returns at once."""
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self._state}
        try:
            await self._app(scope, self._receive, self._send)
        except Exception as exc:
            if self._is_started and not self.began.is_set() and self.failed is None:
                self.failed = f"{type(exc).__name__}: {exc}"

    async def _receive(self) -> dict[str, Any]:
        if not self._is_started:
            self._is_started = True
            return {"type": "lifespan.startup"}
        await self.ending.wait()
        return {"type": "lifespan.shutdown"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "lifespan.startup.failed":
            lines = str(message.get("message") or "").strip().splitlines()
            self.failed = lines[-1] if lines else "no reason reported"
        if message["type"].startswith("lifespan.startup."):
            self.began.set()
