"""reenact replay: agents upon other libraries than httpx, run again with their model gone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.forked import type_in
from support.provider import Provider

AGENT = """
import asyncio, json, os, urllib.request
import aiohttp, boto3, requests

url = os.environ["MODEL_URL"]
ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Seven hills?"}]}

def by_urllib():
    body = json.dumps(ask).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/messages", body)) as answer:
        return json.load(answer)

def by_boto3():
    client = boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=url,
                          aws_access_key_id="a", aws_secret_access_key="b")
    messages = [{"role": "user", "content": [{"text": "Seven hills?"}]}]
    return [list(client.converse_stream(modelId="m", messages=messages)["stream"]) for _ in range(2)]

async def by_aiohttp():
    async with aiohttp.ClientSession() as session:
        async def one(number):
            mine = ask | {"messages": [{"role": "user", "content": f"{number}"}], "stream": True}
            async with session.post(url + "/v1/messages", json=mine) as answer:
                return [line async for line in answer.content]
        return [await done for done in asyncio.as_completed([one(n) for n in range(4)])]

print(requests.post(url + "/v1/messages", json=ask).json())
print(by_urllib())
print(by_boto3())
print(asyncio.run(by_aiohttp()))
"""


def test_every_library_is_answered(tmp_path: Path, provider: Provider) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("text,drip-1"), "AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "*"}

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, tmp_path, env)

    first = typed("run", "--name", "first", "agent.py")
    assert first.returncode == 0, first.stderr
    before = len(provider.settled())
    again = typed("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    assert "8 calls answered" in again.stderr
    assert len(provider.settled()) == before
