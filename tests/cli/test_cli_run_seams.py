"""Libraries whose inside has changed, as after an update: the real ones, with their private names renamed.

The agent's calls work in every case. A seam takes another door, or the run says that it was left out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.examples import long
from support.provider import Provider

ASK = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
HTTPX = f"""
import asyncio, sys, MODULE as library
ask, url = {ASK!r}, sys.argv[1] + "/v1/messages"
with library.Client() as client:
    print(client.post(url, json=ask).json())
    with client.stream("POST", url, json={{**ask, "stream": True}}) as answer:
        print(*answer.iter_lines())
    with client.stream("POST", url, json={{**ask, "stream": True}}) as answer:
        print(next(answer.iter_lines()))
async def main():
    hooks = {{"response": [lambda answer: answer.aread()]}}
    async with library.AsyncClient() as client, library.AsyncClient(event_hooks=hooks) as hooked:
        print((await client.post(url, json=ask)).json())
        print((await hooked.post(url, json=ask)).json())
asyncio.run(main())
"""
AIOHTTP = f"""
import asyncio, sys, aiohttp
ask, url = {ASK!r}, sys.argv[1] + "/v1/messages"
async def main():
    async with aiohttp.ClientSession() as session:
        async with session.post(url, json=ask) as answer:
            print(await answer.json())
        async with session.post(url, json={{**ask, "stream": True}}) as answer:
            print([line async for line in answer.content])
asyncio.run(main())
"""
URLLIB3 = f"""
import sys, urllib3
print(urllib3.PoolManager().request("POST", sys.argv[1] + "/v1/messages", json={ASK!r}).json())
"""
MCP = """
import asyncio
from mcp.client import Client
from mcp.server import MCPServer
server = MCPServer("hills")
@server.tool()
def height(hill: str) -> int:
    return len(hill)
async def main():
    async with Client(server) as client:
        print(await client.call_tool("height", {"hill": "Sintra"}))
asyncio.run(main())
"""
SOCKETS = "import websockets.sync.client as client; print(client.connect.__name__)"


@dataclass
class Changed:
    """A library, the names that are others now, the agent, and what its recording holds and says."""

    package: str
    names: dict[str, str]
    agent: str
    kinds: dict[str, int]
    ended: tuple[str, ...] = ()
    unseen: str = ""


CHANGED = {
    "httpx": Changed(
        "httpx", {"_transport_for_url": "_transport_to"}, HTTPX.replace("MODULE", "httpx"),
        {"model.request": 5}, ("complete", "complete", "closed", "complete", "complete"),
    ),
    "httpx2": Changed(
        "httpx2", {"_transport_for_url": "_transport_to"}, HTTPX.replace("MODULE", "httpx2"),
        {"model.request": 5}, ("complete", "complete", "closed", "complete", "complete"),
    ),
    "aiohttp": Changed(
        "aiohttp", {"readany": "read_some"}, AIOHTTP, {"model.request": 2}, ("complete", "closed"),
        "answers that are read in pieces are not recorded: StreamReader has no readany",
    ),
    "aiohttp, off": Changed("aiohttp", {"_request": "_ask"}, AIOHTTP, {}, (), "ClientSession has no _request"),
    "urllib3, by http.client": Changed(
        "urllib3", {r"(?<!http\.client import )HTTPConnection": "Connection"}, URLLIB3,
        {"model.request": 1}, ("complete",), "no attribute 'HTTPConnection'",
    ),
    "mcp": Changed("mcp", {"send_request": "put_request"}, MCP, {"tool.called": 1, "tool.result": 1}),
    "websockets, off": Changed(
        "websockets", {"ClientConnection": "Connected"}, SOCKETS, {}, (), "no attribute 'ClientConnection'"
    ),
}  # fmt: skip


def rewrite(changed: Changed, folder: Path) -> None:
    """Put a copy of the library, with other names in it, where the agent finds it first."""
    spec = importlib.util.find_spec(changed.package)
    assert spec is not None and spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, folder / changed.package)  # with what is compiled of it
    for file in (folder / changed.package).rglob("*.py"):
        text = old = file.read_text(encoding="utf-8")
        for name, new in changed.names.items():
            text = re.sub(rf"\b{name}\b", new, text)
        if text != old:
            file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "case", [long(case) if case in ("httpx", "httpx2", "mcp") else case for case in CHANGED]
)
def test_a_library_with_another_inside(case: str, tmp_path: Path, provider: Provider) -> None:
    changed = CHANGED[case]
    rewrite(changed, tmp_path / "updated")
    (tmp_path / "agent.py").write_text(changed.agent)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REENACT_")}
    path = os.pathsep.join(filter(None, [str(tmp_path / "updated"), kept.get("PYTHONPATH")]))

    def run(
        *words: str, agent: tuple[str, ...] = ("agent.py", provider.url())
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words, *agent],
            cwd=tmp_path, env={**kept, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    bare, recorded = run(), run("-m", "reenact", "run")
    assert bare.returncode == 0, bare.stderr
    assert (recorded.returncode, recorded.stdout) == (0, bare.stdout), recorded.stderr
    (trace,) = (tmp_path / ".reenact").glob("*.jsonl")
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    for kind, count in changed.kinds.items():
        assert sum(line["kind"] == kind for line in lines) == count
    assert tuple(line["ended"] for line in lines if line["kind"] == "model.response") == changed.ended
    printed = [line for line in recorded.stderr.splitlines() if line.startswith("reenact: ")]
    assert len(printed) == (2 if changed.unseen else 1), recorded.stderr
    reported = [each for each in lines[-1]["unseen"] if each["what"] == "seam"]
    assert (
        (len(reported) == 1 and changed.unseen in reported[0]["why"] and changed.unseen in printed[1])
        if changed.unseen
        else not reported
    )
    if case.startswith("httpx"):
        request_count = len(provider.log)
        again = run("-m", "reenact", "replay", agent=())
        assert (again.stdout, again.returncode) == (bare.stdout, 0), again.stderr
        assert len(provider.log) == request_count
