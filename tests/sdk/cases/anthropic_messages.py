"""anthropic: messages, in all the ways to ask for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..table import FULL, Site, case, needs

SDK = "anthropic"
needs(SDK, "anthropic")
ASK: dict[str, Any] = {
    "model": "claude-scripted",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Which city has seven hills?"}],
}
UP_TO_TEXT = {"abandoned": "hang-4", "cancelled": "hang-4", "timeout": "hang-4"}
"""The first text is the fourth event."""


def sync(site: Site) -> Any:
    import anthropic

    return site.client(
        anthropic.Anthropic(
            api_key="sk-none", base_url=site.url, timeout=site.timeout, max_retries=site.retries
        )
    )


def asynchronous(site: Site) -> Any:
    import anthropic

    return site.client(
        anthropic.AsyncAnthropic(
            api_key="sk-none", base_url=site.url, timeout=site.timeout, max_retries=site.retries
        )
    )


@case(SDK, "messages.create", FULL)
def create(site: Site) -> Any:
    with sync(site) as client:
        return client.messages.create(**ASK)


@case(SDK, "messages.create", FULL)
async def acreate(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.messages.create(**ASK)


@case(SDK, "messages.create(stream=True)", FULL)
def create_stream(site: Site) -> Iterator[Any]:
    with sync(site) as client, client.messages.create(stream=True, **ASK) as stream:
        yield from stream


@case(SDK, "messages.create(stream=True)", FULL)
async def acreate_stream(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client, await client.messages.create(stream=True, **ASK) as stream:
        async for event in stream:
            yield event


@case(SDK, "messages.stream()", FULL)
def helper(site: Site) -> Iterator[Any]:
    with sync(site) as client, client.messages.stream(**ASK) as stream:
        yield from stream
        yield stream.get_final_message()


@case(SDK, "messages.stream()", FULL)
async def ahelper(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client, client.messages.stream(**ASK) as stream:
        async for event in stream:
            yield event
        yield await stream.get_final_message()


@case(SDK, "messages.stream().text_stream", scenarios=UP_TO_TEXT)
def text_stream(site: Site) -> Iterator[Any]:
    with sync(site) as client, client.messages.stream(**ASK) as stream:
        yield from stream.text_stream


@case(SDK, "messages.stream().text_stream", scenarios=UP_TO_TEXT)
async def atext_stream(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client, client.messages.stream(**ASK) as stream:
        async for text in stream.text_stream:
            yield text
