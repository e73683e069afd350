"""Edits of a fork as real SDKs of every dialect send them: the provider sees each in every later request."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reenact.playback.edits.cut_request import system_of
from reenact.wire.messages import tool_results
from reenact.wire.reading import model_of
from support.examples import long
from support.forked import type_in
from support.provider import Provider

AGENT = """
import os, sys
dialect, is_stream = sys.argv[1], sys.argv[2] == "stream"
URL, QUESTION, SYSTEM = os.environ["MODEL_URL"], "Which city has seven hills?", "Be exact."

def chat():
    import openai
    client = openai.OpenAI(base_url=URL + "/v1", api_key="none")
    history = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}]
    while True:
        if is_stream:
            with client.chat.completions.stream(model="m", messages=history, tools=tools) as stream:
                answer = stream.get_final_completion().choices[0].message
        else:
            answer = client.chat.completions.create(model="m", messages=history, tools=tools).choices[0].message
        if not answer.tool_calls:
            return answer.content
        calls = [{"id": call.id, "type": "function", "function": {
            "name": call.function.name, "arguments": call.function.arguments}} for call in answer.tool_calls]
        history.append({"role": "assistant", "content": answer.content, "tool_calls": calls})
        history += [{"role": "tool", "tool_call_id": call["id"], "content": "42"} for call in calls]

def responses():
    import openai
    client = openai.OpenAI(base_url=URL + "/v1", api_key="none")
    history = [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "name": "lookup", "parameters": {"type": "object"}, "strict": False}]
    while True:
        request = {"model": "m", "instructions": SYSTEM, "input": history, "tools": tools}
        if is_stream:
            with client.responses.stream(**request) as stream:
                answer = stream.get_final_response()
        else:
            answer = client.responses.create(**request)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        history += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
        history += [{"type": "function_call_output", "call_id": call.call_id, "output": "42"} for call in calls]

def gemini():
    from google import genai
    from google.genai import types
    client = genai.Client(api_key="none", http_options={"base_url": URL})
    history = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM, tools=[types.Tool(function_declarations=[{"name": "lookup"}])],
        automatic_function_calling={"disable": True},
    )
    ask = client.models.generate_content_stream if is_stream else client.models.generate_content
    while True:
        answer = ask(model="m", contents=history, config=config)
        parts = [part for each in (answer if is_stream else [answer])
                 for part in each.candidates[0].content.parts or ()]
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        results = [types.Part.from_function_response(name=call.name, response={"result": "42"}) for call in calls]
        history += [types.Content(role="model", parts=parts), types.Content(role="user", parts=results)]

def ollama():
    import ollama
    client = ollama.Client(URL)
    history = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}]
    while True:
        answer = client.chat("m", history, tools=tools, stream=is_stream)
        messages = [each.message for each in (answer if is_stream else [answer])]
        text = "".join(message.content or "" for message in messages)
        calls = [call for message in messages for call in message.tool_calls or ()]
        if not calls:
            return text
        history.append({"role": "assistant", "content": text, "tool_calls": [call.model_dump() for call in calls]})
        history += [{"role": "tool", "tool_name": call.function.name, "content": "42"} for call in calls]

def bedrock():
    import boto3
    keys = {"aws_access_key_id": "AKIANONE", "aws_secret_access_key": "none", "region_name": "us-east-1"}
    client = boto3.Session(**keys).client("bedrock-runtime", endpoint_url=URL)
    history = [{"role": "user", "content": [{"text": QUESTION}]}]
    tools = {"tools": [{"toolSpec": {"name": "lookup", "inputSchema": {"json": {}}}}]}
    while True:
        request = {"modelId": "m", "system": [{"text": SYSTEM}], "messages": history, "toolConfig": tools}
        if is_stream:
            events = [*client.converse_stream(**request)["stream"]]
            deltas = [each["contentBlockDelta"]["delta"] for each in events if "contentBlockDelta" in each]
            return "".join(delta.get("text", "") for delta in deltas)
        answer = client.converse(**request)["output"]["message"]
        uses = [block["toolUse"]["toolUseId"] for block in answer["content"] if "toolUse" in block]
        if not uses:
            return answer["content"][0]["text"]
        results = [{"toolResult": {"toolUseId": use, "content": [{"text": "42"}]}} for use in uses]
        history += [answer, {"role": "user", "content": results}]

print(globals()[dialect]())
"""
CELLS = [(name, way) for name in ("chat", "responses", "gemini", "ollama") for way in ("plain", "stream")]
CHANGES = (
    "--set",
    "system=Be vague.",
    "--set",
    "model=other",
    "--inject-user",
    "By train!",
    "--tool-result",
    "43",
)


class Desk:
    def __init__(self, folder: Path, provider: Provider, scenario: str) -> None:
        self.folder = folder
        self.provider = provider
        (folder / "agent.py").write_text(AGENT, "utf-8")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env = {**clean, "MODEL_URL": provider.url(scenario)}

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, self.env, session=True)

    def fork(self, agent: tuple[str, str], *words: str) -> tuple[subprocess.CompletedProcess[str], list[Any]]:
        """Fork the recorded run, and return what the provider got since."""
        before = len(self.provider.settled())
        options = ("--stale-world", "--live-tools", "all")
        done = self("fork", "@last", "--name", "forked", *options, *words, "--", "agent.py", *agent)
        return done, self.provider.settled()[before:]


@pytest.mark.long
@pytest.mark.parametrize("agent", CELLS, ids=" ".join)
def test_every_edit_is_in_every_later_request(agent, tmp_path: Path, provider: Provider) -> None:
    desk = Desk(tmp_path, provider, "tools-3")
    recorded = desk("run", "--name", "first", "--", "agent.py", *agent)
    assert recorded.returncode == 0, recorded.stderr
    done, sent = desk.fork(agent, "--at", "turn:2", *CHANGES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "Lisbon has seven hills."
    assert len(sent) == 3
    for number, received in enumerate(sent, 1):
        body = json.loads(received.body)
        [key] = {"messages", "input", "contents"} & set(body)
        assert system_of(body) == "Be vague."
        assert model_of(body, received.target) == "other"
        assert json.dumps(body).count("By train!") == 1
        values = [json.dumps(result.value) for each in body[key] for result in tool_results(each)]
        assert ["43" in value for value in values] == [True] + [False] * (number - 1)


@pytest.mark.parametrize("agent", [("bedrock", "stream"), *map(long, CELLS)], ids=" ".join)
def test_an_answer_of_ones_own_is_read_by_the_sdk(agent, tmp_path: Path, provider: Provider) -> None:
    desk = Desk(tmp_path, provider, "text")
    recorded = desk("run", "--name", "first", "--", "agent.py", *agent)
    assert recorded.stdout.strip() == "Lisbon has seven hills.", recorded.stderr
    done, sent = desk.fork(agent, "--at", "turn:1", "--response", "Rome, 日本 🦉.")
    assert (done.returncode, done.stdout.strip(), sent) == (0, "Rome, 日本 🦉.", []), done.stderr
