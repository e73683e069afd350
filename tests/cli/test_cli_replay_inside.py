"""Runs inside a run: blocks and decorated functions in files of their own are part of what is run again."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from reenact import Recording, schema
from reenact.recording.runs_inside import with_inside
from support.examples import long
from support.forked import type_in
from support.provider import Provider

AGENT = """
import asyncio, json, multiprocessing, os, random, sys, threading, time, urllib.request
import reenact

def ask(words, pause=0.0):
    time.sleep(random.random() * pause)
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    messages = [{"role": "user", "content": words}]
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "system": "Be exact.", "messages": messages}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["id"]

@reenact.run
def work(name):
    drawn = "" if "processes" in sys.argv else reenact.uuid()  # a pool's workers take what work there is
    return f"{name} {ask(f'first of {name}', 0.02)} {ask(f'second of {name}', 0.02)} {drawn}"

def row():
    print(ask("outer 1"))
    print(work("a"), work("b"), sep="\\n")
    print(ask("outer 2"))
    with reenact.run("block"):
        print(ask("in a block"), work("deep"))
    print(ask("outer 3"))

def threads():
    found = {}
    def one(name):
        found[name] = work(name)
    beside = [threading.Thread(target=one, args=(name,), name=name) for name in "pqr"]
    for thread in beside: thread.start()
    print(ask("outer", 0.02))
    for thread in beside: thread.join()
    print(found["p"], found["q"], found["r"], sep="\\n")

def processes():
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        print(*pool.map(work, "vwxyz", chunksize=1), ask("outer"), sep="\\n")

if __name__ == "__main__":
    globals()[sys.argv[1]]()
"""


class Desk:
    """A folder with an agent, and a user who types there."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        self.provider = provider
        self.program = folder / "agent.py"
        self.program.write_text(AGENT)

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        return type_in(words, self.folder, env | {"MODEL_URL": self.provider.url()})

    def file(self, name: str) -> Path:
        (found,) = self.folder.glob(f".reenact/*-{name}-*.jsonl")
        return found


@pytest.fixture
def desk(tmp_path: Path, provider: Provider) -> Desk:
    return Desk(tmp_path, provider)


@pytest.mark.parametrize(
    ("shape", "calls"),
    [(["row"], 10), (["threads"], 7), (["processes", "fork"], 11), long(["processes", "spawn"], 11)],
    ids=["row", "threads", "fork", "spawn"],
)
def test_a_program_with_runs_inside_goes_as_recorded(desk: Desk, shape: list[str], calls: int) -> None:
    first = desk.types("run", "--name", "first", "agent.py", *shape)
    assert first.returncode == 0, first.stderr
    again = desk.types("replay", "first")
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr
    assert again.stderr.splitlines()[-1] == f"reenact: replayed as recorded: {calls} calls answered, 0 live"


def test_a_change_in_a_run_inside_is_noticed(desk: Desk) -> None:
    assert desk.types("run", "--name", "first", "agent.py", "row").returncode == 0
    desk.program.write_text(AGENT.replace("second of {name}", "2nd of {name}"))
    again = desk.types("replay", "first", "--keep-going")
    assert again.returncode == 3 and "2nd of a" in again.stderr


def test_a_name_is_that_of_what_was_recorded_and_a_block_is_replayed_with_its_program(desk: Desk) -> None:
    """A replay has runs inside it, too, of the same names: none of them is meant by a name."""
    desk.program.write_text(AGENT.partition("if __name__")[0] + "row()")
    assert desk.types("run", "--name", "first", "agent.py", "row").returncode == 0
    recorded = Recording.load(desk.file("block"))
    assert desk.types("replay", "first").returncode == 0
    assert recorded.run_id in desk.types("show", "block").stdout
    part = desk.types("replay", "block")
    assert (
        part.returncode == 2
        and f"hint: take all of it: reenact replay {recorded.parent_run[:12]}" in part.stderr
    )
    imported = desk.types("replay", "work")
    assert imported.returncode == 2 and "when it is imported, before work is called" in imported.stderr
    assert "Traceback" not in imported.stderr


def test_of_a_folder_neither_blocks_nor_runs_inside_a_replay_are_forked(desk: Desk) -> None:
    block = "print(ask('outer'))\nwith reenact.run('block'): print(ask('in a block'))"
    desk.program.write_text(AGENT.partition("if __name__")[0] + block)
    assert desk.types("run", "--name", "first", "agent.py").returncode == 0
    assert desk.types("replay", "first").returncode == 0
    forked = desk.types("fork", ".reenact", "--json")
    assert [json.loads(line)["name"] for line in forked.stdout.splitlines()] == ["first"], forked.stderr
    none = desk.types("fork", "nowhere/*")
    assert none.returncode == 2 and "there is no run in nowhere/*" in none.stderr


def test_a_run_with_those_inside_is_in_the_order_of_time(desk: Desk) -> None:
    assert desk.types("run", "--name", "first", "agent.py", "row").returncode == 0
    alone = Recording.load(desk.file("first"))
    whole = with_inside(alone)
    questions = [
        event.body["messages"][0]["content"]
        for event in whole.events
        if event.event_type == schema.MODEL_REQUEST
    ]
    assert questions == [
        "outer 1", "first of a", "second of a", "first of b", "second of b", "outer 2", "in a block",
        "first of deep", "second of deep", "outer 3",
    ]  # fmt: skip
    assert len(alone.turns()) == 3 and len(whole.turns()) == whole.totals.turns == 10
    assert (whole.run_id, whole.name, whole.status) == (alone.run_id, "first", "ok")
    assert with_inside(Recording.load(desk.file("block"))).count() < whole.count()
    innermost = Recording.load(next(path for path in desk.folder.glob(".reenact/*-work-*") if is_deep(path)))
    assert with_inside(innermost) is innermost
    shown, reported = (
        desk.types("show", "first").stdout,
        json.loads(desk.types("show", "first", "--json").stdout.splitlines()[0]),
    )
    assert (
        re.search(r"^  4 runs inside: (work|block) [0-9a-f]{8}, ", shown, re.MULTILINE)
        and len(reported["runs_inside"]) == 4
    )


def is_deep(path: Path) -> bool:
    return "first of deep" in path.read_text()


@pytest.mark.long
def test_a_fork_answers_runs_inside_before_its_cut_and_makes_those_after_it(desk: Desk) -> None:
    first = desk.types("run", "--name", "first", "agent.py", "row")
    assert first.returncode == 0, first.stderr
    seen, path = len(desk.provider.log), desk.file("first")
    fork = desk.types("fork", "first", "--at", "turn:2", "--set", "max_tokens=5", "--json")
    assert fork.returncode == 0, fork.stderr
    lines, now = first.stdout.splitlines(), fork.stdout.splitlines()
    assert now[:3] == lines[:3]
    sent = [json.loads(request.body) for request in desk.provider.log[seen:]]
    assert [body["messages"][0]["content"] for body in sent] == [
        "outer 2", "in a block", "first of deep", "second of deep", "outer 3",
    ]  # fmt: skip
    assert {body["max_tokens"] for body in sent} == {5}
    reported = json.loads(fork.stderr.splitlines()[-1])
    assert reported["live"]["calls"] == reported["answered"] == 5
    # The fork names the run as its parent, and is no run inside it.
    again = desk.types("replay", str(path))
    assert (again.stdout, again.returncode) == (first.stdout, 0), again.stderr


@pytest.mark.long
def test_a_test_of_a_program_holds_the_runs_inside_it(desk: Desk) -> None:
    assert desk.types("run", "--name", "first", "agent.py", "threads").returncode == 0
    made = desk.types("test", "first", "--json")
    assert made.returncode == 0 and json.loads(made.stdout)["passes"] is True, made.stderr
    fixture = Recording.load(desk.folder / "tests/traces/test_first/test_first.jsonl")
    assert len(fixture.turns()) == 7 and len(fixture.writers) == 1
    assert len({call.lane for call in fixture.calls()}) == 4


@pytest.mark.long
def test_what_runs_inside_spend_counts(desk: Desk) -> None:
    assert desk.types("run", "--name", "first", "agent.py", "row").returncode == 0
    fork = desk.types("fork", "first", "--max-usd", "0.0005")
    stopped = re.search(r"has spent \$0\.\d+ of", fork.stderr)
    assert fork.returncode == 1 and stopped is not None, fork.stderr
