"""cohere, its second interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..table import Site, case, needs

SDK = "cohere"
needs(SDK, "cohere")
ASK: Any = {"model": "command-scripted", "messages": [{"role": "user", "content": "Seven hills?"}]}


def options(site: Site) -> dict[str, Any]:
    return {"api_key": "none", "base_url": site.url, "timeout": site.timeout, "max_retries": site.retries}


def sync(site: Site) -> Any:
    import cohere

    return site.client(cohere.ClientV2(**options(site)))


def asynchronous(site: Site) -> Any:
    import cohere

    return site.client(cohere.AsyncClientV2(**options(site)))


@case(SDK, "chat")
def chat(site: Site) -> Any:
    with sync(site) as client:
        return client.chat(**ASK)


@case(SDK, "chat")
async def achat(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.chat(**ASK)


@case(SDK, "chat_stream")
def chat_stream(site: Site) -> Iterator[Any]:
    with sync(site) as client:
        yield from client.chat_stream(**ASK)


@case(SDK, "chat_stream")
async def achat_stream(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client:
        async for event in client.chat_stream(**ASK):
            yield event
