"""Tools without @tap.tool, which no recording answers: replay, fork and test run them only if the user allows it.

The tools append a line to a file each time they run, and the tests count these lines.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.examples import long
from support.forked import type_in
from support.provider import Provider

AGENT = '''
import json, os, sys, urllib.request
from pathlib import Path

import reenact

WORLD = Path(__file__).with_name("world.txt")


def run(name, item):
    """What each tool does to the world; a refund has the number of the next receipt."""
    with WORLD.open("a") as world:
        world.write(f"{name} {item}\\n")
    return f"receipt {len(WORLD.read_text().splitlines())}" if name == "refund" else f"{name}: done"


TOOLS = os.environ.get("TOOLS", "weigh ship refund").split()


def ask(messages):
    offered = [{"name": name, "input_schema": {"type": "object"}} for name in TOOLS]
    body = {"model": "m", "max_tokens": 9, "system": "Be kind.", "messages": messages, "tools": offered}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as found:
        return json.load(found)["content"]


def work(plan):
    messages = [{"role": "user", "content": "PLAN " + plan}]
    while True:
        answer = ask(messages)
        messages.append({"role": "assistant", "content": answer})
        uses = [block for block in answer if block["type"] == "tool_use"]
        if not uses:
            return answer[0]["text"]
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": run(use["name"], **use["input"])}
            for use in uses
        ]
        messages.append({"role": "user", "content": results})


@reenact.run
def order(plan):
    return work(plan)


if __name__ == "__main__":
    print((order if sys.argv[2:] == ["function"] else work)(sys.argv[1]))
'''


class Shop:
    """A folder with the agent, in which commands are typed."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env
        self._world = folder / "world.txt"
        (folder / "agent.py").write_text(AGENT)

    def record(self, name: str, *turns: str | tuple[str, ...], how: str = "program") -> None:
        """Record a run whose model asks for one tool in each turn, or for several at once."""
        tools_by_turn = [(turn,) if isinstance(turn, str) else turn for turn in turns]
        tools = [tool for turn in tools_by_turn for tool in turn]
        plan = [
            [[tool, {"item": f"item {number}"}] for tool in turn]
            for number, turn in enumerate(tools_by_turn, 1)
        ]
        done = self("run", "--name", name, "agent.py", json.dumps(plan), how)
        assert done.returncode == 0 and self.ran() == tools, done.stderr

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        self._world.unlink(missing_ok=True)
        done = type_in(words, self.folder, self.env, session=True)
        assert "reenact has a bug" not in done.stderr, done.stderr
        return done

    def ran(self) -> list[str]:
        """The tools that ran since the last command was typed, in order."""
        lines = self._world.read_text().splitlines() if self._world.exists() else []
        return [line.partition(" ")[0] for line in lines]

    def tests(self) -> list[Path]:
        """The tests that were written."""
        return sorted(self.folder.glob("tests/*.py"))


@pytest.fixture
def shop(tmp_path: Path, provider: Provider) -> Shop:
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env |= {"MODEL_URL": provider.url("plan"), "ANTHROPIC_API_KEY": "k"}
    env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "reenact.pytest_plugin"}
    return Shop(tmp_path, env)


@pytest.mark.long
def test_live_tools_can_be_repeated(shop: Shop) -> None:
    shop.record("first", "weigh", "ship")
    for command in (("replay", "first"), ("fork", "first", "--stale-world")):
        for flags in (("--live-tools", "weigh", "--live-tools", "ship"), ("--live-tools", "weigh, ship")):
            done = shop(*command, *flags)
            assert (done.returncode, shop.ran()) == (0, ["weigh", "ship"]), done.stderr
        done = shop(*command, "--live-tools", "ship")
        assert (done.returncode, shop.ran()) == (2, []) and "weigh (1×)" in done.stderr
        assert "--live-tools ship,weigh" in done.stderr


@pytest.mark.parametrize("how", ["program", long("function")])
def test_a_test_runs_no_tool_that_is_not_allowed(shop: Shop, how: str) -> None:
    shop.record("first", "weigh", "ship", "ship", how=how)
    run = "first" if how == "program" else "order"
    for flags in ((), ("--kind", "tool"), ("--kind", "prompt"), ("--no-check",), ("--live-tools", "ship")):
        refused = shop("test", run, *flags)
        assert (refused.returncode, shop.ran(), shop.tests()) == (2, [], []), refused.stderr
        assert "they would run again: weigh (1×)" in refused.stderr and "@tap.tool" in refused.stderr
    assert "--live-tools ship,weigh" in refused.stderr
    wrong = shop("test", run, "--live-tools", "wiegh,ship")
    assert (wrong.returncode, shop.ran()) == (2, []) and "no tool 'wiegh'" in wrong.stderr

    once = ["weigh", "ship", "ship"]
    allowed = ("weigh", "--live-tools", "ship") if how == "program" else ("all",)
    done = shop("test", run, "--live-tools", *allowed)
    assert (done.returncode, shop.ran()) == (0, once + once), done.stderr  # a look, then the test
    assert "really run each time test_" in done.stderr and "ship, weigh" in done.stderr
    (made,) = shop.tests()
    assert 'live_tools=["ship", "weigh"]' in made.read_text()


@pytest.mark.long
def test_of_several_runs_those_with_tools_that_may_not_run_are_skipped(shop: Shop) -> None:
    shop.record("heavy", "weigh")
    shop.record("sent", "ship")
    refused = shop("test", ".reenact")
    assert (refused.returncode, shop.ran(), shop.tests()) == (2, [], []), refused.stderr
    assert "heavy: " in refused.stderr and "sent: " in refused.stderr
    assert "--live-tools ship,weigh" in refused.stderr
    wrong = shop("test", "heavy", "sent", "--live-tools", "weigh,shop")
    assert (wrong.returncode, shop.ran()) == (2, []) and "no tool 'shop' is known from 2 runs" in wrong.stderr

    done = shop("test", ".reenact", "--live-tools", "weigh", "--json")
    assert (done.returncode, shop.ran()) == (0, ["weigh", "weigh"]), done.stderr
    reported = json.loads(done.stdout)
    assert [(each["name"], each["live_tools"]) for each in reported["tests"]] == [("test_heavy", ["weigh"])]
    assert [text.partition(": ")[0] for text in reported["left_out"]] == ["sent"]
    assert "they would run again: ship (1×); --live-tools ship" in reported["left_out"][0]


def test_a_fork_names_the_tools_that_run_again_before_the_cut(shop: Shop) -> None:
    shop.record("first", "weigh", "ship")
    command = ("fork", "first", "--at", "turn:3", "--set", "system=Be brief.", "--live-tools", "all")
    refused = shop(*command)
    assert (refused.returncode, shop.ran()) == (2, []) and "not run again" not in refused.stderr
    listed = [line.strip() for line in refused.stderr.splitlines() if line.startswith("  ")]
    assert [line.split()[2] for line in listed] == ["weigh", "ship"]
    assert all(line.endswith("RUNS AGAIN before the cut)") for line in listed)
    assert "these tools run again before the cut: weigh, ship" in refused.stderr

    table = shop(*command, "--samples", "2", "--control")
    assert (table.returncode, shop.ran()) == (2, [])
    assert all(line in table.stderr for line in listed) and "weigh, ship" in table.stderr

    done = shop(*command, "--stale-world")
    assert (done.returncode, shop.ran()) == (0, ["weigh", "ship"]), done.stderr  # both before the cut


def command_to_copy(stderr: str) -> list[str]:
    """The words of the command that a refusal prints, without the program."""
    lines = stderr.splitlines()
    return shlex.split(lines[lines.index("to allow all of it:") + 1])[1:]


def test_a_refusal_is_one_command_that_runs(shop: Shop) -> None:
    shop.record("first", "weigh", "refund")
    fork_arguments = ("fork", "first", "--at", "turn:3", "--set", "system=Be brief.")
    for words in (fork_arguments, (*fork_arguments, "--samples", "2", "--control")):
        refused = shop(*words)
        assert (refused.returncode, shop.ran()) == (2, []), refused.stderr
        for what in ("weigh (1×), refund (1×)", "step 3: weigh", "--one-call --tool-result", "--restore CMD"):
            assert what in refused.stderr
        command = command_to_copy(refused.stderr)
        assert command == [*words, "--live-tools", "refund,weigh", "--stale-world", "--rebase"]
    (shop.folder / "agent.py").write_text(AGENT.replace('f"receipt {', 'f"voucher {'))
    done = shop(*command_to_copy(shop(*fork_arguments).stderr))
    assert (done.returncode, shop.ran()) == (0, ["weigh", "refund"]), done.stderr

    own = ("replay", "first", "--", "agent.py", "[]")
    refused = shop(*own)
    assert command_to_copy(refused.stderr) == ["replay", "first", "--live-tools", "refund,weigh", *own[2:]]
    assert "--one-call --tool-result" in refused.stderr and "--rebase" not in refused.stderr
    state = shop.folder / "elsewhere"
    shop.env["XDG_STATE_HOME"] = str(state)  # where this user has recorded nothing
    for command in ("replay", "test"):
        refused = shop(command, "first")
        assert (refused.returncode, shop.ran()) == (2, []), refused.stderr
        assert "not recorded or allowed here before" in refused.stderr
        assert command_to_copy(refused.stderr) == [command, "first", "--live-tools", "refund,weigh", "--yes"]


@pytest.mark.long
def test_of_several_runs_none_is_forked_if_one_needs_permission(shop: Shop) -> None:
    shop.env["TOOLS"] = "ship"
    shop.record("plain")
    del shop.env["TOOLS"]
    shop.record("heavy", "weigh")
    words = ("fork", ".reenact/*-plain-*.jsonl", "heavy", "--set", "system=Be brief.")
    refused = shop(*words)
    assert (refused.returncode, shop.ran()) == (2, []) and "fork 1 of" not in refused.stderr, refused.stderr
    assert "heavy: the recording cannot answer" in refused.stderr and "plain: " not in refused.stderr
    done = shop(*words, "--live-tools", "weigh")
    assert shop.ran() == ["weigh"], done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("reenact: fork ")]
    assert [line.split(" (")[0] for line in lines] == [
        "reenact: fork 1 of 2: plain, edited 1",
        "reenact: fork 2 of 2: heavy, edited 1",
    ]
    assert all(line.endswith("s): ok") for line in lines)


def test_settings_decide_about_a_tool_after_the_cut_only(shop: Shop) -> None:
    shop.record("first", "weigh", "ship")
    (shop.folder / "reenact.toml").write_text('[tools]\nweigh = "read"\nship = "read"\n')
    refused = shop("fork", "first", "--at", "turn:2", "--set", "system=Be brief.")
    assert (refused.returncode, shop.ran()) == (2, []) and "weigh (1×)" in refused.stderr, refused.stderr
    assert "ship (1×)" not in refused.stderr and "--stale-world" not in refused.stderr
    done = shop("fork", "first", "--set", "system=Be brief.")
    assert done.returncode == 1 and "refused to write" in done.stderr and "world.txt" in done.stderr, (
        done.stderr
    )
    assert shop.ran() == []  # it only reads, says the user: the guard stays closed
    for name in ("weigh", "ship"):
        assert f"tool {name} may run after the cut: your settings declare it read" in done.stderr
    (shop.folder / "reenact.toml").write_text('[tools]\nweigh = "write"\n')
    refused = shop("fork", "first", "--set", "system=Be brief.")
    assert (refused.returncode, shop.ran()) == (2, []) and "weigh (1×), ship (1×)" in refused.stderr


FIXTURE = """
import os, pytest
from agent import order
from reenact.testing import replaying

@pytest.mark.reenact("first.jsonl"MORE)
def test_marked():
    order(PLAN)

def test_block():
    with replaying("first.jsonl"MORE):
        order(PLAN)
"""


def test_a_fixture_runs_no_tool_that_is_not_allowed_and_prints_the_line_to_add(shop: Shop) -> None:
    shop.record("first", "weigh", how="function")
    (trace,) = shop.folder.glob(".reenact/*-order-*.jsonl")
    (shop.folder / "first.jsonl").write_bytes(trace.read_bytes())
    plan = repr(json.dumps([[["weigh", {"item": "item 1"}]]]))
    test = FIXTURE.replace("PLAN", plan)

    def pytest_here() -> str:
        (shop.folder / "world.txt").unlink(missing_ok=True)
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
        return subprocess.run(words, cwd=shop.folder, env=shop.env, capture_output=True, text=True).stdout

    (shop.folder / "test_it.py").write_text(test.replace("MORE", ""))
    reported = pytest_here()
    assert "1 failed, 1 error" in reported and shop.ran() == [], reported
    assert "they would run again: weigh (1×)" in reported
    assert "@pytest.mark.reenact('first.jsonl', live_tools=['weigh'])" in reported
    assert "replaying('first.jsonl', live_tools=['weigh'])" in reported
    (shop.folder / "test_it.py").write_text(test.replace("MORE", ", live_tools=['weigh']"))
    reported = pytest_here()
    assert "2 passed" in reported and shop.ran() == ["weigh", "weigh"], reported


def test_the_help_of_fork_names_the_tools_that_run_before_the_cut(shop: Shop) -> None:
    text = " ".join(shop("fork", "--help").stdout.split())
    assert "not done again" not in text and "Any other tool runs again there too" in text


@pytest.mark.long
def test_where_a_live_tool_returns_something_else_the_report_names_it(shop: Shop) -> None:
    shop.record("first", "weigh", "refund")
    (shop.folder / "agent.py").write_text(AGENT.replace('f"receipt {', 'f"voucher {'))
    forked = shop(
        "fork", "first", "--at", "turn:3", "--set", "system=Be brief.", "--live-tools", "all", "--stale-world"
    )
    assert (forked.returncode, shop.ran()) == (3, ["weigh", "refund"]), forked.stderr
    assert "--rebase" in forked.stderr and "--keep-going" not in forked.stderr
    replayed = shop("replay", "first", "--live-tools", "all")
    assert (replayed.returncode, shop.ran()) == (3, ["weigh", "refund"]), replayed.stderr
    assert "--rebase" in replayed.stderr and "--keep-going" in replayed.stderr
    for done in (forked, replayed):
        assert "recorded 'receipt 2'   from the result of tool refund" in done.stderr, done.stderr
        assert "now      'voucher 2'   from the result of tool refund" in done.stderr
        assert "the result of a tool that ran again" in done.stderr and "your code's own" not in done.stderr


@pytest.mark.long
def test_of_several_results_in_one_message_the_right_tool_is_named(shop: Shop) -> None:
    shop.record("first", ("weigh", "refund", "ship"))
    (shop.folder / "agent.py").write_text(AGENT.replace('f"receipt {', 'f"voucher {'))
    forked = shop("fork", "first", "--at", "turn:2", "--live-tools", "all", "--stale-world")
    assert (forked.returncode, shop.ran()) == (3, ["weigh", "refund", "ship"]), forked.stderr
    assert "now      'voucher 2'   from the result of tool refund\n" in forked.stderr
    assert "--keep-going" not in forked.stderr
