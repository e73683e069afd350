"""Streams that an agent lets go of: one that is collected after its recorder was closed prints nothing."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from reenact import Tap, read_events
from reenact.capture import guard
from support.examples import long
from support.provider import Provider

pytestmark = pytest.mark.filterwarnings("ignore")
ASK: Any = {"model": "m", "messages": [{"role": "user", "content": "Seven hills?"}], "stream": True}


def openai_stream(tap: Tap, url: str, kept: list[Any]) -> None:
    client = tap.wrap(openai.OpenAI(base_url=f"{url}/v1", api_key="none"))
    stream = iter(client.chat.completions.create(**ASK))
    kept += [client, stream, next(stream)]


def anthropic_stream(tap: Tap, url: str, kept: list[Any]) -> None:
    client = tap.wrap(anthropic.Anthropic(base_url=url, api_key="none"))
    stream = iter(client.messages.create(max_tokens=9, **ASK))
    kept += [client, stream, next(stream)]


def openai_stream_async(tap: Tap, url: str, kept: list[Any]) -> None:
    async def ask() -> None:
        client = tap.wrap(openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none"))
        stream = aiter(await client.chat.completions.create(**ASK))
        kept.extend([client, stream, await anext(stream)])

    loop = asyncio.new_event_loop()
    kept.append(loop)
    loop.run_until_complete(ask())


def openai_stream_async_ended(tap: Tap, url: str, kept: list[Any]) -> None:
    """Its loop is closed as asyncio.run() closes one, which lets go of generators, after the recorder was."""

    async def ask() -> None:
        client = tap.wrap(openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none"))
        stream = aiter(await client.chat.completions.create(**ASK))
        kept.extend([client, stream, await anext(stream)])
        tap.close()

    asyncio.run(ask())


@pytest.mark.parametrize(
    "drop", [long(openai_stream), anthropic_stream, openai_stream_async, long(openai_stream_async_ended)]
)
def test_a_stream_collected_after_close_prints_nothing(
    drop: Callable[[Tap, str, list[Any]], None], provider: Provider, tmp_path: Path, capfd: Any
) -> None:
    guard.forget()
    kept: list[Any] = []
    tap = Tap(tmp_path / "run.jsonl")
    drop(tap, provider.url("hang-2"), kept)
    tap.close()
    kept.clear()
    gc.collect()
    assert capfd.readouterr().err == ""
    kinds = [event.kind for event in read_events(tmp_path / "run.jsonl")]
    assert kinds == ["run.start", "model.request", "run.end"]
    assert tap.lost == 1

    tap.record_model_response({"role": "assistant", "content": "late"})
    tap.record_tool_call("search", {})
    reported = capfd.readouterr().err
    assert reported.count("came after close() and is lost") == 1
