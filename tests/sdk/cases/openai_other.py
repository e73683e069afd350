"""openai: responses, embeddings, files and batches."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..table import FULL, ONLY_OK, Site, case
from .openai_chat import PARAMETERS, SDK, asynchronous, sync, trip

ASK: dict[str, Any] = {"model": "gpt-scripted", "input": "Which city has seven hills?"}
TOOLS: list[Any] = [{"type": "function", "name": "lookup", "parameters": PARAMETERS, "strict": False}]
ERROR_IS_EVENT = {"error inside": False}
"""An error inside the stream is one more event."""
LINES = b'{"custom_id": "first", "method": "POST", "url": "/v1/chat/completions", "body": {}}\n'


@case(SDK, "responses.create", FULL)
def create(site: Site) -> Any:
    with sync(site) as client:
        return client.responses.create(**ASK)


@case(SDK, "responses.create", FULL)
async def acreate(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.responses.create(**ASK)


@case(SDK, "responses.create(stream=True)", FULL, fails=ERROR_IS_EVENT)
def create_stream(site: Site) -> Iterator[Any]:
    with sync(site) as client, client.responses.create(stream=True, **ASK) as stream:
        yield from stream


@case(SDK, "responses.create(stream=True)", FULL, fails=ERROR_IS_EVENT)
async def acreate_stream(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client, await client.responses.create(stream=True, **ASK) as stream:
        async for event in stream:
            yield event


@case(SDK, "responses.stream()")
def helper(site: Site) -> Iterator[Any]:
    with sync(site) as client, client.responses.stream(**ASK) as stream:
        yield from stream
        yield stream.get_final_response()


@case(SDK, "responses.stream()")
async def ahelper(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client, client.responses.stream(**ASK) as stream:
        async for event in stream:
            yield event
        yield await stream.get_final_response()


@case(SDK, "responses.parse", answer="json")
def parse(site: Site) -> Any:
    with sync(site) as client:
        return client.responses.parse(text_format=trip(), **ASK)


@case(SDK, "responses.parse", answer="json")
async def aparse(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.responses.parse(text_format=trip(), **ASK)


def results_of(response: Any) -> list[dict[str, Any]]:
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": f"high: {json.loads(item.arguments)['question']}",
        }
        for item in response.output
        if item.type == "function_call"
    ]


@case(SDK, "responses tool loop", ONLY_OK, answer="tools-3,thinking")
def tool_loop(site: Site) -> Any:
    items: list[Any] = [{"role": "user", "content": ASK["input"]}]
    printed: list[Any] = []
    with sync(site) as client:
        while not printed or results_of(printed[-1]):
            printed.append(client.responses.create(model=ASK["model"], input=items, tools=TOOLS))
            items += [*printed[-1].output, *results_of(printed[-1])]
    return printed


@case(SDK, "responses tool loop", ONLY_OK, answer="tools-3,thinking")
async def kept_tool_loop(site: Site) -> Any:
    """The provider keeps the conversation: a request names the answer it follows."""
    printed: list[Any] = []
    ask: dict[str, Any] = ASK
    async with asynchronous(site) as client:
        while not printed or results_of(printed[-1]):
            printed.append(await client.responses.create(**ask, tools=TOOLS))
            ask = {**ASK, "input": results_of(printed[-1]), "previous_response_id": printed[-1].id}
    return printed


@case(SDK, "embeddings.create")
def embeddings(site: Site) -> Any:
    with sync(site) as client:
        return client.embeddings.create(model="embed-scripted", input=["one", "two"])


@case(SDK, "embeddings.create")
async def aembeddings(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.embeddings.create(model="embed-scripted", input=["one", "two"])


@case(SDK, "files and batches")
def files(site: Site) -> Any:
    with sync(site) as client:
        file = client.files.create(file=("asks.jsonl", LINES), purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        return [file, batch, client.files.content(batch.output_file_id).text]


@case(SDK, "files and batches")
async def afiles(site: Site) -> Any:
    async with asynchronous(site) as client:
        file = await client.files.create(file=("asks.jsonl", LINES), purpose="batch")
        batch = await client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        return [file, batch, (await client.files.content(batch.output_file_id)).text]
