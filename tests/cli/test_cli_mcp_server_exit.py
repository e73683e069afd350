"""A stdio MCP server that ends in the middle of its session: how, and what it wrote last, is in the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.forked import type_in

SERVER = """
import os, sys
from mcp.server import MCPServer

server = MCPServer("hills")

@server.tool()
def height(hill: str) -> str:
    if hill == "Gone":
        for number in range(30):
            print(f"line {number}", file=sys.stderr)
        print("no map of Gone", file=sys.stderr, flush=True)
        os._exit(3)
    return str(os.getpid()) if hill == "pid" else "80 m"

print("server is up", file=sys.stderr, flush=True)
server.run("stdio")
"""
AGENT = """
import asyncio, os, signal, sys
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    way = sys.argv[1]
    server = StdioServerParameters(command=sys.executable, args=["server.py"])
    log = {"errlog": open("server.log", "w")} if way in ("file", "killed") else {}
    async with stdio_client(server, **log) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        print((await session.call_tool("height", {"hill": "Monte"})).content[0].text)
        if way == "killed":
            os.kill(int((await session.call_tool("height", {"hill": "pid"})).content[0].text), signal.SIGKILL)
            await asyncio.sleep(0.5)
        elif way != "well":
            try:
                await session.call_tool("height", {"hill": "Gone"})
            except Exception as exc:
                print(type(exc).__name__, exc)
    print("left")

asyncio.run(main())
"""


class Desk:
    """A folder with an agent and its server."""

    def __init__(self, folder: Path) -> None:
        (folder / "server.py").write_text(SERVER)
        (folder / "agent.py").write_text(AGENT)
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}

    def run(self, way: str) -> subprocess.CompletedProcess[str]:
        done = self("run", "agent.py", way)
        assert done.returncode == 0, done
        return done

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, self.env, session=True)

    def bare(self, way: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "agent.py", way]
        return subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True)

    def show(self) -> str:
        """What is shown of the last run, on one line."""
        return " ".join(self("show", "@last").stdout.split())

    def exits(self) -> list[dict]:
        return self.events("mcp.exit")

    def events(self, kind: str) -> list[dict]:
        return [json.loads(line) for line in self("cat", "@last", "--kind", kind).stdout.splitlines()]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_exit_code_and_last_lines_of_stderr_are_recorded_and_shown(desk: Desk) -> None:
    bare = desk.bare("file")
    log = (desk.folder / "server.log").read_text()
    done = desk.run("file")
    assert done.stdout == bare.stdout, "the agent sees the same failure"
    assert (desk.folder / "server.log").read_text() == log, "and its log has the same bytes"
    [exit] = desk.exits()
    assert (exit["code"], exit["server"].endswith("server.py"), exit.get("shared")) == (3, True, None)
    assert exit["stderr"] == [*(f"line {number}" for number in range(11, 30)), "no map of Gone"]
    shown = desk.show()
    assert "server.py exited with code 3; its stderr ends with: no map of Gone" in shown
    [called] = [each for each in desk.events("tool.called") if each["args"] == {"hill": "Gone"}]
    assert exit["parent"] == called["call"]


@pytest.mark.long
def test_stderr_that_is_not_a_file_stays_the_agents_own(desk: Desk) -> None:
    done = desk.run("pipe")
    assert "server is up" in done.stderr and "no map of Gone" in done.stderr
    [exit] = desk.exits()
    assert exit["code"] == 3 and "stderr" not in exit
    assert "server.py exited with code 3" in desk.show()


@pytest.mark.long
def test_lines_of_a_file_that_the_agent_writes_to_as_well_are_marked(desk: Desk) -> None:
    command = [str(Path(sys.executable).with_name("reenact")), "run", "agent.py", "pipe"]
    with open(desk.folder / "all.log", "w") as log:
        log.write("from before\n")
        log.flush()
        subprocess.run(command, cwd=desk.folder, env=desk.env, stdout=log, stderr=log, check=True)
    [exit] = desk.exits()
    assert exit["shared"] is True and exit["stderr"][-1] == "no map of Gone"
    assert "from before" not in exit["stderr"]
    assert "the shared file of its stderr ends with: no map of Gone" in desk.show()


@pytest.mark.long
def test_a_server_killed_between_two_requests_is_noticed_when_its_session_is_closed(desk: Desk) -> None:
    assert desk.run("killed").stdout.splitlines()[-1] == "left"
    [exit] = desk.exits()
    assert (exit["signal"], exit["stderr"], "code" in exit) == ("SIGKILL", ["server is up"], False)
    assert "server.py was ended by SIGKILL" in desk.show()


@pytest.mark.long
def test_a_server_that_ends_with_its_session_is_not_reported(desk: Desk) -> None:
    desk.run("well")
    assert desk.exits() == []
