"""openai: chat completions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..table import FULL, ONLY_OK, Site, case, needs, unsupported

SDK = "openai"
needs(SDK, "openai")
ASK: dict[str, Any] = {
    "model": "gpt-scripted",
    "messages": [{"role": "user", "content": "Which city has seven hills?"}],
}
PARAMETERS = {"type": "object", "properties": {"question": {"type": "string"}}}
FUNCTION = {"name": "lookup", "strict": True, "parameters": PARAMETERS}  # openai 2.x streams no others
TOOLS: list[Any] = [{"type": "function", "function": FUNCTION}]


def options(site: Site) -> dict[str, Any]:
    return {
        "api_key": "sk-none",
        "base_url": f"{site.url}/v1",
        "timeout": site.timeout,
        "max_retries": site.retries,
    }


def sync(site: Site) -> Any:
    import openai

    return site.client(openai.OpenAI(**options(site)))


def asynchronous(site: Site) -> Any:
    import openai

    return site.client(openai.AsyncOpenAI(**options(site)))


@case(SDK, "chat.completions.create", FULL)
def create(site: Site) -> Any:
    with sync(site) as client:
        return client.chat.completions.create(**ASK)


@case(SDK, "chat.completions.create", FULL)
async def acreate(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.chat.completions.create(**ASK)


@case(SDK, "chat.completions.create(stream=True)", FULL)
def create_stream(site: Site) -> Iterator[Any]:
    with sync(site) as client:
        with client.chat.completions.create(
            stream=True, stream_options={"include_usage": True}, **ASK
        ) as stream:
            yield from stream


@case(SDK, "chat.completions.create(stream=True)", FULL)
async def acreate_stream(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client:
        async with await client.chat.completions.create(stream=True, **ASK) as stream:
            async for chunk in stream:
                yield chunk


@case(SDK, "chat.completions.stream()")
def helper(site: Site) -> Iterator[Any]:
    with sync(site) as client, client.chat.completions.stream(**ASK) as stream:
        yield from stream
        yield stream.get_final_completion()


@case(SDK, "chat.completions.stream()")
async def ahelper(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client, client.chat.completions.stream(**ASK) as stream:
        async for event in stream:
            yield event
        yield await stream.get_final_completion()


def trip() -> Any:
    import pydantic

    return pydantic.create_model("Trip", city=(str, ...), days=(int, ...))


@case(SDK, "chat.completions.parse", answer="json")
def parse(site: Site) -> Any:
    with sync(site) as client:
        return client.chat.completions.parse(response_format=trip(), **ASK)


@case(SDK, "chat.completions.parse", answer="json")
async def aparse(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.chat.completions.parse(response_format=trip(), **ASK)


@case(SDK, "chat.completions.with_raw_response")
def raw(site: Site) -> Any:
    with sync(site) as client:
        response = client.chat.completions.with_raw_response.create(**ASK)
        return [response.status_code, dict(response.headers), response.text, response.parse()]


@case(SDK, "chat.completions.with_raw_response")
async def araw(site: Site) -> Any:
    async with asynchronous(site) as client:
        response = await client.chat.completions.with_raw_response.create(**ASK)
        return [response.status_code, dict(response.headers), response.text, response.parse()]


@case(SDK, "chat.completions.with_streaming_response")
def streaming_response(site: Site) -> Iterator[Any]:
    with sync(site) as client:
        with client.chat.completions.with_streaming_response.create(stream=True, **ASK) as response:
            yield response.status_code
            yield from response.iter_lines()


@case(SDK, "chat.completions.with_streaming_response", scenarios={"cancelled": "hang-0"})
async def astreaming_response(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client:
        async with client.chat.completions.with_streaming_response.create(stream=True, **ASK) as response:
            yield response.status_code
            async for line in response.iter_lines():
                yield line


def results_of(message: Any) -> list[dict[str, Any]]:
    return [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": f"high: {json.loads(call.function.arguments)['question']}",
        }
        for call in message.tool_calls or ()
    ]


@case(SDK, "chat tool loop", ONLY_OK, answer="tools-3")
@case(SDK, "chat parallel tools", ONLY_OK, answer="parallel-3")
def tool_loop(site: Site) -> Any:
    messages = list(ASK["messages"])
    printed: list[Any] = []
    with sync(site) as client:
        while not printed or printed[-1].tool_calls:
            answer = client.chat.completions.create(**{**ASK, "messages": messages}, tools=TOOLS)
            printed.append(answer.choices[0].message)
            messages += [printed[-1], *results_of(printed[-1])]
    return printed


@case(SDK, "chat tool loop", ONLY_OK, answer="tools-3")
@case(SDK, "chat parallel tools", ONLY_OK, answer="parallel-3")
async def streamed_tool_loop(site: Site) -> Any:
    messages = list(ASK["messages"])
    printed: list[Any] = []
    async with asynchronous(site) as client:
        while not printed or printed[-1].tool_calls:
            ask = {**ASK, "messages": messages}
            async with client.chat.completions.stream(**ask, tools=TOOLS) as stream:
                printed.append((await stream.get_final_completion()).choices[0].message)
            messages += [printed[-1].model_dump(exclude_none=True), *results_of(printed[-1])]
    return printed


@case(SDK, "module-level")
def module_level(site: Site) -> Any:
    import openai

    for name, value in {**options(site), "base_url": f"{site.url}/v1/"}.items():
        setattr(openai, name, value)
    try:
        site.client(openai)
        return openai.chat.completions.create(**ASK)
    finally:
        openai._reset_client()


unsupported(SDK, "module-level", "async", "plain", "the module has a synchronous client only")
unsupported(SDK, "DefaultAioHttpClient", "sync", "plain", "aiohttp is asynchronous only")


@case(SDK, "DefaultAioHttpClient")
async def over_aiohttp(site: Site) -> Any:
    import openai

    http = openai.DefaultAioHttpClient(timeout=site.timeout)
    async with site.client(openai.AsyncOpenAI(**options(site), http_client=http)) as client:
        return await client.chat.completions.create(**ASK)


@case(SDK, "own httpx client", ONLY_OK)
def own_httpx(site: Site) -> Any:
    import httpx
    import openai

    with httpx.Client() as http:
        return site.client(openai.OpenAI(**options(site), http_client=http)).chat.completions.create(**ASK)


@case(SDK, "own httpx client", ONLY_OK)
async def aown_httpx(site: Site) -> Any:
    import httpx
    import openai

    async with httpx.AsyncClient() as http:
        client = site.client(openai.AsyncOpenAI(**options(site), http_client=http))
        return await client.chat.completions.create(**ASK)
