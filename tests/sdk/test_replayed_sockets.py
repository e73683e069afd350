"""WebSockets that a recording answers: genuine connections of the library, and nobody listening."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect, reconnect
from websockets.sync.server import serve

from reenact.errors import Diverged
from reenact.playback.matching.modes import KEEP_GOING
from reenact.playback.matching.player import Player
from reenact.playback.matching.tape import Tape
from reenact.playback.replay.responder import TapeResponder

from .test_replayed_connections import NET, recording, sockets

pytestmark = pytest.mark.filterwarnings("ignore")
assert sockets and NET
ITEM: Any = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hills?"}]}


def answer(number: int, **more: Any) -> dict[str, Any]:
    printed = {"type": "output_text", "text": "Seven." * 2_000, "annotations": []}
    output = [
        {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [printed]}
    ]
    fixed = {"object": "response", "created_at": 1, "model": "gpt-5", "parallel_tool_calls": True}
    fixed |= {"tool_choice": "auto", "tools": []}
    return {"id": f"resp_{number}", **fixed, "status": "completed", "output": output, **more}


def talk(socket: Any) -> None:
    for number, message in enumerate(socket):
        request = json.loads(message)
        if request["type"] != "response.create":
            continue
        text = str(request.get("input"))
        if text == "break":
            socket.socket.shutdown(2)
            return
        begun = answer(number, status="in_progress", output=[])
        socket.send(json.dumps({"type": "response.created", "sequence_number": 0, "response": begun}))
        if text == "close":
            socket.close(1011, "no more hills")
            return
        if text == "error":
            error = {"type": "invalid_request_error", "message": "no such hill"}
            socket.send(json.dumps({"type": "error", "status": 400, "error": error}))
            continue
        name = "response.done" if "/realtime" in socket.request.path else "response.completed"
        socket.send(json.dumps({"type": name, "sequence_number": 1, "response": answer(number)}))


@contextmanager
def server() -> Iterator[str]:
    with serve(talk, "127.0.0.1", 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.socket.getsockname()[1]}/v1"
        serving.shutdown()


def raised(exc: BaseException) -> list[Any]:
    return [type(exc).__name__, str(exc)]


def by_openai(url: str) -> list[Any]:
    client, found = openai.OpenAI(base_url=url, api_key="none"), []
    with client.responses.connect() as connection:
        for text in ("one", "two", "error"):
            connection.response.create(model="gpt-5", input=text)
            for event in connection:
                found.append(event)
                if event.type in ("response.completed", "error"):
                    break
    with client.realtime.connect(model="gpt-realtime") as live:
        live.conversation.item.create(item=ITEM)
        live.response.create(response={"instructions": "Briefly."})
        found.append([live.recv().type, live.recv().type])
    return [each if isinstance(each, list) else each.to_dict() for each in found]


def by_async_openai(url: str) -> list[Any]:
    async def one(client: Any, text: str) -> list[Any]:
        async with client.responses.connect() as connection:
            await connection.response.create(model="gpt-5", input=text)
            return [(await connection.recv()).to_dict() for _ in range(2)]

    async def all_of_them() -> list[Any]:
        client = openai.AsyncOpenAI(base_url=url, api_key="none")
        return list(await asyncio.gather(*[one(client, text) for text in ("one", "two", "three")]))

    return asyncio.run(all_of_them())


def create(text: str) -> str:
    return json.dumps({"type": "response.create", "model": "m", "input": text})


def by_websockets(url: str) -> list[Any]:
    found: list[Any] = []
    place = url.replace("http", "ws") + "/responses"
    for text in ("close", "break"):
        with connect(place) as socket:
            socket.send(create(text))
            with pytest.raises(ConnectionClosed) as caught:
                found += [socket.recv(), socket.recv()]
            found.append(raised(caught.value))
    with connect(place) as socket:
        socket.send([create("one")[:9], create("one")[9:]])
        socket.send(create("two"))  # before the first is answered
        found += [socket.recv(decode=False), socket.recv(), socket.recv(), socket.recv()]
        with pytest.raises(TimeoutError):
            socket.recv(timeout=0.05)
    return [*found, str(type(socket)), socket.close_code]


def by_async_websockets(url: str) -> list[Any]:
    async def talking() -> list[Any]:
        async with connect_async(url.replace("http", "ws") + "/responses") as socket:
            await socket.send(create("one"))
            found = [await socket.recv(), await socket.recv()]
            await socket.send(create("close"))
            found.append(await socket.recv())
            with pytest.raises(ConnectionClosed) as caught:
                await socket.recv()
            return [*found, raised(caught.value), str(type(socket))]

    return asyncio.run(talking())


def by_reconnecting(url: str) -> list[Any]:
    found: list[Any] = []
    place, texts = url.replace("http", "ws") + "/responses", ["one", "break", "two"]

    async def talking() -> None:
        waiting = list(texts)
        async for socket in connect_async(place, open_timeout=30):
            try:
                await socket.send(create(waiting.pop(0)))
                found.extend([await socket.recv(), await socket.recv()])
            except ConnectionClosed as exc:
                found.append(raised(exc))
            await socket.close()
            if not waiting:
                break

    asyncio.run(talking())
    for socket in reconnect(place, open_timeout=30):
        try:
            socket.send(create(texts.pop(0)))
            found += [socket.recv(), socket.recv()]
        except ConnectionClosed as exc:
            found.append(raised(exc))
        socket.close()
        if not texts:
            break
    return found


WAYS = [by_openai, by_async_openai, by_websockets, by_async_websockets, by_reconnecting]


@pytest.mark.parametrize("use", WAYS)
@pytest.mark.parametrize("is_secure", [False, True])
def test_a_socket_is_answered_with_nobody_there(
    use: Callable[[str], list[Any]], is_secure: bool, tmp_path: Path, sockets: list[str]
) -> None:
    with server() as url, recording(tmp_path / "run.jsonl"):
        first = use(url)
    del sockets[:]
    place = "https://model.invalid/v1" if is_secure else url
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl") as responder:
        assert use(place) == first
    assert responder is not None and responder.player.report() == []
    assert sockets == []


def test_what_was_not_recorded_ends_there(tmp_path: Path) -> None:
    with (
        server() as url,
        recording(tmp_path / "run.jsonl"),
        connect(url.replace("http", "ws") + "/responses") as one,
    ):
        one.send(create("one"))
        one.recv(), one.recv()
    place = url.replace("http", "ws") + "/responses"
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl"), connect(place) as two:
        two.send(create("other"))
        with pytest.raises(Diverged):
            two.recv()


def test_one_more_call_is_refused_in_the_api_s_own_words_and_others_are_answered(tmp_path: Path) -> None:
    place = "ws://model.invalid/v1/responses"
    with (
        server() as url,
        recording(tmp_path / "run.jsonl"),
        connect(url.replace("http", "ws") + "/responses") as one,
    ):
        for text in ("one", "two"):
            one.send(create(text))
            first = [json.loads(one.recv()), json.loads(one.recv())]
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl", mode=KEEP_GOING) as responder:
        with connect(place) as two:
            two.send(create("one"))
            two.recv(), two.recv()
            two.send(create("inserted"))
            refused = json.loads(two.recv())
            two.send(create("two"))
            assert [json.loads(two.recv()), json.loads(two.recv())] == first
    assert (refused["type"], refused["error"]["type"]) == ("error", "reenact_diverged")
    assert responder is not None and len(responder.player.report()) == 1


def test_a_socket_is_no_stream_and_no_plain_call(tmp_path: Path) -> None:
    """The same question over HTTP is another call, streamed or not."""
    with (
        server() as url,
        recording(tmp_path / "run.jsonl"),
        connect(url.replace("http", "ws") + "/responses") as one,
    ):
        one.send(create("one"))
        one.recv(), one.recv()
    for stream in (False, True):
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        with recording(tmp_path / f"{stream}.jsonl", by=tmp_path / "run.jsonl"), pytest.raises(Diverged):
            client.responses.create(model="m", input="one", stream=stream)
    assert TapeResponder(Player(Tape.load(str(tmp_path / "run.jsonl")))).player.tape.calls[0].is_stream
