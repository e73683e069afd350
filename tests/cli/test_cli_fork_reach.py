"""reenact fork: cuts inside tools, in other processes and among equal requests; what is real after the cut."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.forked import type_in
from support.provider import Provider

HEAD = """
import json, os, sys, urllib.request
import reenact
from reenact import Tap

tap = Tap()

def create(text, model="m"):
    ask = {"model": model, "max_tokens": 9, "system": "S", "messages": [{"role": "user", "content": text}]}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(ask).encode(), headers)) as found:
        return json.load(found)["content"][0]["text"]
"""
NESTED = (
    HEAD
    + """
@tap.tool(effect=sys.argv[1])
def research(question):
    print("research", question)
    create("sub 1 " + question)
    return create("sub 2 " + question)

before = reenact.uuid()
create(f"go {before}")
found = research("a")
create(f"found {reenact.uuid()}")
print("ids", before, reenact.uuid())
"""
)
PROCESSES = (
    HEAD
    + """
import multiprocessing

def work(name):
    create(name + " one")
    return create(name + " two")

if __name__ == "__main__":
    spawning = multiprocessing.get_context("spawn")
    create("root one")
    for name in ("first", "second"):
        worker = spawning.Process(target=work, args=(name,))
        worker.start()
        worker.join()
    create("root two")
"""
)
THREADS = (
    HEAD
    + """
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(5) as pool:
    print(len(list(pool.map(lambda _: create("same"), range(5)))))
"""
)
OUTSIDE = (
    HEAD
    + """
create("one")
create("two")
if os.environ.get("BOLD"):
    try:
        if os.environ["BOLD"] == "file":
            open("out.txt", "w")
        elif os.environ["BOLD"] == "halted":
            for number in range(9):
                create("more")
        else:
            urllib.request.urlopen("http://other.example/pay")
    except BaseException as exc:
        print(type(exc).__name__)
"""
)


class Desk:
    """A folder with one recorded agent."""

    def __init__(self, folder: Path, provider: Provider, agent: str, *args: str, **env: str) -> None:
        self.folder, self.provider, self.args = folder, provider, args
        (folder / "agent.py").write_text(agent)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env = {**clean, "MODEL_URL": provider.url(), **env}
        assert self("run", "--name", "first", "agent.py", *args).returncode == 0
        lines = self("cat", "first", "--full", "--kind", "model.request").stdout.splitlines()
        self.requests = [json.loads(line) for line in lines]

    def __call__(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, {**self.env, **env}, session=True)

    def call(self, text: str) -> str:
        """The address of the call that asks something."""
        printed = ((each["body"]["messages"][0]["content"], each["call"]) for each in self.requests)
        return "call:" + next(call for content, call in printed if content.startswith(text))

    def fork(self, *words: str, **env: str) -> tuple[subprocess.CompletedProcess[str], list[dict]]:
        """Fork it, and return what the provider was asked."""
        before = len(self.provider.settled())
        done = self("fork", "first", *words, "--", "agent.py", *self.args, **env)
        assert "reenact has a bug" not in done.stderr, done.stderr
        return done, [json.loads(each.body) for each in self.provider.settled()[before:]]


def questions(bodies: list[dict]) -> list[str]:
    return [" ".join(body["messages"][0]["content"].split()[:2]) for body in bodies]


def test_a_cut_inside_a_tool_runs_the_tool_and_what_came_before_is_answered(tmp_path, provider) -> None:
    desk = Desk(tmp_path, provider, NESTED, "read")
    done, sent = desk.fork("--at", desk.call("sub 2"), "--set", "system=New.")
    assert done.returncode == 0, done.stderr
    assert "research a" in done.stdout
    assert questions(sent)[0] == "sub 2" and len(sent) == 2 and sent[0]["system"] == "New."
    then = desk.requests[0]["body"]["messages"][0]["content"].removeprefix("go ")
    first, later = done.stdout.split()[-2:]
    assert first == then  # a recorded value before the cut, real ones after it
    drawn = desk("cat", "first", "--kind", "ambient").stdout
    assert first in drawn and later not in drawn and sent[1]["messages"][0]["content"].split()[1] not in drawn


def test_a_tool_that_acts_is_not_run_again_around_a_cut_unless_allowed(tmp_path, provider) -> None:
    desk = Desk(tmp_path, provider, NESTED, "write")
    done, sent = desk.fork("--at", desk.call("sub 2"), "--stale-world")
    assert (done.returncode, sent) == (2, []) and "--live-tools research" in done.stderr
    done, sent = desk.fork("--at", desk.call("sub 2"), "--stale-world", "--live-tools", "research")
    assert done.returncode == 0 and questions(sent)[0] == "sub 2"


@pytest.mark.long
def test_a_cut_in_a_child_process_holds_for_all_that_come_later(tmp_path, provider) -> None:
    desk = Desk(tmp_path, provider, PROCESSES)
    done, sent = desk.fork("--at", desk.call("first two"), "--set", "system=New.")
    assert done.returncode == 0, done.stderr
    assert questions(sent) == ["first two", "second one", "second two", "root two"]
    assert {body["system"] for body in sent} == {"New."}
    done, sent = desk.fork("--at", desk.call("first two"), "--max-calls", "2")
    assert questions(sent) == ["first two", "second one"]  # all processes count
    assert done.returncode == 1 and done.stderr.count("the limit of 2 live calls is reached") >= 1


@pytest.mark.long
@pytest.mark.long
def test_of_equal_requests_side_by_side_only_the_one_at_the_cut_is_live(tmp_path, provider) -> None:
    # All five are under way before the first is answered, however busy the machine is.
    desk = Desk(tmp_path, provider, THREADS, MODEL_URL=provider.url("text,late-4000"))
    quick = {"MODEL_URL": provider.url()}
    done, sent = desk.fork("--at", f"call:{desk.requests[2]['call']}", **quick)
    assert (done.returncode, done.stdout, len(sent)) == (0, "5\n", 1), done.stderr
    done, sent = desk.fork(**quick)  # without --at nothing is answered
    assert (done.returncode, len(sent)) == (0, 5), done.stderr
    done, sent = desk.fork("--max-calls", "3", **quick)
    assert (done.returncode, len(sent)) == (1, 3)
    assert done.stderr.count("hint: --max-calls") == 1  # told once


def test_what_is_refused_after_the_cut_counts_even_if_the_agent_does_not_care(tmp_path, provider) -> None:
    desk = Desk(tmp_path, provider, OUTSIDE)
    for bold, printed in (("file", "refused to write"), ("pay", "refused to connect to other.example")):
        done, sent = desk.fork("--at", "turn:2", BOLD=bold)
        assert (done.returncode, len(sent)) == (1, 1) and printed in done.stderr, done.stderr
        assert "stopped" in done.stderr and "hint: " in done.stderr
    done, sent = desk.fork("--at", "turn:2", "--max-calls", "3", BOLD="halted")
    assert (done.returncode, done.stdout, len(sent)) == (1, "Halted\n", 3)
    done, _ = desk.fork("--at", "turn:2", "--response", "Mine.", "--json")
    reported = json.loads(done.stderr.splitlines()[-1])
    assert (reported["exit"], reported["live"]["calls"]) == (0, 0)  # an answer of one's own is no live call
    done, _ = desk.fork("--at", "turn:2", MODEL_URL="http://127.0.0.1:9")
    assert done.returncode == 1 and "hint: 127.0.0.1 does not answer" in done.stderr


def test_a_missing_key_is_reported(tmp_path: Path, provider: Provider) -> None:
    agent = """
import json, os, urllib.request
headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}).encode()
url = os.environ["MODEL_URL"] + "/v1/chat/completions"
print(json.load(urllib.request.urlopen(urllib.request.Request(url, body, headers)))["model"])
"""
    desk = Desk(tmp_path, provider, agent, OPENAI_API_KEY="k")
    del desk.env["OPENAI_API_KEY"]
    done, sent = desk.fork("--at", "turn:1")
    assert (done.returncode, sent) == (3, [])
    assert "hint: a fork calls the model, and OPENAI_API_KEY is not set" in done.stderr
