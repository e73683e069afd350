"""An agent that is killed: makes model and tool calls with real SDKs, and counts in a file what it has seen.

``calling.py URL WAY SDK SHAPE STAGES COUNTERS``. Stages are words with commas, one for each call that is in
flight at once; ``slots`` of the counters say how far each is. The parent's calls have the slots from 0, the
child's from 8; the process ids are in 16 and 17.
"""

from __future__ import annotations

import asyncio
import mmap
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from contextlib import AsyncExitStack
from contextvars import copy_context
from pathlib import Path
from typing import Any

URL, WAY, SDK, SHAPE, STAGES, COUNTERS = sys.argv[1:7]
CHILD_AT, PIDS_AT = 8, 16
REACHED = 1 << 32
"""What a slot holds once its call is where it is to be killed, if it counts nothing."""
with open(COUNTERS, "r+b") as file:
    seen = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")

tap: Any = None
if WAY == "install":
    import reenact

    reenact.install()
elif WAY == "wrap":
    from reenact import Tap

    tap = Tap()

ASK: Any = {"model": "scripted", "messages": [{"role": "user", "content": "Which city has seven hills?"}]}
AWS: Any = {"modelId": "scripted", "messages": [{"role": "user", "content": [{"text": "Seven hills?"}]}]}


def wrapped(client: Any) -> Any:
    return client if tap is None else tap.wrap(client)


class Anthropic:
    def __init__(self, url: str) -> None:
        import anthropic

        self.sync = lambda: wrapped(anthropic.Anthropic(api_key="none", base_url=url, max_retries=0))
        self.aio = lambda: wrapped(anthropic.AsyncAnthropic(api_key="none", base_url=url, max_retries=0))

    def ask(self) -> Any:
        return self.sync().messages.create(max_tokens=64, **ASK)

    def stream(self) -> Any:
        for event in self.sync().messages.create(max_tokens=64, stream=True, **ASK):
            if event.type == "content_block_delta":
                yield event.delta.text

    async def aask(self) -> Any:
        return await self.aio().messages.create(max_tokens=64, **ASK)

    async def astream(self) -> Any:
        async for event in await self.aio().messages.create(max_tokens=64, stream=True, **ASK):
            if event.type == "content_block_delta":
                yield event.delta.text


class OpenAI:
    def __init__(self, url: str) -> None:
        import openai

        self.sync = lambda: wrapped(openai.OpenAI(api_key="none", base_url=url, max_retries=0))
        self.aio = lambda: wrapped(openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0))

    def ask(self) -> Any:
        return self.sync().chat.completions.create(**ASK)

    def stream(self) -> Any:
        for event in self.sync().chat.completions.create(stream=True, **ASK):
            if event.choices and event.choices[0].delta.content:
                yield event.choices[0].delta.content

    async def aask(self) -> Any:
        return await self.aio().chat.completions.create(**ASK)

    async def astream(self) -> Any:
        async for event in await self.aio().chat.completions.create(stream=True, **ASK):
            if event.choices and event.choices[0].delta.content:
                yield event.choices[0].delta.content


class Boto3:
    """Its event stream is binary; there is no asynchronous client."""

    def __init__(self, url: str) -> None:
        import boto3

        keys = {"aws_access_key_id": "AKIANONE", "aws_secret_access_key": "none", "region_name": "us-east-1"}
        self.sync = lambda: wrapped(boto3.Session(**keys).client("bedrock-runtime", endpoint_url=url))

    def ask(self) -> Any:
        return self.sync().converse(**AWS)

    def stream(self) -> Any:
        for event in self.sync().converse_stream(**AWS)["stream"]:
            if "contentBlockDelta" in event:
                yield event["contentBlockDelta"]["delta"]["text"]


class Genai:
    """Synchronous over httpx2, asynchronous over aiohttp."""

    def __init__(self, url: str) -> None:
        from google import genai

        self.sync = lambda: wrapped(genai.Client(api_key="none", http_options={"base_url": url}))

    def ask(self) -> Any:
        client = self.sync()  # closes itself when it is dropped
        return client.models.generate_content(model="scripted", contents="Seven hills?")

    def stream(self) -> Any:
        client = self.sync()
        for piece in client.models.generate_content_stream(model="scripted", contents="Hills?"):
            yield piece.text or ""

    async def aask(self) -> Any:
        client = self.sync()
        return await client.aio.models.generate_content(model="scripted", contents="Seven hills?")

    async def astream(self) -> Any:
        client = self.sync()
        pieces = await client.aio.models.generate_content_stream(model="scripted", contents="Hills?")
        async for piece in pieces:
            yield piece.text or ""


KINDS: dict[str, Any] = {"anthropic": Anthropic, "openai": OpenAI, "boto3": Boto3, "genai": Genai}
SCENARIOS = {
    "stream": "long-6000,drip-4",
    "wait": "silent",
    "tool": "tools-1",
    "mcp": "tools-1",
    "asked": "tools-1",
}


def at(stage: str, slot: int) -> str:
    return f"{URL}/s/{SCENARIOS[stage]}@{slot}"


def lookup(slot: int) -> None:
    seen[slot] = REACHED
    time.sleep(600)


def recorded_tool() -> Any:
    from reenact import Tap

    return (tap or Tap()).tool(lookup)


def do(stage: str, slot: int) -> None:
    """Make one call and stay in it."""
    if stage == "mcp":
        asyncio.run(do_in_loop(stage, slot))
        return
    sdk = KINDS[SDK](at(stage, slot))
    if stage == "stream":
        for text in sdk.stream():
            seen[slot] += len(text)
        return
    if stage == "wait":
        seen[slot] = REACHED
    sdk.ask()
    if stage == "asked":  # by no function that would be found
        seen[slot] = REACHED
        time.sleep(600)
    recorded_tool()(slot)


async def do_in_loop(stage: str, slot: int) -> None:
    sdk = KINDS[SDK](at(stage, slot))
    if stage == "stream":
        async for text in sdk.astream():
            seen[slot] += len(text)
        return
    if stage == "wait":
        seen[slot] = REACHED
    await sdk.aask() if hasattr(sdk, "aask") else sdk.ask()
    if stage == "mcp":
        await lookup_with_mcp(slot)
    elif stage == "asked":
        seen[slot] = REACHED
        await asyncio.sleep(600)
    else:
        from reenact import Tap

        @(tap or Tap()).tool
        async def lookup(slot: int) -> None:
            seen[slot] = REACHED
            await asyncio.sleep(600)

        await lookup(slot)


async def lookup_with_mcp(slot: int) -> None:
    """A server of its own process, over pipes, whose tool never answers."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    here = str(Path(__file__).with_name("lookups.py"))
    server = StdioServerParameters(command=sys.executable, args=["-I", here, COUNTERS, str(slot)])
    async with AsyncExitStack() as stack:
        streams = await stack.enter_async_context(stdio_client(server))
        session = await stack.enter_async_context(ClientSession(*streams))
        await session.initialize()
        await session.call_tool("lookup", {"slot": slot})


async def gathered(stages: list[str], first: int) -> None:
    await asyncio.gather(*(do_in_loop(stage, first + n) for n, stage in enumerate(stages)))


def work(first: int = 0) -> None:
    """Be in all the calls at once."""
    seen[PIDS_AT + bool(first)] = os.getpid()
    stages = STAGES.split(",")
    if SHAPE == "gather":
        asyncio.run(gathered(stages, first))
    elif len(stages) == 1:
        do(stages[0], first)
    else:
        threads = [threading.Thread(target=do, args=(each, first + n)) for n, each in enumerate(stages)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main() -> None:
    if len(sys.argv) > 7:
        work(CHILD_AT)
    elif "+" not in SHAPE:
        work()
    elif WAY == "run":
        have_child()
    else:
        import reenact

        with reenact.run("family"):  # else the child would be a run of its own
            have_child()


def have_child() -> None:
    how, _, who = SHAPE.partition("+")
    KINDS[SDK](f"{URL}/s/text@before").ask()
    if who == "both":
        threading.Thread(target=copy_context().run, args=(work,), daemon=True).start()
    if how == "subprocess":
        subprocess.run([sys.executable, *sys.argv, "child"], check=False)
    else:
        child = multiprocessing.get_context(how).Process(target=work, args=(CHILD_AT,))
        child.start()
        child.join()
    seen[PIDS_AT] = os.getpid()
    KINDS[SDK](f"{URL}/s/text@after").ask()  # the parent goes on


if __name__ == "__main__":
    main()
