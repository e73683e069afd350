"""Requests to a web application are runs: a real server, the real SDK, and nothing changed for either."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute

import reenact
from reenact.capture.seams import install as installing
from reenact.capture.seams.libraries import wanted_modules
from support.provider import Provider

SHOP = """
import asyncio, os, anthropic, reenact
from fastapi import BackgroundTasks, FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

app = FastAPI()
client = anthropic.AsyncAnthropic(base_url=os.environ["MODEL_URL"])

class Order(BaseModel):
    item: str
    count: int
    password: str = ""

async def ask(text):
    done = await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": text}])
    return done.content[0].text

@app.get("/ping")
async def ping():
    return {}

@app.post("/orders/{customer}")
async def order(customer: str, order: Order):
    text = await ask(f"{customer} wants {order.item}")
    return {"each": 100 / order.count, "said": text}

@app.get("/sync")
def in_a_thread(q: str):
    own = anthropic.Anthropic(base_url=os.environ["MODEL_URL"])
    return own.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": q}]).id

@app.get("/stream")
async def stream():
    async def parts():
        for number in range(2):
            yield await ask(f"part {number}")
    return StreamingResponse(parts())

@app.get("/later")
async def later():
    async def work():
        await ask("first")
        await asyncio.sleep(0.05)
        await ask("second")
    app.state.task = asyncio.create_task(work())
    return {"ok": True}

@app.get("/background")
async def background(tasks: BackgroundTasks):
    tasks.add_task(ask, "after the answer")
    return {"ok": True}

@app.get("/gone")
async def gone():
    await ask("is it there?")
    raise HTTPException(503, "sold out")

@app.post("/form")
async def form(request: Request):
    return await ask((await request.form())["name"])

@app.get("/token/{rest:path}")
async def token(rest: str):
    return await ask("with a token in its path")

@app.get("/own")
async def own():
    with reenact.run("block"):
        return await ask("in a block")
"""

TOKEN = "a/3f9c2b71e0d84a55b6c7-of-a-guest"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[dict[str, Any]]:
    """What clients got, and the folder of traces, of one server below ``reenact run``."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SHOP)
    listening = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url(), "ANTHROPIC_API_KEY": "k"}
    command = [sys.executable, "-m", "reenact", "run", "uvicorn", "--fd", str(listening.fileno()), "shop:app"]
    with open(folder / "said", "w") as printed, listening:
        server = subprocess.Popen(
            command, cwd=folder, env=env, stdout=printed, stderr=printed, pass_fds=[listening.fileno()]
        )
    try:
        with httpx.Client(
            base_url=base, headers={"connection": "close"}, timeout=60, trust_env=False
        ) as client:
            _wait_for(client, server, folder)
            got = _responses(client)
        until = time.monotonic() + 30
        while _answers(folder / ".reenact") < 2 and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)
    yield {**got, "traces": folder / ".reenact", "said": (folder / "said").read_text()}


def _answers(traces: Path) -> int:
    """How many answers the task has that goes on after its request."""
    return [line["kind"] for line in lines(traces, "GET /later")].count("model.response")


def _wait_for(client: httpx.Client, server: subprocess.Popen[bytes], folder: Path) -> None:
    for _ in range(600):
        try:
            client.get("/ping")
            return
        except httpx.TransportError:
            assert server.poll() is None, (folder / "said").read_text()
            time.sleep(0.05)


def _responses(client: httpx.Client) -> dict[str, Any]:
    headers = {"authorization": "Bearer abc", "x-tenant": "acme"}
    order = {"item": "tea", "count": 2, "password": "hunter2-and-more"}
    return {
        "order": client.post("/orders/ann?dry=1&api_key=sk-secret-9d8f7a6b5c", json=order, headers=headers),
        "failed": client.post("/orders/bob", json={"item": "tea", "count": 0}),
        "refused": client.post("/orders/bob", json={"item": "tea"}),
        "form": client.post("/form", files={"name": (None, "Eve"), "photo": ("a.png", b"\x89PNG\x00")}),
        **{path: client.get(f"/{path}") for path in ("stream", "later", "background", "gone", "own")},
        "sync": client.get("/sync", params={"q": "hi"}),
        "token": client.get(f"/token/{TOKEN}"),
    }


def runs(folder: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    files = [[json.loads(line) for line in path.read_text().splitlines()] for path in folder.glob("*.jsonl")]
    for reported in sorted(filter(None, files), key=lambda reported: reported[0]["ts"]):
        name = reported[0]["name"]
        found[name if name not in found else f"{name} again"] = reported
    return found


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return runs(folder).get(name, [{"kind": ""}])


def test_each_request_that_calls_a_model_is_a_run_and_no_other_is(served: dict[str, Any]) -> None:
    found = runs(served["traces"])
    assert sorted(found) == sorted(
        ["uvicorn", "POST /orders/{customer}", "POST /orders/{customer} again", "POST /form", "GET /stream", "GET /later",
         "GET /background", "GET /gone", "GET /sync", "GET /token/a/{…}", "block"]
    )  # fmt: skip
    parent = found["uvicorn"][0]["run"]
    heads = [reported[0] for name, reported in found.items() if name not in ("uvicorn", "block")]
    assert {head["entry"] for head in heads} == {"asgi:shop:app"}
    assert {head["parent_run"] for head in heads} == {found["block"][0]["parent_run"]} == {parent}
    calls = {
        name: sum(line["kind"] == "model.response" for line in reported) for name, reported in found.items()
    }
    assert calls["uvicorn"] == 0 and calls["GET /stream"] == calls["GET /later"] == 2
    assert set(calls.values()) == {0, 1, 2} and "not seen" not in served["said"]


def test_what_clients_get_is_what_they_would_get(served: dict[str, Any]) -> None:
    assert served["order"].json() == {"each": 50.0, "said": "Lisbon has seven hills."}
    assert (served["failed"].status_code, served["failed"].text) == (500, "Internal Server Error")
    assert served["refused"].status_code == 422 and served["gone"].status_code == 503
    assert served["stream"].text == "Lisbon has seven hills." * 2
    assert served["later"].json() == served["background"].json() == {"ok": True}
    assert "ZeroDivisionError" in served["said"]


def test_the_request_is_the_input_without_its_secrets(served: dict[str, Any]) -> None:
    found = runs(served["traces"])
    reported = found["POST /orders/{customer}"][0]["input"]
    assert reported["method"] == "POST" and reported["url"].startswith("/orders/ann?dry=1&api_key=<redacted:")
    assert reported["headers"]["content-type"] == "application/json"
    assert reported["headers"]["authorization"] == reported["headers"]["x-tenant"] == "<redacted:header>"
    assert "content-length" not in reported["headers"]
    assert reported["body"]["item"] == "tea" and reported["body"]["password"].startswith("<redacted:")
    assert not any(b"hunter2" in path.read_bytes() for path in served["traces"].glob("*.jsonl"))
    parts = found["POST /form"][0]["input"]["sent"]["parts"]
    assert parts[0]["value"] == "Eve" and parts[1]["filename"] == "a.png" and "sha256" in parts[1]


@pytest.mark.long
def test_what_may_be_a_token_is_in_no_file_s_name(served: dict[str, Any]) -> None:
    names = [path.name for path in served["traces"].glob("*token*")]
    assert len(names) == 1 and TOKEN[2:] not in names[0]


def test_a_run_ends_as_its_request_did(served: dict[str, Any]) -> None:
    ends = {name: reported[-1] for name, reported in runs(served["traces"]).items()}
    assert {end["kind"] for end in ends.values()} == {"run.end"}
    assert (ends["POST /orders/{customer}"]["status"], ends["POST /orders/{customer}"]["http_status"]) == (
        "ok",
        200,
    )
    failed = ends["POST /orders/{customer} again"]
    assert (failed["status"], failed["http_status"], failed["error"]["type"]) == (
        "error",
        500,
        "ZeroDivisionError",
    )
    assert "in order" in failed["error"]["frames"][0]
    assert (ends["GET /gone"]["status"], ends["GET /gone"]["http_status"]) == ("error", 503)
    assert "error" not in ends["GET /gone"]


def test_what_a_task_does_after_the_answer_is_in_the_request_s_run(served: dict[str, Any]) -> None:
    reported = runs(served["traces"])["GET /later"]
    kinds = [line["kind"] for line in reported]
    assert kinds.count("model.response") == 2 and kinds[-1] == "run.end" and reported[-1]["status"] == "ok"
    assert reenact.Recording.load(str(next(served["traces"].glob("*later*")))).status == "ok"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("REENACT_DIR", str(tmp_path / "runs"))
    reenact.install()
    assert installing.seams is not None and installing.seams.failed.get("starlette.applications") is None
    yield tmp_path / "runs"
    reenact.uninstall()


def message(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


async def spoken(app: Any, path: str, kind: str = "http", *received: dict[str, Any]) -> list[Any]:
    """Everything that passes between a server and an application, in order."""
    passed: list[Any] = []
    left = iter(
        received or [message("http.request", body=b"{", more_body=True), message("http.request", body=b"}")]
    )

    async def receive() -> dict[str, Any]:
        got = next(left, message("http.disconnect"))
        passed.append(got)
        return got

    async def send(reported: dict[str, Any]) -> None:
        passed.append(reported)

    scope = {
        "type": kind,
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [],
        "root_path": "",
    }
    try:
        await app(scope, receive, send)
    except BaseException as exc:
        passed.append(repr(exc))
    return [*passed, sorted(scope)]


async def _echo(request: Any) -> PlainTextResponse:
    reenact.Trace().step("seen", path=request.url.path)
    return PlainTextResponse(await request.body())


async def _parts(request: Any) -> StreamingResponse:
    async def parts() -> Any:
        yield "a"
        reenact.Trace().step("seen", path="parts")
        yield "b"

    return StreamingResponse(parts())


async def _fails(request: Any) -> None:
    reenact.Trace().step("seen", path="fails")
    raise LookupError("nothing there")


async def _cancelled(request: Any) -> None:
    reenact.Trace().step("seen", path="cancelled")
    raise asyncio.CancelledError


async def _socket(socket: Any) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


def application() -> Starlette:
    routes = [
        Route(f"/{function.__name__}", function, methods=["POST"])
        for function in (_echo, _parts, _fails, _cancelled)
    ]
    inner = Starlette(routes=routes)
    return Starlette(routes=[*routes, WebSocketRoute("/_socket", _socket), Mount("/inner", inner)])


PATHS = ["/_echo", "/_parts", "/_fails", "/_cancelled", "/inner/_echo", "/inner/_fails", "/nowhere"]


def test_server_and_application_say_the_same_to_each_other(installed: Path) -> None:
    def all_of_it() -> list[Any]:
        app = application()
        printed = [asyncio.run(spoken(app, path)) for path in PATHS]
        printed.append(asyncio.run(spoken(app, "/_socket", "websocket", message("websocket.connect"))))
        life = [message("lifespan.startup"), message("lifespan.shutdown")]
        return [*printed, asyncio.run(spoken(app, "", "lifespan", *life))]

    with_us = all_of_it()
    names = sorted(reported[0]["name"] for reported in runs(installed).values())
    assert names == sorted(
        f"POST {path}" for path in PATHS if path != "/nowhere"
    )  # a mounted one is no second run
    ends = {reported[0]["name"]: reported[-1] for reported in runs(installed).values()}
    assert ends["POST /_cancelled"]["status"] == "cancelled"
    assert ends["POST /_fails"]["error"]["type"] == "LookupError"
    reenact.uninstall()
    assert Starlette.__call__.__code__.co_filename.endswith(os.path.join("starlette", "applications.py"))
    with reenact.run("the same without the seam"):
        assert all_of_it() == with_us


def test_a_request_inside_of_a_run_belongs_to_that_run(installed: Path) -> None:
    with reenact.run("around"):
        asyncio.run(spoken(application(), "/_echo"))
    (reported,) = runs(installed).values()
    assert [line["kind"] for line in reported] == ["run.start", "seen", "run.end"] and reported[0][
        "name"
    ] == "around"


def test_it_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "starlette.applications" in wanted_modules()
    monkeypatch.setenv("REENACT_SEAMS", "-starlette")
    assert "starlette.applications" not in wanted_modules()
