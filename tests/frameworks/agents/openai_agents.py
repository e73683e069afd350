"""The OpenAI Agents SDK, on Responses and on chat completions."""

from __future__ import annotations

import asyncio
from typing import Any

import work
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
)
from openai import AsyncOpenAI
from work import FAILING, HILLS, LISBON, LOOP, PARALLEL, QUESTION, SEA, plan

TOOLS: list[Any] = [function_tool(tool) for tool in (work.lookup, work.book, work.burn)]


CLIENTS: list[AsyncOpenAI] = []
"""They live as long as the program; one that is collected earlier complains of the loop it has lost."""


def client(url: str) -> AsyncOpenAI:
    CLIENTS.append(work.hand(AsyncOpenAI(base_url=f"{url}/v1", api_key="none")))
    return CLIENTS[-1]


def responses(url: str) -> Any:
    return OpenAIResponsesModel(work.MODEL, client(url))


def chat(url: str) -> Any:
    return OpenAIChatCompletionsModel(work.MODEL, client(url))


def agent(model: Any, prompt: str, name: str = "traveller", **more: Any) -> Any:
    return Agent(name=name, instructions=prompt, model=model, tools=TOOLS, **more)


async def streaming(starting: Any) -> str:
    running = Runner.run_streamed(starting, QUESTION)
    kinds = [event.type async for event in running.stream_events()]
    return f"{len(kinds)} {running.final_output}"


def sync(url: str) -> str:
    return str(Runner.run_sync(agent(responses(url), LOOP), QUESTION).final_output)


def parallel(url: str) -> str:
    return str(asyncio.run(Runner.run(agent(responses(url), PARALLEL), QUESTION)).final_output)


def failing(url: str) -> str:
    return asyncio.run(streaming(agent(responses(url), FAILING)))


def retried(url: str) -> str:
    return asyncio.run(streaming(agent(chat(url), LOOP)))


def handoff(url: str) -> str:
    """The front desk looks something up and hands over to the clerk, who goes on with the conversation."""
    model = chat(url)
    clerk = agent(model, plan([LISBON]), "clerk")
    desk = agent(model, plan([HILLS], [("transfer_to_clerk", {})]), "desk", handoffs=[clerk])
    done = asyncio.run(Runner.run(desk, QUESTION))
    return f"{done.last_agent.name}: {done.final_output}"


def nested(url: str) -> str:
    """Two agents as tools, asked at once."""
    model = responses(url)
    tools = [
        agent(model, plan([HILLS], [SEA]), "finder").as_tool("find", "Find a city."),
        agent(model, plan([LISBON]), "clerk").as_tool("reserve", "Reserve a room."),
    ]
    prompt = plan([("find", {"input": "hills"}), ("reserve", {"input": "three nights"})])
    desk = Agent(name="desk", instructions=prompt, model=model, tools=tools)
    return str(asyncio.run(Runner.run(desk, QUESTION)).final_output)


def gathered(url: str) -> str:
    """Four runs of one agent side by side, asked different things."""

    async def run() -> str:
        each = agent(chat(url), LOOP)
        runs = [
            Runner.run(each, f"{QUESTION} {n}", run_config=RunConfig(workflow_name=str(n))) for n in range(4)
        ]
        return str([done.final_output for done in await asyncio.gather(*runs)])

    return asyncio.run(run())


def traced(url: str) -> str:
    """Its own tracing sends spans to the provider, too."""
    from agents.tracing import set_trace_processors, set_tracing_disabled
    from agents.tracing.processors import BackendSpanExporter, BatchTraceProcessor

    set_tracing_disabled(False)
    exporter = BackendSpanExporter(api_key="none", endpoint=f"{url}/v1/traces/ingest")
    processor = BatchTraceProcessor(exporter)
    set_trace_processors([processor])
    output = sync(url)
    processor.shutdown()
    set_tracing_disabled(True)
    return output


def tools(url: str) -> str:
    functions: list[Any] = [function_tool(each) for each in (work.lookup, work.burn, work.price)]
    traveller = Agent(name="traveller", instructions=work.WORK, model=responses(url), tools=functions)
    return str(Runner.run_sync(traveller, QUESTION).final_output)


if __name__ == "__main__":
    work.main(
        {
            "sync": sync,
            "parallel": parallel,
            "failing": failing,
            "retried": retried,
            "handoff": handoff,
            "nested": nested,
            "gathered": gathered,
            "traced": traced,
            "tools": tools,
        }
    )
