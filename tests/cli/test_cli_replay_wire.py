"""reenact replay on the wire: one call more, plain HTTP tools, sockets, a library that nobody listens to."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable

import pytest

from support.forked import type_in
from support.provider import Provider

AGENT = """
import asyncio, os, sys
import aiohttp, httpx, requests

url, web = os.environ["MODEL_URL"], os.environ["WEB_URL"]

def user_message(text):
    return [{"role": "user", "content": text}]

def claude(text):
    body = {"model": "m", "max_tokens": 9, "messages": user_message(text)}
    return httpx.post(url + "/v1/messages", json=body)

def gpt(text):
    body = {"model": "m", "messages": user_message(text), "stream": True}
    with httpx.stream("POST", url + "/v1/chat/completions", json=body) as answer:
        return list(answer.iter_lines())

def page(number):
    answer = requests.post(web + "/echo?page=%d" % number, data={"q": "hills"}, headers={"x-api-key": "k"})
    return answer.headers["content-type"], answer.text

for number in range(3):
    print(claude(f"Hill {number}").json()["id"], page(number))
    if number == 1 and "--more" in sys.argv:
        print("refused", claude("Which river is there?").status_code)
    print(gpt("Hi"))

async def last():
    async with aiohttp.ClientSession() as session:
        body = {"model": "m", "max_tokens": 9, "messages": user_message("Last")}
        async with session.post(url + "/v1/messages", json=body) as answer:
            return await answer.json()

print(asyncio.run(last()))
"""

Typed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Typed:
    """Types a command in the folder of an agent that was recorded with all its traffic."""
    folder = tmp_path_factory.mktemp("wire")
    (folder / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("text"), "WEB_URL": provider.url("text"), "NO_PROXY": "*"}

    def typed(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, folder, env | more)

    first = typed("run", "--name", "first", "--record-http", "all", "agent.py")
    assert first.returncode == 0, first.stderr
    typed.first = first.stdout  # type: ignore[attr-defined]
    return typed


def test_tools_of_plain_http_are_answered_with_no_network(typed: Typed, provider: Provider) -> None:
    before = len(provider.settled())
    again = typed("replay", "first")
    assert (again.stdout, again.returncode) == (typed.first, 0), again.stderr  # type: ignore[attr-defined]
    assert "10 calls answered, 0 live" in again.stderr
    assert len(provider.settled()) == before


@pytest.mark.long
def test_one_call_more_is_named_and_all_others_are_answered(typed: Typed, provider: Provider) -> None:
    before = len(provider.settled())
    again = typed("replay", "first", "--keep-going", "--json", "--", "agent.py", "--more")
    lines = again.stdout.splitlines()
    assert "refused 418" in lines
    assert [line for line in lines if line != "refused 418"] == typed.first.splitlines()  # type: ignore[attr-defined]
    reported = json.loads(again.stderr.splitlines()[-1])
    assert (reported["answered"], len(reported["diverged"]), again.returncode) == (10, 1, 3)
    assert reported["diverged"][0]["now"].endswith("/messages")
    assert len(provider.settled()) == before


@pytest.mark.long
def test_a_library_that_nobody_listens_to_does_not_reach_the_model(typed: Typed, provider: Provider) -> None:
    before = len(provider.settled())
    again = typed("replay", "first", "--json", REENACT_SEAMS="-aiohttp")
    reported = json.loads(again.stderr.splitlines()[-1])
    assert again.returncode == 3
    assert f"127.0.0.1:{provider.port}" in reported["refused"][0]["what"]
    assert reported["answered"] == 9
    assert len(provider.settled()) == before
