"""Sockets that a wrapped openai client opens: recorded for that client and its copies, and for no other."""

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
from reenact.capture.http.watch import Watch
from reenact.capture.seams.libraries import Installed

pytestmark = pytest.mark.filterwarnings("ignore")
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
MESSAGE = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}


def answer(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed",
        "output": [{**MESSAGE, "content": [{"type": "output_text", "text": "Seven.", "annotations": []}]}],
        "usage": {
            **USAGE,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        **more,
    }


def spoken(number: int) -> dict[str, Any]:
    printed = {**MESSAGE, "content": [{"type": "text", "text": "Seven."}]}
    return {
        "object": "realtime.response",
        "id": f"resp_{number}",
        "status": "completed",
        "output": [printed],
        "usage": USAGE,
    }


@contextmanager
def server() -> Iterator[str]:
    from websockets.sync.server import serve

    def talk(socket: Any) -> None:
        live = "/realtime" in socket.request.path
        for number, message in enumerate(socket):
            if json.loads(message)["type"] != "response.create":
                continue
            begun = spoken(number) if live else answer(number, status="in_progress", output=[], usage=None)
            socket.send(json.dumps({"type": "response.created", "sequence_number": 0, "response": begun}))
            last = {"type": "response.done", "event_id": "e", "response": spoken(number)}
            if not live:
                last = {"type": "response.completed", "sequence_number": 1, "response": answer(number)}
            socket.send(json.dumps(last))

    with serve(talk, "127.0.0.1", 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.socket.getsockname()[1]}/v1"
        serving.shutdown()


def ask(client: Any, text: str) -> None:
    with client.responses.connect() as connection:
        connection.response.create(model="gpt-5", input=text)
        for event in connection:
            if event.type == "response.completed":
                break


def lines(path: Path, kind: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, path.read_text().splitlines()) if line["kind"] == kind]


def test_a_wrapped_client_and_its_copies_are_heard_and_no_other(tmp_path: Path) -> None:
    openai, path = import_module("openai"), tmp_path / "run.jsonl"
    with server() as url, Tap(str(path)) as tap:
        client = tap.wrap(tap.wrap(openai.OpenAI(base_url=url, api_key="none")))
        ask(client, "one")
        ask(client.with_options(max_retries=1), "two")
        ask(openai.OpenAI(base_url=url, api_key="none"), "not ours")
        tap.unwrap(client)
        ask(client, "no more")
    requests, answered = lines(path, "model.request"), lines(path, "model.response")
    assert [line["body"]["input"] for line in requests] == ["one", "two"]
    assert [(line["ended"], line["usage"]) for line in answered] == [
        ("complete", {"input": 3, "output": 2, "cache_read": 0, "reasoning": 0})
    ] * 2


def test_a_wrapped_client_is_heard_once_where_all_are_heard(tmp_path: Path) -> None:
    openai, path = import_module("openai"), tmp_path / "run.jsonl"
    with server() as url, Tap(str(path)) as tap:
        seams = Installed(Watch(tap.recorder))
        seams.install()
        try:
            ask(tap.wrap(openai.OpenAI(base_url=url, api_key="none")), "one")
            ask(openai.OpenAI(base_url=url, api_key="none"), "two")
        finally:
            seams.uninstall()
    assert [line["body"]["input"] for line in lines(path, "model.request")] == ["one", "two"]
    assert len(lines(path, "model.response")) == 2


def test_an_async_client_is_heard(tmp_path: Path) -> None:
    openai, path = import_module("openai"), tmp_path / "run.jsonl"

    async def talk(url: str, tap: Tap) -> None:
        client = tap.wrap(openai.AsyncOpenAI(base_url=url, api_key="none"))
        async with client.responses.connect() as connection:
            await connection.response.create(model="gpt-5", input="one")
            async for event in connection:
                if event.type == "response.completed":
                    break
            await connection.response.create(model="gpt-5", input="two")
            await connection.recv()  # and away, in the middle of the answer

    with server() as url, Tap(str(path)) as tap:
        asyncio.run(talk(url, tap))
    assert [line["ended"] for line in lines(path, "model.response")] == ["complete", "closed"]


def test_a_realtime_session_asks_with_the_items_before(tmp_path: Path) -> None:
    openai, path = import_module("openai"), tmp_path / "run.jsonl"
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hills?"}]}
    with server() as url, Tap(str(path)) as tap:
        client = tap.wrap(openai.OpenAI(base_url=url, api_key="none"))
        with client.realtime.connect(model="gpt-realtime") as connection:
            connection.conversation.item.create(item=item)
            connection.response.create(response={"instructions": "Briefly."})
            for event in connection:
                if event.type == "response.done":
                    break
    (request,) = Debugger.load(path).where(event_type="model.request")
    assert request.body == {"instructions": "Briefly.", "input": [item]}
    (reported,) = lines(path, "model.response")
    assert (reported["ended"], reported["usage"]) == ("complete", {"input": 3, "output": 2})


def test_a_socket_that_breaks_while_two_threads_use_it_raises_its_own_error(tmp_path: Path) -> None:
    """One receives, the other one sends: the first to see the end has told of what was open."""

    from websockets.exceptions import ConnectionClosedError

    from reenact.capture.seams.websockets import _broken, socket_of, tap

    with Tap(str(tmp_path / "run.jsonl")) as recorded, server() as url:
        from websockets.sync.client import connect

        with connect(url.replace("http", "ws") + "/responses") as socket:
            tap(socket, Watch(recorded.recorder, ("127.0.0.1",)))

            def broken(message: str) -> None:
                _broken(socket, ConnectionClosedError(None, None))  # the thread that receives
                raise ConnectionClosedError(None, None)

            vars(socket)["send"]._before = broken
            with pytest.raises(ConnectionClosedError):
                socket.send(json.dumps({"type": "response.create", "model": "m", "input": "hi"}))
            assert socket_of(socket).open == []
            vars(socket)["send"]._before = None
    (call,) = Debugger.load(tmp_path / "run.jsonl").calls("model")
    assert call.end is not None and call.end.ended == "error"
