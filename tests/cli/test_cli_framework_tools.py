"""Tools of LangChain and of anthropic's runner: exact ids, tools that live in libraries, nothing recorded twice.

What only a framework knows: which of two equal tool uses a call is for, and the function of a library's tool.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.examples import LONG, long
from support.forked import type_in
from support.posting import POST
from support.provider import Provider

LIBRARY = '''
def did(what):
    with open("written.txt", "a") as file:
        file.write(what + "\\n")

def weigh(item: str) -> dict:
    """Weigh an item."""
    did("weigh")
    return {"grams": 100 * len(item)}

class Ship:
    """Ship an item."""
    def __call__(self, item: str) -> str:
        did("ship")
        raise ConnectionError("no ship for " + item)
'''
AROUND = '''
import inspect, itertools, os, sys, threading, traceback
from site_tools import Ship, did, weigh

numbers = itertools.count(1)

def look(city: str) -> str:
    """Look up a city."""
    did("look")
    return f"{city} {next(numbers)} below {[each.function for each in inspect.stack()[1:6]]}"

def fail(city: str) -> str:
    """Fail."""
    did("fail")
    raise LookupError(city)
'''
LANGCHAIN = (
    AROUND
    + """
from langchain_core.tools import BaseTool, StructuredTool, tool
from pydantic import BaseModel, field_validator

class City(BaseModel):
    city: str
    @field_validator("city")
    @classmethod
    def lower(cls, value):
        return value.lower()

class Post(BaseTool):
    name: str = "post"
    description: str = "Post an item."
    async def _arun(self, item: str) -> str:
        did("post")
        return "posted " + item
    def _run(self, item: str) -> str:
        return "posted at once " + item

lookup = StructuredTool.from_function(look, name="lookup")
lower = StructuredTool.from_function(lambda city: look(city), name="lower", description="Look.", args_schema=City)
ship = StructuredTool.from_function(Ship().__call__, name="ship", description="Ship.")
tools = {each.name: each for each in (lookup, lower, StructuredTool.from_function(weigh), ship, Post(), tool(fail))}
"""
)
CHAT_MODEL = """
from langchain_anthropic import ChatAnthropic
model = ChatAnthropic(model="m", base_url=os.environ["MODEL_URL"], max_retries=0)
messages = [("user", "PLAN " + sys.argv[1])]
while True:
    answer = model.bind_tools(list(tools.values())).invoke(messages)
    messages.append(answer)
    if not answer.tool_calls:
        break
    results = {}
    for call in reversed(answer.tool_calls):
        try:
            results[call["id"]] = tools[call["name"]].invoke(call)
        except Exception:
            traceback.print_exc()
            results[call["id"]] = {"role": "tool", "tool_call_id": call["id"], "content": "it failed"}
    messages += [results[call["id"]] for call in answer.tool_calls]
print([getattr(each, "content", each) for each in messages])
"""
HAND_WRITTEN = (
    POST
    + """
offered = [{"name": each.name, "input_schema": each.tool_call_schema.model_json_schema()} for each in tools.values()]
body = {"model": "m", "max_tokens": 9, "tools": offered}
messages = [{"role": "user", "content": "PLAN " + sys.argv[1]}]
while True:
    answer = post(os.environ["MODEL_URL"] + "/v1/messages", body | {"messages": messages})["content"]
    messages.append({"role": "assistant", "content": answer})
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        break
    results = {}
    for use in reversed(uses):
        try:
            call = {"type": "tool_call", "name": use["name"], "args": use["input"], "id": use["id"]}
            results[use["id"]] = tools[use["name"]].invoke(call).content
        except Exception:
            traceback.print_exc()
            results[use["id"]] = "it failed"
    content = [{"type": "tool_result", "tool_use_id": use["id"], "content": results[use["id"]]} for use in uses]
    messages.append({"role": "user", "content": content})
print(messages)
"""
)
RUNNER = (
    AROUND
    + '''
import logging
from anthropic import Anthropic, beta_tool
from anthropic.lib.tools import BetaBuiltinFunctionTool
from anthropic.tools import BetaLocalFilesystemMemoryTool

logging.disable()
client = Anthropic(base_url=os.environ["MODEL_URL"], max_retries=0)
def hills(count: int) -> str:
    """Count."""
    return f"{count * 2} hills"
tools = [beta_tool(each) for each in (look, hills, fail)]
class Odd(BetaBuiltinFunctionTool):
    def to_dict(self):
        return {"name": "odd", "input_schema": {"type": "object"}}
    def call(self, input):
        did("odd")
        return "odd " + input["item"]
    @property
    def func(self):
        raise SystemExit("nobody may look at this")
tools += [beta_tool(weigh, name="scales"), BetaLocalFilesystemMemoryTool(), Odd()]
runner = client.beta.messages.tool_runner(
    model="m", max_tokens=9, tools=tools, messages=[{"role": "user", "content": "PLAN " + sys.argv[1]}], thread=False,
)
for message in runner:
    print([(block.type, getattr(block, "text", "")) for block in message.content])
    print(runner.generate_tool_call_response())
'''
)
MEMORY = {"command": "create", "path": "/memories/a.txt", "file_text": "seven hills"}
LANGCHAIN_PLAN = [
    [["lookup", {"city": "Oslo"}], ["lookup", {"city": "Oslo"}]],
    [["lower", {"city": "Rome"}], ["lower", {"city": "Bern"}]],
    [["weigh", {"item": "box"}], ["ship", {"item": "box"}], ["post", {"item": "box"}]],
    [["fail", {"city": "Faro"}]],
]
AGENTS: dict[str, tuple[str, list[Any]]] = {
    "langchain": (LANGCHAIN + CHAT_MODEL, LANGCHAIN_PLAN),
    "langchain, own loop": (LANGCHAIN + HAND_WRITTEN, LANGCHAIN_PLAN),
    "anthropic": (
        RUNNER,
        [
            [["look", {"city": "Oslo"}], ["look", {"city": "Oslo"}]],
            [["hills", {"count": "2"}], ["hills", {"count": "3"}]],
            [["scales", {"item": "box"}], ["memory", MEMORY], ["odd", {"item": "box"}]],
            [["fail", {"city": "Faro"}]],
        ],
    ),
}


class Place:
    """A folder with an agent, its library, and commands."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        library = folder / "site-packages"
        library.mkdir()
        (library / "site_tools.py").write_text(LIBRARY)
        env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env = env | {"MODEL_URL": url, "ANTHROPIC_API_KEY": "k", "PYTHONPATH": str(library)}

    def bare(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "agent.py").write_text(script)
        command = [sys.executable, "agent.py", *words]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.happened()
        return done

    def __call__(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = type_in(words, self.folder, self.env | env)
        assert "reenact has a bug" not in done.stderr and "could not" not in done.stderr, done.stderr
        return done

    def happened(self) -> int:
        """How much the tools did since the last look."""
        written = self.folder / "written.txt"
        lines = written.read_text().splitlines() if written.exists() else []
        written.unlink(missing_ok=True)
        memories = list((self.folder / "memory").rglob("*.txt"))
        for path in memories:
            path.unlink()
        return len(lines) + len(memories)

    def events(self) -> list[dict[str, Any]]:
        (path,) = (self.folder / ".reenact").glob("*first*.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]

    def tools(self) -> dict[str, tuple[Any, ...]]:
        """By id: tool, arguments as called, source, result or error; each id once."""
        called = [each for each in self.events() if each["kind"] == "tool.called"]
        ended = {each["call"]: each for each in self.events() if each["kind"] == "tool.result"}
        found = {}
        for each in called:
            end = ended[each["call"]]
            result = end["error"]["type"] if end["error"] else end["result"]
            found[each["tool_id"]] = each["tool"], each["args"], each["source"], result
            assert "matched" not in each and "attempt" not in each
        assert len(found) == len(called)
        return found


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def place(tmp_path: Path, provider: Provider) -> Place:
    return Place(tmp_path, provider.url("plan"))


@pytest.mark.parametrize("framework", ["langchain, own loop", long("langchain"), long("anthropic")])
def test_each_tool_use_has_its_own_call_and_is_answered(framework: str, place: Place) -> None:
    script, plan = AGENTS[framework]
    bare = place.bare(script, json.dumps(plan))
    first = place("run", "--name", "first", "--strict-coverage", "agent.py", json.dumps(plan))
    total = sum(map(len, plan))
    assert (first.returncode, first.stdout) == (0, bare.stdout), first.stderr
    assert first.stderr.startswith(bare.stderr)  # tracebacks
    assert f"{total} of {total} tool uses recorded" in first.stderr and "not seen" not in first.stderr
    assert place.happened()
    found = place.tools()
    uses = [each for each in place.events() if each["kind"] == "model.response"]
    sent = [b for each in uses for b in each["body"]["content"] if b["type"] == "tool_use"]
    assert sorted(found) == sorted(use["id"] for use in sent)
    rows = [found[use["id"]] for use in sent]
    assert [row[0] for row in rows] == [use["name"] for use in sent]
    check_rows(framework, rows)
    again = place("replay", "first")
    assert (again.returncode, again.stdout, place.happened()) == (0, bare.stdout, 0), again.stderr
    if LONG:
        for words in (("test", "first"), ("fork", "first", "--at", "turn:5", "--stale-world")):
            done = place(*words)
            assert (done.returncode, place.happened()) == (0, 0), done.stderr


def check_rows(framework: str, rows: list[tuple[Any, ...]]) -> None:
    if framework.startswith("langchain"):
        assert [row[3][:6] for row in rows[:2]] == ["Oslo 2", "Oslo 1"]  # the agent calls the last one first
        assert [row[1] for row in rows[2:4]] == [{"city": "rome"}, {"city": "bern"}]
        assert [row[2] for row in rows] == ["found"] * 4 + ["langchain"] * 2 + ["found"] * 2
        assert (
            rows[4][3] == {"grams": 300} and rows[5][3] == "ConnectionError" and rows[7][3] == "LookupError"
        )
    else:
        assert [row[3][:6] for row in rows[:2]] == ["Oslo 1", "Oslo 2"]
        assert [row[1] for row in rows[2:4]] == [{"count": 2}, {"count": 3}]
        assert [row[2] for row in rows] == ["found"] * 4 + ["anthropic"] * 2 + ["found"] * 2
        assert rows[4][3] == {"grams": 300} and "a.txt" in rows[5][3] and rows[6][3] == "odd box"
        assert rows[7][3] == "LookupError"


ONCE = '''
import asyncio, os, sys
from anthropic import AsyncAnthropic, beta_async_tool
from anthropic.lib.tools.mcp import async_mcp_tool
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from reenact import Tap
from site_tools import did

tap = Tap()
client = AsyncAnthropic(base_url=os.environ["MODEL_URL"], max_retries=0)

@beta_async_tool
@tap.tool
async def look(city: str) -> str:
    """Look up a city."""
    did("look")
    return await inside(city)

async def inside(city: str) -> str:
    return city + " has hills"

@beta_async_tool
async def research(topic: str) -> str:
    """Have another agent look."""
    return await ask(topic, [look])

async def ask(text, tools):
    messages = [{"role": "user", "content": text}]
    runner = client.beta.messages.tool_runner(model="m", max_tokens=9, tools=tools, messages=messages, thread=False)
    return (await runner.until_done()).content[0].text

async def main():
    server = StdioServerParameters(command=sys.executable, args=["server.py"], env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        served = [async_mcp_tool(each, session) for each in (await session.list_tools()).tools]
        print(await ask("PLAN " + sys.argv[1], [look, research, *served]))

asyncio.run(main())
'''
SERVER = """
from mcp.server import MCPServer
from site_tools import did
server = MCPServer("hills")
@server.tool()
def height(hill: str) -> str:
    did("height")
    return hill + " 80 m"
server.run("stdio")
"""


@pytest.mark.long
def test_decorated_tools_and_mcp_are_recorded_once_and_an_agent_as_a_tool_is_a_span(place: Place) -> None:
    (place.folder / "server.py").write_text(SERVER)
    inner = "PLAN " + json.dumps([[["look", {"city": "Bern"}]]])
    plan = [
        [["look", {"city": "Oslo"}], ["look", {"city": "Oslo"}]],
        [["height", {"hill": "Monte"}], ["height", {"hill": "Monte"}]],
        [["research", {"topic": inner}]],
    ]
    bare = place.bare(ONCE, json.dumps(plan))
    first = place("run", "--name", "first", "--strict-coverage", "agent.py", json.dumps(plan))
    assert (first.returncode, first.stdout, place.happened()) == (0, bare.stdout, 5), first.stderr
    called = [each for each in place.events() if each["kind"] == "tool.called"]
    assert [(each["tool"], each.get("source")) for each in called] == [
        ("look", None),
        ("look", None),
        ("height", "mcp"),
        ("height", "mcp"),
        ("research", "found"),
        ("look", None),
    ]
    assert len({each["tool_id"] for each in called}) == 6 and None not in {each["tool_id"] for each in called}
    assert [each.get("within") for each in called] == [None] * 5 + [called[4]["call"]]
    again = place("replay", "first")
    assert (again.returncode, again.stdout, place.happened()) == (0, bare.stdout, 0), again.stderr


MOVED = """
from agent_loop import conversation
import langchain_core.tools.base

def lookup(city, days):
    return {"city": city, "rooms": 3 * days}

def book(hotel):
    raise ConnectionError(f"no route to {hotel}")

TOOLS = {"lookup": lookup, "book": book}
conversation(lambda name, args: TOOLS[name](**args))
"""
LOOP = Path(__file__).parents[1] / "support" / "tool_agents" / "agent_loop.py"


def test_a_framework_that_has_changed_is_reported_and_its_tools_are_found(place: Place) -> None:
    package = place.folder / "site-packages" / "langchain_core" / "tools"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "base.py").write_text("class BaseTool:\n    def run(self, tool_input): pass\n")
    (place.folder / "agent_loop.py").write_text(LOOP.read_text())
    bare = place.bare(MOVED)
    done = place("run", "--name", "first", "--strict-coverage", "agent.py")
    assert (done.returncode, done.stdout) == (0, bare.stdout), done.stderr
    why = "the ids of tool calls made with langchain_core.tools.base (BaseTool.run takes other arguments)"
    assert "4 of 4 tool uses recorded" in done.stderr and f"not seen: {why}" in done.stderr
    assert {each[2] for each in place.tools().values()} == {"found"}
    (end,) = [each for each in place.events() if each["kind"] == "run.end"][-1:]
    assert [each["what"] for each in end["unseen"]] == ["framework"]
