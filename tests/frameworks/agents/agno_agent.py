"""Agno."""

from __future__ import annotations

import work
from agno.agent import Agent
from agno.models.openai import OpenAIChat


def tools(url: str) -> str:
    model = OpenAIChat(id=work.MODEL, base_url=f"{url}/v1", api_key="none")
    functions = [work.lookup, work.burn, work.price]
    agent = Agent(model=model, tools=functions, instructions=work.WORK, telemetry=False)
    return str(agent.run(work.QUESTION).content)


if __name__ == "__main__":
    work.main({"tools": tools})
