"""Eleven agents with a seeded failure each: what `reenact show` has of its cause on the first screen of 80x24.

The agents are plain programs under `reenact run` with no line of ours in them; their model is the scripted provider.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.forked import type_in
from support.provider import Provider

AGENT = '''
import json, os, signal, sys, traceback, urllib.error, urllib.request

MODE, PLAN = sys.argv[1], json.loads(sys.argv[2])


def price(city):
    return {"Oslo": "900 EUR", "Rome": "120 EUR"}[city]


def order(number):
    raise ConnectionError("could not connect to orders-db:5432")


def weigh(item):
    """The weight in kg."""
    return "882 lb"


def poll(job):
    return "PENDING"


def cancel(order):
    return f"order {order} is cancelled"


def track(order):
    return f"order {order} is on its way"


def column(name):
    def read(table, name):
        rows = [{"alpha": 1, "gamma": 2}] * 40
        return [row[name] for row in rows]

    return read("a table of many columns that was loaded from a file with a long name", name)


TOOLS = {tool.__name__: tool for tool in (price, order, weigh, poll, cancel, track, column)}
OFFERED = sorted({name for step in PLAN for name, _ in step} | ({"track"} if MODE == "wrong" else set()))


def call(use):
    try:
        return TOOLS[use["name"]](**use["input"])
    except ConnectionError:
        return "An error occurred while running the tool. Please try again."
    except KeyError:
        return "Error:\\n" + traceback.format_exc()


def opened(messages, attempt=0, **more):
    body = {"model": "m", "max_tokens": 900, "messages": messages, **more}
    if PLAN:
        body["tools"] = [
            {"name": name, "description": TOOLS[name].__doc__ or name, "input_schema": {"type": "object"}}
            for name in OFFERED
        ]
    headers = {"content-type": "application/json", "x-stainless-retry-count": str(attempt)}
    url = os.environ["MODEL_URL"] + "/v1/messages"
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers))


def ask(messages):
    for attempt in range(4):
        try:
            with opened(messages, attempt) as found:
                return json.load(found)["content"]
        except urllib.error.HTTPError as exc:
            failed = RuntimeError(f"the model failed: {json.load(exc)['error']['message']}")
    raise failed


def loop(limit=14):
    messages = [{"role": "user", "content": "PLAN " + json.dumps(PLAN)}]
    for _ in range(limit):
        answer = ask(messages)
        messages.append({"role": "assistant", "content": answer})
        uses = [block for block in answer if block["type"] == "tool_use"]
        if not uses:
            return print(answer[0]["text"])
        results = [call(use) for use in uses]
        results = results[::-1] if MODE == "swapped" else results
        pairs = zip(uses, results)
        blocks = [{"type": "tool_result", "tool_use_id": use["id"], "content": text} for use, text in pairs]
        messages.append({"role": "user", "content": blocks})
    raise RecursionError(f"the agent reached its limit of {limit} steps")


def compacting():
    messages = []
    for text in ("I cannot eat peanuts.", "I like the sea.", "I have five days.", "Where do I eat?"):
        if len(messages) > 5:
            summary = "Summary so far: the user likes the sea and has five days."
            ask([*messages, {"role": "user", "content": "Summarise this."}])
            messages = [{"role": "user", "content": summary}, {"role": "assistant", "content": "Fine."}]
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": ask(messages)})


def abandoning():
    global left
    left = opened([{"role": "user", "content": "Tell me a story."}], stream=True)
    [left.readline() for _ in range(40)]


def streaming():
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("cancelled"))
    with opened([{"role": "user", "content": "Tell me a story."}], stream=True) as found:
        for number, _ in enumerate(found):
            if number == 40:
                os.kill(os.getpid(), signal.SIGKILL if MODE == "killed" else signal.SIGALRM)


{"abandoned": abandoning, "compacted": compacting, "killed": streaming, "cancelled": streaming}.get(MODE, loop)()
'''

BOTH = [[["price", {"city": "Oslo"}], ["price", {"city": "Rome"}]]]


class Desk:
    """A folder with the agent; its first screens."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder, self.provider = folder, provider
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env |= {"COLUMNS": "80", "LINES": "24"}
        (folder / "agent.py").write_text(AGENT)

    def record(self, mode: str, plan: Any = (), scenario: str = "plan", tools: str = "") -> None:
        self.env |= {"MODEL_URL": self.provider.url(scenario), "REENACT_TOOLS": tools}
        type_in(["run", "agent.py", mode, json.dumps(plan)], self.folder, self.env)

    def screen(self, *words: str) -> str:
        """Return what a terminal of 80x24 has room for, blanks taken together."""
        rows = [line[at : at + 80] for line in self.lines(*words) for at in range(0, max(1, len(line)), 80)]
        return " ".join("".join(row if len(row) == 80 else row + "\n" for row in rows[:24]).split())

    def lines(self, *words: str) -> list[str]:
        done = type_in(["show", *words], self.folder, self.env)
        assert done.returncode == 0 and "reenact has a bug" not in done.stderr, done.stderr
        return done.stdout.splitlines()


@pytest.fixture
def desk(tmp_path: Path, provider: Provider) -> Desk:
    return Desk(tmp_path, provider)


BEFORE = [[["track", {"order": number}]] for number in range(10)]
"""Ten turns without a fault, so that the failing one is far from the first screen."""

CASES: dict[str, tuple[str, Any, str, list[str]]] = {
    "a weight in another unit": (
        "unit", [[["weigh", {"item": "crate-7"}]]], "plan",
        ['! weigh(item="crate-7") returned 882 lb; the tool is described to return kg'],
    ),
    "a swallowed exception": (
        "swallowed", [*BEFORE, [["order", {"number": 7}]], *BEFORE[:2]], "plan",
        ["✗ order(number=7): ConnectionError: could not connect to orders-db:5432",
         'the model was sent "An error occurred while running the tool. Please try again."'],
    ),
    "a summary without a fact": (
        "compacted", [], "text",
        ["turn 5 leaves out 4 messages of the prompt before it: I cannot eat peanuts"],
    ),
    "the wrong tool": (
        "wrong", [[["cancel", {"order": 7}]]], "plan",
        ["→ tools cancel, track", "▸ cancel(order=7)"],
    ),
    "an overloaded model": (
        "overloaded", [], "status-529",
        ["✗ error RuntimeError: the model failed: scripted overloaded_error",
         "✗ 4 attempts of a model call failed, the last with overloaded_error"],
    ),
    "a loop to the limit": (
        "loop", [[["poll", {"job": "j-9"}]]] * 20, "plan",
        ["✗ error RecursionError: the agent reached its limit of 14 steps",
         '! poll(job="j-9") × 14, each time "PENDING"', "× 12 turns 2 to 13: the same calls"],
    ),
    "swapped results": (
        "swapped", [*BEFORE, *BOTH], "plan",
        ['✗ price(city="Oslo"): the tool returned "900 EUR", the model was sent "120 EUR"',
         '✗ price(city="Rome"): the tool returned "120 EUR", the model was sent "900 EUR"'],
    ),
    "an answer that was cut off": (
        "length", [], "length", ["! an answer was cut off: stopped by max_tokens"],
    ),
    "a kill in a stream": (
        "killed", [], "long-60,drip-5",
        ["✗ killed died while waiting for the model",
         "bytes had come the tide came in slowly"],
    ),
    "a cancelled stream": (
        "cancelled", [], "long-60,drip-5",
        ["! an answer was cut off: stopped by the agent, which closed the stream", "← the tide came in slowly"],
    ),
    "a stream that nobody ends": (
        "abandoned", [], "long-60,drip-5",
        ["✗ the model call has no answer", "bytes had come the tide came in slowly"],
    ),
    "a tool's KeyError": (
        "keyerror", [*BEFORE, [["column", {"name": "beta"}]]], "plan",
        ["✗ column(name=\"beta\"): KeyError: 'beta'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("failure", CASES)
def test_the_cause_of_a_seeded_failure_is_on_the_first_screen(failure: str, desk: Desk) -> None:
    mode, plan, scenario, causes = CASES[failure]
    desk.record(mode, plan, scenario)
    screen = desk.screen()
    assert [cause for cause in causes if cause not in screen] == [], screen


def test_equal_calls_of_one_turn_are_one_line_with_their_count_and_each_with_all(desk: Desk) -> None:
    plan = [[["poll", {"job": 1}]] * 5 + [["poll", {"job": 2}]] * 2]
    for tools in ("", "off"):
        desk.record("loop", plan, tools=tools)
        shown = "\n".join(desk.lines())
        assert shown.count("▸ poll(job=1) × 5") == 1 == shown.count("▸ poll(job=1)")
        assert shown.count("▸ poll(job=2)") == 2 and shown.count("◂ PENDING") == 3
        every = "\n".join(desk.lines("--all"))
        assert every.count("▸ poll(job=1)") == 5 and "▸ poll(job=1) ×" not in every


def test_turns_that_repeat_each_other_are_folded_up_to_one_with_another_result(desk: Desk) -> None:
    plan = [*[[["poll", {"job": 1}]]] * 6, [["weigh", {"item": "a"}]], *[[["poll", {"job": 1}]]] * 2]
    desk.record("loop", plan)
    shown = [line.split() for line in desk.lines()]
    headed = [line[:5] for line in shown if line and line[0] in ("turn", "×")]
    assert [line[1] for line in headed] == ["1", "5", "7", "8", "9", "10"]
    assert headed[1] == ["×", "5", "turns", "2", "to"]
    every = [line for line in desk.lines("--all") if line.startswith(("turn ", "×"))]
    assert len(every) == 10 and not any(line.startswith("×") for line in every)


def test_results_that_were_swapped_again_and_again_are_not_folded(desk: Desk) -> None:
    desk.record("swapped", BOTH * 4)
    assert "×" not in "".join(line[:2] for line in desk.lines())
    assert '"120 EUR" × 4' in desk.screen()  # as a suspect they are one line each


@pytest.mark.parametrize("tools", ["", "off"])
def test_the_last_line_of_an_error_is_shown_whatever_is_left_out_before_it(tools: str, desk: Desk) -> None:
    desk.record("keyerror", [[["column", {"name": "beta"}]]], tools=tools)
    lines = [line.strip() for line in desk.lines()]
    if tools == "off":  # then only the text that the model was sent has it
        assert lines.index("KeyError: 'beta'") > 0 and any(" B more" in line for line in lines)
    else:
        assert "5 ✗ KeyError: 'beta'" in lines


def test_suspects_are_in_the_json_of_a_run_with_their_count(desk: Desk) -> None:
    desk.record("swallowed", [[["order", {"number": 7}]]] * 2)
    suspect, *others = json.loads(desk.lines("--json")[0])["suspects"]
    assert (suspect["kind"], suspect["address"], suspect["times"]) == ("hidden error", "5", 2)
    assert suspect["evidence"].startswith("order(number=7): ConnectionError: could not connect")
    assert [json.loads(line) for line in desk.lines("--suspects", "--json")] == [suspect, *others]
    assert "5 0.85 hidden error: order(number=7): ConnectionError" in desk.screen("--suspects")


SERVER = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "tools/call":
        print("segmentation fault in the price index", file=sys.stderr, flush=True)
        os._exit(3)
    info = {"name": "prices", "version": "1"}
    known = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": known}), flush=True)
"""
CLIENT = """
import asyncio, sys
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    server = StdioServerParameters(command=sys.executable, args=["server.py"])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        try:
            await session.call_tool("price", {"city": "Oslo"})
        except Exception:
            print("Sorry, no price today.")

asyncio.run(main())
"""


@pytest.mark.long
def test_a_tool_whose_mcp_server_died_is_on_the_first_screen(desk: Desk) -> None:
    """That its process ended is not recorded, nor its exit code: the screen has what the client was told."""
    (desk.folder / "server.py").write_text(SERVER)
    (desk.folder / "agent.py").write_text(CLIENT)
    desk.record("mcp")
    assert '✗ price(city="Oslo"): MCPError: Connection closed' in desk.screen()
