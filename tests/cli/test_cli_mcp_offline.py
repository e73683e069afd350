"""MCP servers that are not there: their sessions are answered by the recording, and real after a fork's cut."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.forked import type_in
from support.provider import Provider

SERVER = """
import json, os, socket, sys, urllib.request
from mcp.server import MCPServer

server, log = MCPServer(sys.argv[1]), os.path.join(os.path.dirname(os.path.abspath(__file__)), sys.argv[1])

def note(text):
    with open(log, "a") as file:
        file.write(text + "\\n")

@server.tool(annotations={"readOnlyHint": True})
def height(hill: str) -> str:
    note("height " + hill)
    if sys.argv[1] == "pipe" and "MODEL_URL" in os.environ:  # a call of a process that is part of the run
        ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "server " + hill}]}
        url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(ask).encode(), headers)).close()
    return f"{sys.argv[1]} {hill} {os.environ.get('METRES', '80 m')}"

@server.resource("hill://{name}")
def hill(name: str) -> str:
    return f"{sys.argv[1]} knows {name}"

@server.prompt()
def describe(hill: str) -> str:
    return "Describe " + hill

note("started")
if sys.argv[1] == "pipe":
    server.run("stdio")
else:
    import uvicorn
    place = socket.create_server(("127.0.0.1", 0))
    print(place.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[place])
"""
AGENT = """
import asyncio, json, os, sys, urllib.request
from mcp import ClientSession
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

PIPE = StdioServerParameters(command=sys.executable, args=["server.py", "pipe"], env=dict(os.environ))
WEB = os.environ["WEB"]

def create(text):
    ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(ask).encode(), headers)) as found:
        return json.load(found)["content"][0]["text"]

async def about(session):
    results = [await session.list_tools(), await session.list_tools(), await session.list_prompts()]
    results += [await session.list_resource_templates(), await session.read_resource("hill://" + os.environ["HILL"])]
    results += [await session.get_prompt("describe", {"hill": "Monte"})]
    try:
        await session.read_resource("nowhere://")
    except Exception as exc:
        results.append(f"{type(exc).__name__} {exc}")
    return "".join(f"{each}\\n" for each in results)

async def old(transport):
    async with transport as (read, write), ClientSession(read, write) as session:
        return f"{await session.initialize()}\\n{await about(session)}"

async def main():
    both = [old(stdio_client(PIPE)), old(streamable_http_client(WEB))]
    print(*await asyncio.gather(*both), sep="")
    async with Client(PIPE) as pipe, streamable_http_client(WEB) as streams, ClientSession(*streams) as web:
        await web.initialize()
        print(await about(pipe), await web.list_tools())
        for number in range(3):
            create(f"ask {number}")
            for each in (pipe, web):
                print((await each.call_tool("height", {"hill": f"hill {number}"})).content[0].text)
        print([tool.name for tool in (await web.list_tools()).tools])

asyncio.run(main())
"""


class Desk:
    """A folder with a recorded agent and its servers; ``forked`` while the servers were there."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        (folder / "server.py").write_text(SERVER)
        (folder / "agent.py").write_text(AGENT)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env = {**clean, "MODEL_URL": provider.url(), "HILL": "Monte", "METRES": "80 m"}
        self.web = subprocess.Popen(
            [sys.executable, "server.py", "web"], cwd=folder, env=self.env, stdout=subprocess.PIPE, text=True
        )
        assert self.web.stdout is not None
        with self.web.stdout as reported:
            port = reported.readline().strip()
        self.env["WEB"] = f"http://127.0.0.1:{port}/mcp"
        self.first = self("run", "--name", "first", "--record-http", "all", "agent.py")
        assert self.first.returncode == 0, self.first.stderr
        self.received = self.requests()
        self.forked = self("fork", "first", "--at", "turn:3", "--", "agent.py", METRES="9 m")
        self.received_in_fork = self.requests()
        (folder / "server.py").rename(folder / "gone.py")
        self.end()

    def __call__(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, {**self.env, **env}, session=True)

    def requests(self) -> dict[str, list[str]]:
        """What each server was asked since the last time."""
        found = {}
        for name in ("pipe", "web"):
            log = self.folder / name
            found[name] = log.read_text().splitlines() if log.exists() else []
            log.unlink(missing_ok=True)
        return found

    def events(self, run: str, *kinds: str) -> list[dict]:
        return [
            json.loads(line)
            for kind in kinds
            for line in self("cat", run, "--kind", kind).stdout.splitlines()
        ]

    def end(self) -> None:
        self.web.terminate()
        self.web.wait()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp("servers"), provider)
    yield desk
    desk.end()


@pytest.mark.long
def test_no_server_is_needed(desk: Desk) -> None:
    again = desk("replay", "first")
    assert (again.stdout, again.returncode) == (desk.first.stdout, 0), again.stderr
    assert again.stderr.splitlines()[-1] == "reenact: replayed as recorded: 9 calls answered, 0 live"
    assert desk.requests() == {"pipe": [], "web": []}


@pytest.mark.long
def test_what_servers_answer_is_recorded_once(desk: Desk) -> None:
    reported = desk.events("first", "mcp.answer")
    assert {each["server"].rpartition("/")[2] for each in reported} == {"python server.py pipe", "mcp"}
    lists = [each for each in reported if each["method"] == "tools/list"]
    assert [each.get("same") for each in lists].count(True) >= 3
    assert {each["refused"]["code"] for each in reported if "refused" in each} <= {-32602, -32002, 0, -32601}
    assert desk.events("first", "http.request") == []  # what only carries a session is not told apart
    assert len(desk.events("first", "tool.result")) == 6


@pytest.mark.long
def test_what_was_not_requested_in_the_recording_is_unknown(desk: Desk) -> None:
    other = desk("replay", "first", HILL="Graça")
    assert other.returncode == 3
    assert 'MCP resources/read {"uri": "hill://Gra' in other.stderr and "its reply is unknown" in other.stderr
    assert desk.requests() == {"pipe": [], "web": []}


@pytest.mark.long
def test_after_the_cut_of_a_fork_the_real_servers_are_called(desk: Desk) -> None:
    done = desk.forked
    assert done.returncode == 0, done.stderr
    then, now = desk.first.stdout.splitlines(), done.stdout.splitlines()
    assert len(then) == len(now)
    differing = [(old, new) for old, new in zip(then, now, strict=True) if old != new]
    assert differing == [
        ("pipe hill 1 80 m", "pipe hill 1 9 m"),
        ("pipe hill 2 80 m", "pipe hill 2 9 m"),
    ]
    assert desk.received["web"] == ["started", "height hill 0", "height hill 1", "height hill 2"]
    assert desk.received_in_fork["pipe"] == ["started", "height hill 1", "height hill 2"]
    assert desk.received_in_fork["web"] == ["height hill 1", "height hill 2"]


@pytest.mark.long
def test_a_server_that_is_missing_after_the_cut_is_named(desk: Desk) -> None:
    done = desk("fork", "first", "--at", "turn:3", "--", "agent.py")
    assert done.returncode == 1, done.stderr
    assert "server.py pipe is needed from here on, and is not there" in done.stderr
    kept = desk("fork", "first", "--at", "turn:3", "--tools", "recorded", "--", "agent.py")
    assert (kept.stdout, kept.returncode) == (desk.first.stdout, 0), kept.stderr


@pytest.mark.long
def test_a_tool_that_asks_a_server_may_run(desk: Desk) -> None:
    (desk.folder / "wrapped.py").write_text("""
import asyncio, sys
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from reenact import Tap

PIPE = StdioServerParameters(command=sys.executable, args=["gone.py", "pipe"])
tap = Tap()

async def main():
    async with stdio_client(PIPE) as streams, ClientSession(*streams) as session:
        await session.initialize()

        @tap.tool(effect="read")
        async def height(hill):
            return (await session.call_tool("height", {"hill": hill})).content[0].text

        print(await height("Monte"))

asyncio.run(main())
""")
    first = desk("run", "--name", "wrapped", "wrapped.py")
    assert (first.stdout, first.returncode) == ("pipe Monte 80 m\n", 0), first.stderr
    desk.requests()
    again = desk("replay", "wrapped", "--live-tools", "height")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    assert desk.requests()["pipe"] == ["started", "height Monte"]


@pytest.mark.long
def test_a_recorder_that_fails_disturbs_no_session(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    program = """
import asyncio, sys
from reenact import Tap
from reenact.capture.recorder.recorder import Recorder
from reenact.capture.seams.libraries import Installed
from reenact.capture.http.watch import Watch
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

def fails(*args, **options):
    raise MemoryError("not today")

seams = Installed(Watch(Tap("run.jsonl").recorder))
seams.install()
assert not seams.failed
Recorder.emit = fails

async def main():
    place = StdioServerParameters(command=sys.executable, args=["server.py", "pipe"])
    async with stdio_client(place) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print(len((await session.list_tools()).tools))
        print((await session.call_tool("height", {"hill": "Monte"})).content[0].text)

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("1\npipe Monte 80 m\n", 0), done.stderr
