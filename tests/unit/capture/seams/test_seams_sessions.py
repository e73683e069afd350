"""The seams of aiohttp, websockets and MCP, and what tap.wrap does with a client it does not know."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from reenact import Debugger, Tap
from reenact.capture import guard
from reenact.capture.http.watch import Watch
from reenact.capture.seams.libraries import Installed
from support.provider import Provider

ASK = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hills?"}]}
PATH = "/v1/messages"
pytestmark = pytest.mark.filterwarnings("ignore")


def lines(path: Path, *kinds: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in found if line["kind"] in kinds]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@contextmanager
def listening(path: Path) -> Iterator[Tap]:
    with Tap(str(path)) as tap:
        seams = Installed(Watch(tap.recorder))
        seams.install()
        assert not seams.failed
        try:
            yield tap
        finally:
            seams.uninstall()


def test_a_session_sends_json_and_its_keys_are_recorded_as_they_are(provider: Provider, path: Path) -> None:
    aiohttp = import_module("aiohttp")
    tools = [{"name": "t", "input_schema": {"$ref": "#/x", "$defs": {}}}]

    async def ask(tap: Tap) -> None:
        async with tap.wrap(aiohttp.ClientSession()) as session:
            async with session.post(provider.url("text", PATH), json={**ASK, "tools": tools}) as answer:
                await answer.read()

    with Tap(str(path)) as tap:
        asyncio.run(ask(tap))
    assert Debugger.load(path).all()[0].body == {**ASK, "tools": tools}


def test_a_session_answers_in_the_task_that_made_the_request(provider: Provider, path: Path) -> None:
    """Tools are joined to the answer that asked for them, though the loop read it elsewhere."""
    aiohttp = import_module("aiohttp")

    async def agent(session: Any, tap: Tap, name: str) -> None:
        async with session.post(provider.url("tools-1", PATH), json=ASK) as answer:
            await answer.read()
        tap.record_tool_result(name, "done", call=tap.record_tool_call(name, {}))

    async def both(tap: Tap) -> None:
        async with aiohttp.ClientSession() as session:
            await asyncio.gather(agent(session, tap, "one"), agent(session, tap, "two"))

    with listening(path) as tap:
        asyncio.run(both(tap))
    parents = {line["parent"] for line in lines(path, "tool.called")}
    assert parents == {line["call"] for line in lines(path, "model.response")} and len(parents) == 2


def test_an_answer_that_is_never_read_is_recorded(provider: Provider, path: Path) -> None:
    aiohttp = import_module("aiohttp")

    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            answer = await session.post(provider.url("text,hang-1", PATH), json={**ASK, "stream": True})
            answer.close()

    with listening(path):
        asyncio.run(ask())
    (reported,) = lines(path, "model.response")
    assert reported["ended"] == "closed" and reported["status"] == 200


def test_sessions_are_left_as_they_were(provider: Provider, path: Path) -> None:
    aiohttp = import_module("aiohttp")

    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            before = dict(vars(session))
            with Tap(str(path)) as tap:
                tap.wrap(tap.wrap(session))
                async with session.post(provider.url("text", PATH), json=ASK) as answer:
                    assert type(answer.content).__name__ == "StreamReader"
                    assert isinstance(answer.content, aiohttp.StreamReader)
                    await answer.json()
                tap.unwrap(session)
                assert vars(session) == before

    asyncio.run(ask())
    assert len(lines(path, "model.response")) == 1


def answer(number: int, **more: Any) -> dict[str, Any]:
    printed = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Seven."}]}
    ]
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "status": "completed",
        "output": printed,
        "usage": usage,
        **more,
    }


@contextmanager
def socket_server() -> Iterator[int]:
    from websockets.sync.server import serve

    def talk(socket: Any) -> None:
        for number, message in enumerate(socket):
            if "hang up" in message:
                socket.close()
                return
            begun = answer(number, status="in_progress", output=[], usage=None)
            socket.send(json.dumps({"type": "response.created", "response": begun}))
            socket.send(json.dumps({"type": "response.completed", "response": answer(number)}))

    with serve(talk, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.socket.getsockname()[1]
        server.shutdown()


def create(text: str, **more: Any) -> str:
    return json.dumps({"type": "response.create", "model": "m", "input": text, **more})


def test_a_socket_carries_calls_one_after_another(path: Path) -> None:
    import_module("websockets")
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with listening(path), socket_server() as port, connect(f"ws://127.0.0.1:{port}/v1/responses") as socket:
        socket.send(create("one"))
        assert [json.loads(socket.recv())["type"] for _ in range(2)][-1] == "response.completed"
        message = create("two", previous_response_id="resp_0")
        socket.send([message[:9], message[9:]])
        assert [json.loads(socket.recv(decode=False))["type"] for _ in range(2)][-1] == "response.completed"
        with pytest.raises(TimeoutError):
            socket.recv(timeout=0.01)
        socket.send(create("hang up"))
        with pytest.raises(ConnectionClosed):
            socket.recv()
    requests, responses = lines(path, "model.request"), lines(path, "model.response")
    assert [line["body"].get("input") for line in requests] == ["one", "two", "hang up"]
    assert [line["ended"] for line in responses] == ["complete", "complete", "error"]
    assert [line.get("usage") for line in responses] == [{"input": 3, "output": 2}] * 2 + [None]
    assert {line["status"] for line in responses} == {101}


def test_a_socket_to_anything_else_is_not_recorded(path: Path) -> None:
    import_module("websockets")
    from websockets.asyncio.client import connect

    async def talk(port: int) -> None:
        async with connect(f"ws://127.0.0.1:{port}/v1/responses") as socket:
            await socket.send("response.create is a word in a plain text")
            await socket.recv()
        async with connect(f"ws://127.0.0.1:{port}/chat-room") as socket:
            await socket.send(create("one"))
            await socket.recv()

    with listening(path), socket_server() as port:
        asyncio.run(talk(port))
    assert not lines(path, "model.request", "model.response")


def test_a_tool_of_an_mcp_server_is_a_tool_call(path: Path) -> None:
    import_module("mcp")
    from mcp.client import Client
    from mcp.server import MCPServer

    server = MCPServer("hills")

    @server.tool()
    def height(hill: str) -> int:
        return len(hill)

    async def agent(tap: Tap) -> None:
        async with Client(server) as client:
            await client.call_tool("height", {"hill": "Graça"})
            await client.call_tool("nowhere", {})

            @tap.tool(name="height")
            async def height(hill: str) -> Any:
                return await client.call_tool("height", {"hill": hill})

            await height(hill="Estrela")

    with listening(path) as tap:
        asyncio.run(agent(tap))
    called, ended = lines(path, "tool.called"), lines(path, "tool.result")
    assert [(line["tool"], line["args"]) for line in called] == [
        ("height", {"hill": "Graça"}),
        ("nowhere", {}),
        ("height", {"hill": "Estrela"}),  # once, though it is done by a call of the same name
    ]
    assert [line["error"] is None for line in ended] == [True, False, True]
    assert ended[0]["result"]["structuredContent"] == {"result": 5}


def test_a_client_with_nothing_to_listen_to_is_named(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guard.forget()

    class Nothing:
        pass

    with Tap(str(path)) as tap:
        client = Nothing()
        assert tap.wrap(client) is client
        assert tap.wrap(None) is None
        tap.unwrap(client)
    printed = capsys.readouterr().err
    assert "Nothing: looked for clients of httpx" in printed and "NoneType" in printed


def test_wrapping_does_nothing_where_recording_is_off(
    path: Path, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    httpx = import_module("httpx")
    monkeypatch.setenv("REENACT_OFF", "1")
    with Tap(str(path)) as tap, httpx.Client() as client:
        before = client._transport
        assert tap.wrap(client)._transport is before


@pytest.mark.parametrize("way", ["wrap", "install"])
def test_a_session_that_raises_for_a_status_has_recorded_it(provider: Provider, path: Path, way: str) -> None:
    aiohttp = import_module("aiohttp")

    async def ask(tap: Tap) -> None:
        async with aiohttp.ClientSession(raise_for_status=True) as session:
            if way == "wrap":
                tap.wrap(session)
            with pytest.raises(aiohttp.ClientResponseError, match="529"):
                await session.post(provider.url("status-529", PATH), json=ASK)

    if way == "install":
        with listening(path) as tap:
            asyncio.run(ask(tap))
    else:
        with Tap(str(path)) as tap:
            asyncio.run(ask(tap))
    (answer,) = lines(path, "model.response")
    assert (answer["status"], answer["error"]["type"]) == (529, "ClientResponseError")
