"""Tools recorded with no line changed: replay, fork, test and fixtures answer them, and nothing happens twice.

The tools write to a file, connect to a socket and start a program; the tests count what arrived.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from support.examples import LONG, long
from support.forked import type_in
from support.provider import Provider

AGENT = """
import json, os, socket, subprocess, sys, urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import reenact

FOLDER = Path(__file__).parent


@dataclass
class Weight:
    grams: int
    unit: ClassVar[str] = "g"


def weigh(item: str) -> Weight:
    with (FOLDER / "written.txt").open("a") as file:
        file.write(f"{item}\\n")
    return Weight(len(item) * 100)


def ship(item, express=False):
    subprocess.run([sys.executable, "-S", "-c", "open('started.txt', 'a').write('x')"], cwd=FOLDER, check=True)
    return ["sent", item]


def refund(item):
    with socket.create_connection(("127.0.0.1", int(os.environ["COUNTER"]))) as connection:
        connection.sendall(item.encode())
    raise LookupError(f"no refund for {item}")


TOOLS = {"weigh": weigh, "ship": ship, "refund": refund}


def ask(messages):
    offered = [{"name": name, "input_schema": {"type": "object"}} for name in TOOLS]
    body = {"model": "m", "max_tokens": 9, "system": "Be kind.", "messages": messages, "tools": offered}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as found:
        return json.load(found)["content"]


def call(use):
    try:
        result = TOOLS[use["name"]](**use["input"])
    except LookupError as exc:
        return f"{type(exc).__name__}: {exc}"
    return f"{result.grams} {result.unit}" if isinstance(result, Weight) else json.dumps(result)


@reenact.run
def order(plan):
    messages = [{"role": "user", "content": "PLAN " + plan}]
    while True:
        answer = ask(messages)
        messages.append({"role": "assistant", "content": answer})
        uses = [block for block in answer if block["type"] == "tool_use"]
        if not uses:
            return str(messages[2:3]) + answer[0]["text"]
        results = [{"type": "tool_result", "tool_use_id": use["id"], "content": call(use)} for use in uses]
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    print(order.__wrapped__(sys.argv[1]) if sys.argv[2:] == [] else order(sys.argv[1]))
"""
PLAN = json.dumps([[["weigh", {"item": "box"}], ["ship", {"item": "box"}]], [["refund", {"item": "cup"}]]])
ALL = {"written": 1, "started": 1, "connected": 1}
NONE = {"written": 0, "started": 0, "connected": 0}


class Shop:
    """A folder with the agent, in which commands are typed; counts what its tools do."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connected = 0
        self.env = env | {"COUNTER": str(self._listener.getsockname()[1])}
        Thread(target=self._listen, daemon=True).start()
        (folder / "agent.py").write_text(AGENT)

    def _listen(self) -> None:
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            while connection.recv(100):
                pass
            self._connected += 1

    def close(self) -> None:
        self._listener.close()

    def happened(self) -> dict[str, int]:
        """What the tools did since the last look: lines written, programs started, connections made."""
        written, started = self.folder / "written.txt", self.folder / "started.txt"
        counts = {
            "written": len(written.read_text().splitlines()) if written.exists() else 0,
            "started": len(started.read_text()) if started.exists() else 0,
            "connected": self._connected,
        }
        written.unlink(missing_ok=True)
        started.unlink(missing_ok=True)
        self._connected = 0
        return counts

    def __call__(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = type_in(words, self.folder, self.env | env, session=True)
        assert "reenact has a bug" not in done.stderr, done.stderr
        return done

    def pytest(self, *words: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True)
        return done.stdout + done.stderr


@pytest.fixture
def shop(tmp_path: Path, provider: Provider) -> Iterator[Shop]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("plan"), "ANTHROPIC_API_KEY": "k"}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "reenact.pytest_plugin"}
    shop = Shop(tmp_path, env)
    yield shop
    shop.close()


def test_a_replay_and_a_fork_before_its_cut_do_nothing_again(shop: Shop, provider: Provider) -> None:
    first = shop("run", "--name", "first", "agent.py", PLAN)
    assert first.returncode == 0 and shop.happened() == ALL, first.stderr
    assert "300 g" in first.stdout
    before = len(provider.settled())
    for env in ({}, {"REENACT_TOOLS": "off"}):  # it cannot be switched off where it would let tools run
        again = shop("replay", "first", **env)
        assert (again.stdout, again.returncode, shop.happened()) == (first.stdout, 0, NONE), again.stderr
        assert again.stderr.endswith("replayed as recorded: 6 calls answered, 0 live\n")
    assert len(provider.settled()) == before

    at_end = ("fork", "first", "--at", "turn:3", "--set", "system=Be brief.")
    refused = shop(*at_end)
    assert (refused.returncode, shop.happened()) == (2, NONE) and "RUNS AGAIN" not in refused.stderr
    assert refused.stderr.count("does not run again") == 3 and "--live-tools" not in refused.stderr
    for more in ((), ("--samples", "2", "--control")) if LONG else (("--control",),):
        done = shop(*at_end, "--stale-world", *more)
        assert (done.returncode, shop.happened()) == (0, NONE), done.stderr


def test_after_the_cut_a_tool_runs_by_its_effect_or_its_name(shop: Shop) -> None:
    assert shop("run", "--name", "first", "agent.py", PLAN).returncode == 0
    shop.happened()
    fork = ("fork", "first", "--at", "turn:2", "--stale-world")
    done = shop(*fork)
    assert (done.returncode, shop.happened()) == (1, NONE), done.stderr
    assert "refusing to run tool 'refund': its effect is not declared" in done.stderr
    done = shop(*fork, "--tools", "recorded")
    assert (done.returncode, shop.happened()) == (0, NONE), done.stderr
    done = shop(*fork, "--live-tools", "refund")
    assert (done.returncode, shop.happened()) == (0, NONE | {"connected": 1}), done.stderr
    (shop.folder / "reenact.toml").write_text('[tools]\nrefund = "read"\n')
    done = shop(*fork)
    assert (done.returncode, shop.happened()) == (0, NONE | {"connected": 1}), done.stderr
    assert "tool refund ran after the cut: your settings declare it read" in done.stderr


@pytest.mark.parametrize("how", ["program", long("function")])
def test_a_generated_test_does_nothing_again(shop: Shop, how: str) -> None:
    done = shop("run", "--name", "first", "agent.py", PLAN, *(["function"] if how == "function" else []))
    assert done.returncode == 0 and shop.happened() == ALL, done.stderr
    made = shop("test", "first" if how == "program" else "order", "-o", "tests")
    assert (made.returncode, shop.happened()) == (0, NONE), made.stderr
    (test,) = shop.folder.glob("tests/test_*.py")
    assert "live_tools" not in test.read_text()
    reported = shop.pytest(str(test))
    assert "1 passed" in reported and shop.happened() == NONE, reported


FIXTURE = """
import pytest
from agent import order
from reenact.testing import replaying

PLAN = {plan!r}

@pytest.mark.reenact("first.jsonl")
def test_marked():
    assert "300 g" in order(PLAN)

def test_block():
    with replaying("first.jsonl"):
        assert "300 g" in order(PLAN)

@pytest.mark.reenact("first.jsonl", live_tools=["weigh"])
def test_live():
    order(PLAN)
"""


@pytest.mark.long
def test_fixtures_do_nothing_again_unless_a_tool_is_named(shop: Shop) -> None:
    done = shop("run", "agent.py", PLAN, "function")
    assert done.returncode == 0 and shop.happened() == ALL, done.stderr
    (trace,) = shop.folder.glob(".reenact/*-order-*.jsonl")
    (shop.folder / "first.jsonl").write_bytes(trace.read_bytes())
    (shop.folder / "test_it.py").write_text(FIXTURE.format(plan=PLAN))
    reported = shop.pytest("test_it.py")
    assert "3 passed" in reported and shop.happened() == NONE | {"written": 1}, reported


@pytest.mark.long
def test_a_test_records_its_tools_and_is_answered_the_next_time(shop: Shop) -> None:
    test = FIXTURE.format(plan=PLAN).partition("def test_block")[0].replace("first", "made")
    (shop.folder / "test_it.py").write_text(test)
    reported = shop.pytest("test_it.py", "--reenact=rerecord")
    assert "1 passed" in reported and shop.happened() == ALL, reported
    reported = shop.pytest("test_it.py")
    assert "1 passed" in reported and shop.happened() == NONE, reported


def test_a_changed_program_runs_no_tool_without_permission(shop: Shop) -> None:
    assert shop("run", "--name", "first", "agent.py", PLAN).returncode == 0
    shop.happened()
    agent = shop.folder / "agent.py"
    moved = AGENT.replace("def weigh(", "def scale(").replace('"weigh": weigh', '"weigh": None')
    agent.write_text(moved.replace('TOOLS[use["name"]]', '(TOOLS[use["name"]] or globals()["sca" + "le"])'))
    gone = shop("replay", "first")
    assert (gone.returncode, shop.happened()) == (3, NONE), gone.stderr
    assert "tool weigh would run" in gone.stderr and "reenact.toml names it" in gone.stderr
    (shop.folder / "reenact.toml").write_text('[tools]\nweigh = { function = "__main__:scale" }\n')
    named = shop("replay", "first")
    assert (named.returncode, shop.happened()) == (0, NONE), named.stderr
    (shop.folder / "reenact.toml").unlink()

    agent.write_text(AGENT.replace('(**use["input"])', '(**{"item": use["input"]["item"].upper()})'))
    other = shop("replay", "first")
    assert (other.returncode, shop.happened()) == (3, NONE), other.stderr
    assert "changed-request" in other.stderr and "args.item" in other.stderr

    agent.write_text(AGENT.replace('} {result.unit}"', '} pounds"'))
    worded = shop("replay", "first")
    assert (worded.returncode, shop.happened()) == (3, NONE), worded.stderr
    assert "your code: tool weigh did not run, its recorded result was returned" in worded.stderr


def test_of_several_uses_at_once_none_runs_with_other_arguments(shop: Shop) -> None:
    plan = json.dumps([[["weigh", {"item": "box"}], ["weigh", {"item": "cup"}]]])
    assert shop("run", "--name", "first", "agent.py", plan).returncode == 0
    assert shop("run", "agent.py", plan, "function").returncode == 0
    assert shop.happened() == NONE | {"written": 4}
    (trace,) = shop.folder.glob(".reenact/*-order-*.jsonl")
    (shop.folder / "first.jsonl").write_bytes(trace.read_bytes())
    other = AGENT.replace('(**use["input"])', '(**{"item": use["input"]["item"].upper()})')
    (shop.folder / "agent.py").write_text(other)
    ended = shop("replay", "first")
    assert (ended.returncode, shop.happened()) == (3, NONE), ended.stderr
    assert "changed-request" in ended.stderr and "args.item" in ended.stderr
    assert (shop("replay", "first", "--keep-going").returncode, shop.happened()) == (3, NONE)
    (shop.folder / "test_it.py").write_text(FIXTURE.format(plan=plan).partition("def test_block")[0])
    reported = shop.pytest("test_it.py")
    assert "1 failed" in reported and shop.happened() == NONE, reported


def test_a_record_that_the_model_traffic_contradicts_answers_nothing(shop: Shop) -> None:
    """The agent calls a tool, and sends the model something else for it."""
    (shop.folder / "agent.py").write_text(AGENT.replace("json.dumps(result)", """'["lost", "duck"]'"""))
    assert shop("run", "--name", "first", "agent.py", PLAN).returncode == 0
    assert shop.happened() == ALL
    for command in (("replay", "first"), ("test", "first"), ("fork", "first", "--at", "turn:3")):
        refused = shop(*command)
        assert (refused.returncode, shop.happened()) == (2, NONE), refused.stderr
        assert "again: ship (1×: what it returned is not what the model was sent)\n" in refused.stderr
        assert "--live-tools ship" in refused.stderr
    done = shop("replay", "first", "--live-tools", "ship")
    assert (done.returncode, shop.happened()) == (0, NONE | {"started": 1}), done.stderr


def test_a_record_by_name_alone_answers_if_the_model_was_sent_its_result(shop: Shop) -> None:
    changed = AGENT.replace('(**use["input"])', '(**{"item": use["input"]["item"].upper()})')
    (shop.folder / "agent.py").write_text(changed)
    first = shop("run", "--name", "first", "agent.py", PLAN)
    assert first.returncode == 0 and shop.happened() == ALL, first.stderr
    refused = shop("replay", "first")  # 300 g stands in no record: only ship's result was sent as it was
    assert (refused.returncode, shop.happened()) == (2, NONE), refused.stderr
    assert "it had other arguments than the model sent" in refused.stderr
    assert "ship (" not in refused.stderr


GRAPH = '''
import os, sys
from typing import Annotated, Any, TypedDict

from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

def did(what):
    with open("written.txt", "a") as file:
        file.write(what + "\\n")

@tool
def book(hotel: str) -> str:
    """Book a room."""
    did("book")
    who = interrupt({"who": hotel})
    when = interrupt("when?")
    return f"{hotel} for {who} at {when}"

@tool(response_format="content_and_artifact")
def rooms(city: str):
    """List rooms."""
    did("rooms")
    return f"2 rooms in {city}", [1, 2]

@tool
def cancel(hotel: str) -> str:
    """Cancel a room."""
    did("cancel")
    raise ConnectionError("could not connect to rooms-db:5432")

class State(TypedDict):
    messages: Annotated[list[Any], add_messages]

model = ChatAnthropic(model="m", base_url=os.environ["MODEL_URL"], max_retries=0).bind_tools([book, rooms, cancel])
graph = StateGraph(State)
graph.add_node("ask", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([book, rooms, cancel], handle_tool_errors=lambda exc: "it failed"))
graph.add_edge(START, "ask")
graph.add_conditional_edges("ask", lambda state: "tools" if state["messages"][-1].tool_calls else END)
graph.add_edge("tools", "ask")
app, config = graph.compile(checkpointer=InMemorySaver()), {"configurable": {"thread_id": "1"}}
out = app.invoke({"messages": [("user", "PLAN " + sys.argv[1])]}, config)
for answer in ("Ann", "noon"):
    print([each.value for each in out["__interrupt__"]])
    out = app.invoke(Command(resume=answer), config)
print([(message.content, getattr(message, "artifact", None)) for message in out["messages"][1:]])
'''


@pytest.mark.long
def test_a_suspended_tool_of_langgraph_suspends_again_and_does_not_run(shop: Shop) -> None:
    (shop.folder / "graph.py").write_text(GRAPH)
    plan = [[["rooms", {"city": "Faro"}]], [["book", {"hotel": "Lisboa"}]], [["cancel", {"hotel": "Lisboa"}]]]
    first = shop("run", "--name", "first", "graph.py", json.dumps(plan))
    assert first.returncode == 0 and shop.happened() == NONE | {"written": 5}, first.stderr
    assert "Lisboa for Ann at noon" in first.stdout and "[1, 2]" in first.stdout
    again = shop("replay", "first")
    assert (again.returncode, again.stdout, shop.happened()) == (0, first.stdout, NONE), again.stderr
    if LONG:
        made = shop("test", "first")
        assert (made.returncode, shop.happened()) == (0, NONE), made.stderr


DRAINED = """
import asyncio, os, sys
from openai import AsyncOpenAI

def weigh(item: str) -> str:
    with open("written.txt", "a") as file:
        file.write(item + "\\n")
    return "300 g"

async def order():
    messages = [{"role": "user", "content": "PLAN " + sys.argv[1]}]
    offered = [{"type": "function", "function": {"name": "weigh", "parameters": {"type": "object"}}}]
    model = AsyncOpenAI(base_url=os.environ["MODEL_URL"] + "/v1", api_key="none")
    async for _ in await model.chat.completions.create(model="m", messages=messages, tools=offered, stream=True):
        pass
    print(weigh("box"), weigh("cup"))

asyncio.run(order())
"""


@pytest.mark.long
def test_a_tool_is_answered_where_the_client_drains_a_stream_that_it_has_read(shop: Shop) -> None:
    """openai 3.51 reads on after the last event: the stream must not begin anew, with each argument twice."""
    (shop.folder / "drained.py").write_text(DRAINED)
    plan = [[["weigh", {"item": "box"}], ["weigh", {"item": "cup"}]]]
    first = shop("run", "--name", "first", "drained.py", json.dumps(plan))
    assert first.returncode == 0 and shop.happened() == NONE | {"written": 2}, first.stderr
    again = shop("replay", "first")
    assert (again.returncode, again.stdout, shop.happened()) == (0, first.stdout, NONE), again.stderr


@pytest.mark.parametrize("how", [long("--tools"), "settings"])
def test_a_function_that_was_named_is_answered_without_naming_it_again(shop: Shop, how: str) -> None:
    prefixed = AGENT.replace('TOOLS[use["name"]]', '(TOOLS[use["name"]] or globals()["do_" + use["name"]])')
    prefixed = prefixed.replace("def weigh(", "def do_weigh(").replace('"weigh": weigh', '"weigh": None')
    (shop.folder / "agent.py").write_text(prefixed)
    flags = ["--tools", "weigh=__main__:do_weigh"]
    if how == "settings":
        (shop.folder / "reenact.toml").write_text('[tools]\nweigh = { function = "__main__:do_weigh" }\n')
        flags = []
    first = shop("run", "--name", "first", *flags, "agent.py", PLAN)
    assert first.returncode == 0 and shop.happened() == ALL, first.stderr
    (shop.folder / "reenact.toml").unlink(missing_ok=True)
    again = shop("replay", "first")
    assert (again.stdout, again.returncode, shop.happened()) == (first.stdout, 0, NONE), again.stderr
    if LONG or how == "--tools":
        made = shop("test", "first")
        assert (made.returncode, shop.happened()) == (0, NONE), made.stderr
