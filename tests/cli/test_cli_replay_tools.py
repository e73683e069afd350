"""reenact replay and tools: answered where they were recorded, listed before the start where they would run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.examples import long
from support.forked import type_in
from support.posting import POST
from support.provider import Provider

Typed = Callable[..., "subprocess.CompletedProcess[str]"]

AGENT = (
    POST
    + """
import asyncio, os, sys
from reenact import Tap

tap, did = Tap(), open(os.environ["DID"], "a") if "DID" in os.environ else None

class OutOfHills(Exception):
    def __init__(self, hill, code):
        super().__init__(f"no {hill} ({code})")

class Hill:
    def __repr__(self):
        return "<Hill of seven>"

def ran(name):
    if did: print(name, file=did, flush=True)

@tap.tool
def lookup(question):
    ran("lookup")
    return {"answer": 42, "of": [question], "none": None}

@tap.tool
def fails(kind):
    ran("fails")
    if kind == "key": raise KeyError("hill")
    if kind == "own": raise OutOfHills("hill", 7)
    raise TimeoutError("no answer")

@tap.tool
async def walk(hill):
    ran("walk")
    await asyncio.sleep(0.05 if hill == 1 else 0.01)
    return hill * 2

@tap.tool
def count(most):
    ran("count")
    for number in range(most):
        yield number
    return "done"

@tap.tool
async def stream(most):
    ran("stream")
    for number in range(most):
        yield {"n": number}
    raise OSError("dry")

@tap.tool
def outer(depth):
    ran("outer")
    return inner(depth) + 1

@tap.tool
def inner(depth):
    ran("inner")
    return depth

@tap.tool
def make():
    ran("make")
    return Hill()

async def several():
    print([await done for done in asyncio.as_completed([walk(1), walk(2)])])
    try:
        async for item in stream(2): print(item)
    except OSError as exc:
        print(type(exc), exc)
    try:
        await asyncio.wait_for(walk(1), 0.001)
    except TimeoutError:
        print("too slow")

def all_of():
    for item in (gen := count(3)): print(item)
    for kind in ("key", "own", "time"):
        try:
            fails(kind)
        except Exception as exc:
            print(type(exc).__name__, type(exc) is KeyError, isinstance(exc, (OutOfHills, LookupError, TimeoutError)), exc)
    print(outer(1), make(), lookup(Hill()))
    asyncio.run(several())

def create(**ask):
    return post(os.environ["MODEL_URL"] + "/v1/messages", ask)["content"]

messages = [{"role": "user", "content": "Hills?"}]
tools = [{"name": "lookup", "input_schema": {"type": "object"}}]
while True:
    answer = create(model="m", max_tokens=9, messages=messages, tools=tools)
    messages.append({"role": "assistant", "content": answer})
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        break
    results = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": str(lookup(**use["input"]))} for use in uses
    ]
    messages.append({"role": "user", "content": results})
print(answer[0]["text"])
all_of()
"""
)


@pytest.fixture
def quiet(typed: Typed, provider: Provider) -> Typed:
    """The same with a model that asks for no tool."""
    return lambda *words: typed(*words, MODEL_URL=provider.url("text"))


@pytest.fixture
def typed(tmp_path: Path, provider: Provider) -> Typed:
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("tools-2")}

    def here(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, tmp_path, env | more)

    return here


def test_decorated_tools_give_what_they_gave_and_do_not_run(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    first = typed("run", "--name", "first", "agent.py", DID=str(tmp_path / "did"))
    assert first.returncode == 0, first.stderr
    ran = (tmp_path / "did").read_text().split()
    assert sorted(set(ran)) == ["count", "fails", "inner", "lookup", "make", "outer", "stream", "walk"]
    scripted = (tmp_path / "agent.py").read_text()
    (tmp_path / "agent.py").write_text(scripted.replace("def ran(name):", "def ran(name):\n    os._exit(99)"))
    again = typed("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    stand_in = "cannot be rebuilt (cut): the code gets a stand-in; --live-tools"
    assert again.stderr.splitlines()[1:] == [  # the first two before it starts
        f"reenact: 1 result of tool make {stand_in} make runs the tool instead",
        f"reenact: 1 result of tool lookup {stand_in} lookup runs the tool instead",
        "reenact: 1 result of tool make not exactly as recorded: cut",
        "reenact: 1 result of tool lookup not exactly as recorded: cut",
        "reenact: replayed as recorded: 16 calls answered, 0 live",
    ]
    (tmp_path / "agent.py").write_text(scripted)
    live = typed("replay", "first", "--live-tools", "count,lookup", DID=str(tmp_path / "again"))
    assert (live.stdout, live.returncode) == (first.stdout, 0), live.stderr
    assert set((tmp_path / "again").read_text().split()) == {"count", "lookup"}


@pytest.mark.long
def test_a_tool_with_other_arguments_is_a_difference_and_does_not_run(typed: Typed, tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    typed("run", "--name", "first", "agent.py")
    agent.write_text(AGENT.replace("outer(1)", "outer(5)").replace('ran("outer")', "os._exit(99)"))
    other = typed("replay", "first")
    assert other.returncode == 3 and "changed-request" in other.stderr and "args.depth" in other.stderr
    on = typed("replay", "first", "--keep-going", "--json")
    reported = json.loads(on.stderr.splitlines()[-1])
    assert on.returncode == 3 and reported["diverged"][0]["code"] == "changed-request"
    assert "NotRecorded" in on.stderr  # what the tool raised in the place of its result


PLAIN = (
    POST
    + """
import os, pathlib, subprocess, sys, tempfile

messages = [{"role": "user", "content": "Hills?"}]
tools = [{"name": "lookup", "input_schema": {"type": "object"}}]

def tried(what):
    try:
        return what()
    except OSError as exc:
        return f"{type(exc).__name__}: {exc}"

def act(number):
    WHAT

ask = {"model": "m", "max_tokens": 9, "messages": messages, "tools": TOOLS}
answer = post(os.environ["MODEL_URL"] + "/v1/messages", ask)
print(tried(lambda: act(1)))
"""
)


def program(what: str, tools: str = "[]") -> str:
    return PLAIN.replace("WHAT", what).replace("TOOLS", tools)


def test_tools_that_would_run_are_listed_before_anything_is_started(typed: Typed, tmp_path: Path) -> None:
    agent = program("return 1", "tools")
    (tmp_path / "agent.py").write_text(agent)
    assert typed("run", "--name", "first", "agent.py").returncode == 0
    (tmp_path / "agent.py").write_text("raise SystemExit('started')")
    refused = typed("replay", "first")
    assert refused.returncode == 2 and refused.stdout == "" and "started" not in refused.stderr
    assert "lookup (1×)" in refused.stderr and "@tap.tool" in refused.stderr
    assert "--live-tools lookup" in refused.stderr
    wrong = typed("replay", "first", "--live-tools", "lokup")
    assert wrong.returncode == 2 and "no tool 'lokup'" in wrong.stderr and "lookup" in wrong.stderr
    (tmp_path / "agent.py").write_text(agent)
    for allowed in ("lookup", "all"):
        assert typed("replay", "first", "--live-tools", allowed).returncode == 0


ACTS = {
    "open('out.txt', 'w').write('x')": "write out.txt",
    "pathlib.Path('out.txt').write_text('x')": "write out.txt",
    "os.open('kept.txt', os.O_WRONLY | os.O_APPEND)": "write kept.txt",
    "os.remove('kept.txt')": "remove kept.txt",
    "os.rename('kept.txt', 'gone.txt')": "rename gone.txt",
    "os.rename('kept.txt', tempfile.gettempdir() + '/x')": "rename kept.txt",
    "os.makedirs('a/b')": "make a",
    "__import__('shutil').rmtree('folder')": "remove folder",
    "os.chmod('kept.txt', 0)": "change kept.txt",
    "os.symlink('kept.txt', 'other')": "link other",
    "__import__('sqlite3').connect('x.db')": "open x.db",
    "subprocess.run(['touch', 'out.txt'])": "run touch out.txt",
    "os.system('touch out.txt')": "run touch out.txt",
    "os.posix_spawn('/bin/touch', ['touch', 'out.txt'], os.environ)": "run touch out.txt",
    "subprocess.run([sys.executable, '-I', '-c', 'open(1)'])": f"run {sys.executable} -I -c open(1)",
}


def test_what_the_agent_would_do_again_is_refused_and_named(quiet: Typed, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(program("return 'nothing'"))
    quiet("run", "--name", "first", "agent.py")
    (tmp_path / "kept.txt").write_text("kept")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("kept")
    acts = "\n".join(f"    print(tried(lambda: {act}))" for act in ACTS)
    (tmp_path / "agent.py").write_text(program(f"pass\n{acts}"))
    before = sorted(str(path) for path in tmp_path.rglob("*") if ".reenact" not in path.parts)
    again = quiet("replay", "first", "--json")
    reported = json.loads(again.stderr.splitlines()[-1])
    assert again.returncode == 3, again.stderr
    assert [each["what"] for each in reported["refused"]] == list(ACTS.values()), again.stdout
    assert all(each["where"].endswith(" in <lambda>") for each in reported["refused"])
    refusals = [line.split(" (agent.py:")[0] for line in again.stdout.splitlines()[:-1]]
    assert refusals == [f"PermissionError: reenact refused to {what}" for what in ACTS.values()]
    after = sorted(str(path) for path in tmp_path.rglob("*") if ".reenact" not in path.parts)
    assert before == after and (tmp_path / "kept.txt").read_text() == "kept"


def test_scratch_files_caches_and_python_children_are_no_harm(quiet: Typed, tmp_path: Path) -> None:
    what = (
        "import helper; p = tempfile.mkdtemp(); open(p + '/x', 'w').close(); os.rename(p + '/x', p + '/y');"
        " os.remove(p + '/y'); os.rmdir(p); open(os.devnull, 'w').close(); os.makedirs('.', exist_ok=True);"
        " return subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout"
    )
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "agent.py").write_text(program(what))
    first = quiet("run", "--name", "first", "agent.py")
    again = quiet("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0) and first.stdout == "42\n\n"
    assert again.stderr.splitlines()[1:] == ["reenact: replayed as recorded: 1 call answered, 0 live"]


def test_a_child_is_guarded_too_and_nobody_else_is_called(quiet: Typed, tmp_path: Path) -> None:
    what = "return subprocess.run([sys.executable, '-c', CODE], capture_output=True, text=True).stderr"
    (tmp_path / "agent.py").write_text(program("return 1"))
    quiet("run", "--name", "first", "agent.py")
    child = "import socket\ntry: open('out.txt', 'w')\nexcept PermissionError: socket.create_connection(('192.0.2.1', 9))"
    changed = program(what).replace("CODE", repr(child))
    (tmp_path / "agent.py").write_text(changed)
    again = quiet("replay", "first", "--json")
    reported = json.loads(again.stderr.splitlines()[-1])
    assert [each["what"] for each in reported["refused"]] == ["write out.txt", "connect to 192.0.2.1"]
    assert "Diverged" in again.stdout and not (tmp_path / "out.txt").exists()
    away = "import urllib.request as u; u.urlopen('http://models.invalid')"
    (tmp_path / "agent.py").write_text(program(away))
    refused = quiet("replay", "first")
    assert refused.returncode == 3 and "refused to connect to models.invalid" in refused.stderr


MCP = """
import asyncio, os
from mcp.client import Client
from mcp.server import MCPServer

server = MCPServer("hills")

@server.tool()
def height(hill: str) -> int:
    BODY
    return len(hill)

async def main():
    async with Client(server) as client:
        print(await client.call_tool("height", {"hill": "Monte"}))
        print((await client.call_tool("nowhere", {})).is_error)

asyncio.run(main())
"""


@pytest.mark.long
def test_tools_of_an_mcp_session_are_answered_by_the_recording(typed: Typed, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(MCP.replace("BODY", "pass"))
    first = typed("run", "--name", "first", "agent.py")
    assert first.returncode == 0, first.stderr
    (tmp_path / "agent.py").write_text(MCP.replace("BODY", "os._exit(99)"))
    again = typed("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    assert again.stderr.splitlines()[-1] == "reenact: replayed as recorded: 2 calls answered, 0 live"
    recorded, replayed = (typed("cat", run, "--kind", "tool.result").stdout for run in ("first", "@replay"))
    calls = [json.loads(line)["call"] for line in recorded.splitlines()]
    assert [json.loads(line)["replayed"] for line in replayed.splitlines()] == calls and len(calls) == 2


def test_a_tool_that_never_ended_is_where_the_recording_ends(typed: Typed, tmp_path: Path) -> None:
    agent = "import os\nfrom reenact import Tap\n@Tap().tool\ndef dies():\n    os._exit(9)\nprint(dies())\n"
    (tmp_path / "agent.py").write_text(agent)
    assert typed("run", "--name", "first", "agent.py").returncode == 9
    again = typed("replay", "first")
    assert again.returncode == 3 and again.stdout == ""
    assert "tool dies never ended in the recording" in again.stderr
    assert "replayed as recorded as far as the recording goes" in again.stderr


NESTED = (
    POST
    + """
import os, sys
from reenact import Tap

tap, log = Tap(), os.environ["DID"]

def ask(text):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return post(os.environ["MODEL_URL"] + "/v1/messages", body)["content"][0]["text"]

@tap.tool
def lookup(question):
    with open(log, "a") as file: file.write("lookup\\n")
    return "42"

@tap.tool(effect=EFFECT)
def research(topic):
    print("researching", topic)
    return ask(f"{topic}: {lookup(topic)}")

print(ask("Hills?"), research("hills"), ask("Done?"))
"""
)


@pytest.mark.parametrize("effect", [long(None), long("read"), long("write"), "irreversible"])
def test_a_tool_that_calls_a_model_runs_and_its_calls_are_answered(
    quiet: Typed, typed: Typed, tmp_path: Path, provider: Provider, effect: str | None
) -> None:
    (tmp_path / "agent.py").write_text(NESTED.replace("EFFECT", repr(effect)))
    did = tmp_path / "did"

    def here(*words: str) -> subprocess.CompletedProcess[str]:
        did.unlink(missing_ok=True)
        return typed(*words, MODEL_URL=provider.url("text"), DID=str(did))

    first = here("run", "--name", "first", "agent.py")
    assert first.returncode == 0 and did.exists() and "researching hills" in first.stdout, first.stderr
    before = len(provider.settled())
    again = here("replay", "first")
    assert again.returncode == 0 and not did.exists() and len(provider.settled()) == before, again.stderr
    runs = effect in (None, "read")
    assert ("tool research calls a model, so its code runs" in again.stderr) is runs
    assert ("researching hills" in again.stdout) is runs
    answered = 4 if runs else 3  # the three model calls and lookup; else research in place of what is in it
    assert f"replayed as recorded: {answered} calls answered" in again.stderr, again.stderr
    forked = here("fork", "first", "--at", "turn:3", "--stale-world")
    assert forked.returncode == 0 and not did.exists() and len(provider.settled()) == before + 1, (
        forked.stderr
    )
    assert ("researching hills" in forked.stdout) is runs
