"""reenact replay: an agent run again with its model gone."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from reenact import Tap
from support.forked import type_in
from support.posting import POST
from support.provider import Provider

AGENT = """
import asyncio, os, sys
import openai

QUESTION = "Which city has seven hills?"
url = os.environ["MODEL_URL"]

def loop():
    client, messages = openai.OpenAI(base_url=url + "/v1"), [{"role": "user", "content": QUESTION}]
    tools = [{"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}]
    while True:
        with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
            answer = stream.get_final_completion().choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            return answer.content
        messages += [{"role": "tool", "tool_call_id": use.id, "content": "42"} for use in answer.tool_calls]

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
LIGHT = (
    POST
    + """
import os

messages = [{"role": "user", "content": "Which city has seven hills?"}]
tools = [{"name": "lookup", "input_schema": {"type": "object"}}]
while True:
    ask = {"model": "m", "max_tokens": 9, "messages": messages, "tools": tools}
    answer = post(os.environ["MODEL_URL"] + "/v1/messages", ask)["content"]
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        break
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": "42"} for use in uses]
    messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": results}]
print(answer[0]["text"])
"""
)

LIVE = ("--live-tools", "lookup")
HERE = ("--", "agent.py")
"""Its tool is a part of the loop, which the recording knows from the wire only."""


class Desk:
    """A folder with an agent, and the commands that are typed there."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        self.agent = folder / "agent.py"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env |= {"MODEL_URL": provider.url("tools-2"), "OPENAI_API_KEY": "k"}

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, self.env)

    def record(self, agent: str) -> subprocess.CompletedProcess[str]:
        """Record a run of an agent."""
        self.agent.write_text(agent)
        return self("run", "--name", "first", "agent.py")


@pytest.fixture
def desk(tmp_path: Path, provider: Provider) -> Desk:
    return Desk(tmp_path, provider)


def test_the_same_code_does_the_same_without_its_model(desk: Desk, provider: Provider) -> None:
    first = desk.record(AGENT)
    before = len(provider.settled())
    again = desk("replay", "first", *LIVE)
    assert (again.stdout, again.returncode) == (first.stdout, 7)
    runs, went = again.stderr.strip().splitlines()
    assert (
        runs.startswith("reenact: running ") and "agent.py" in runs
    )  # a trace says what is executed: be told
    assert went == "reenact: replayed as recorded: 8 calls answered, tools that ran: lookup"
    assert len(provider.settled()) == before


def test_a_changed_prompt_ends_the_run_and_is_explained(desk: Desk, provider: Provider) -> None:
    first = desk.record(LIGHT)
    before = len(provider.settled())
    desk.agent.write_text(LIGHT.replace("seven hills", "eight hills"))
    other = desk("replay", "first", *LIVE, *HERE)
    assert other.returncode == 3 and other.stdout == ""
    assert "messages[0].content" in other.stderr and "eight hills" in other.stderr
    assert "replayed as recorded" not in other.stderr and len(provider.settled()) == before
    assert "next: add --rebase" in other.stderr and other.stderr.endswith("0 calls answered, 0 live\n")
    frames = [line for line in other.stderr.splitlines() if line.startswith("  File ")]
    assert frames and all("agent.py" in line for line in frames)  # not how it went on through the SDK and us
    reported = json.loads(desk("replay", "first", *LIVE, "--json", *HERE).stderr.splitlines()[-1])
    assert reported["answered"] == 0 and [each["code"] for each in reported["diverged"]] == [
        "changed-request"
    ]
    rebased = desk("replay", "first", *LIVE, "--rebase", *HERE)
    assert rebased.stdout == first.stdout
    (doubt,) = [line for line in rebased.stderr.splitlines() if "answered, but uncertain: drift" in line]
    assert " and 2 more calls answered" in doubt and "replayed with 3 doubts" in rebased.stderr
    assert "replayed as recorded" not in rebased.stderr


def test_one_more_call_is_named_and_takes_no_other_ones_answer(desk: Desk) -> None:
    first = desk.record(LIGHT)
    more = 'new = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "new"}]}\n'
    more += 'try: post(os.environ["MODEL_URL"] + "/v1/messages", new)\n'
    more += "except urllib.error.HTTPError as refused: print(refused.code)\n"
    desk.agent.write_text(LIGHT.replace("while True:", more + "while True:"))
    again = desk("replay", "first", *LIVE, "--keep-going", *HERE)
    assert again.returncode == 3 and again.stdout == "418\n" + first.stdout
    assert "diverged from the recording in 1 place: 3 calls answered" in again.stderr


def test_what_cannot_be_run_again_is_reported(desk: Desk) -> None:
    with Tap(desk.folder / "by_hand.jsonl") as tap:
        tap.record_tool_call("x", {})
    refused = desk("replay", "by_hand.jsonl")
    assert refused.returncode == 2 and "say what to run: reenact replay RUN -- agent.py" in refused.stderr
    assert "Traceback" not in refused.stderr


VOTES = (
    POST
    + """
import os
from concurrent.futures import ThreadPoolExecutor

def vote(number):
    ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "yes or no?"}]}
    return number, post(os.environ["MODEL_URL"] + "/v1/messages", ask)["content"][0]["text"]

with ThreadPoolExecutor(4) as pool:
    print(*pool.map(vote, range(4)), sep="\\n")
"""
)


def test_votes_of_threads_keep_their_answers_or_the_exit_code_says_that_they_may_not(
    desk: Desk, provider: Provider
) -> None:
    desk.env["MODEL_URL"] = provider.url("sampled-1@votes")
    first = desk.record(VOTES)
    again = desk("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    assert len(set(first.stdout.splitlines())) == 4
    (trace,) = (path for path in desk.folder.rglob("*first*.jsonl") if '"replay_of"' not in path.read_text())
    trace.write_text(re.sub(r'"who": "[^"]*", ', "", trace.read_text()))
    unnamed = desk("replay", str(trace))
    assert unnamed.returncode == 3
    assert "ambiguous-duplicate: " in unnamed.stderr and "rerecord it, with reenact run" in unnamed.stderr


IN_WORKERS = """
import asyncio, os, time
import anyio.to_thread, httpx, reenact

def vote(number):
    time.sleep(0.05 * (4 - number) if "LATE" in os.environ else 0)
    ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "yes or no?"}]}
    return number, httpx.post(os.environ["MODEL_URL"] + "/v1/messages", json=ask).json()["content"][0]["text"]

async def main():
    return await asyncio.gather(*(anyio.to_thread.run_sync(vote, number) for number in range(4)))

with reenact.run("inside"):
    print(*asyncio.run(main()), sep="\\n")
"""


def test_votes_at_once_under_one_name_are_a_divergence(desk: Desk, provider: Provider) -> None:
    """Threads of anyio carry the name of their run: several may call at once, in any order."""
    desk.env["MODEL_URL"] = provider.url("sampled-1@workers")
    desk.record(IN_WORKERS)
    desk.env["LATE"] = "1"
    again = desk("replay", "first")
    assert again.returncode == 3 and "ambiguous-duplicate: " in again.stderr
