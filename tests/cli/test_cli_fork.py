"""reenact fork: an agent run from its recording up to a call, and live from there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.examples import LONG, long
from support.forked import type_in
from support.provider import Provider

AGENT = """
import json, os, sys, urllib.request
from reenact import Tap

tap = Tap()

@tap.tool(effect="read")
def lookup(question):
    with open(os.environ["LOOKED"], "a") as file:
        file.write(question + "\\n")
    return "42"

def create(**ask):
    if "--sdk" in sys.argv:
        import anthropic
        client = anthropic.Anthropic(base_url=os.environ["MODEL_URL"])
        if "--stream" in sys.argv:
            with client.messages.stream(**ask) as answers:
                return answers.get_final_message().model_dump()
        return client.messages.create(**ask).model_dump()
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(ask).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)

messages = [{"role": "user", "content": "Which city has seven hills?"}]
tools = [{"name": "lookup", "input_schema": {"type": "object"}}]
while True:
    answer = create(model="m", max_tokens=99, system="Be exact.", messages=messages, tools=tools)
    messages.append({"role": "assistant", "content": answer["content"]})
    uses = [block for block in answer["content"] if block["type"] == "tool_use"]
    if not uses:
        break
    results = [
        {"type": "tool_result", "tool_use_id": use["id"], "content": lookup(**use["input"])} for use in uses
    ]
    messages.append({"role": "user", "content": results})
print(answer["content"][0]["text"], len(messages))
"""
TURNS = 12
FLAGS = {"first": (), "sdk": ("--sdk",), "streamed": ("--sdk", "--stream")}
"""How the agent of each run calls its model."""


class Desk:
    """A folder with a recorded agent, and what the provider was asked since."""

    def __init__(self, folder: Path, env: dict[str, str], provider: Provider) -> None:
        self.folder = folder
        self.env = {**env, "LOOKED": str(folder / "looked")}
        self.provider = provider
        self.before = len(provider.settled())

    def __call__(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        done = type_in(words, self.folder, {**self.env, **env}, session=True)
        assert "reenact has a bug" not in done.stderr, done.stderr
        return done

    def fork(self, *words: str, run: str = "first", **env: str) -> dict:
        """Fork a run of the copied folder, with the agent that is there."""
        done = self("fork", run, "--json", *words, "--", "agent.py", *FLAGS[run], **env)
        reported = json.loads(done.stderr.splitlines()[-1])
        return {**reported, "code": done.returncode, "out": done.stdout}

    def record(self, run: str) -> None:
        done = self("run", "--name", run, "agent.py", *FLAGS[run])
        assert done.returncode == 0, done.stderr
        (self.folder / "looked").unlink()
        self.before = len(self.provider.settled())

    def requests(self) -> list[dict]:
        """The bodies of the requests that have reached the provider since."""
        return [json.loads(each.body) for each in self.provider.settled()[self.before :]]

    def looked(self) -> list[str]:
        path = self.folder / "looked"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, provider: Provider):
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url(f"tools-{TURNS - 1}"), "ANTHROPIC_API_KEY": "k"}
    Desk(folder, env, provider).record("first")
    return folder, env


@pytest.fixture
def desk(recorded, tmp_path: Path, provider: Provider) -> Desk:
    folder, env = recorded
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return Desk(tmp_path, env, provider)


def test_at_each_step_the_provider_sees_the_remaining_requests_and_no_other(desk: Desk) -> None:
    [first] = (desk.folder / ".reenact").glob("*-first-*.jsonl")
    parent = first.read_bytes()
    for turn in range(1, TURNS + 1) if LONG else (1, 6, TURNS):
        seen, looked = len(desk.requests()), len(desk.looked())
        reported = desk.fork("--at", f"turn:{turn}")
        assert (reported["code"], reported["out"]) == (0, f"Lisbon has seven hills. {2 * TURNS}\n"), reported
        sizes = [len(body["messages"]) for body in desk.requests()[seen:]]
        assert sizes == [2 * each + 1 for each in range(turn - 1, TURNS)]
        assert len(desk.looked()) - looked == TURNS - turn  # those before the cut are answered
        assert reported["live"]["calls"] == TURNS - turn + 1
    assert first.read_bytes() == parent


def test_a_changed_prompt_stays_in_force(desk: Desk) -> None:
    (desk.folder / "new.txt").write_text("Be brief.")
    reported = desk.fork("--at", "turn:10", "--set", "system=@new.txt", "--set", "model=other")
    assert reported["code"] == 0, reported
    assert [(body["system"], body["model"]) for body in desk.requests()] == [("Be brief.", "other")] * 3
    once = desk.fork("--at", "turn:10", "--set", "system=Short.", "--once")
    assert once["code"] == 0
    assert [body["system"] for body in desk.requests()[3:]] == ["Short.", "Be exact.", "Be exact."]
    shown = desk("show", once["run"][:12], "--json")
    assert shown.returncode == 0


@pytest.mark.parametrize("run", ["first", long("sdk"), long("streamed")])
def test_an_answer_of_ones_own_takes_the_recorded_ones_place(desk: Desk, run: str) -> None:
    if run != "first":
        desk.record(run)
    use = {"type": "tool_use", "id": "toolu_mine", "name": "lookup", "input": {"question": "Mine?"}}
    body = {"type": "message", "role": "assistant", "content": [use], "stop_reason": "tool_use", "model": "m"}
    (desk.folder / "answer.json").write_text(json.dumps(body))
    reported = desk.fork("--at", "turn:12", "--response", "@answer.json", run=run)
    assert (reported["code"], reported["out"]) == (0, f"Lisbon has seven hills. {2 * TURNS + 2}\n"), reported
    assert desk.looked() == ["Mine?"]
    [request] = desk.requests()
    assert request["messages"][-2]["content"][0]["name"] == "lookup"
    assert request["messages"][-1]["content"][0]["tool_use_id"] == "toolu_mine"
    printed = desk.fork("--at", "turn:12", "--response", "Porto.", run=run)
    assert (printed["code"], printed["out"]) == (0, f"Porto. {2 * TURNS}\n") and len(desk.requests()) == 1


def test_a_tools_result_and_a_message_more_and_one_less(desk: Desk) -> None:
    calls = [json.loads(line) for line in desk("cat", "first", "--kind", "tool.called").stdout.splitlines()]
    reported = desk.fork("--at", str(calls[-1]["step"]), "--tool-result", "a hundred metres")
    assert reported["code"] == 0 and desk.looked() == []
    assert desk.requests()[-1]["messages"][-1]["content"][0]["content"] == "a hundred metres"
    desk.fork("--at", "turn:11", "--inject-user", "In metres, please.")
    injected = desk.requests()[1:]
    assert [len(body["messages"]) for body in injected] == [21, 23]  # beside the results, in both
    assert all(body["messages"][20]["content"][-1]["text"] == "In metres, please." for body in injected)
    refused = desk("fork", "first", "--at", "turn:11", "--drop", "2", "--", "agent.py")
    assert refused.returncode == 2 and "message" in refused.stderr and "hint" in refused.stderr
    desk.fork("--at", "turn:12", "--drop", "2", "--drop", "3")
    assert [len(body["messages"]) for body in desk.requests()[3:]] == [21, 23]  # it looks once more, then


@pytest.mark.long
def test_no_more_is_spent_than_allowed(desk: Desk) -> None:
    reported = desk.fork("--at", "turn:3", "--max-calls", "2")
    assert reported["code"] == 1 and len(desk.requests()) == 2
    assert "2 live calls" in reported["halted"][0]["why"] and "--max-calls" in reported["halted"][0]["hint"]
    (desk.folder / "reenact.toml").write_text("[prices.m]\ninput = 1000\noutput = 1000\n")
    reported = desk.fork("--at", "turn:3", "--max-usd", "0.2")
    assert reported["code"] == 1 and "spent" in reported["halted"][0]["why"], reported
    assert 2 < len(desk.requests()) < 10
    assert desk.fork("--at", "turn:3", "--max-steps", "1")["code"] == 1


def test_what_leads_elsewhere_before_the_cut_ends_it(desk: Desk) -> None:
    agent = desk.folder / "agent.py"
    agent.write_text(agent.read_text().replace("Be exact.", "Be kind."))
    reported = desk.fork("--at", "turn:5")
    assert reported["code"] == 3 and not reported["passed"] and desk.requests() == []
    assert reported["diverged"][0]["path"] == "system"
    rebased = desk.fork("--at", "turn:5", "--rebase")
    assert rebased["code"] == 0 and {body["system"] for body in desk.requests()} == {"Be kind."}
    assert len(desk.requests()) == TURNS - 4 and len(rebased["doubts"]) == 4


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (("--at", "turn:13"), "it has 12 turns"),
        (("--at", "9999"), "lines at most"),
        (("--set", "nonsense"), "NAME=VALUE"),
        (("--set", "system=@nowhere.txt"), "nowhere.txt"),
        (("--response", "@nowhere.json"), "nowhere.json"),
        (("--live-tools", "search"), "its tools: lookup"),
        (("--at", "turn:2", "--tool-result", "1", "--tool", "search"), "search"),
    ],
)
def test_what_cannot_be_done_is_reported_before_anything_runs(desk: Desk, words, printed) -> None:
    done = desk("fork", "first", *words, "--", "agent.py")
    assert done.returncode == 2 and printed in done.stderr and desk.requests() == []


def test_a_provider_that_is_down_is_the_agents_own_error(desk: Desk) -> None:
    reported = desk.fork("--at", "turn:12", MODEL_URL="http://127.0.0.1:9")
    assert reported["code"] == 1 and reported["passed"] and reported["status"] == "error"
