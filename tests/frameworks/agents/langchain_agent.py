"""LangChain agents over the openai and anthropic SDKs."""

from __future__ import annotations

import asyncio
from typing import Any

import work
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from work import FAILING, LOOP, PARALLEL, QUESTION

ASK: Any = {"messages": [("user", QUESTION)]}


def openai(url: str, **more: Any) -> Any:
    from langchain_openai import ChatOpenAI

    return work.hand(ChatOpenAI(model=work.MODEL, base_url=f"{url}/v1", api_key="none", **more))


def anthropic(url: str, **more: Any) -> Any:
    from langchain_anthropic import ChatAnthropic

    return work.hand(
        ChatAnthropic(model="claude-scripted", base_url=url, api_key="none", max_tokens=99, **more)
    )


def agent(model: Any, prompt: str, functions: Any = (work.lookup, work.book, work.burn)) -> Any:
    gentle = ToolRetryMiddleware(max_retries=0, on_failure="continue")
    return create_agent(model, list(functions), system_prompt=prompt, middleware=[gentle])


def answer(state: Any) -> str:
    return str(state["messages"][-1].text)


def sync(url: str) -> str:
    return answer(agent(openai(url), LOOP).invoke(ASK))


def responses(url: str) -> str:
    return answer(agent(openai(url, use_responses_api=True), LOOP).invoke(ASK))


def parallel(url: str) -> str:
    return answer(asyncio.run(agent(openai(url), PARALLEL).ainvoke(ASK)))


def streamed(url: str) -> str:
    pieces = agent(openai(url, stream_usage=True), FAILING).stream(ASK, stream_mode="messages")
    return "|".join(piece.text for piece, _ in pieces)


def retried(url: str) -> str:
    return answer(agent(openai(url, max_retries=2), LOOP).invoke(ASK))


def claude(url: str) -> str:
    return answer(agent(anthropic(url), FAILING).invoke(ASK))


def claude_streamed(url: str) -> str:
    async def run() -> str:
        pieces = agent(anthropic(url), PARALLEL).astream(ASK, stream_mode="messages")
        return "|".join([piece.text async for piece, _ in pieces if piece.type == "AIMessageChunk"])

    return asyncio.run(run())


def tools(url: str) -> str:
    return answer(agent(openai(url), work.WORK, (work.lookup, work.burn, work.price)).invoke(ASK))


if __name__ == "__main__":
    work.main(
        {
            "sync": sync,
            "responses": responses,
            "parallel": parallel,
            "streamed": streamed,
            "retried": retried,
            "claude": claude,
            "claude-streamed": claude_streamed,
            "tools": tools,
        }
    )
