"""A tour: one model call with each library, whole and streamed, by clients that last. What was seen is plain JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

TALK = {"model": "claude-x", "max_tokens": 64, "messages": [{"role": "user", "content": "Which city?"}]}
CHAT: Any = {"model": "gpt-x", "messages": [{"role": "user", "content": "Which city?"}]}


class Station(NamedTuple):
    """How a client is made, what to ask it, and how many requests that makes."""

    make: Callable[[str], Any]
    ask: Callable[[Any, str], Any]
    is_async: bool = False
    requests: int = 2


def read_httpx(client: Any, url: str) -> Any:
    whole = client.post(f"{url}/v1/messages", json=TALK)
    with client.stream("POST", f"{url}/v1/messages", json={**TALK, "stream": True}) as streamed:
        return whole.json(), list(streamed.iter_lines())


async def read_httpx_async(client: Any, url: str) -> Any:
    whole = await client.post(f"{url}/v1/messages", json=TALK)
    async with client.stream("POST", f"{url}/v1/messages", json={**TALK, "stream": True}) as streamed:
        return whole.json(), [line async for line in streamed.aiter_lines()]


def make_httpx(name: str) -> Callable[[str], Any]:
    def make(url: str) -> Any:
        module, _, kind = name.partition(".")
        return getattr(__import__(module), kind)(trust_env=False)

    return make


def make_requests(url: str) -> Any:
    import requests

    return requests.Session()


def read_requests(client: Any, url: str) -> Any:
    whole = client.post(f"{url}/v1/messages", json=TALK)
    with client.post(f"{url}/v1/messages", json={**TALK, "stream": True}, stream=True) as streamed:
        return whole.json(), [line.decode() for line in streamed.iter_lines()]


def make_urllib3(url: str) -> Any:
    import urllib3

    return urllib3.PoolManager()


def read_urllib3(client: Any, url: str) -> Any:
    whole = client.request("POST", f"{url}/v1/messages", json=TALK)
    streamed = client.request(
        "POST", f"{url}/v1/messages", json={**TALK, "stream": True}, preload_content=False
    )
    lines = [piece.decode() for piece in streamed.stream(64)]
    streamed.release_conn()
    return whole.json(), "".join(lines)


def make_http_client(url: str) -> Any:
    import http.client

    return http.client.HTTPConnection(url.split("/")[2])


def read_http_client(client: Any, url: str) -> Any:
    client.request(
        "POST", f"/{url.split('/', 3)[3]}/v1/messages", json.dumps(TALK), {"Content-Type": "application/json"}
    )
    return json.loads(client.getresponse().read())


def urlopen(client: Any, url: str) -> Any:
    """Makes a connection for each call, so there is no client to wrap."""
    import urllib.request

    request = urllib.request.Request(
        f"{url}/v1/messages",
        json.dumps({**TALK, "stream": True}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as streamed:
        return [line.decode() for line in streamed]


async def make_aiohttp(url: str) -> Any:
    import aiohttp

    return aiohttp.ClientSession()


async def read_aiohttp(client: Any, url: str) -> Any:
    async with client.post(f"{url}/v1/messages", json=TALK) as whole:
        first = await whole.json()
    async with client.post(f"{url}/v1/messages", json={**TALK, "stream": True}) as streamed:
        return first, [line.decode() async for line in streamed.content]


def make_openai(kind: str) -> Callable[[str], Any]:
    def make(url: str) -> Any:
        import openai

        return getattr(openai, kind)(api_key="none", base_url=url, max_retries=0)

    return make


def read_openai(client: Any, url: str) -> Any:
    whole = client.chat.completions.create(**CHAT)
    streamed = client.chat.completions.create(**CHAT, stream=True)
    return whole.model_dump(), [chunk.model_dump() for chunk in streamed]


async def read_openai_async(client: Any, url: str) -> Any:
    whole = await client.chat.completions.create(**CHAT)
    streamed = await client.chat.completions.create(**CHAT, stream=True)
    return whole.model_dump(), [chunk.model_dump() async for chunk in streamed]


def make_anthropic(url: str) -> Any:
    import anthropic

    return anthropic.Anthropic(api_key="none", base_url=url, max_retries=0)


def read_anthropic(client: Any, url: str) -> Any:
    whole = client.messages.create(**TALK)
    with client.messages.stream(**TALK) as streamed:
        return whole.model_dump(), [event.model_dump() for event in streamed]


def make_boto3(url: str) -> Any:
    import boto3

    session = boto3.Session(
        aws_access_key_id="AKIANONE", aws_secret_access_key="none", region_name="us-east-1"
    )
    return session.client("bedrock-runtime", endpoint_url=url)


def read_boto3(client: Any, url: str) -> Any:
    arguments = {
        "modelId": "scripted.claude-v1:0",
        "messages": [{"role": "user", "content": [{"text": "Which?"}]}],
    }
    whole = client.converse(**arguments)
    streamed = client.converse_stream(**arguments)
    return whole["output"], list(streamed["stream"])


STATIONS = {
    "httpx": Station(make_httpx("httpx.Client"), read_httpx),
    "httpx async": Station(make_httpx("httpx.AsyncClient"), read_httpx_async, is_async=True),
    "httpx2": Station(make_httpx("httpx2.Client"), read_httpx),
    "httpx2 async": Station(make_httpx("httpx2.AsyncClient"), read_httpx_async, is_async=True),
    "requests": Station(make_requests, read_requests),
    "urllib3": Station(make_urllib3, read_urllib3),
    "http.client": Station(make_http_client, read_http_client, requests=1),
    "urllib": Station(lambda url: None, urlopen, requests=1),
    "aiohttp": Station(make_aiohttp, read_aiohttp, is_async=True),
    "openai": Station(make_openai("OpenAI"), read_openai),
    "openai async": Station(make_openai("AsyncOpenAI"), read_openai_async, is_async=True),
    "anthropic": Station(make_anthropic, read_anthropic),
    "boto3": Station(make_boto3, read_boto3),
}


class Tour:
    """The clients of some stations, asked as often as one likes."""

    def __init__(self, names: list[str], url: str) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._stations = {name: STATIONS[name] for name in names}
        self.clients = {name: self._await(station.make(url)) for name, station in self._stations.items()}

    def each(self, do: Callable[[Any], object]) -> None:
        """Do something to every client there is."""
        for client in self.clients.values():
            if client is not None:
                do(client)

    def go(self) -> dict[str, Any]:
        """Ask each client; an error is something seen, too."""
        return {name: self._seen(name, station) for name, station in self._stations.items()}

    def _seen(self, name: str, station: Station) -> Any:
        try:
            return self._await(station.ask(self.clients[name], self._url))
        except Exception as exc:
            return f"{type(exc).__name__}: {exc}"

    def _await(self, value: Any) -> Any:
        async def wait() -> Any:
            return await value

        return self._runner.run(wait()) if asyncio.iscoroutine(value) else value

    def end(self) -> None:
        for name, client in self.clients.items():
            close = getattr(client, "aclose", None) or getattr(client, "close", None)
            if close is not None and name != "boto3":
                self._await(close())
        self._runner.close()
