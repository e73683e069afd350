"""reenact fork with arms and over many runs: what a change does, beside what no change does."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.forked import type_in

AGENT = """
import json, os, sys, urllib.request
from reenact import Tap

tap = Tap()

@tap.tool(effect="pure")
def search(about):
    return "nothing about " + about

messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    ask = {"model": "m", "max_tokens": 9, "system": "Be kind.", "messages": messages}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(ask).encode(), headers)) as found:
        answer = json.load(found)
    messages.append({"role": "assistant", "content": answer["content"]})
    uses = [block for block in answer["content"] if block["type"] == "tool_use"]
    if not uses:
        break
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": search(**use["input"])} for use in uses]
    messages.append({"role": "user", "content": results})
text = answer["content"][0]["text"]
print(text)
sys.exit(text == "I am lost.")
"""


class Model(BaseHTTPRequestHandler):
    """Searches before it answers, unless it is told not to; asked for poems in a hurry it is lost."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        hurried = "hurry" in body["system"]
        question = body["messages"][0]["content"]
        if not hurried and len(body["messages"]) == 1 and question != "Hello":
            content = [{"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"about": question}}]
        else:
            lost = hurried and question == "A poem"
            content = [{"type": "text", "text": "I am lost." if lost else f"So much for {question}."}]
        printed = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 5},
        }  # fmt: skip
        data = json.dumps(printed).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory):
    """Types commands in a folder with three recorded runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder = tmp_path_factory.mktemp("many")
    (folder / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": f"http://127.0.0.1:{server.server_port}", "COLUMNS": "200"}
    (folder / "reenact.toml").write_text("[prices.m]\ninput = 1000\noutput = 1000\n")

    def here(*words: str) -> subprocess.CompletedProcess[str]:
        done = type_in(words, folder, env)
        assert "reenact has a bug" not in done.stderr, done.stderr
        return done

    for name, question in (("hello", "Hello"), ("facts", "A fact"), ("poem", "A poem")):
        assert here("run", "--name", name, "agent.py", question).returncode == 0
    yield here
    server.shutdown()


@pytest.mark.long
def test_a_change_is_held_against_no_change_in_every_run(desk) -> None:
    words = (
        "fork",
        ".reenact/*",
        "--set",
        "system=Be kind, and hurry.",
        "--control",
        "--expect",
        "no-tool:search",
    )
    done = desk(*words, "--json")
    found = {row["name"]: row["arms"] for row in map(json.loads, done.stdout.splitlines())}
    verdicts = {name: arms["edited"]["verdict"]["word"] for name, arms in found.items()}
    assert verdicts == {"hello": "unchanged", "facts": "changed as intended", "poem": "broken"}
    assert done.returncode == 1
    assert any(line.startswith("-search(") for line in found["facts"]["edited"]["verdict"]["diff"])
    sample = found["facts"]["control"]["samples"][0]
    assert (sample["ended"], sample["calls"], sample["tokens"], sample["usd"]) == ("ok", 2, 30, 0.03)
    shown = desk("fork", "facts", *words[2:])
    assert shown.returncode == 0 and "changed as intended" in shown.stdout and "-search(" in shown.stdout
    assert "RUN" in shown.stdout and "1/1" in shown.stdout and "untouched" in shown.stdout


@pytest.mark.long
def test_values_side_by_side_with_samples_and_a_command_that_verifies(desk) -> None:
    words = ("fork", "facts", "--at", "turn:2", "--vary", "model=a,b", "--samples", "2", "--verify")
    done = desk(*words, 'grep -q "\\"model\\": *\\"a\\"" "$REENACT_FORK"', "--json")
    [row] = map(json.loads, done.stdout.splitlines())
    assert list(row["arms"]) == ["model=a", "model=b"] and done.returncode == 1
    verified = {name: [each["verified"] for each in arm["samples"]] for name, arm in row["arms"].items()}
    assert verified == {"model=a": [True, True], "model=b": [False, False]}
    assert {name: arm["verdict"]["word"] for name, arm in row["arms"].items()} == {
        "model=a": "unchanged",
        "model=b": "broken",
    }
    table = desk("fork", "facts", "--at", "turn:2", "--set", "model=b", "--verify", "echo too dear; exit 4")
    assert "edited: broken (0% end well, 100% did: --verify failed with 4: too dear)" in table.stdout


def test_one_call_without_the_agent(desk) -> None:
    done = desk("fork", "facts", "--at", "turn:1", "--one-call", "--set", "system=In a hurry.")
    assert done.returncode == 0, done.stderr
    recorded, now = done.stdout.splitlines()
    assert recorded.startswith("recorded: search(") and now == "now:      So much for A fact."
    reported = desk("fork", "facts", "--one-call", "--set", "model=other", "--json")
    assert json.loads(reported.stdout)["answer"]["model"] == "other"
    misspelt = desk("fork", "facts", "--one-call", "--set", "modle=other")
    assert "modle: the request had no field of that name" in misspelt.stderr
    assert "fork" in desk("show", json.loads(reported.stdout)["run"][:12]).stdout
    other = desk("fork", "facts", "--at", "turn:2", "--one-call", "--tool-result", "Nothing.", "--json")
    assert json.loads(other.stdout)["fork"]["edits"]["tool_result"] == "Nothing.", other.stderr
    own = desk("fork", "facts", "--one-call", "--response", "Nothing.")
    assert own.returncode == 2 and "nothing is left to send" in own.stderr


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("--vary", "model"), "NAME=A,B"),
        (("--expect", "wonders"), "tool:NAME"),
        (("--expect", "text~("), "regular expression"),
        (("--samples", "0", "--control"), "at least 1"),
        (("--samples", "2", "--set", "nonsense"), "NAME=VALUE"),
    ],
)
def test_a_wrong_experiment_is_reported(desk, words, printed) -> None:
    done = desk("fork", "facts", *words)
    assert done.returncode == 2 and printed in done.stderr


def test_no_matching_run_is_reported(desk) -> None:
    assert desk("fork", "nowhere/*", "--control").returncode == 2


@pytest.mark.long
def test_what_never_ends_well_says_nothing_of_a_change(desk) -> None:
    done = desk("fork", "hello", "--set", "modle=x", "--control", "--verify", "false", "--json")
    [row] = map(json.loads, done.stdout.splitlines())
    assert row["arms"]["edited"]["verdict"]["word"] == "not comparable" and done.returncode == 1
