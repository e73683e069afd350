"""reenact replay of agents that do not do what they should: one recording, replayed in many moods."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.forked import type_in
from support.provider import Provider

AGENT = """
import json, os, socket, subprocess, sys, threading, time, urllib.request

MOOD = os.environ.get("MOOD", "")
ASK = '''
import json, os, urllib.request
def ask(text, url=os.environ["MODEL_URL"]):
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(url + "/v1/messages", body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))["content"][0]["text"]
'''
exec(ASK)

for question in ["two", "one"] if MOOD == "swapped" else ["one", "two"]:
    print(ask(question))
print(ask("long " * 20_000))
if MOOD == "off":  # a process that is not to be recorded
    code = subprocess.run([sys.executable, "-c", ASK + "ask('live')"], env={**os.environ, "REENACT_OFF": "1"})
    print("child", code.returncode)
if MOOD == "link":
    link = os.path.join(os.environ["TMPDIR"], "link")
    os.symlink(os.path.abspath("outside"), link)
    for change in (lambda: open(link, "w"), lambda: os.truncate(link, 0)):
        try:
            change()
        except PermissionError as exc:
            print("refused", file=sys.stderr)
while MOOD == "deaf":
    try:
        print(ask("unheard of"))
    except:
        time.sleep(0.01)

# A server that never answers: the call is left behind when the agent ends.
silent, requested = socket.create_server(("127.0.0.1", 0)), threading.Event()
def left_behind():
    requested.set()
    ask("anything new?", f"http://127.0.0.1:{silent.getsockname()[1]}")
threading.Thread(target=left_behind, daemon=True).start()
requested.wait()
if "REENACT_REPLAY" not in os.environ:
    silent.accept()[0].recv(1)
else:
    time.sleep(1)  # the thread makes its call meanwhile; nothing tells when it waits for the recording
sys.exit(4)
"""


class Recorded:
    """A folder with a recorded agent, in which commands are typed."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder, self.provider = folder, provider
        (folder / "agent.py").write_text(AGENT)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env["MODEL_URL"] = provider.url("text")
        self.first = self("run", "--name", "first", "agent.py")
        assert self.first.returncode == 4, self.first.stderr
        (self.trace,) = folder.glob(".reenact/*-first-*.jsonl")

    def __call__(self, *words: str, mood: str = "", cwd: str = ".") -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder / cwd, {**self.env, "MOOD": mood})


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("stubborn"), provider)


def test_a_call_that_was_left_behind_is_left_behind_again(recorded: Recorded) -> None:
    again = recorded("replay", "first")
    assert (again.stdout, again.returncode) == (recorded.first.stdout, 4), again.stderr
    assert "replayed as recorded" in again.stderr


def test_no_process_can_switch_its_answers_off(recorded: Recorded) -> None:
    before = len(recorded.provider.settled())
    again = recorded("replay", "first", mood="off")
    assert len(recorded.provider.settled()) == before
    assert again.returncode == 3 and "child 1" in again.stdout
    assert "diverged from the recording" in again.stderr


def test_a_link_in_the_scratch_folder_leads_nowhere(recorded: Recorded) -> None:
    outside = recorded.folder / "outside"
    outside.write_text("mine")
    again = recorded("replay", "first", mood="link")
    assert outside.read_text() == "mine" and again.stderr.startswith("reenact: running")
    assert again.stderr.count("refused\n") == 2 and again.returncode == 3


@pytest.mark.long  # it waits twice until an agent counts as quiet
def test_code_that_asks_again_whatever_is_raised_is_ended(recorded: Recorded) -> None:
    again = recorded("replay", "first", mood="deaf")
    assert again.returncode == 3 and "extra-call" in again.stderr


def test_other_order_is_no_success_where_all_goes_on(recorded: Recorded) -> None:
    again = recorded("replay", "first", "--keep-going", "--json", mood="swapped")
    reported = json.loads(again.stderr.splitlines()[-1])
    assert again.returncode == 3 and [each["code"] for each in reported["diverged"]] == ["reordered"]
    assert again.stdout.splitlines()[:2] == recorded.first.stdout.splitlines()[1::-1]


def test_long_texts_that_lie_elsewhere_are_found_or_reported_as_missing(recorded: Recorded) -> None:
    moved = recorded.folder / "moved"
    moved.mkdir()
    (moved / "t.jsonl").write_bytes(recorded.trace.read_bytes())
    recorded.trace.with_suffix(".blobs").rename(moved / "texts")
    try:
        found = recorded("replay", "t.jsonl", "--blobs", "texts", cwd="moved")
        lost = recorded("replay", "t.jsonl", cwd="moved")
    finally:
        (moved / "texts").rename(recorded.trace.with_suffix(".blobs"))
    assert found.returncode == 4, found.stderr
    assert lost.returncode == 3 and "only a part of this request" in lost.stderr and "--blobs" in lost.stderr


def test_a_damaged_trace_is_reported(recorded: Recorded) -> None:
    lines = recorded.trace.read_bytes().splitlines(keepends=True)
    (recorded.folder / "damaged.jsonl").write_bytes(b"".join([*lines[:2], b"no JSON\n", *lines[3:]]))
    again = recorded("replay", "damaged.jsonl")
    assert again.returncode == 3 and "line 3" in again.stderr.splitlines()[1]
