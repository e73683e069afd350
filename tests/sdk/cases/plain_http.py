"""No SDK at all: HTTP libraries posting to a provider's route."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from ..table import Site, case, needs, unsupported

PATH = "/v1/messages"
ASK: Any = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Seven hills?"}]}
STREAM: Any = {**ASK, "stream": True}
JSON = {"content-type": "application/json"}
UNREFUSED = {"error": False}
"""An error status is an answer like any other."""

for library in ("requests", "urllib3", "httpx", "httpx2", "aiohttp"):
    needs(library, library)
needs("http.client", "http")
needs("urllib", "urllib")


@case("requests", "post", fails=UNREFUSED)
def requests_post(site: Site) -> Any:
    import requests

    with site.client(requests.Session()) as session:
        answer = session.post(site.url + PATH, json=ASK, timeout=(5, site.timeout))
        return [answer.status_code, dict(answer.headers), answer.json()]


@case("requests", "post(stream=True)", fails=UNREFUSED)
def requests_stream(site: Site) -> Iterator[Any]:
    import requests

    with site.client(requests.Session()) as session:
        with session.post(site.url + PATH, json=STREAM, stream=True, timeout=(5, site.timeout)) as answer:
            yield from answer.iter_lines(chunk_size=1)


@case("urllib3", "request", fails=UNREFUSED)
def urllib3_request(site: Site) -> Any:
    import urllib3

    timeout = urllib3.Timeout(connect=5, read=site.timeout)
    with site.client(urllib3.PoolManager(retries=False, timeout=timeout)) as pool:
        answer = pool.request("POST", site.url + PATH, json=ASK)
        return [answer.status, dict(answer.headers), answer.json()]


@case("urllib3", "request(preload_content=False)", fails=UNREFUSED)
def urllib3_stream(site: Site) -> Iterator[Any]:
    import urllib3

    timeout = urllib3.Timeout(connect=5, read=site.timeout)
    with site.client(urllib3.PoolManager(retries=False, timeout=timeout)) as pool:
        answer = pool.request("POST", site.url + PATH, json=STREAM, preload_content=False)
        with contextlib.closing(answer):
            yield from lines_of(answer.stream(16))


def lines_of(chunks: Any) -> Iterator[bytes]:
    """Whole lines: how bytes are cut into chunks is the network's affair."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


for library, method, shape in (
    ("requests", "post", "plain"),
    ("requests", "post(stream=True)", "stream"),
    ("urllib3", "request", "plain"),
    ("urllib3", "request(preload_content=False)", "stream"),
    ("http.client", "request", "plain"),
    ("http.client", "request, read by line", "stream"),
    ("urllib", "urlopen", "plain"),
):
    unsupported(library, method, "async", shape, f"{library} is synchronous only")


@case("http.client", "request", fails=UNREFUSED)
def http_request(site: Site) -> Any:
    where = urlsplit(site.url)
    with contextlib.closing(http.client.HTTPConnection(where.netloc, timeout=site.timeout)) as connection:
        connection.request("POST", where.path + PATH, json.dumps(ASK), JSON)
        answer = connection.getresponse()
        return [answer.status, answer.getheaders(), json.loads(answer.read())]


@case("http.client", "request, read by line", fails=UNREFUSED)
def http_stream(site: Site) -> Iterator[Any]:
    where = urlsplit(site.url)
    with contextlib.closing(http.client.HTTPConnection(where.netloc, timeout=site.timeout)) as connection:
        connection.request("POST", where.path + PATH, json.dumps(STREAM), JSON)
        with connection.getresponse() as answer:
            yield from answer


@case("urllib", "urlopen")
def urlopen(site: Site) -> Any:
    ask = urllib.request.Request(site.url + PATH, json.dumps(ASK).encode(), JSON)
    with urllib.request.urlopen(ask, timeout=site.timeout) as answer:
        return [answer.status, answer.getheaders(), json.load(answer)]


def httpx_like(name: str) -> None:
    """The cells of httpx and of httpx2, which have the same interface."""

    def module() -> ModuleType:
        return __import__(name)

    @case(name, "post", fails=UNREFUSED)
    def post(site: Site) -> Any:
        with site.client(module().Client(timeout=site.timeout)) as client:
            answer = client.post(site.url + PATH, json=ASK)
            return [answer.status_code, dict(answer.headers), answer.json()]

    @case(name, "post", fails=UNREFUSED)
    async def apost(site: Site) -> Any:
        async with site.client(module().AsyncClient(timeout=site.timeout)) as client:
            answer = await client.post(site.url + PATH, json=ASK)
            return [answer.status_code, dict(answer.headers), answer.json()]

    @case(name, "stream", fails=UNREFUSED)
    def stream(site: Site) -> Iterator[Any]:
        with site.client(module().Client(timeout=site.timeout)) as client:
            with client.stream("POST", site.url + PATH, json=STREAM) as answer:
                yield from answer.iter_lines()

    @case(name, "stream", fails=UNREFUSED)
    async def astream(site: Site) -> AsyncIterator[Any]:
        async with site.client(module().AsyncClient(timeout=site.timeout)) as client:
            async with client.stream("POST", site.url + PATH, json=STREAM) as answer:
                async for line in answer.aiter_lines():
                    yield line


httpx_like("httpx")
httpx_like("httpx2")


def aiohttp_session(site: Site) -> Any:
    import aiohttp

    timeout = aiohttp.ClientTimeout(sock_read=site.timeout)
    return site.client(aiohttp.ClientSession(timeout=timeout))


@case("aiohttp", "post", fails=UNREFUSED)
async def aiohttp_post(site: Site) -> Any:
    async with aiohttp_session(site) as session, session.post(site.url + PATH, json=ASK) as answer:
        return [answer.status, dict(answer.headers), await answer.json()]


@case("aiohttp", "post, read by line", fails=UNREFUSED)
async def aiohttp_lines(site: Site) -> AsyncIterator[Any]:
    async with aiohttp_session(site) as session, session.post(site.url + PATH, json=STREAM) as answer:
        async for line in answer.content:
            yield line


unsupported("aiohttp", "post", "sync", "plain", "aiohttp is asynchronous only")
unsupported("aiohttp", "post, read by line", "sync", "stream", "aiohttp is asynchronous only")
