"""What a tool returned beside what the model was sent, and tools that only requests show, in show and debug.

The agent is a program under `reenact run`; its model is the scripted provider, which follows the plan of a prompt.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support.forked import type_in
from support.provider import Provider

AGENT = """
import json, os, sys, urllib.request

import reenact

tap = reenact.Tap()
MODE, PLAN = sys.argv[1:]
PRICES = {"Oslo": "900 EUR", "Rome": "120 EUR"}


def price(city):
    if MODE == "raises":
        raise ConnectionError("could not connect to prices-db:5432")
    return PRICES[city]


def poll(job):
    return "PENDING"


TOOLS = {"price": price, "poll": poll}
if MODE != "bare":
    TOOLS = {name: tap.tool(tool) for name, tool in TOOLS.items()}


def call(use):
    try:
        return TOOLS[use["name"]](**use["input"])
    except ConnectionError:
        return "An error occurred. Please try again."


def ask(messages):
    body = {"model": "m", "max_tokens": 9, "messages": messages}
    url, headers = os.environ["MODEL_URL"] + "/v1/messages", {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as found:
        return json.load(found)["content"]


messages = [{"role": "user", "content": "PLAN " + PLAN}]
while True:
    answer = ask(messages)
    messages.append({"role": "assistant", "content": answer})
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        break
    results = [call(use) for use in uses]
    results = results[::-1] if MODE == "swaps" else results
    if MODE == "reformats":
        results = [f"<price>{result}</price>" for result in results]
    pairs = zip(uses, results)
    blocks = [{"type": "tool_result", "tool_use_id": use["id"], "content": text} for use, text in pairs]
    messages.append({"role": "user", "content": blocks})
print(answer[0]["text"])
"""

BOTH = [[["price", {"city": "Oslo"}], ["price", {"city": "Rome"}]]]


class Desk:
    """A folder with the agent, in which commands are typed."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env |= {"MODEL_URL": url, "COLUMNS": "80"}
        (folder / "agent.py").write_text(AGENT)

    def record(self, mode: str, plan: object = BOTH) -> None:
        assert self("run", "--name", "first", "agent.py", mode, json.dumps(plan)).strip()

    def __call__(self, *words: str) -> str:
        done = type_in(words, self.folder, self.env)
        assert done.returncode == 0 and "reenact has a bug" not in done.stderr, done.stderr
        return done.stdout

    def turns(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self("show", "--json", "--turns").splitlines()[1:]]

    def debug(self, *commands: str) -> str:
        return self("debug", *(word for command in commands for word in ("-c", command)))


@pytest.fixture
def desk(tmp_path: Path, provider: Provider) -> Desk:
    return Desk(tmp_path, provider.url("plan"))


def test_results_that_the_agent_swapped_are_shown_beside_what_the_tools_returned(desk: Desk) -> None:
    desk.record("swaps")
    shown = " ".join(desk("show").split())
    assert '✗ price(city="Oslo"): the tool returned "900 EUR", the model was sent "120 EUR"' in shown
    assert '✗ price(city="Rome"): the tool returned "120 EUR", the model was sent "900 EUR"' in shown
    assert "the results above" not in shown
    tools = desk.turns()[0]["tools"]
    assert [(tool["sent"], tool["verdict"]) for tool in tools] == [
        ("120 EUR", "contradicted"), ("900 EUR", "contradicted"),
    ]  # fmt: skip


def test_results_that_the_model_was_sent_as_returned_are_not_shown_twice(desk: Desk) -> None:
    desk.record("decorated")
    shown = desk("show")
    assert shown.count("the results above") == 1 and "✗" not in shown
    assert [tool["verdict"] for tool in desk.turns()[0]["tools"]] == ["same", "same"]


def test_an_equal_text_of_another_tool_hides_no_result(desk: Desk) -> None:
    """By text alone "120 EUR" was shown before; it is not what this tool returned."""
    desk.record("swaps", [[["price", {"city": "Rome"}]], *BOTH])
    assert desk("show").count("the model was sent") == 2


def test_a_result_in_another_form_is_shown_as_sent_and_is_no_contradiction(desk: Desk) -> None:
    desk.record("reformats")
    shown = desk("show")
    assert "→ result as sent  <price>900 EUR</price>" in shown and "✗" not in shown


def test_an_exception_that_the_agent_replaced_is_shown_with_what_the_model_was_sent(desk: Desk) -> None:
    desk.record("raises", [[["price", {"city": "Oslo"}]]])
    shown = desk("show")
    assert "✗ ConnectionError: could not connect to prices-db:5432" in shown
    assert "→ result as sent  An error occurred. Please try again." in shown
