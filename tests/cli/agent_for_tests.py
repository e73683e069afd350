"""The agent of test_cli_test: functions that are runs of their own, and a program."""

import asyncio
import json
import os
import sys

import httpx

import reenact
from reenact import Tap

tap = Tap()
TOOL = {"name": "lookup", "input_schema": {"type": "object", "properties": {"question": {"type": "string"}}}}


@tap.tool
def lookup(question: str) -> dict:
    return {"height": 75, "seen": os.getpid()}


def ask(url: str, messages: list) -> list:
    body = {"model": "m-1", "max_tokens": 9, "messages": messages, "tools": [TOOL]}
    answer = httpx.post(os.environ.get(url, "https://api.anthropic.com") + "/v1/messages", json=body)
    return answer.raise_for_status().json()["content"]


def loop(url: str, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    while True:
        content = ask(url, messages)
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            return content[0]["text"]
        found = [(use["id"], lookup(**use["input"])["height"]) for use in uses]
        results = [{"type": "tool_result", "tool_use_id": id_, "content": str(high)} for id_, high in found]
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]


def streamed(question: str) -> int:
    url = os.environ.get("TEXT_URL", "https://api.anthropic.com") + "/v1/messages"
    body = {
        "model": "m-1",
        "max_tokens": 9,
        "stream": True,
        "messages": [{"role": "user", "content": question}],
    }
    with httpx.stream("POST", url, json=body) as answer:
        return sum(line.startswith("data:") for line in answer.iter_lines())


@reenact.run
def plan(city: str, days: int = 2) -> str:
    return loop("TOOLS_URL", f"Plan {days} days in {city}")


@reenact.run
async def priced(city: str) -> dict:
    return json.loads(loop("TEXT_URL", f"What does {city} cost?"))["price"]


@reenact.run
def cut(city: str) -> str:
    text = loop("LENGTH_URL", f"Tell me all of {city}")
    raise ValueError(f"not a whole answer: {text[:10]}")


@reenact.run
def busy(city: str) -> str:
    return loop("BUSY_URL", city)


def functions() -> None:
    plan("Rome")
    plan("Oslo")
    for work in (lambda: asyncio.run(priced("Rome")), lambda: cut("Rome"), lambda: busy("Rome")):
        try:
            work()
        except Exception as exc:
            print(type(exc).__name__)


if __name__ == "__main__":
    if sys.argv[1:] == ["functions"]:
        functions()
    else:
        print(streamed("Which city has seven hills?"))
