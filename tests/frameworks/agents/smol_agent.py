"""smolagents: agents that call tools, agents that write code, and a team."""

from __future__ import annotations

from typing import Any

import work
from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent, tool
from work import HILLS, LISBON, QUESTION, SEA, plan

DONE = ("final_answer", {"answer": "Lisbon it is."})
_tried: set[str] = set()


def insist(city: str) -> str:
    """Fail the first time.

    Args:
        city: Where.
    """
    if city not in _tried:
        _tried.add(city)
        work.burn(city)
    return work.did("insist", {"city": city}, f"a room in {city}")


TOOLS: list[Any] = [tool(each) for each in (work.lookup, work.book, insist)]


def model(url: str) -> Any:
    made = OpenAIServerModel(work.MODEL, api_base=f"{url}/v1", api_key="none")
    work.hand(made.client)
    return made


def agent(url: str, prompt: str, **more: Any) -> Any:
    return ToolCallingAgent(
        **{
            "tools": TOOLS,
            "model": model(url),
            "instructions": prompt,
            "verbosity_level": LogLevel.OFF,
            **more,
        }
    )


def sync(url: str) -> str:
    return str(agent(url, plan([HILLS], [SEA], [LISBON], [DONE])).run(QUESTION))


def parallel(url: str) -> str:
    return str(agent(url, plan([HILLS, SEA, LISBON], [DONE])).run(QUESTION))


def streamed(url: str) -> str:
    steps = agent(url, plan([HILLS], [LISBON], [DONE]), stream_outputs=True).run(QUESTION, stream=True)
    return str([type(step).__name__ for step in steps])


def failing(url: str) -> str:
    return str(agent(url, plan([HILLS], [("insist", {"city": "Porto"})], [DONE])).run(QUESTION))


def exhausted(url: str) -> str:
    """Out of steps: the model is asked for an answer under another system prompt."""
    return str(agent(url, "Be brief.", max_steps=1).run(plan([HILLS])))


def team(url: str) -> str:
    """An agent that another one manages."""
    finder = agent(url, plan([HILLS], [DONE]), name="finder", description="Finds a city.")
    wish = ("finder", {"task": "hills", "additional_args": {}})
    return str(agent(url, plan([wish], [LISBON], [DONE]), managed_agents=[finder]).run(QUESTION))


def tools(url: str) -> str:
    functions: list[Any] = [tool(each) for each in (work.lookup, insist, work.price)]
    prompt = plan([HILLS, SEA], [("insist", {"city": "Porto"})], [work.COSTS], [DONE])
    return str(agent(url, prompt, tools=functions).run(QUESTION))


if __name__ == "__main__":
    work.main(
        {
            "sync": sync,
            "parallel": parallel,
            "streamed": streamed,
            "failing": failing,
            "exhausted": exhausted,
            "team": team,
            "tools": tools,
        }
    )
