"""CrewAI: crews of one and of two."""

from __future__ import annotations

import asyncio
from typing import Any

import work
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from work import FAILING, HILLS, LISBON, LOOP, SEA, plan

TOOLS: list[Any] = [tool(each.__name__)(each) for each in (work.lookup, work.book, work.burn, work.price)]


def worker(url: str, prompt: str, **more: Any) -> Any:
    llm = LLM(model=f"openai/{work.MODEL}", base_url=f"{url}/v1", api_key="none", **more)
    return Agent(role="traveller", goal=prompt, backstory="Has been around.", llm=llm, tools=TOOLS)


def crew(*workers: Any) -> Any:
    tasks = [Task(description=work.QUESTION, expected_output="A room.", agent=each) for each in workers]
    return Crew(agents=list(workers), tasks=tasks)


def sync(url: str) -> str:
    return str(crew(worker(url, LOOP)).kickoff())


def failing(url: str) -> str:
    return str(crew(worker(url, FAILING)).kickoff())


def asynchronous(url: str) -> str:
    return str(asyncio.run(crew(worker(url, LOOP)).kickoff_async()))


def streamed(url: str) -> str:
    return str(crew(worker(url, LOOP, stream=True)).kickoff())


def team(url: str) -> str:
    return str(crew(worker(url, plan([HILLS], [SEA])), worker(url, plan([LISBON]))).kickoff())


def tools(url: str) -> str:
    return str(crew(worker(url, work.WORK)).kickoff())


if __name__ == "__main__":
    work.main(
        {
            "sync": sync,
            "failing": failing,
            "async": asynchronous,
            "streamed": streamed,
            "team": team,
            "tools": tools,
        }
    )
