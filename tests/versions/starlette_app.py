"""Starlette: requests that answer, stream and fail, said to an application of this process as a server says them."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route

import reenact


def record(path: str) -> None:
    if "REENACT_RUN" in os.environ:
        reenact.Trace().step("handled", path=path)


async def echo(request: Any) -> PlainTextResponse:
    record(request.url.path)
    return PlainTextResponse(await request.body())


def streams(request: Any) -> StreamingResponse:
    record(request.url.path)
    return StreamingResponse(iter("abc"))


async def fails(request: Any) -> None:
    record(request.url.path)
    raise LookupError("nothing there")


async def send_to(app: Any, path: str) -> None:
    messages = iter([{"type": "http.request", "body": b"hello"}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        return await asyncio.Future()  # the client stays

    async def send(message: dict[str, Any]) -> None:
        print(path, message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [],
        "root_path": "",
    }
    try:
        await app(scope, receive, send)
    except LookupError as exc:
        print(path, repr(exc))


routes = [Route(f"/{handler.__name__}", handler, methods=["POST"]) for handler in (echo, streams, fails)]
app = Starlette(routes=[*routes, Mount("/inner", Starlette(routes=routes))])
for path in ("/echo", "/streams", "/fails", "/inner/echo", "/nowhere"):
    asyncio.run(send_to(app, path))
