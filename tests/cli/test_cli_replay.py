"""reenact replay: an agent run again with its model gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.forked import type_in
from support.provider import Provider

AGENT = """
import asyncio, os, sys
import anthropic, openai

QUESTION = "Which city has seven hills?"
url = os.environ["MODEL_URL"]

def loop():
    client, messages = anthropic.Anthropic(base_url=url), [{"role": "user", "content": QUESTION}]
    tools = [{"name": "lookup", "input_schema": {"type": "object"}}]
    while True:
        with client.messages.stream(model="m", max_tokens=9, messages=messages, tools=tools) as stream:
            answer = stream.get_final_message()
        messages.append({"role": "assistant", "content": answer.content})
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            return answer.content[0].text
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": "42"} for use in uses]
        messages.append({"role": "user", "content": results})

async def many():
    client = openai.AsyncOpenAI(base_url=url + "/v1")
    async def one(number):
        ask = [{"role": "user", "content": f"Question {number}"}]
        done = await client.chat.completions.create(model="m", messages=ask)
        return number, done.choices[0].message.content, done.id
    return [await done for done in asyncio.as_completed([one(n) for n in range(5)])]

print(loop())
print(asyncio.run(many()))
sys.exit(7)
"""
LIGHT = """
import os
import httpx

messages = [{"role": "user", "content": "Which city has seven hills?"}]
tools = [{"name": "lookup", "input_schema": {"type": "object"}}]
while True:
    ask = {"model": "m", "max_tokens": 9, "messages": messages, "tools": tools}
    answer = httpx.post(os.environ["MODEL_URL"] + "/v1/messages", json=ask).json()["content"]
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        break
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": "42"} for use in uses]
    messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": results}]
print(answer[0]["text"])
"""

LIVE = ("--live-tools", "lookup")
HERE = ("--", "agent.py")
"""Its tool is a part of the loop, which the recording knows from the wire only."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, provider: Provider):
    """The agent's folder, its environment, and what it printed when it was recorded."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("tools-2"), "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    return folder, env, typed(folder, env, "run", "--name", "first", "agent.py")


def typed(folder: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return type_in(words, folder, env)


@pytest.fixture
def recorded(original, tmp_path: Path):
    """Types commands in a copy of the folder."""
    folder, env, first = original
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)

    def here(*words: str) -> subprocess.CompletedProcess[str]:
        return typed(tmp_path, env, *words)

    here.first = first  # type: ignore[attr-defined]
    return here


def test_the_same_code_does_the_same_without_its_model(recorded, provider: Provider) -> None:
    before = len(provider.settled())
    again = recorded("replay", "first", *LIVE)
    assert (again.stdout, again.returncode) == (recorded.first.stdout, 7)
    runs, went = again.stderr.strip().splitlines()
    assert (
        runs.startswith("reenact: running ") and "agent.py" in runs
    )  # a trace says what is executed: be told
    assert went == "reenact: replayed as recorded: 8 calls answered, tools that ran: lookup"
    assert len(provider.settled()) == before


def test_a_changed_prompt_ends_the_run_and_is_explained(original, provider: Provider, tmp_path: Path) -> None:
    def recorded(*words: str) -> subprocess.CompletedProcess[str]:
        return typed(tmp_path, original[1], *words)

    agent = tmp_path / "agent.py"
    agent.write_text(LIGHT)
    first = recorded("run", "--name", "first", "agent.py")
    before = len(provider.settled())
    agent.write_text(agent.read_text().replace("seven hills", "eight hills"))
    other = recorded("replay", "first", *LIVE, *HERE)
    assert other.returncode == 3 and other.stdout == ""
    assert "messages[0].content" in other.stderr and "eight hills" in other.stderr
    assert "replayed as recorded" not in other.stderr and len(provider.settled()) == before
    assert "next: add --rebase" in other.stderr and other.stderr.endswith("0 calls answered, 0 live\n")
    frames = [line for line in other.stderr.splitlines() if line.startswith("  File ")]
    assert frames and all("agent.py" in line for line in frames)  # not how it went on through the SDK and us
    told = json.loads(recorded("replay", "first", *LIVE, "--json", *HERE).stderr.splitlines()[-1])
    assert told["answered"] == 0 and [each["code"] for each in told["diverged"]] == ["changed-request"]
    rebased = recorded("replay", "first", *LIVE, "--rebase", *HERE)
    assert rebased.stdout == first.stdout
    assert "answered, but uncertain: drift" in rebased.stderr and "replayed with 3 doubts" in rebased.stderr
    assert "replayed as recorded" not in rebased.stderr


def test_one_more_call_is_named_and_takes_no_other_ones_answer(recorded, tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    more = 'c = anthropic.Anthropic(base_url=url)\ntry:\n    c.messages.create(model="m", max_tokens=1, '
    more += 'messages=[{"role": "user", "content": "new"}])\nexcept anthropic.APIStatusError as e:\n    print(e.status_code)\n'
    agent.write_text(agent.read_text().replace("print(loop())", more + "print(loop())"))
    again = recorded("replay", "first", *LIVE, "--keep-going", *HERE)
    assert again.returncode == 3 and again.stdout == "418\n" + recorded.first.stdout
    assert "diverged from the recording in 1 place: 8 calls answered" in again.stderr


def test_what_cannot_be_run_again_is_said(recorded, tmp_path: Path) -> None:
    made = "from reenact import Tap\nwith Tap('by_hand.jsonl') as tap: tap.record_tool_call('x', {})"
    subprocess.run([sys.executable, "-c", made], cwd=tmp_path, check=True)
    refused = recorded("replay", "by_hand.jsonl")
    assert refused.returncode == 2 and "say what to run: reenact replay RUN -- agent.py" in refused.stderr
    assert "Traceback" not in refused.stderr
