"""anthropic: raw responses, tools, what is beside messages, and clients made in other ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..table import ONLY_OK, Site, case, unsupported
from .anthropic_messages import ASK, SDK, asynchronous, sync

TOOLS: list[Any] = [{"name": "lookup", "description": "Look it up.", "input_schema": {"type": "object"}}]
BATCH: list[Any] = [{"custom_id": "first", "params": ASK}]


@case(SDK, "messages.with_raw_response.create")
def raw(site: Site) -> Any:
    with sync(site) as client:
        response = client.messages.with_raw_response.create(**ASK)
        return [response.status_code, dict(response.headers), response.text(), response.parse()]


@case(SDK, "messages.with_raw_response.create")
async def araw(site: Site) -> Any:
    async with asynchronous(site) as client:
        response = await client.messages.with_raw_response.create(**ASK)
        return [response.status_code, dict(response.headers), await response.text(), await response.parse()]


@case(SDK, "messages.with_streaming_response.create")
def streaming_response(site: Site) -> Iterator[Any]:
    with sync(site) as client, client.messages.with_streaming_response.create(stream=True, **ASK) as response:
        yield response.status_code
        yield from response.iter_lines()


@case(SDK, "messages.with_streaming_response.create", scenarios={"cancelled": "hang-0"})
async def astreaming_response(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client:
        async with client.messages.with_streaming_response.create(stream=True, **ASK) as response:
            yield response.status_code
            async for line in response.iter_lines():
                yield line


@case(SDK, "messages.count_tokens")
def count_tokens(site: Site) -> Any:
    with sync(site) as client:
        return client.messages.count_tokens(model=ASK["model"], messages=ASK["messages"])


@case(SDK, "messages.count_tokens")
async def acount_tokens(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.messages.count_tokens(model=ASK["model"], messages=ASK["messages"])


@case(SDK, "messages.batches")
def batches(site: Site) -> Any:
    with sync(site) as client:
        batch = client.messages.batches.create(requests=BATCH)
        return [batch, client.messages.batches.retrieve(batch.id), *client.messages.batches.results(batch.id)]


@case(SDK, "messages.batches")
async def abatches(site: Site) -> Any:
    async with asynchronous(site) as client:
        batch = await client.messages.batches.create(requests=BATCH)
        results = await client.messages.batches.results(batch.id)
        return [batch, await client.messages.batches.retrieve(batch.id), *[each async for each in results]]


def results_of(message: Any) -> list[dict[str, Any]]:
    """What the user's own tools answer."""
    return [
        {"type": "tool_result", "tool_use_id": block.id, "content": f"high: {block.input['question']}"}
        for block in message.content
        if block.type == "tool_use"
    ]


@case(SDK, "tool loop", ONLY_OK, answer="tools-3")
@case(SDK, "parallel tools", ONLY_OK, answer="parallel-3,thinking")
def tool_loop(site: Site) -> Any:
    messages = list(ASK["messages"])
    printed = []
    with sync(site) as client:
        while not printed or printed[-1].stop_reason == "tool_use":
            printed.append(client.messages.create(**{**ASK, "messages": messages}, tools=TOOLS))
            answers = {"role": "user", "content": results_of(printed[-1])}
            messages += [{"role": "assistant", "content": printed[-1].content}, answers]
    return printed


@case(SDK, "tool loop", ONLY_OK, answer="tools-3")
@case(SDK, "parallel tools", ONLY_OK, answer="parallel-3,thinking")
async def streamed_tool_loop(site: Site) -> Any:
    messages = list(ASK["messages"])
    printed: list[Any] = []
    async with asynchronous(site) as client:
        while not printed or printed[-1].stop_reason == "tool_use":
            async with client.messages.stream(**{**ASK, "messages": messages}, tools=TOOLS) as stream:
                printed.append(await stream.get_final_message())
            answers = {"role": "user", "content": results_of(printed[-1])}
            messages += [{"role": "assistant", "content": printed[-1].content}, answers]
    return printed


@case(SDK, "beta.messages.tool_runner", ONLY_OK, answer="tools-2")
def tool_runner(site: Site) -> Any:
    import anthropic

    @anthropic.beta_tool
    def lookup(question: str) -> str:
        """Look it up."""
        return f"high: {question}"

    with sync(site) as client:
        return list(client.beta.messages.tool_runner(**ASK, tools=[lookup]))


@case(SDK, "beta.messages.tool_runner", ONLY_OK, answer="tools-2")
async def atool_runner(site: Site) -> Any:
    import anthropic

    @anthropic.beta_async_tool
    async def lookup(question: str) -> str:
        """Look it up."""
        return f"high: {question}"

    async with asynchronous(site) as client:
        return [message async for message in client.beta.messages.tool_runner(**ASK, tools=[lookup])]


@case(SDK, "many at once", ONLY_OK, answer="text,late-150")
def threads(site: Site) -> Any:
    with sync(site) as client, ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda _: client.messages.create(**ASK), range(4)))


@case(SDK, "many at once", ONLY_OK, answer="text,late-150")
async def gathered(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await asyncio.gather(*(client.messages.create(**ASK) for _ in range(4)))


@case(SDK, "with_options and copy", ONLY_OK)
def copies(site: Site) -> Any:
    with sync(site) as client:
        first = client.with_options(timeout=site.timeout / 2).messages.create(**ASK)
        return [first, client.copy(max_retries=1).messages.create(**ASK)]


@case(SDK, "with_options and copy", ONLY_OK)
async def acopies(site: Site) -> Any:
    async with asynchronous(site) as client:
        first = await client.with_options(timeout=site.timeout / 2).messages.create(**ASK)
        return [first, await client.copy(max_retries=1).messages.create(**ASK)]


@case(SDK, "one connection, streams left early", ONLY_OK, answer="text,hang-3")
def one_connection(site: Site) -> Any:
    import anthropic
    import httpx2

    limits = httpx2.Limits(max_connections=1)
    http = anthropic.DefaultHttpxClient(limits=limits, timeout=site.timeout)
    seen = []
    with site.client(anthropic.Anthropic(api_key="sk-none", base_url=site.url, http_client=http)) as client:
        for _ in range(3):
            with client.messages.create(stream=True, **ASK) as stream:
                seen.append(next(iter(stream)))
        return seen


@case(SDK, "one connection, streams left early", ONLY_OK, answer="text,hang-3")
async def aone_connection(site: Site) -> Any:
    import anthropic
    import httpx2

    limits = httpx2.Limits(max_connections=1)
    http = anthropic.DefaultAsyncHttpxClient(limits=limits, timeout=site.timeout)
    seen = []
    made = anthropic.AsyncAnthropic(api_key="sk-none", base_url=site.url, http_client=http)
    async with site.client(made) as client:
        for _ in range(3):
            async with await client.messages.create(stream=True, **ASK) as stream:
                seen.append(await anext(aiter(stream)))
        return seen


unsupported(SDK, "DefaultAioHttpClient", "sync", "plain", "aiohttp is asynchronous only")


def over_aiohttp(site: Site) -> Any:
    import anthropic

    http = anthropic.DefaultAioHttpClient(timeout=site.timeout)
    return site.client(
        anthropic.AsyncAnthropic(
            api_key="sk-none",
            base_url=site.url,
            http_client=http,
            timeout=site.timeout,
            max_retries=site.retries,
        )
    )


@case(SDK, "DefaultAioHttpClient")
async def aiohttp_create(site: Site) -> Any:
    async with over_aiohttp(site) as client:
        return await client.messages.create(**ASK)


@case(SDK, "DefaultAioHttpClient(stream=True)")
async def aiohttp_stream(site: Site) -> AsyncIterator[Any]:
    async with over_aiohttp(site) as client, await client.messages.create(stream=True, **ASK) as stream:
        async for event in stream:
            yield event


unsupported(SDK, "DefaultAioHttpClient(stream=True)", "sync", "stream", "aiohttp is asynchronous only")
