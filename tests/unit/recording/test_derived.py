"""Tools that nobody reported: derived from the tool uses of responses and the results in later requests."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from reenact import Debugger, Tap
from reenact.testing import assert_trajectory, tools_of, write_trace

ARGS = {"q": "hotels"}


class Anthropic:
    name = "anthropic"

    def request(self, history):
        return {"model": "m", "messages": list(history)}

    def answer(self, uses):
        blocks = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in uses]
        return {"type": "message", "role": "assistant", "content": blocks or [{"type": "text", "text": "ok"}]}

    def goes_on(self, body, results):
        printed = {"role": "assistant", "content": body["content"]}
        blocks = [
            {"type": "tool_result", "tool_use_id": i, "content": v} | ({"is_error": True} if failed else {})
            for i, _, v, failed in results
        ]
        return [printed, {"role": "user", "content": blocks}]


class Chat(Anthropic):
    name = "openai"

    def answer(self, uses):
        calls = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, n, a in uses
        ]
        return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}

    def goes_on(self, body, results):
        printed = body["choices"][0]["message"]
        return [printed, *({"role": "tool", "tool_call_id": i, "content": v} for i, _, v, _ in results)]


class Responses(Anthropic):
    name = "openai-responses"

    def request(self, history):
        return {"model": "m", "input": list(history)}

    def answer(self, uses):
        items = [
            {"type": "function_call", "call_id": i, "name": n, "arguments": json.dumps(a)} for i, n, a in uses
        ]
        return {"object": "response", "output": items}

    def goes_on(self, body, results):
        outputs = [{"type": "function_call_output", "call_id": i, "output": v} for i, _, v, _ in results]
        pairs = zip(body["output"], outputs, strict=True)
        return [item for pair in pairs for item in pair]  # call, output, call, output


class Gemini(Anthropic):
    name = "gemini"

    def request(self, history):
        return {"contents": list(history)}

    def answer(self, uses):
        parts = [{"functionCall": {"name": n, "args": a}} for _, n, a in uses]
        return {"candidates": [{"content": {"role": "model", "parts": parts}}]}

    def goes_on(self, body, results):
        parts = [
            {"functionResponse": {"name": n, "response": {"error" if failed else "result": v}}}
            for _, n, v, failed in results
        ]
        return [body["candidates"][0]["content"], {"role": "user", "parts": parts}]


class Bedrock(Anthropic):
    name = "bedrock"

    def answer(self, uses):
        content = [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in uses]
        return {"output": {"message": {"role": "assistant", "content": content}}}

    def goes_on(self, body, results):
        content = [
            {
                "toolResult": {
                    "toolUseId": i,
                    "content": [{"text": v}],
                    "status": "error" if bad else "success",
                }
            }
            for i, _, v, bad in results
        ]
        return [body["output"]["message"], {"role": "user", "content": content}]


class Ollama(Anthropic):
    name = "ollama"

    def answer(self, uses):
        calls = [{"function": {"name": n, "arguments": a}} for _, n, a in uses]
        return {"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": True}

    def goes_on(self, body, results):
        return [body["message"], *({"role": "tool", "tool_name": n, "content": v} for _, n, v, _ in results)]


DIALECTS = [Anthropic(), Chat(), Responses(), Gemini(), Bedrock(), Ollama()]


class Agent:
    """An agent whose model calls are recorded and whose tools are not."""

    def __init__(self, tap, dialect=DIALECTS[0], lane=None):
        self.tap, self.dialect, self.lane = tap, dialect, lane
        self.history = [{"role": "user", "content": "Go"}]
        if dialect.name == "gemini":
            self.history = [{"role": "user", "parts": [{"text": "Go"}]}]
        self.body = None

    def ask(self, *uses):
        more = {"lane": self.lane} if self.lane else {}
        request = self.dialect.request(self.history)
        call = self.tap.record_model_request(request, provider=self.dialect.name, **more)
        self.body = self.dialect.answer(uses)
        self.tap.record_model_response(self.body, call=call)
        return call

    def give(self, *results):
        self.history += self.dialect.goes_on(self.body, [(*each, False)[:4] for each in results])


@pytest.fixture
def tap(tmp_path):
    with Tap(tmp_path / "a.jsonl") as tap:
        yield tap


def read(tap):
    return Debugger.load(tap.path)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_dialect(tap, dialect):
    agent = Agent(tap, dialect)
    first = agent.ask(("t1", "search", ARGS), ("t2", "search", {"q": "trains"}))
    time.sleep(0.01)
    agent.give(("t1", "search", "82 EUR"), ("t2", "search", "late"))
    agent.ask(("t3", "book", {}))
    agent.give(("t3", "book", "full", True))
    agent.ask()
    run = read(tap)
    search, trains, book = run.calls("tool")
    assert [(each.tool, each.args) for each in (search, trains, book)] == [
        ("search", ARGS), ("search", {"q": "trains"}), ("book", {}),
    ]  # fmt: skip
    expected = zip(("82 EUR", "late", "full"), (search, trains, book), strict=True)
    assert all(printed in str(each.result) for printed, each in expected)
    assert all(each.derived and not each.is_open for each in (search, trains, book))
    assert search.parent == first and search.duration_ms >= 10
    assert (book.error is not None) == (dialect.name in ("anthropic", "gemini", "bedrock"))
    assert [[each.tool for each in turn.tools] for turn in run.turns()] == [
        ["search", "search"],
        ["book"],
        [],
    ]
    assert run.count() == len(run.all()) == 6 and set(run.event_counts()) == {
        "model.request",
        "model.response",
    }
    assert run.summary().tools["search"].calls == 2 and run.summary().tool_calls == 3
    assert_trajectory(run, ["search", "search", "book"])
    assert tools_of(run)[0] == ("search", ARGS)


def test_ids_that_repeat_go_with_the_nearest_answer_of_their_lane(tap):
    agents = [Agent(tap, Chat(), lane) for lane in ("one", "two")]
    for number in range(3):
        for agent in agents:
            agent.ask(("call_0", "look", {"n": number, "by": agent.lane}))
        for agent in reversed(agents):
            agent.give(("call_0", "look", f"{agent.lane} saw {number}"))
    for agent in agents:
        agent.ask()
    calls = read(tap).calls("tool")
    assert len(calls) == 6
    assert all(call.result == f"{call.args['by']} saw {call.args['n']}" for call in calls)


def test_a_result_stored_as_a_small_change_of_another_is_a_result(tap):
    agent = Agent(tap)
    beginning = agent.history
    for number in range(4):
        agent.ask(("t1", "look", {"n": number}))
        agent.history = [
            *beginning,
            *agent.dialect.goes_on(agent.body, [("t1", "look", f"saw {number}", False)]),
        ]
    agent.ask()
    with open(tap.path) as file:
        assert '"set"' in file.read()
    assert [call.result for call in read(tap).calls("tool")] == [f"saw {number}" for number in range(4)]


def test_one_prompt_and_one_id_in_two_agents_that_take_turns(tap):
    agents = [Agent(tap), Agent(tap)]
    for name, agent in zip("AB", agents, strict=True):
        agent.ask(("call_1", "look", {"by": name}))
    for name, agent in zip("AB", agents, strict=True):
        agent.give(("call_1", "look", f"{name} saw"))
        agent.ask()
    assert [(call.args["by"], call.result) for call in read(tap).calls("tool")] == [
        ("A", "A saw"),
        ("B", "B saw"),
    ]


def test_a_history_sent_again_in_full_gives_each_its_own_result(tap):
    agent = Agent(tap, Chat())
    for number in range(3):
        agent.ask(("call_0", "look", {"n": number}))
        agent.give(("call_0", "look", str(number)))
        agent.history = json.loads(json.dumps(agent.history))
        agent.history[0]["content"] += "!"  # nothing of it is as it was: the request is stored whole
    agent.ask()
    assert [(call.args["n"], call.result) for call in read(tap).calls("tool")] == [
        (0, "0"),
        (1, "1"),
        (2, "2"),
    ]


def test_what_was_never_answered_is_open(tap):
    agent = Agent(tap)
    agent.ask(("t1", "search", ARGS), ("t2", "book", {}))
    agent.give(("t1", "search", "82"))
    agent.ask(("t3", "pay", {}))
    run = read(tap)
    assert [(call.tool, call.is_open, call.duration_ms is None) for call in run.calls("tool")] == [
        ("search", False, False), ("book", True, True), ("pay", True, True),
    ]  # fmt: skip
    assert run.state_at(run.all()[-1]).open[-1].tool == "pay"
    assert run.summary().tools["book"].open == 1


def test_a_result_that_comes_later_finds_its_answer(tap):
    agent = Agent(tap, Responses())
    agent.ask(("t1", "slow", {}))
    agent.history += [*agent.body["output"], {"role": "user", "content": "still there?"}]
    agent.ask()
    agent.history.append({"type": "function_call_output", "call_id": "t1", "output": "done"})
    agent.ask()
    (slow,) = read(tap).calls("tool")
    assert slow.result == "done" and slow.end.index == 4


def test_results_in_plain_text_go_with_all_uses_of_the_response_before_them(tap):
    """As smolagents sends them; a failed step leaves its response out."""
    agent = Agent(tap, Chat())
    long = "Rome\n" + "room " * 20_000
    agent.ask(("t1", "search", ARGS))
    observed = tap.record_tool_call("search", ARGS, tool_id="t1")
    tap.record_tool_result("search", "Oslo", call=observed)
    for text, *uses in (
        ("Observation:\nOslo", ("t2", "search", {}), ("t3", "book", {})),
        (f"Observation:\n{long}", ("t4", "book", {})),
        ("Error:\nKeyError: 'beta'\nNow let's retry",),
    ):
        parts = [{"type": "text", "text": text}]
        agent.history.append({"role": "user", "content": parts})
        agent.ask(*uses)
    found, *derived = read(tap).calls("tool")
    assert (found.sent.value, found.verdict, found.sent.is_certain) == ("Oslo", "same", False)
    assert [(each.tool_id, each.result) for each in derived[:2]] == [("t2", long), ("t3", long)]
    assert str(derived[2].error).startswith("KeyError: 'beta'")


@pytest.mark.parametrize("known", [{"tool_id": "t1"}, {}], ids=["by id", "by name and arguments"])
@pytest.mark.parametrize("named", ["search", "hotels__search"])
def test_a_recorded_tool_takes_the_place_of_the_derived_one(tap, known, named):
    agent = Agent(tap)
    agent.ask(("t1", named, ARGS), ("t2", "search", {"q": "other"}))
    call = tap.record_tool_call("search", ARGS, **known)
    tap.record_tool_result("search", {"eur": 82}, call=call)
    agent.give(("t1", named, "82"), ("t2", "search", "-"))
    agent.ask()
    run = read(tap)
    assert sorted((call.tool, call.derived, str(call.args)) for call in run.calls("tool")) == [
        ("search", False, str(ARGS)), ("search", True, "{'q': 'other'}"),
    ]  # fmt: skip
    assert len(run.turns()[0].tools) == 2 and run.summary().tool_calls == 2


def test_a_decorated_tool_is_there_once(tap):
    @tap.tool
    def search(q):
        return f"found {q}"

    agent = Agent(tap)
    for number in range(3):
        agent.ask((f"t{number}", "search", {"q": f"h{number}"}))
        agent.give((f"t{number}", "search", search(f"h{number}")))
    agent.ask()
    calls = read(tap).calls("tool")
    assert [(call.derived, call.result, call.tool_id) for call in calls] == [
        (False, f"found h{number}", f"t{number}") for number in range(3)
    ]


def test_an_answer_that_failed_asks_for_nothing(tap):
    call = tap.record_model_request({"model": "m", "messages": []}, provider="anthropic")
    tap.record_model_response(Anthropic().answer([("t1", "search", ARGS)]), call=call, error="cut")
    assert read(tap).calls("tool") == []


def test_long_values_come_back_whole(tap):
    agent = Agent(tap, Chat())
    long = "x" * 200_000
    agent.ask(("t1", "write", {"text": long, "$blob": "a key of the tool's own"}))
    agent.give(("t1", "write", long))
    agent.ask()
    (call,) = read(tap).calls("tool")
    assert call.args == {"text": long, "$blob": "a key of the tool's own"} and call.result == long


def test_a_conversation_that_is_had_twice_has_its_results_twice(tmp_path):
    """The second time its request may be stored as the first one's: nothing new is in it."""
    use = {"type": "tool_use", "id": "t0", "name": "search", "input": ARGS}
    answer = {"role": "assistant", "content": [use]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t0", "content": "82"}]}
    first = {"model": "m", "messages": [{"role": "user", "content": "Go"}]}
    more = {"messages": [{"$answer": "a1", "keys": ["role", "content"]}, result]}
    kept = {"model": True, "messages": 1}

    def request_event(call, **fields):
        return "model.request", {"call": call, "lane": call[0], "provider": "anthropic", **fields}

    def answered(call, body):
        return "model.response", {"call": call, "error": None, "body": body}

    path = tmp_path / "twice.jsonl"
    done = {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}
    write_trace(
        path,
        [
            request_event("a1", n=1, body=first), answered("a1", answer),
            request_event("a2", n=3, base="a1", keep=kept, body=more), answered("a2", done),
            request_event("b1", n=1, base="a1", keep=kept, body={}), answered("b1", answer),
            request_event("b2", n=3, base="a2", keep={"model": True, "messages": 3}, body={}), answered("b2", done),
        ],
    )  # fmt: skip
    run = Debugger.load(path)
    assert [(call.lane, call.result) for call in run.calls("tool")] == [("a", "82"), ("b", "82")]
    assert run.summary().tools["search"].open == 0


def test_a_call_begun_by_one_writer_and_ended_by_another_is_shown(tmp_path):
    asks = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "x", "input": {}}]}
    lines = [
        {"ts": 1.0, "run": "r", "w": "aaaaaaaa", "step": 1, "kind": "model.request", "call": "c", "body": {}},
        {
            "ts": 2.0,
            "run": "r",
            "w": "bbbbbbbb",
            "step": 1,
            "kind": "model.response",
            "call": "c",
            "body": asks,
        },
    ]
    path = tmp_path / "two.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run([sys.executable, "-m", "reenact", "show", path], capture_output=True, text=True)
    assert done.returncode == 0 and "x()" in done.stdout, done.stderr
