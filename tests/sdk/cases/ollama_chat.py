"""ollama."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from ..table import ONLY_OK, Site, case, needs

SDK = "ollama"
needs(SDK, "ollama")
ASK: Any = {"model": "llama-scripted", "messages": [{"role": "user", "content": "Seven hills?"}]}


def sync(site: Site) -> Any:
    import ollama

    return site.client(ollama.Client(host=site.url, timeout=site.timeout))


def asynchronous(site: Site) -> Any:
    import ollama

    return site.client(ollama.AsyncClient(host=site.url, timeout=site.timeout))


@case(SDK, "chat")
def chat(site: Site) -> Any:
    with sync(site) as client:
        return client.chat(**ASK)


@case(SDK, "chat")
async def achat(site: Site) -> Any:
    async with asynchronous(site) as client:
        return await client.chat(**ASK)


@case(SDK, "chat(stream=True)")
def chat_stream(site: Site) -> Iterator[Any]:
    with sync(site) as client:
        yield from client.chat(stream=True, **ASK)


@case(SDK, "chat(stream=True)")
async def achat_stream(site: Site) -> AsyncIterator[Any]:
    async with asynchronous(site) as client:
        async for part in await client.chat(stream=True, **ASK):
            yield part


@case(SDK, "tool loop", ONLY_OK, answer="tools-2")
def tool_loop(site: Site) -> Any:
    messages = list(ASK["messages"])
    printed: list[Any] = []
    with sync(site) as client:
        while not printed or printed[-1].tool_calls:
            printed.append(client.chat(model=ASK["model"], messages=messages).message)
            messages.append(printed[-1])
            messages += [_answered(call) for call in printed[-1].tool_calls or ()]
    return printed


@case(SDK, "tool loop", ONLY_OK, answer="tools-2")
async def atool_loop(site: Site) -> Any:
    messages = list(ASK["messages"])
    printed: list[Any] = []
    async with asynchronous(site) as client:
        while not printed or printed[-1].tool_calls:
            printed.append((await client.chat(model=ASK["model"], messages=messages)).message)
            messages.append(printed[-1])
            messages += [_answered(call) for call in printed[-1].tool_calls or ()]
    return printed


def _answered(call: Any) -> dict[str, Any]:
    question = call.function.arguments["question"]
    return {"role": "tool", "tool_name": call.function.name, "content": f"high: {question}"}
