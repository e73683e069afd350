"""Agents whose tools only their framework knows: arguments that it converts, a function of a library, an agent."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import work

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
import site_tools  # noqa: E402

INNER = work.plan([("hills", {"count": "4"})])
PLAN = work.plan([("hills", {"count": "2"}), ("hills", {"count": "3"})], [("weigh", {"item": "box"})])
WITH_AGENT = PLAN.removesuffix("]]]") + ']], [["expert", {"input": "How many?"}]]]'


def hills(count: int) -> str:
    """Count hills.

    Args:
        count: How many there may be.
    """
    work.effect("hills")
    return f"{count * 2} hills"


TOOLS: list[Callable[..., Any]] = [hills, site_tools.weigh]


def openai_agents(url: str) -> Any:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    model = OpenAIChatCompletionsModel(work.MODEL, client)
    expert: Agent[Any] = Agent("expert", instructions=INNER, tools=[function_tool(hills)], model=model)
    tools = [*map(function_tool, TOOLS), expert.as_tool("expert", "Asks an expert.")]
    agent: Agent[Any] = Agent("guide", instructions=WITH_AGENT, tools=tools, model=model)
    return Runner.run_sync(agent, work.QUESTION).final_output


def pydantic_ai(url: str) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(work.MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    return Agent(model, instructions=PLAN, tools=TOOLS).run_sync(work.QUESTION).output


def agno_agent(url: str) -> Any:
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat

    model = OpenAIChat(id=work.MODEL, base_url=f"{url}/v1", api_key="none")
    return Agent(model=model, tools=TOOLS, instructions=PLAN, telemetry=False)


def agno(url: str) -> Any:
    return agno_agent(url).run(work.QUESTION).content


def agno_async(url: str) -> Any:
    return asyncio.run(agno_agent(url).arun(work.QUESTION)).content


def langchain_async(url: str) -> Any:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model=work.MODEL, base_url=f"{url}/v1", api_key="none")
    agent: Any = create_agent(model, TOOLS, system_prompt=PLAN)
    done = asyncio.run(agent.ainvoke({"messages": [("user", work.QUESTION)]}))
    return done["messages"][-1].text


def strands(url: str) -> Any:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"base_url": f"{url}/v1", "api_key": "none"}, model_id=work.MODEL)
    return Agent(model, tools=[tool(each) for each in TOOLS], system_prompt=PLAN, callback_handler=None)(
        work.QUESTION
    )


def strands_modules(url: str) -> Any:
    """Tools without a decorator: a function that takes the tool use, in a module of its name."""
    import importlib

    from strands import Agent
    from strands.models.openai import OpenAIModel

    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules"))
    model = OpenAIModel(client_args={"base_url": f"{url}/v1", "api_key": "none"}, model_id=work.MODEL)
    tools = [importlib.import_module(name) for name in ("hills", "weigh")]
    return Agent(model, tools=tools, system_prompt=PLAN, callback_handler=None)(work.QUESTION)


def autogen_agent(url: str, name: str, prompt: str, tools: list[Any]) -> Any:
    from autogen_agent import INFO
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    model = OpenAIChatCompletionClient(
        model=work.MODEL, base_url=f"{url}/v1", api_key="none", model_info=INFO
    )
    return AssistantAgent(name, model, tools=tools, system_message=prompt, max_tool_iterations=9)


def autogen(url: str) -> Any:
    agent = autogen_agent(url, "guide", PLAN, TOOLS)
    return asyncio.run(agent.run(task=work.QUESTION)).messages[-1].to_text()


def autogen_streams(url: str) -> Any:
    from autogen_agentchat.tools import AgentTool
    from site_stream_tools import Streaming

    expert = AgentTool(autogen_agent(url, "expert", INNER, [hills]))
    tools = [Streaming(hills, count=int), Streaming(site_tools.weigh, item=str), expert]
    agent = autogen_agent(url, "guide", WITH_AGENT.replace('"input"', '"task"'), tools)

    async def events() -> list[Any]:
        return [event async for event in agent.run_stream(task=work.QUESTION)]

    *_, done = asyncio.run(events())
    return [str(getattr(message, "content", "")) for message in done.messages][-1]


if __name__ == "__main__":
    CASES = {
        "openai-agents": openai_agents,
        "pydantic-ai": pydantic_ai,
        "agno": agno,
        "strands": strands,
        "strands-modules": strands_modules,
        "autogen": autogen,
        "autogen-streams": autogen_streams,
        "agno-async": agno_async,
        "langchain-async": langchain_async,
    }
    work.main(CASES)
