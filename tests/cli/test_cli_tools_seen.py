"""What a tool returned beside what the model was sent, and tools that only requests show, in show and debug.

The agent is a program under `reenact run`; its model is the scripted provider, which follows the plan of a prompt.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reenact import Debugger
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
        self.env["REENACT_TOOLS"] = "" if mode == "found" else "off"
        command = "bare" if mode == "found" else mode
        assert self("run", "--name", "first", "agent.py", command, json.dumps(plan)).strip()

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
    assert desk("show").count("the model was sent") == 4  # in the first lines, and in its turn


def test_a_result_in_another_form_is_shown_as_sent_and_is_no_contradiction(desk: Desk) -> None:
    desk.record("reformats")
    shown = desk("show")
    assert "→ result as sent  <price>900 EUR</price>" in shown and "✗" not in shown


def test_an_exception_that_the_agent_replaced_is_shown_with_what_the_model_was_sent(desk: Desk) -> None:
    desk.record("raises", [[["price", {"city": "Oslo"}]]])
    shown = desk("show")
    assert "✗ ConnectionError: could not connect to prices-db:5432" in shown
    assert "→ result as sent  An error occurred. Please try again." in shown


ONE = [[["price", {"city": "Oslo"}]]]


def verbs(out: str) -> list[str]:
    """The lines of debug, blanks taken together."""
    return [" ".join(line.split()) for line in out.splitlines()]


@pytest.mark.parametrize("mode", ["bare", "decorated", "found"])
def test_debug_answers_alike_for_tools_that_are_recorded_and_tools_that_are_not(
    desk: Desk, mode: str
) -> None:
    desk.record(mode, ONE)
    at_call = desk.debug("first", "b tool:price", "c", "a", "rv", "p tool", "p args.city")
    assert verbs(at_call)[-4:] == ['city = "Oslo"', "900 EUR", '"price"', '"Oslo"']
    assert '▸ price(city="Oslo")' in at_call
    watched = verbs(desk.debug("first", "watch result", "c", "p result", "a"))
    assert watched[-2:] == ['"900 EUR"', 'city = "Oslo"'] and 'watch 1: result null → "900 EUR"' in watched
    table = desk.debug("print result").splitlines()
    assert len(table) == 1 and table[0].endswith('"900 EUR"')
    listed = desk.debug("first", "l")
    assert '▸ price(city="Oslo")' in listed and '◂ price "900 EUR"' in listed
    assert [word in listed for word in ("derived", "found")] == [mode == "bare", mode == "found"]


def test_derived_tools_are_stepped_to_in_both_directions_and_have_addresses(desk: Desk) -> None:
    desk.record("bare", [*BOTH, *ONE])
    steps = ["first", *["s"] * 9]
    forward = [line.split()[1] for line in desk.debug(*steps).splitlines() if line.startswith(">")]
    assert forward == ["2", "3", "3.1", "3.2", "4.1", "4.2", "4", "5", "5.1", "6.1"]
    back = [line.split()[1] for line in desk.debug("j 6.1", *["rs"] * 9).splitlines() if line[:1] == ">"]
    assert back == forward[::-1]
    assert verbs(desk.debug("j 3.2", "r"))[-1].startswith("> 4.2")
    assert verbs(desk.debug("j 4.2", "w"))[2].startswith("turn 1, lane main, event 4.2 (3 of ")
    assert verbs(desk.debug("j 3.1", "u"))[-1].startswith("> 2 ")
    assert verbs(desk.debug("j 2", "d"))[-1].startswith("> 3.1")
    assert json.loads(desk("show", "--event", "4.2", "--json"))["result"] == "120 EUR"
    assert verbs(desk.debug("b 4.2", "first", "c", "mark x", "first", "j @x"))[-1].startswith("> 4.2")
    refused = type_in(["show", "--event", "4.3"], desk.folder, desk.env)
    assert refused.returncode == 2 and "carries no derived tool of that number" in refused.stderr


def test_a_text_search_stops_where_the_text_is_written(desk: Desk) -> None:
    desk.record("bare", ONE)
    assert verbs(desk.debug("first", "/900 EUR"))[-1].startswith("> 4 ")
    assert "> 4 " in "\n".join(verbs(desk.debug("first", 'b text~"900 EUR"', "c")))


def test_equal_calls_are_counted_whether_recorded_or_not(desk: Desk) -> None:
    for mode in ("bare", "decorated"):
        desk.record(mode, [[["poll", {"job": 1}]]] * 3)
        assert "▸ poll(job=1)" in desk.debug("first", "b loop>2", "c")


def test_ctx_names_the_result_a_message_came_from_and_marks_another_one(desk: Desk) -> None:
    desk.record("swaps")
    rows = verbs(desk.debug("j turn:2", "ctx"))
    assert any(row.startswith("2 tool") and "✗ 5 7" in row for row in rows)
    assert '✗ price(city="Oslo"): the tool returned "900 EUR", the model was sent "120 EUR"' in rows
    desk.record("bare", ONE)
    assert any("◂ 4.1" in row for row in verbs(desk.debug("j turn:2", "ctx")))


@pytest.mark.parametrize("mode", ["decorated", "found"])
def test_messages_have_the_result_of_a_tool_that_no_request_brought(desk: Desk, mode: str) -> None:
    agent = AGENT.replace('messages.append({"role": "user", "content": blocks})', "break")
    (desk.folder / "agent.py").write_text(agent)
    desk.record(mode, ONE)
    *_, used, result = json.loads(desk("messages", "--json"))["messages"]
    (block,) = result["content"]
    assert (block["tool_use_id"], block["content"]) == (used["content"][-1]["id"], "900 EUR")


def test_ls_names_the_input_and_the_model_and_puts_replays_below_their_run(desk: Desk) -> None:
    desk.record("decorated", ONE)
    type_in(["run", "--name", "later", "agent.py", "decorated", "no plan"], desk.folder, desk.env)
    for _ in range(4):
        desk("replay", "first", "--yes")
    desk.env["COLUMNS"] = "120"
    rows = verbs(desk("ls"))
    assert rows[0].split()[-2:] == ["model", "input"] and "✗ HTTPError" in rows[1]
    assert rows[2].split()[1] == "first" and "decorated" in rows[2]
    assert [row.split()[1:3] for row in rows[3:6]] == [["└", "first-replay"]] * 3
    assert rows[6] == "… 1 more made from it; --all lists them"
    assert verbs(desk("ls", "--all"))[6].split()[1:3] == ["└", "first-replay"]
    listed = [json.loads(line) for line in desk("ls", "--json").splitlines()]
    (first,) = (row for row in listed if row["name"] == "first")
    assert (first["model"], first["input"][0], first["error"]) == ("m", "decorated", None)
    made = [row["made_from"] for row in listed if row["name"] == "first-replay"]
    assert made == [first["id"]] * 4


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("p resul", "no event has a field 'resul'", "did you mean result?"),
        ("b nosuchfield > 3", "no event has a field 'nosuchfield'", "there is "),
        ("watch usge.output", "no event has a field 'usge'", "did you mean usage?"),
        ("p body['mesages']", "there is no 'mesages' in it", "did you mean messages?"),
        ("p body.messages[0].roel", "there is no 'roel' in it", "did you mean role?"),
    ],
)
def test_a_name_that_no_event_has_is_an_error_with_a_suggestion(
    desk: Desk, command: str, message: str, hint: str
) -> None:
    desk.record("bare", ONE)
    done = type_in(["debug", "-c", "first", "-c", command], desk.folder, desk.env)
    assert done.returncode == 2 and message in done.stderr and hint in done.stderr
    assert desk.debug("first", "p result", "b usage.output > 1", "p body.model").endswith('"m"\n')


def test_help_has_a_line_for_each_verb(desk: Desk) -> None:
    desk.record("bare", ONE)
    helped = desk.debug("h")
    assert "rv        what this call returned, or how it failed" in helped
    assert "move:" in helped and len(helped.splitlines()) > 40


def test_a_call_names_its_tool_or_model_its_arguments_and_its_outcome(desk: Desk) -> None:
    desk.record("raises", ONE)
    calls = Debugger.load(desk.folder / ".reenact").calls()
    assert [repr(call) for call in calls] == [
        "<Call model m ok>",
        '<Call tool price(city="Oslo") ✗ ConnectionError: could not connect to prices-db:5432>',
        "<Call model m ok>",
    ]
    desk.record("bare", ONE)
    assert repr(Debugger.load(desk.folder / ".reenact").calls()[1]) == (
        '<Call tool price(city="Oslo") → "900 EUR">'
    )
