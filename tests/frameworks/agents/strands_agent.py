"""Strands Agents."""

from __future__ import annotations

import work
from strands import Agent, tool
from strands.models.openai import OpenAIModel


def tools(url: str) -> str:
    model = OpenAIModel(client_args={"base_url": f"{url}/v1", "api_key": "none"}, model_id=work.MODEL)
    functions = [tool(each) for each in (work.lookup, work.burn, work.price)]
    return str(
        Agent(model=model, tools=functions, system_prompt=work.WORK, callback_handler=None)(work.QUESTION)
    )


if __name__ == "__main__":
    work.main({"tools": tools})
