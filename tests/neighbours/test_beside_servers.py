"""Servers: each request is a run, what belongs to none goes to the process's own, and workers come and go."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.examples import long
from support.provider import Provider

from .stage import environment

SERVICE = """
import os, sys, httpx, reenact
URL = os.environ["URL"]
TALK = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}

def call(path):
    text = httpx.post(URL + "/v1/messages", json={**TALK, "stream": True}, params={"of": path}).text
    assert "message_stop" in text

def wsgi(environ, start):
    path = environ["PATH_INFO"].strip("/")
    if path.startswith("run"):
        with reenact.run(path):
            call(path)
    elif path.startswith("own"):
        call(path)
    elif path == "die":
        os.kill(os.getpid(), 9)
    start("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]

async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    path = scope["path"].strip("/")
    async with httpx.AsyncClient() as client:
        ask = lambda: client.post(URL + "/v1/messages", json=TALK, params={"of": path})
        if path.startswith("run"):
            async with reenact.run(path):
                await ask()
        elif path.startswith("own"):
            await ask()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""


@contextmanager
def serving(folder: Path, url: str, *words: str) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    (folder / "service.py").write_text(SERVICE)
    listening = socket.create_server(("127.0.0.1", 0))
    port, number = listening.getsockname()[1], listening.fileno()
    command = [sys.executable, "-m", *[word.replace("SOCKET", str(number)) for word in words]]
    with open(folder / "said", "w") as printed, listening:
        server = subprocess.Popen(
            command, stdout=printed, stderr=printed, text=True, cwd=folder, env=environment(folder, URL=url),
            stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=[number],
        )  # fmt: skip
        listening.close()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
                _wait_for(client, server, folder)
                yield client, server
            server.terminate()
            server.wait(60)
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def _wait_for(client: httpx.Client, server: subprocess.Popen[str], folder: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, (folder / "said").read_text()
        try:
            client.get("/")
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise TimeoutError((folder / "said").read_text())


def ask(client: httpx.Client, *paths: str) -> list[str]:
    return [client.get(f"/{path}", headers={"Connection": "close"}).text for path in paths]


def recorded(folder: Path) -> dict[str, str]:
    """Which call, named by its query, is in which run; each has one whole answer."""
    found: dict[str, str] = {}
    for path in (folder / "runs").rglob("*.jsonl"):
        lines: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
        name = next((line.get("name", "") for line in lines if line["kind"] == "run.start"), "joined")
        answers = {line["call"]: line for line in lines if line["kind"] == "model.response"}
        for line in lines:
            if line["kind"] == "model.request":
                assert answers[line["call"]]["ended"] == "complete"
                query = line["url"].partition("of=")[2]
                assert query not in found, "recorded twice"
                found[query] = name
    return found


GUNICORN = ("gunicorn", "--bind", "fd://SOCKET", "--workers", "2", "--no-control-socket")
REENACT = ("reenact", "run", "--out", "runs")


@pytest.mark.parametrize(
    "words",
    [
        long((*GUNICORN, "service:wsgi")),
        long((*GUNICORN, "--preload", "-k", "gthread", "--threads", "4", "service:wsgi")),
        (*GUNICORN, "-k", "gevent", "service:wsgi"),
        ("uvicorn", "--workers", "2", "--loop", "uvloop", "--fd", "SOCKET", "service:asgi"),
    ],
    ids=["gunicorn", "gunicorn threads", "gunicorn gevent", "uvicorn"],
)
def test_requests_are_runs_of_their_own(words: tuple[str, ...], provider: Provider, tmp_path: Path) -> None:
    provider.reset()
    paths = ["run-1", "own-1", "run-2", "run-3", "own-2", "run-4"]
    with serving(tmp_path, provider.url(), *REENACT, *words) as (client, _):
        ask(client, *paths)
    printed = (tmp_path / "said").read_text()
    assert "Traceback" not in printed and "2 calls" in printed and "not seen" not in printed, printed
    assert len(provider.settled()) == 6
    assert recorded(tmp_path) == {path: path if path.startswith("run") else "joined" for path in paths}


@pytest.mark.long
def test_workers_that_come_and_go(provider: Provider, tmp_path: Path) -> None:
    """Reloaded, retired after so many requests, and killed: what each has recorded stays."""
    words = (*REENACT, *GUNICORN, "--max-requests", "3", "service:wsgi")
    paths = [f"run-{number}" for number in range(4)] + [f"own-{number}" for number in range(4)]
    with serving(tmp_path, provider.url(), *words) as (client, server):
        first = ask(client, *paths[:4])
        os.kill(_gunicorn(server), signal.SIGHUP)
        while (now := ask(client, "")[0]) in first:
            time.sleep(0.05)
        with pytest.raises(httpx.TransportError):
            client.get("/die")
        _wait_for(client, server, tmp_path)
        second = ask(client, *paths[4:])
    assert now not in first and len({*first, *second}) >= 2
    assert recorded(tmp_path) == {path: path if path.startswith("run") else "joined" for path in paths}


def _gunicorn(supervisor: subprocess.Popen[str]) -> int:
    return int(Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()[0])
