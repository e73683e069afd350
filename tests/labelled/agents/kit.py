"""The agent loop that most programs in this folder share, as a small team would keep one.

`Agent` asks a model, runs the tools it requests, and sends their results back, until the model answers in words.
Programs differ by their tools, by the wire (an SDK or plain HTTP, whole or streamed), and by the methods they override.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

JSON_TYPES = {int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


@dataclass
class Call:
    id: str
    name: str
    args: dict[str, Any]


@dataclass
class Reply:
    message: dict[str, Any]
    text: str
    calls: list[Call]
    stop: str = ""


def schema(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    found = inspect.signature(function, eval_str=True).parameters.values()
    types = {each.name: {"type": JSON_TYPES.get(each.annotation, "string")} for each in found}
    required = [each.name for each in found if each.default is each.empty]
    return {
        "name": name,
        "description": inspect.getdoc(function) or name.replace("_", " "),
        "parameters": {"type": "object", "properties": types, "required": required},
    }


def post(path: str, body: dict[str, Any]) -> Any:
    """One request to the model's server, with nothing but the standard library."""
    url = os.environ["MODEL_URL"] + path
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


class Chat:
    """OpenAI's chat completions over plain HTTP."""

    model = "gpt-5.1-mini"

    def send(self, body: dict[str, Any]) -> dict[str, Any]:
        return post("/v1/chat/completions", body)

    def ask(self, system: str, messages: list[Any], tools: list[Any], limit: int) -> Reply:
        first = [{"role": "system", "content": system}] if system else []
        body: dict[str, Any] = {"model": self.model, "max_tokens": limit, "messages": first + messages}
        if tools:
            body["tools"] = [{"type": "function", "function": each} for each in tools]
        choice = self.send(body)["choices"][0]
        message = choice["message"]
        calls = [self.call(each) for each in message.get("tool_calls") or []]
        return Reply(message, message.get("content") or "", calls, choice["finish_reason"])

    def call(self, each: dict[str, Any]) -> Call:
        return Call(each["id"], each["function"]["name"], json.loads(each["function"]["arguments"] or "{}"))

    def results(self, outcomes: list[tuple[Call, str]]) -> list[Any]:
        return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in outcomes]


class OpenAI(Chat):
    """The same with OpenAI's SDK."""

    def __init__(self) -> None:
        import openai

        self.client = openai.OpenAI(max_retries=3)

    def send(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.client.chat.completions.create(**body).model_dump(exclude_none=True)


class OpenAIStream(OpenAI):
    """The same, streamed."""

    def send(self, body: dict[str, Any]) -> dict[str, Any]:
        text, calls, stop = "", {}, "stop"
        for chunk in self.client.chat.completions.create(**body, stream=True):
            if not chunk.choices:
                continue
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for part in delta.tool_calls or []:
                call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                call["id"] = part.id or call["id"]
                call["name"] = part.function.name or call["name"]
                call["arguments"] += part.function.arguments or ""
            stop = chunk.choices[0].finish_reason or stop
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [
                {"id": each.pop("id"), "type": "function", "function": each} for each in calls.values()
            ]
        return {"choices": [{"message": message, "finish_reason": stop}]}


class Messages:
    """Anthropic's messages over plain HTTP."""

    model = "claude-sonnet-4-6"

    def send(self, body: dict[str, Any]) -> dict[str, Any]:
        return post("/v1/messages", body)

    def ask(self, system: str, messages: list[Any], tools: list[Any], limit: int) -> Reply:
        body: dict[str, Any] = {"model": self.model, "max_tokens": limit, "messages": messages}
        if system:
            body["system"] = system
        if tools:
            body["tools"] = [
                {"name": t["name"], "description": t["description"], "input_schema": t["parameters"]}
                for t in tools
            ]
        answer = self.send(body)
        blocks = answer["content"]
        text = "".join(each["text"] for each in blocks if each["type"] == "text")
        calls = [
            Call(each["id"], each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"
        ]
        return Reply({"role": "assistant", "content": blocks}, text, calls, answer["stop_reason"])

    def results(self, outcomes: list[tuple[Call, str]]) -> list[Any]:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in outcomes]
        return [{"role": "user", "content": blocks}]


class Anthropic(Messages):
    """The same with Anthropic's SDK."""

    def __init__(self) -> None:
        import anthropic

        self.client = anthropic.Anthropic(max_retries=3)

    def send(self, body: dict[str, Any]) -> dict[str, Any]:
        return self.client.messages.create(**body).model_dump(exclude_none=True)


class AnthropicStream(Anthropic):
    """The same, streamed."""

    def send(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.client.messages.stream(**body) as stream:
            for _ in stream.text_stream:
                pass
            return stream.get_final_message().model_dump(exclude_none=True)


WIRES = {
    "chat": Chat,
    "openai": OpenAI,
    "openai-stream": OpenAIStream,
    "messages": Messages,
    "anthropic": Anthropic,
    "anthropic-stream": AnthropicStream,
}


class Agent:
    """A loop around a model and some tools."""

    system = ""
    wire = "chat"
    turns = 40
    limit = 1024

    def __init__(self, *tools: Callable[..., Any], **options: Any) -> None:
        self.tools = {each.__name__: each for each in tools}
        self.__dict__.update(options)
        self.client = WIRES[self.wire]()
        self.messages: list[Any] = []

    def run(self, task: str) -> str:
        """Do a task; a second one continues the conversation."""
        self.messages = [*self.messages, {"role": "user", "content": task}]
        for _ in range(self.turns):
            reply = self.ask()
            self.messages.append(reply.message)
            if not reply.calls:
                return self.finish(reply)
            self.messages += self.client.results(self.batch(reply.calls))
            self.messages = self.trim(self.messages)
        return self.gave_up()

    def ask(self) -> Reply:
        schemas = [schema(name, function) for name, function in self.tools.items()]
        return self.client.ask(self.system, self.messages, schemas, self.limit)

    def batch(self, calls: list[Call]) -> list[tuple[Call, str]]:
        """Run the tools that one response requests."""
        return [(call, self.attempt(call)) for call in calls]

    def attempt(self, call: Call) -> str:
        try:
            return self.text(self.perform(call))
        except Exception as error:
            return self.failed(call, error)

    def perform(self, call: Call) -> Any:
        return self.tools[call.name](**call.args)

    def text(self, value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def failed(self, call: Call, error: Exception) -> str:
        return f"Error: {type(error).__name__}: {error}"

    def trim(self, messages: list[Any]) -> list[Any]:
        return messages

    def finish(self, reply: Reply) -> str:
        return reply.text

    def gave_up(self) -> str:
        raise RuntimeError(f"no answer after {self.turns} turns")


class Threaded(Agent):
    """Runs the tools of one response in threads."""

    def batch(self, calls: list[Call]) -> list[tuple[Call, str]]:
        with ThreadPoolExecutor(4) as pool:
            return list(zip(calls, pool.map(self.attempt, calls), strict=True))


class Gathered(Agent):
    """Awaits the tools of one response together; tools may be coroutines."""

    def batch(self, calls: list[Call]) -> list[tuple[Call, str]]:
        return asyncio.run(self.gather(calls))

    async def gather(self, calls: list[Call]) -> list[tuple[Call, str]]:
        return list(zip(calls, await asyncio.gather(*map(self.await_one, calls)), strict=True))

    async def await_one(self, call: Call) -> str:
        try:
            value = self.tools[call.name](**call.args)
            return self.text(await value if inspect.isawaitable(value) else value)
        except Exception as error:
            return self.failed(call, error)


async def async_agent(client: Any, tools: dict[str, Callable[..., Any]], task: str, system: str = "") -> str:
    """A loop of coroutines around one `httpx.AsyncClient`; several may share it."""
    messages: list[Any] = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": task})
    schemas = [{"type": "function", "function": schema(name, function)} for name, function in tools.items()]
    while True:
        body = {"model": Chat.model, "messages": messages, "tools": schemas}
        reply = await client.post(os.environ["MODEL_URL"] + "/v1/chat/completions", json=body)
        message = reply.raise_for_status().json()["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            value = await tools[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            text = value if isinstance(value, str) else json.dumps(value)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
