"""Hand-written agents, recorded with no line changed: each tool call is in the file, and the agent sees no change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.examples import long, one_in
from support.forked import type_in
from support.provider import Provider

AGENTS = Path(__file__).parents[1] / "support" / "tool_agents"
WITHOUT_FUNCTIONS = ("inline", "prefixed")
FOUND = sorted(
    path.stem
    for path in AGENTS.glob("*.py")
    if path.stem not in (*WITHOUT_FUNCTIONS, "agent_loop", "looks_around", "changed_arguments")
)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


class Recorded:
    """One agent, bare and recorded."""

    def __init__(self, agent: str, folder: Path, provider: Provider, *flags: str, **variables: str) -> None:
        env = {**os.environ, "MODEL_URL": provider.url("plan"), **variables}
        script = str(AGENTS / f"{agent}.py")
        bare = subprocess.run([sys.executable, script], cwd=folder, env=env, capture_output=True, text=True)
        assert bare.returncode == 0, bare.stderr
        self.bare = bare
        self.done = type_in(["run", "--out", folder / "runs", *flags, script], folder, env)
        (self.path,) = (folder / "runs").glob("*.jsonl")
        self.events = [json.loads(line) for line in self.path.read_text().splitlines()]
        self.env, self.folder = env, folder

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def is_undisturbed(self) -> bool:
        is_same = (self.bare.stdout, self.bare.returncode) == (self.done.stdout, self.done.returncode)
        return is_same and self.done.stderr.startswith(self.bare.stderr)

    def uses(self) -> list[tuple[str, str, Any]]:
        """The tool uses of the responses: id, name, arguments."""
        messages = [each["body"]["choices"][0]["message"] for each in self.of("model.response")]
        calls = [call for message in messages for call in message.get("tool_calls") or ()]
        return [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in calls
        ]


@pytest.mark.parametrize("agent", one_in(2, FOUND))
def test_each_tool_call_of_an_agent_is_recorded_and_the_agent_is_undisturbed(
    agent: str, tmp_path: Path, provider: Provider
) -> None:
    run = Recorded(agent, tmp_path, provider)
    assert run.is_undisturbed(), run.done
    called = [each for each in run.of("tool.called") if "attempt" not in each]
    assert [(each["tool_id"], each["tool"], each["args"]) for each in called] == run.uses()
    assert {each["source"] for each in called} == {"found"} and not any("matched" in each for each in called)
    assert len(run.of("tool.result")) == len(run.of("tool.called"))
    failed = [each["error"] for each in run.of("tool.result") if each["tool"] == "book" and each["error"]]
    assert failed and all(each["type"] in ("ConnectionError", "KeyError") for each in failed)
    assert all(each["frames"][0].startswith(f"{agent}.py:") for each in failed)
    total = len(run.uses())
    assert f"{total} of {total} tool uses recorded" in run.done.stderr and "not seen" not in run.done.stderr


def test_what_a_tool_sees_of_the_stack_is_as_if_nobody_watched(tmp_path: Path, provider: Provider) -> None:
    run = Recorded("looks_around", tmp_path, provider)
    assert run.is_undisturbed(), run.done.stdout + run.done.stderr
    assert len(run.of("tool.called")) == len(run.uses()) == 17
    (items,) = [each["result"] for each in run.of("tool.result") if each["tool"] == "items"]
    assert items["count"] == 1 and items["yielded"][0][0] == 0


def test_repeated_calls_for_one_use_are_numbered(tmp_path: Path, provider: Provider) -> None:
    run = Recorded("retried", tmp_path, provider)
    books = [each for each in run.of("tool.called") if each["tool"] == "book"]
    assert [each.get("attempt") for each in books] == [None, 2, 3]
    assert len({each["tool_id"] for each in books}) == 1


def test_a_call_with_other_arguments_is_provisional_and_only_for_a_single_use(
    tmp_path: Path, provider: Provider
) -> None:
    run = Recorded("changed_arguments", tmp_path, provider)
    assert run.is_undisturbed()
    called = [(each["tool"], each["args"], each.get("matched")) for each in run.of("tool.called")]
    assert called == [
        ("lookup", {"city": "oslo", "days": 2}, "name"),
        ("book", {"hotel": "opera"}, "name"),
    ]
    replayed = type_in(["replay", run.path], tmp_path, run.env)
    assert replayed.returncode == 2 and "lookup" in replayed.stderr, replayed.stderr


def test_what_a_wrapper_and_the_function_inside_do_is_one_call(tmp_path: Path, provider: Provider) -> None:
    run = Recorded("registry", tmp_path, provider)
    assert len(run.of("tool.called")) == 4
    (failed,) = [each["error"] for each in run.of("tool.result") if each["error"]]
    assert failed["cause"]["type"] == "KeyError"


def test_a_tool_without_a_function_of_its_name_is_reported_and_can_be_named(
    tmp_path: Path, provider: Provider
) -> None:
    run = Recorded("prefixed", tmp_path, provider)
    assert run.is_undisturbed() and not run.of("tool.called")
    assert "0 of 4 tool uses recorded" in run.done.stderr
    assert "--tools lookup=module:function" in run.done.stderr
    (tmp_path / "again").mkdir()
    flags = ["--tools", "lookup=__main__:handle_lookup", "--tools", "book=__main__:handle_book"]
    named = Recorded("prefixed", tmp_path / "again", provider, *flags, "--strict-coverage")
    assert named.is_undisturbed() and len(named.of("tool.called")) == 4
    assert "4 of 4 tool uses recorded" in named.done.stderr


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("lookup", "names no function"),
        ("lookup=agent", "names no function"),
        ("a=b:c d", "names no function"),
    ],
)
def test_a_wrong_value_of_tools_is_refused_before_the_start(tmp_path: Path, value: str, says: str) -> None:
    done = type_in(["run", "--tools", value, "-c", "print('ran')"], tmp_path, {**os.environ})
    assert done.returncode == 2 and says in done.stderr and "ran" not in done.stdout


def test_a_named_function_that_is_not_there_is_reported(tmp_path: Path, provider: Provider) -> None:
    flags = ["--tools", "lookup=nowhere:f", "--tools", "book=__main__:no.such"]
    run = Recorded("prefixed", tmp_path, provider, *flags)
    assert run.is_undisturbed()
    assert "nowhere is not imported" in run.done.stderr and "__main__ has no no.such" in run.done.stderr


def test_it_can_be_turned_off(tmp_path: Path, provider: Provider) -> None:
    run = Recorded("dispatch_dict", tmp_path, provider, REENACT_TOOLS="off")
    assert run.is_undisturbed() and not run.of("tool.called") and len(run.of("model.response")) == 4


def test_tools_of_an_agent_inside_of_a_tool_are_recorded_and_answered(
    tmp_path: Path, provider: Provider
) -> None:
    run = Recorded("agents_as_tools", tmp_path, provider)
    calls = [(each["tool_id"], each["tool"], each["args"]) for each in run.of("tool.called")]
    assert run.is_undisturbed() and calls == run.uses() and len(calls) == 7
    outer = [each["call"] for each in run.of("tool.called") if each["tool"] == "lookup"]
    inside = [each["within"] for each in run.of("tool.called") if each["tool"] == "book"]
    assert inside == [outer[0]] * 3 + [outer[1]] * 2
    booked = tmp_path / "booked.txt"
    booked.unlink()
    again = type_in(["replay", run.path], tmp_path, run.env)
    assert (again.returncode, again.stdout) == (0, run.bare.stdout), again.stderr
    assert not booked.exists()


@pytest.mark.parametrize(
    "agent",
    ["dispatch_dict", long("coroutines"), "generators", long("nested"), long("methods"), long("retried")],
)
def test_a_replay_answers_found_tools_and_runs_none(agent: str, tmp_path: Path, provider: Provider) -> None:
    run = Recorded(agent, tmp_path, provider)
    done = type_in(["replay", run.path], tmp_path, {**run.env, "PYTHONPROFILEIMPORTTIME": ""})
    assert (done.returncode, done.stdout) == (0, run.bare.stdout), done.stderr
    answered = len(run.of("tool.called")) + len(run.of("model.response"))
    assert f"{answered} calls answered, 0 live" in done.stderr, done.stderr
