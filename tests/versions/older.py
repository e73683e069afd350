"""Cases for versions whose interface is another than the one of tests/sdk/cases."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from sdk.cases import cohere_v2, google_genai, mistral, ollama_chat, openai_chat, plain_http
from sdk.table import FULL, Site, case


def pool(site: Site) -> Any:
    import urllib3

    return site.client(
        urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=5, read=site.timeout))
    )


@case("urllib3", "request, older", fails=plain_http.UNREFUSED)
def urllib3_request(site: Site) -> Any:
    body = json.dumps(plain_http.ASK).encode()
    with pool(site) as made:
        answer = made.request("POST", site.url + plain_http.PATH, body=body, headers=plain_http.JSON)
        return [answer.status, dict(answer.headers), json.loads(answer.data)]


@case("urllib3", "request(preload_content=False), older", fails=plain_http.UNREFUSED)
def urllib3_stream(site: Site) -> Iterator[Any]:
    body = json.dumps(plain_http.STREAM).encode()
    with pool(site) as made:
        answer = made.request(
            "POST", site.url + plain_http.PATH, body=body, headers=plain_http.JSON, preload_content=False
        )
        with contextlib.closing(answer):
            yield from plain_http.lines_of(answer.stream(16))


@case("openai", "stream=True, older", FULL)
def openai_stream(site: Site) -> Iterator[Any]:
    with openai_chat.sync(site) as client:
        stream = client.chat.completions.create(stream=True, **openai_chat.ASK)
        with contextlib.closing(stream.response):
            yield from stream


@case("openai", "stream=True, older", FULL)
async def openai_astream(site: Site) -> AsyncIterator[Any]:
    async with openai_chat.asynchronous(site) as client:
        stream = await client.chat.completions.create(stream=True, **openai_chat.ASK)
        async with contextlib.aclosing(stream.response):
            async for chunk in stream:
                yield chunk


def genai(site: Site) -> Any:
    from google import genai

    http = {"base_url": site.url, "timeout": int(site.timeout * 1000)}
    return site.client(genai.Client(api_key="none", http_options=http))


@case("google-genai", "generate_content, older")
def generate(site: Site) -> Any:
    return genai(site).models.generate_content(**google_genai.ASK)


@case("google-genai", "generate_content, older")
async def agenerate(site: Site) -> Any:
    return await genai(site).aio.models.generate_content(**google_genai.ASK)


@case("google-genai", "generate_content_stream, older")
def stream(site: Site) -> Iterator[Any]:
    yield from genai(site).models.generate_content_stream(**google_genai.ASK)


@case("google-genai", "generate_content_stream, older")
async def astream(site: Site) -> AsyncIterator[Any]:
    async for chunk in await genai(site).aio.models.generate_content_stream(**google_genai.ASK):
        yield chunk


def mistral_1(site: Site) -> Any:
    from mistralai import Mistral

    return site.client(Mistral(api_key="none", server_url=site.url, timeout_ms=int(site.timeout * 1000)))


@case("mistralai", "chat.complete, older")
def complete(site: Site) -> Any:
    return mistral_1(site).chat.complete(**mistral.ASK)


@case("mistralai", "chat.complete, older")
async def acomplete(site: Site) -> Any:
    return await mistral_1(site).chat.complete_async(**mistral.ASK)


@case("mistralai", "chat.stream, older")
def mistral_stream(site: Site) -> Iterator[Any]:
    yield from mistral_1(site).chat.stream(**mistral.ASK)


@case("mistralai", "chat.stream, older")
async def mistral_astream(site: Site) -> AsyncIterator[Any]:
    async for event in await mistral_1(site).chat.stream_async(**mistral.ASK):
        yield event


def cohere_options(site: Site) -> dict[str, Any]:
    return {name: value for name, value in cohere_v2.options(site).items() if name != "max_retries"}


@case("cohere", "chat, older")
def chat(site: Site) -> Any:
    import cohere

    with site.client(cohere.ClientV2(**cohere_options(site))) as client:
        return client.chat(**cohere_v2.ASK)


@case("cohere", "chat, older")
async def achat(site: Site) -> Any:
    import cohere

    async with site.client(cohere.AsyncClientV2(**cohere_options(site))) as client:
        return await client.chat(**cohere_v2.ASK)


@case("cohere", "chat_stream, older")
def chat_stream(site: Site) -> Iterator[Any]:
    import cohere

    with site.client(cohere.ClientV2(**cohere_options(site))) as client:
        yield from client.chat_stream(**cohere_v2.ASK)


@case("cohere", "chat_stream, older")
async def achat_stream(site: Site) -> AsyncIterator[Any]:
    import cohere

    async with site.client(cohere.AsyncClientV2(**cohere_options(site))) as client:
        async for event in client.chat_stream(**cohere_v2.ASK):
            yield event


def ollama(site: Site, kind: str) -> Any:
    import ollama

    made = getattr(ollama, kind)(host=site.url, timeout=site.timeout)
    made._client.base_url = site.url  # it takes a host without a path
    return site.client(made)


@case("ollama", "chat, older")
def ollama_plain(site: Site) -> Any:
    return ollama(site, "Client").chat(**ollama_chat.ASK)


@case("ollama", "chat, older")
async def ollama_aplain(site: Site) -> Any:
    return await ollama(site, "AsyncClient").chat(**ollama_chat.ASK)


@case("ollama", "chat(stream=True), older")
def ollama_stream(site: Site) -> Iterator[Any]:
    yield from ollama(site, "Client").chat(stream=True, **ollama_chat.ASK)


@case("ollama", "chat(stream=True), older")
async def ollama_astream(site: Site) -> AsyncIterator[Any]:
    async for part in await ollama(site, "AsyncClient").chat(stream=True, **ollama_chat.ASK):
        yield part
