"""One request that goes down through several libraries is one call; another one made meanwhile is another."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests

from reenact import Tap
from reenact.capture.http.recorded_once import Carried
from reenact.capture.http.watch import Watch
from reenact.capture.seams.libraries import Installed
from support.provider import Provider

ASK = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hills?"}]}
OTHER = {**ASK, "messages": [{"role": "user", "content": "Rivers?"}]}


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[Tap]:
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        seams = Installed(Watch(tap.recorder))
        for name in ("http.client", "urllib3.connection", "httpx", "aiohttp"):
            seams.patch(name, import_module(name))
        assert not seams.failed
        yield tap
        seams.uninstall()


def recorded(tap: Tap, kind: str = "model.response") -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in Path(str(tap.path)).read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


class ByRequests(httpx.BaseTransport):
    """As httpx is put upon other libraries; it may do something else first."""

    def __init__(self, first: Any = None) -> None:
        self._first = first

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._first is not None:
            self._first()
        answer = requests.request(
            request.method, str(request.url), data=request.read(), headers=dict(request.headers)
        )
        return httpx.Response(
            answer.status_code, headers={"content-type": "application/json"}, content=answer.content
        )


class ByAiohttp(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        import aiohttp

        self.later = asyncio.create_task(self._later(str(request.url)))
        async with aiohttp.ClientSession() as session:
            sent = session.request(
                request.method, str(request.url), data=request.stream, headers=dict(request.headers)
            )
            async with sent as answer:
                return httpx.Response(answer.status, stream=httpx.ByteStream(await answer.read()))

    async def _later(self, url: str) -> None:
        await asyncio.sleep(0.2)
        async with httpx.AsyncClient() as client:
            await client.post(url, content=self.made())

    async def made(self) -> Any:
        yield json.dumps(OTHER).encode()


def test_a_request_that_goes_down_a_layer_is_one_call(tap: Tap, provider: Provider) -> None:
    with httpx.Client(transport=ByRequests()) as client:
        client.post(provider.url("text", "/v1/messages"), json=ASK)
    assert [line["status"] for line in recorded(tap)] == [200]


def test_another_one_made_meanwhile_is_another_call(tap: Tap, provider: Provider) -> None:
    url = provider.url("text", "/v1/messages")
    with httpx.Client(transport=ByRequests(lambda: httpx.post(url, json=OTHER))) as client:
        client.post(url, json=ASK)
    model_requests = [line["new"] if "new" in line else line for line in recorded(tap, "model.request")]
    assert ["Hills" in str(each) for each in model_requests] == [True, False]
    assert [line["status"] for line in recorded(tap)] == [200, 200]


def test_a_task_begun_inside_a_call_is_heard_when_it_goes_on(tap: Tap, provider: Provider) -> None:
    async def main() -> None:
        transport = ByAiohttp()
        async with httpx.AsyncClient(transport=transport) as client:
            await client.post(provider.url("text", "/v1/messages"), json=ASK)
        await transport.later

    asyncio.run(main())
    assert [line["status"] for line in recorded(tap)] == [200, 200]


def test_a_call_that_is_collected_while_it_waits_touches_no_context_variable(tap: Tap) -> None:
    class Waiting(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await asyncio.sleep(60)
            raise AssertionError

    loop = asyncio.new_event_loop()
    client = httpx.AsyncClient(transport=Waiting())
    asyncio._set_running_loop(loop)
    call = client.post("http://127.0.0.1:9/v1/messages", json=ASK)
    call.send(None)
    asyncio._set_running_loop(None)
    before = list(copy_context().items())
    del call, client
    gc.collect()
    now = copy_context()
    assert len(now) == len(before) and all(now[variable] is value for variable, value in before)
    assert [line["ended"] for line in recorded(tap)] == ["cancelled"]
    loop.close()


def test_a_transport_that_is_let_go_of_while_it_opens_ends_as_it_would() -> None:
    ended: list[BaseException] = []

    async def opens() -> None:
        try:
            with Carried():
                await asyncio.sleep(0)
        except BaseException as exc:
            ended.append(exc)
            raise

    coroutine = opens()
    copy_context().run(coroutine.send, None)
    coroutine.close()
    assert [type(exc) for exc in ended] == [GeneratorExit]
