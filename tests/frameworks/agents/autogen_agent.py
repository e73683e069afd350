"""AutoGen's agentchat."""

from __future__ import annotations

import asyncio
from typing import Any

import work
from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

INFO: Any = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "family": "unknown",
    "structured_output": True,
}


def tools(url: str) -> str:
    model = OpenAIChatCompletionClient(
        model=work.MODEL, base_url=f"{url}/v1", api_key="none", model_info=INFO
    )
    functions: list[Any] = [work.lookup, work.burn, work.price]
    agent = AssistantAgent(
        "traveller", model, tools=functions, system_message=work.WORK, max_tool_iterations=9
    )
    return str(asyncio.run(agent.run(task=work.QUESTION)).messages[-1].content)


if __name__ == "__main__":
    work.main({"tools": tools})
