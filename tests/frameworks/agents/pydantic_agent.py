"""Pydantic AI."""

from __future__ import annotations

import asyncio
from typing import Any

import work
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from work import FAILING, HILLS, LISBON, LOOP, PARALLEL, QUESTION, SEA, plan


def provider(url: str) -> Any:
    made = OpenAIProvider(base_url=f"{url}/v1", api_key="none")
    work.hand(made.client)
    return made


def burn(city: str) -> str:
    """Fail, and ask the model to try something else."""
    try:
        return work.burn(city)
    except ValueError as error:
        raise ModelRetry(str(error)) from error


def agent(
    url: str, prompt: str, kind: Any = OpenAIChatModel, tools: Any = (work.lookup, work.book, burn)
) -> Any:
    return Agent(kind(work.MODEL, provider=provider(url)), instructions=prompt, tools=tools)


def sync(url: str) -> str:
    return str(agent(url, LOOP).run_sync(QUESTION).output)


def parallel(url: str) -> str:
    return str(asyncio.run(agent(url, PARALLEL, OpenAIResponsesModel).run(QUESTION)).output)


def streamed(url: str) -> str:
    kinds: list[str] = []

    async def handle_events(context: Any, events: Any) -> None:
        kinds.extend([event.event_kind async for event in events])

    done = asyncio.run(agent(url, FAILING).run(QUESTION, event_stream_handler=handle_events))
    return f"{len(kinds)} {done.output}"


def stepwise(url: str) -> str:
    async def run() -> str:
        async with agent(url, LOOP, OpenAIResponsesModel).iter(QUESTION) as running:
            nodes = [type(node).__name__ async for node in running]
        return f"{nodes} {running.result.output}"

    return asyncio.run(run())


def dying(url: str) -> str:
    """A tool's error that nobody catches ends the program."""
    return str(agent(url, FAILING, tools=[work.lookup, work.burn]).run_sync(QUESTION).output)


def nested(url: str) -> str:
    """A tool that asks another agent."""
    finder = agent(url, plan([HILLS], [SEA]), tools=[work.lookup])

    async def find(wish: str) -> str:
        """Find a city."""
        found = (await finder.run(wish)).output
        work.say(tool="find", args={"wish": wish}, result=found)
        return found

    prompt = plan([("find", {"wish": "hills"})], [LISBON])
    return str(agent(url, prompt, tools=[find, work.book]).run_sync(QUESTION).output)


def tools(url: str) -> str:
    return str(agent(url, work.WORK, tools=[work.lookup, burn, work.price]).run_sync(QUESTION).output)


if __name__ == "__main__":
    work.main(
        {
            "sync": sync,
            "parallel": parallel,
            "streamed": streamed,
            "stepwise": stepwise,
            "dying": dying,
            "nested": nested,
            "tools": tools,
        }
    )
