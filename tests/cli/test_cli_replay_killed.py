"""reenact replay of a run that was killed: it goes as far as the recording, and says where that ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.examples import long
from support.forked import type_in
from support.posting import POST
from support.provider import Provider

AGENT = """
import asyncio, os, sys

import httpx

url = os.environ["MODEL_URL"] + "/v1/messages"

def ask(number, **more):
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": f"Question {number}"}], **more}

async def long(client):
    async with client.stream("POST", os.environ["SLOW_URL"] + "/v1/messages", json=ask(0, **STREAM)) as answer:
        async for piece in answer.aiter_bytes():
            open("came", "w").close()

async def main():
    async with httpx.AsyncClient(timeout=60) as client:
        waiting = asyncio.create_task(long(client))
        for number in range(1, 4):
            done = await client.post(url, json=ask(number))
            print(done.json()["content"][0]["text"], flush=True)
        print("waiting", flush=True)
        await waiting

STREAM = {"stream": True} if "--stream" in sys.argv else {}
asyncio.run(main())
"""


def has_come(folder: Path, *, streams: bool) -> bool:
    """Whether the long call was asked, and something of its answer has come if it streams."""
    is_requested = any(b"Question 0" in path.read_bytes() for path in folder.rglob("*.jsonl"))
    return is_requested and (not streams or (folder / "came").exists())


@pytest.mark.parametrize("words", [long(()), ("--stream",)], ids=["plain", "stream"])
def test_the_end_of_a_recording_is_the_end(
    tmp_path: Path, provider: Provider, words: tuple[str, ...]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {
        "MODEL_URL": provider.url("text"),
        "SLOW_URL": provider.url("text,drip-30000" if words else "text,late-30000"),
    }
    run = [sys.executable, "-m", "reenact", "run", "--name", "killed", "agent.py", *words]
    with subprocess.Popen(
        run, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as agent:
        assert agent.stdout is not None
        printed = []
        while not printed or printed[-1] != "waiting\n":
            printed.append(agent.stdout.readline())
            assert printed[-1], printed
        until = time.monotonic() + 60
        while not has_come(tmp_path, streams=bool(words)) and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(agent.pid, signal.SIGKILL)
    again = subprocess.run(
        [sys.executable, "-m", "reenact", "replay", "killed", "--json"], cwd=tmp_path, env=env,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert again.stdout == "".join(printed) and again.returncode == 3, again.stderr
    reported = json.loads(again.stderr.splitlines()[-1])
    assert (
        len(reported["unknown"]) == 1 and "never ended" in reported["unknown"][0] and not reported["diverged"]
    )


BETWEEN_CALLS = (
    POST
    + """
import os, signal, sys

body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
print(post(os.environ["MODEL_URL"] + "/v1/messages", body)["content"][0]["text"], flush=True)
if os.environ.get("KILLED"):
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(int(os.environ.get("CODE", 0)))
"""
)


def test_a_run_killed_between_calls_may_end_by_itself_in_the_replay(
    tmp_path: Path, provider: Provider
) -> None:
    (tmp_path / "agent.py").write_text(BETWEEN_CALLS)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env["MODEL_URL"] = provider.url("text")
    first = type_in(["run", "--name", "killed", "agent.py"], tmp_path, {**env, "KILLED": "1"})
    assert first.returncode == -signal.SIGKILL
    for more, code, ended in (
        ({}, 0, "ended differently (now exit 0, recorded signal 9)"),
        ({"CODE": "7"}, 7, "ended differently (now exit 7, recorded signal 9)"),
        ({"KILLED": "1"}, -signal.SIGKILL, "replayed as recorded"),
    ):
        again = type_in(["replay", "killed"], tmp_path, {**env, **more})
        assert (again.stdout, again.returncode) == (first.stdout, code), again.stderr  # the program's own
        assert again.stderr.splitlines()[-1] == f"reenact: {ended}: 1 call answered, 0 live"
