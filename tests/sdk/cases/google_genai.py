"""google-genai: synchronous over httpx2, asynchronous over aiohttp and over httpx2."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from ..table import FULL, ONLY_OK, Site, case, needs, unsupported

SDK = "google-genai"
needs(SDK, "google.genai", "aiohttp")
ASK: dict[str, Any] = {"model": "gemini-scripted", "contents": "Which city has seven hills?"}


def client_for(site: Site, **http: Any) -> Any:
    from google import genai

    retrying = {"attempts": site.retries + 1, "initial_delay": 0.001, "max_delay": 0.002, "jitter": 0.001}
    http = {"base_url": site.url, "timeout": int(site.timeout * 1000), "retry_options": retrying, **http}
    return site.client(genai.Client(api_key="none", http_options=http))


@asynccontextmanager
async def over_aiohttp(site: Site) -> AsyncIterator[Any]:
    async with client_for(site).aio as client:
        yield client


@asynccontextmanager
async def over_httpx2(site: Site) -> AsyncIterator[Any]:
    import httpx2

    async with httpx2.AsyncClient() as http, client_for(site, httpx_async_client=http).aio as client:
        yield client


@case(SDK, "generate_content", FULL)
def generate(site: Site) -> Any:
    with client_for(site) as client:
        return client.models.generate_content(**ASK)


@case(SDK, "generate_content", FULL)
async def agenerate(site: Site) -> Any:
    async with over_aiohttp(site) as client:
        return await client.models.generate_content(**ASK)


@case(SDK, "generate_content over httpx2")
async def agenerate_httpx2(site: Site) -> Any:
    async with over_httpx2(site) as client:
        return await client.models.generate_content(**ASK)


@case(SDK, "generate_content_stream", FULL, fails={"shredded": True})  # U+2028 ends a line for it
def stream(site: Site) -> Iterator[Any]:
    with client_for(site) as client:
        yield from client.models.generate_content_stream(**ASK)


@case(SDK, "generate_content_stream", FULL)
async def astream(site: Site) -> AsyncIterator[Any]:
    async with over_aiohttp(site) as client:
        async for chunk in await client.models.generate_content_stream(**ASK):
            yield chunk


@case(SDK, "generate_content_stream over httpx2")
async def astream_httpx2(site: Site) -> AsyncIterator[Any]:
    async with over_httpx2(site) as client:
        async for chunk in await client.models.generate_content_stream(**ASK):
            yield chunk


for method, shape in (("generate_content", "plain"), ("generate_content_stream", "stream")):
    unsupported(SDK, f"{method} over httpx2", "sync", shape, "the synchronous client has httpx2 already")


@case(SDK, "chats", answer="thinking")
def chat(site: Site) -> Any:
    with client_for(site) as client:
        talk = client.chats.create(model=ASK["model"])
        return [talk.send_message("One?"), *talk.send_message_stream("Two?"), talk.get_history()]


@case(SDK, "chats", answer="thinking")
async def achat(site: Site) -> Any:
    async with over_aiohttp(site) as client:
        talk = client.chats.create(model=ASK["model"])
        first = await talk.send_message("One?")
        rest = [chunk async for chunk in await talk.send_message_stream("Two?")]
        return [first, *rest, talk.get_history()]


def lookup(question: str) -> str:
    """Look it up."""
    return f"high: {question}"


@case(SDK, "automatic function calling", ONLY_OK, answer="tools-2")
def functions(site: Site) -> Any:
    with client_for(site) as client:
        return client.models.generate_content(**ASK, config={"tools": [lookup]})


@case(SDK, "automatic function calling", ONLY_OK, answer="parallel-2")
async def afunctions(site: Site) -> Any:
    async with over_aiohttp(site) as client:
        return await client.models.generate_content(**ASK, config={"tools": [lookup]})


@case(SDK, "count_tokens")
def count_tokens(site: Site) -> Any:
    with client_for(site) as client:
        return client.models.count_tokens(**ASK)


@case(SDK, "count_tokens")
async def acount_tokens(site: Site) -> Any:
    async with over_aiohttp(site) as client:
        return await client.models.count_tokens(**ASK)
