"""mistralai."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..table import Site, case, needs

SDK = "mistralai"
needs(SDK, "mistralai")
ASK: Any = {"model": "mistral-scripted", "messages": [{"role": "user", "content": "Seven hills?"}]}


def client_for(site: Site) -> Any:
    from mistralai.client import Mistral

    made = Mistral(api_key="none", server_url=site.url, timeout_ms=int(site.timeout * 1000))
    return site.client(made)


@case(SDK, "chat.complete")
def complete(site: Site) -> Any:
    with client_for(site) as client:
        return client.chat.complete(**ASK)


@case(SDK, "chat.complete")
async def acomplete(site: Site) -> Any:
    async with client_for(site) as client:
        return await client.chat.complete_async(**ASK)


@case(SDK, "chat.stream")
def stream(site: Site) -> Iterator[Any]:
    with client_for(site) as client, client.chat.stream(**ASK) as events:
        yield from events


@case(SDK, "chat.stream")
async def astream(site: Site) -> AsyncIterator[Any]:
    async with client_for(site) as client, await client.chat.stream_async(**ASK) as events:
        async for event in events:
            yield event
