"""LiteLLM: a hand-written loop over its functions, to OpenAI's shape and to Anthropic's."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import litellm
import work
from work import FAILING, LOOP, PARALLEL, QUESTION

litellm.suppress_debug_info = True
PROPERTIES: dict[str, Any] = {
    "question": {"type": "string"},
    "city": {"type": "string"},
    "nights": {"type": "integer"},
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": PROPERTIES}},
    }
    for name in ("lookup", "book", "burn", "price")
]


def ask(url: str, prompt: str, *, claude: bool = False) -> dict[str, Any]:
    where = {"model": "anthropic/claude-scripted", "api_base": url, "max_tokens": 99}
    if not claude:
        where = {"model": f"openai/{work.MODEL}", "api_base": f"{url}/v1"}
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": QUESTION}]
    return {**where, "api_key": "none", "messages": messages, "tools": TOOLS}


def results(message: Any) -> list[dict[str, Any]]:
    """Do what a message asks for; its text is the answer if that is nothing."""
    messages = []
    for call in message.tool_calls or ():
        try:
            result = getattr(work, call.function.name)(**json.loads(call.function.arguments))
        except ValueError as error:
            result = f"error: {error}"
        text = result if isinstance(result, str) else json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return messages


def loop(request: dict[str, Any], **more: Any) -> str:
    while True:
        answer = litellm.completion(**request, **more)
        if more.get("stream"):
            answer = litellm.stream_chunk_builder(list(answer))
        message = answer.choices[0].message
        messages = results(message)
        if not messages:
            return str(message.content)
        request["messages"] += [message.model_dump(exclude_none=True), *messages]


async def aloop(request: dict[str, Any], **more: Any) -> str:
    while True:
        answer = await litellm.acompletion(**request, **more)
        if more.get("stream"):
            answer = litellm.stream_chunk_builder([chunk async for chunk in answer])
        message = answer.choices[0].message
        messages = results(message)
        if not messages:
            return str(message.content)
        request["messages"] += [message.model_dump(exclude_none=True), *messages]


def sync(url: str) -> str:
    return loop(ask(url, LOOP))


def streamed(url: str) -> str:
    return loop(ask(url, FAILING), stream=True, stream_options={"include_usage": True})


def parallel(url: str) -> str:
    return asyncio.run(aloop(ask(url, PARALLEL), stream=True))


def retried(url: str) -> str:
    return asyncio.run(aloop(ask(url, LOOP), num_retries=2))


def claude(url: str) -> str:
    return loop(ask(url, LOOP, claude=True))


def claude_streamed(url: str) -> str:
    return asyncio.run(aloop(ask(url, FAILING, claude=True), stream=True))


def tools(url: str) -> str:
    return loop(ask(url, work.WORK))


if __name__ == "__main__":
    work.main(
        {
            "sync": sync,
            "streamed": streamed,
            "parallel": parallel,
            "retried": retried,
            "claude": claude,
            "claude-streamed": claude_streamed,
            "tools": tools,
        }
    )
