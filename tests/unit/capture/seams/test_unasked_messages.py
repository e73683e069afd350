"""What a socket's server says unasked: recorded within bounds, and never in the way."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from reenact import Tap
from reenact.capture.http.watch import Watch
from reenact.capture.recorder.recorder import Recorder
from reenact.capture.seams import websockets
from reenact.capture.seams.libraries import Installed


def greet(socket: ServerConnection) -> None:
    number = int((socket.request.path if socket.request else "").rpartition("=")[2])
    for each in range(number):
        socket.send(json.dumps({"type": "session.created", "number": each}))
    socket.send(b"\xff\xfe sound")
    socket.send("no JSON")
    for message in socket:
        socket.send(json.dumps({"type": "session.updated", "length": len(message)}))


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    with serve(greet, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()


@contextmanager
def listening(path: Path) -> Iterator[None]:
    tap = Tap(path)
    seams = Installed(Watch(tap.recorder))
    seams.install()
    try:
        yield
    finally:
        seams.uninstall()
        tap.close()


def messages(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in lines if line["kind"] == "socket.message"]


def talk(url: str, number: int) -> list[Any]:
    with connect(f"{url}={number}") as socket:
        printed: list[Any] = [socket.recv() for _ in range(number + 2)]
        socket.send("hello")
        socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": "AAAA"}))
        return [*printed, socket.recv(), socket.recv()]


def test_unrequested_messages_are_recorded_where_they_came(place: str, tmp_path: Path) -> None:
    with listening(tmp_path / "run.jsonl"):
        talk(f"{place}/v1/realtime?n", 2)
        talk(f"{place}/chat-room?n", 2)  # none of ours
    events = messages(tmp_path / "run.jsonl")
    assert [each["body"]["type"] for each in events] == ["session.created"] * 2 + ["session.updated"] * 2
    assert [(each["asked"], each["sent"]) for each in events] == [(0, 0), (0, 0), (0, 1), (0, 1)]
    assert {each["url"] for each in events} == {f"{place}/v1/realtime?n=2"}
    assert len({each["socket"] for each in events}) == 1


def test_only_so_many_are_recorded_of_one_connection(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websockets, "MOST", 5)
    with listening(tmp_path / "run.jsonl"):
        assert len(talk(f"{place}/v1/realtime?n", 40)) == 44
    events = messages(tmp_path / "run.jsonl")
    assert [each.get("cut") for each in events] == [None] * 5 + [True]
    assert "body" not in events[-1]


def test_a_recorder_that_fails_keeps_no_message_back(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{place}/v1/realtime?n"
    untapped = talk(url, 3)

    def fails(*_: Any, **__: Any) -> Any:
        raise MemoryError("not today")

    async def asynchronously() -> list[Any]:
        async with connect_async(f"{url}=3") as socket:
            return [await socket.recv() for _ in range(5)]

    for owner, name in (
        (Recorder, "emit"),
        (websockets, "is_models"),
        (websockets, "socket_of"),
    ):
        with monkeypatch.context() as patched, listening(tmp_path / f"{name}.jsonl"):
            patched.setattr(owner, name, fails)
            assert talk(url, 3) == untapped
            assert asyncio.run(asynchronously()) == untapped[:5]
        assert messages(tmp_path / f"{name}.jsonl") == []
