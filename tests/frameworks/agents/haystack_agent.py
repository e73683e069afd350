"""Haystack."""

from __future__ import annotations

import work
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret


def tools(url: str) -> str:
    model = OpenAIChatGenerator(api_key=Secret.from_token("none"), model=work.MODEL, api_base_url=f"{url}/v1")
    functions = [create_tool_from_function(each) for each in (work.lookup, work.burn, work.price)]
    agent = Agent(chat_generator=model, tools=functions, system_prompt=work.WORK)
    done = agent.run(messages=[ChatMessage.from_user(work.QUESTION)])
    return str(done["messages"][-1].text)


if __name__ == "__main__":
    work.main({"tools": tools})
