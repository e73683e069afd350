"""reenact fork: which tools run after the cut, who is asked, and agents that work side by side."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.examples import long
from support.forked import type_in
from support.provider import Provider

ACTING = """
import json, os, sys, urllib.request
from reenact import Tap

tap, effect = Tap(), sys.argv[1]

@tap.tool(effect=None if effect == "untold" else effect)
def lookup(question):
    open(os.environ["LOOKED"], "a").write(question + "\\n")
    return "42"

messages = [{"role": "user", "content": "Which city?"}]
while True:
    ask = {"model": "m", "max_tokens": 9, "messages": messages}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(ask).encode(), headers)) as found:
        answer = json.load(found)
    messages.append({"role": "assistant", "content": answer["content"]})
    uses = [block for block in answer["content"] if block["type"] == "tool_use"]
    if not uses:
        break
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": lookup(**use["input"])} for use in uses]
    messages.append({"role": "user", "content": results})
print("done")
"""

SIDE_BY_SIDE = """
import asyncio, os
import httpx

client = httpx.AsyncClient(base_url=os.environ["MODEL_URL"] + "/v1", timeout=60)

async def talk(name, rounds):
    messages = []
    for number in range(rounds):
        messages.append({"role": "user", "content": f"{name} asks {number}"})
        done = await client.post("chat/completions", json={"model": name, "messages": messages})
        messages.append({"role": "assistant", "content": done.json()["choices"][0]["message"]["content"]})
    return len(messages)

async def main():
    print(await asyncio.gather(talk("one", 4), talk("two", 4), talk("three", 4)))
    print(await talk("last", 2))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, provider: Provider):
    folder = tmp_path_factory.mktemp("acting")
    (folder / "acting.py").write_text(ACTING)
    (folder / "beside.py").write_text(SIDE_BY_SIDE)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"OPENAI_API_KEY": "k", "LOOKED": str(folder / "looked")}
    for effect in ("read", "write", "irreversible", "untold"):
        done = typed(
            folder, env | {"MODEL_URL": provider.url("tools-2")}, "run", "--name", effect, "acting.py", effect
        )
        assert done.returncode == 0, done.stderr
    done = typed(folder, env | {"MODEL_URL": provider.url()}, "run", "--name", "beside", "beside.py")
    assert done.returncode == 0, done.stderr
    return folder, env


def typed(folder: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    done = type_in(words, folder, env, session=True)
    assert "reenact has a bug" not in done.stderr, done.stderr
    return done


@pytest.fixture
def desk(recorded, tmp_path: Path, provider: Provider):
    """Forks a run at its second turn, and tells what became of it and how often the tool ran."""
    folder, env = recorded
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    env = env | {"MODEL_URL": provider.url("tools-2"), "LOOKED": str(tmp_path / "looked")}

    def fork(effect: str, *words: str) -> tuple[int, str, int]:
        (tmp_path / "looked").unlink(missing_ok=True)
        done = typed(tmp_path, env, "fork", effect, "--at", "turn:2", *words, "--", "acting.py", effect)
        looked = (tmp_path / "looked").read_text().count("\n") if (tmp_path / "looked").exists() else 0
        return done.returncode, done.stderr, looked

    fork.folder, fork.env = tmp_path, env  # type: ignore[attr-defined]
    return fork


def test_a_changed_world_before_the_cut_needs_a_flag(desk, provider: Provider) -> None:
    before = len(provider.settled())
    for effect in ("write", "irreversible", "untold"):
        code, printed, looked = desk(effect)
        assert (code, looked) == (2, 0) and "lookup" in printed and "--stale-world" in printed
        assert "; does not run again)" in printed and "RUNS AGAIN" not in printed
    assert len(provider.settled()) == before


def test_tools_run_by_what_they_do(desk) -> None:
    assert desk("read")[::2] == (0, 1)
    for effect in ("write", "untold", "irreversible"):
        code, printed, looked = desk(effect, "--stale-world")
        assert (code, looked) == (1, 0) and "--live-tools lookup" in printed
    code, printed, looked = desk("irreversible", "--stale-world", "--live-tools", "lookup")
    assert (code, looked) == (0, 1) and "world: stale" in printed
    assert desk("untold", "--stale-world", "--tools", "recorded")[::2] == (0, 0)
    (desk.folder / "reenact.toml").write_text('[effects]\nlookup = "read"\n')
    assert desk("untold")[::2] == (0, 1)


def test_a_recorded_result_answers_the_same_question_only(desk) -> None:
    agent = desk.folder / "acting.py"
    agent.write_text(
        agent.read_text().replace('lookup(**use["input"])', 'lookup(use["input"]["question"] + "!")')
    )
    code, printed, looked = desk("read", "--tools", "recorded", "--rebase")
    assert (code, looked) == (1, 0) and "has no such recorded call" in printed


@pytest.mark.parametrize(
    ("answer", "code", "times"), [("y", 0, 1), long("a", 0, 1), long("n", 1, 0), ("", 1, 0)]
)
def test_on_a_terminal_the_user_is_prompted(desk, answer: str, code: int, times: int) -> None:
    (desk.folder / "looked").unlink(missing_ok=True)
    words = ["fork", "write", "--at", "turn:2", "--stale-world", "--", "acting.py", "write"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(desk.folder)
        os.execve(sys.executable, [sys.executable, "-m", "reenact", *words], desk.env)
    seen = _until(terminal, b"[y/N/a]")
    assert b"run tool lookup(" in seen and b"write" in seen, seen
    os.write(terminal, answer.encode() + b"\n")
    _until(terminal, None)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    looked = desk.folder / "looked"
    assert (looked.read_text().count("\n") if looked.exists() else 0) == times


def _until(terminal: int, wanted: bytes | None) -> bytes:
    seen, patience = b"", time.monotonic() + 60
    while wanted is None or wanted not in seen:
        assert time.monotonic() < patience, seen
        if select.select([terminal], [], [], 1)[0]:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                data = b""
            if not data:
                return seen
            seen += data
    return seen


@pytest.mark.long
def test_agents_beside_the_one_that_is_cut_keep_to_their_recording(
    recorded, tmp_path: Path, provider: Provider
):
    folder, env = recorded
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    env = env | {"MODEL_URL": provider.url()}
    calls = [json.loads(line) for line in typed(tmp_path, env, "cat", "beside", "--full").stdout.splitlines()]
    requests = [each for each in calls if each["kind"] == "model.request"]
    cut = next(
        each for each in requests if each["body"]["model"] == "two" and len(each["body"]["messages"]) == 3
    )
    before = len(provider.settled())
    words = ("--at", str(cut["step"]), "--set", "temperature=0", "--json", "--", "beside.py")
    done = typed(tmp_path, env, "fork", "beside", *words)
    assert done.stdout == "[8, 8, 8]\n4\n", done.stderr
    live = [json.loads(each.body) for each in provider.settled()[before:]]
    # Agent two from its second call on, and who comes after all of them; one and three are answered.
    sizes = [(each["model"], len(each["messages"])) for each in live]
    assert sizes == [("two", 3), ("two", 5), ("two", 7), ("last", 1), ("last", 3)]
    assert [each.get("temperature") for each in live] == [0, 0, 0, None, None]
    assert json.loads(done.stderr.splitlines()[-1])["answered"] == 9
