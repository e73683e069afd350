"""Hosts that nobody named as a model's: a wrapped client is recorded whole, and all that is recorded replays."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from reenact import Tap
from reenact.debugger.debugger import Debugger
from reenact.testing import replaying

ASK = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


class Server(http.server.BaseHTTPRequestHandler):
    """Answers whatever is asked, each time with another number."""

    protocol_version = "HTTP/1.1"
    numbers = count(1)

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        text = [{"type": "text", "text": "hello"}]
        answer = {"type": "message", "role": "assistant", "content": text, "number": next(self.numbers)}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def posts(client: httpx.Client, url: str, calls: list[tuple[str, dict[str, Any]]]) -> list[int]:
    return [client.post(url + path, **more).json()["number"] for path, more in calls]


def sorts(path: Path) -> list[str]:
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return [event.get("sort", "model") for event in events if event["kind"].endswith(".request")]


def test_a_wrapped_client_is_recorded_and_replayed_whatever_its_host_and_path(
    url: str, tmp_path: Path
) -> None:
    form = {"files": {"file": ("a.jsonl", b"{}")}, "data": {"purpose": "batch"}}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("/v1/files", form),
        ("/v1/batches", {"json": {"input_file_id": "file-1"}}),
        ("/v1/embeddings", {"json": {"model": "e", "input": "x"}}),
        ("/v1/vector_stores", {"json": {"name": "notes"}}),
        ("/v1/messages", {"json": ASK}),
        ("/hook", {"json": {"messages": ["not a model"]}}),
        ("/hook", {"content": iter([b'{"made": ', b'"while it is sent"}'])}),
    ]

    def agent() -> list[int]:
        calls[-1] = ("/hook", {"content": iter([b'{"made": ', b'"while it is sent"}'])})
        with httpx.Client(trust_env=False) as client:
            Tap().wrap(client)
            return posts(client, url, calls)

    with replaying(tmp_path / "run.jsonl", mode="rerecord"):
        recorded = agent()
    assert sorts(tmp_path / "run.jsonl") == [
        "files",
        "batch",
        "embeddings",
        "other",
        "model",
        "other",
        "other",
    ]
    with replaying(tmp_path / "run.jsonl"):
        assert agent() == recorded
    assert len(Debugger.load(str(tmp_path / "run.jsonl")).turns()) == 1


@pytest.mark.parametrize("first", [True, False], ids=["after a model call", "alone"])
def test_batches_at_an_unnamed_host_replay(first: bool, url: str, tmp_path: Path) -> None:
    calls = [("/v1/messages", {"json": ASK})] * first + [("/v1/messages/batches", {"json": {"requests": []}})]

    def agent() -> list[int]:
        with httpx.Client(trust_env=False) as client:
            return posts(client, url, calls)

    path = tmp_path / "run.jsonl"
    with replaying(path, mode="rerecord"):
        recorded = agent()
    assert sorts(path) == ["model"] * first + ["batch"]
    with replaying(path):
        assert agent() == recorded
    # Earlier versions recorded such a body in ``sent``.
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for event in lines:
        if event["kind"] == "http.request":
            event["sent"] = {"type": "application/json", "bytes": 15, "body": event.pop("body")}
    path.write_text("".join(json.dumps(event) + "\n" for event in lines))
    with replaying(path):
        assert agent() == recorded


def test_a_recording_of_a_named_host_replays_without_the_name(url: str, tmp_path: Path) -> None:
    def agent() -> list[int]:
        with httpx.Client(trust_env=False) as client:
            return posts(client, url, [("/v1/rerank", {"json": {"query": "x"}})])

    with replaying(tmp_path / "run.jsonl", mode="rerecord", hosts=["127.0.0.1"]):
        recorded = agent()
    with replaying(tmp_path / "run.jsonl"):
        assert agent() == recorded
