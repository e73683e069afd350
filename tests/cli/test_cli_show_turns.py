"""reenact show: a run told turn by turn."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from importlib import import_module

import pytest

import reenact
from reenact.testing import write_trace
from support.typed import LONG, environment, record_trip, typed

MODEL = "claude-sonnet-4-6"


def answer(*content, stop=None, usage=(100, 20, 0)):
    """An Anthropic-shaped answer; a tuple is a tool use."""
    blocks = [
        {"type": "tool_use", "id": each[0], "name": each[1], "input": each[2]}
        if isinstance(each, tuple)
        else each
        if isinstance(each, dict)
        else {"type": "text", "text": each}
        for each in content
    ]
    uses = any(block["type"] == "tool_use" for block in blocks)
    reported = {"input_tokens": usage[0], "output_tokens": usage[1], "cache_read_input_tokens": usage[2]}
    return {"id": "m1", "type": "message", "role": "assistant", "model": MODEL, "content": blocks,
            "stop_reason": stop or ("tool_use" if uses else "end_turn"), "usage": reported}  # fmt: skip


def result(use, text, **more):
    return {"type": "tool_result", "tool_use_id": use, "content": text, **more}


class Agent:
    """An agent that keeps one conversation and records it."""

    def __init__(self, path, **more):
        self.path = path
        self.tap = reenact.Tap(path, redact=False, **more)
        self.messages = []

    def ask(self, printed, response, lane="main", attempt=None, **settings):
        if printed is not None:
            self.messages.append({"role": "user", "content": printed})
        body = {"model": MODEL, "max_tokens": 99, "system": "You plan trips.", "messages": self.messages}
        call = self.tap.record_model_request(
            {**body, **settings}, provider="anthropic", lane=lane, attempt=attempt
        )
        if isinstance(response, Exception):
            self.tap.record_model_response(None, call=call, error=response)
        elif response is not None:
            self.tap.record_model_response(response, call=call)
            self.messages.append({"role": "assistant", "content": response["content"]})

    def show(self, *words, **env):
        self.tap.close()
        code, out, err = typed("show", self.path, *words, **{"COLUMNS": "80", **env})
        assert (code, err) == (0, "")
        return out


@pytest.fixture
def agent(tmp_path):
    return Agent(tmp_path / "a.jsonl")


def turn(out, number):
    """The lines of one turn, blanks taken together, without the bounds of what tools took."""
    _, _, rest = out.partition(f"\nturn {number}  ")
    lines = []
    for line in rest.splitlines()[1:]:
        if line.startswith("turn ") or not line.startswith(" "):
            break
        lines.append(re.sub(r" ≤ [\d.]+ [mµ]?s$", "", " ".join(line.split())))
    return lines


def test_a_turn_is_its_prompt_its_answer_and_its_tools(tmp_path):
    record_trip(tmp_path / "a.jsonl")
    out = typed("show", tmp_path / "a.jsonl", COLUMNS="80").out
    assert turn(out, 1)[:5] == [
        "2 → system You plan trips.",
        "→ with max_tokens=99",
        "→ user Plan Lisbon",
        turn(out, 1)[3],
        "5 ◂ Hotel Lisboa, 82 EUR. Hotel Lisboa, 82 EUR. Hotel Lisboa, 82 EUR. Hotel",
    ]
    assert turn(out, 1)[3].startswith('4 ▸ search(q="hotels")')
    assert turn(out, 1)[-1].endswith("… 193.2 KB more")
    assert turn(out, 2)[0] == "6 → the results above"
    assert turn(out, 2)[1].startswith("7 ✗ TimeoutError: the model did not answer")


def test_the_failure_stands_first_with_where_to_look(tmp_path):
    code = """
import sys, reenact
tap = reenact.Tap(sys.argv[1])
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
for _ in range(2):
    call = tap.record_model_request(body, provider="anthropic")
    tap.record_model_response({"role": "assistant", "content": [{"type": "text", "text": "yo"}]}, call=call)
@tap.tool
def book(hotel):
    raise LookupError("no rooms")
book("Lisboa")
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "a.jsonl"], env=environment(), stderr=-3)
    path = str(tmp_path / "a.jsonl")
    lines = typed("show", path).out.splitlines()
    assert lines[0].startswith("✗ error  LookupError: no rooms")
    at = next(number for number, line in enumerate(lines) if line.startswith("  at event 7 in turn 2"))
    assert [line.strip() for line in lines[at + 1 : at + 4]] == [
        f"reenact show {path} --event 7",
        f"reenact messages {path} --turn 2",
        f"reenact debug {path}",
    ]
    assert "7 ✗ LookupError: no rooms" in "\n".join(lines) and "8 ✗ the same error again" in "\n".join(lines)
    assert typed(*lines[at + 1].split()[1:], "--json").rows[0]["error"]["type"] == "LookupError"


@pytest.mark.parametrize("inside", ["model", "tool"])
def test_a_killed_run_says_which_call_has_no_end(tmp_path, inside):
    code = """
import os, sys, reenact
tap = reenact.Tap(sys.argv[1])
body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
call = tap.record_model_request(body, provider="anthropic")
if sys.argv[2] == "tool":
    tap.record_model_response({"role": "assistant", "content": [{"type": "text", "text": "yo"}]}, call=call)
    tap.record_tool_call("search", {"q": "x"})
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.jsonl", inside], env=environment())
    assert done.returncode == -signal.SIGKILL
    out = typed("show", tmp_path / "a.jsonl").out
    assert out.startswith("✗ killed  died ") and "turn 1" in out
    assert ("✗ no answer was recorded" if inside == "model" else "✗ no result was recorded") in out
    assert f"at event {2 if inside == 'model' else 4} in turn 1" in out


def test_a_call_of_a_run_that_is_alive_is_still_going_on(agent):
    agent.ask("hi", None)
    out = typed("show", agent.path).out
    assert out.startswith("● running  is waiting for the model") and "· it is still going on" in out
    assert "look closer" not in out
    agent.tap.close()


def test_only_what_a_request_added_is_shown(agent):
    agent.ask("Plan Lisbon", answer("Looking.", ("t1", "search", {"q": "hotels"})))
    agent.tap.record_tool_result(
        "search", {"hotel": 82}, call=agent.tap.record_tool_call("search", {"q": "hotels"})
    )
    agent.ask([result("t1", '{"hotel":   82}'), {"type": "text", "text": "Hurry up"}], answer("Done."))
    out = agent.show()
    assert turn(out, 2) == ["6 → user Hurry up", "7 ← Done."]
    assert out.count("Plan Lisbon") == out.count("You plan trips.") == out.count("Looking.") == 1


def test_a_result_that_the_model_saw_otherwise_than_the_tool_returned_it_is_reported(agent):
    agent.ask("Plan Lisbon", answer(("t1", "search", {"q": "hotels"})))
    agent.tap.record_tool_result(
        "search", "82 EUR", call=agent.tap.record_tool_call("search", {"q": "hotels"})
    )
    agent.ask([result("t1", "82 EUR (sale)")], answer("Done."))
    assert turn(agent.show(), 2)[0] == "6 → result as sent 82 EUR (sale)"


def test_tools_seen_on_the_wire_only_get_their_results_from_the_next_prompt(agent):
    agent.ask("Go", answer(("t1", "search", {"q": "a"}), ("t2", "search", {"q": "b"})))
    agent.ask([result("t1", "found a"), result("t2", "timeout", is_error=True)], answer(("t3", "book", {})))
    out = agent.show()
    assert re.search(r'search\(q="a"\) +≤ [\d.]+ ms', out)  # until the next request: no more than a bound
    assert turn(out, 1)[-4:] == [
        '3 ▸ search(q="a")', "4 ◂ found a", '▸ search(q="b")', "4 ◂ timeout",
    ]  # fmt: skip
    assert turn(out, 2) == ["4 → the results above", "5 ▸ book()", "· requested, never answered"]
    assert "→ result  found a" in typed("show", agent.path, "--turn", "2").out


def test_what_else_changed_in_a_request_is_reported(agent):
    tools = [{"name": "search", "input_schema": {}}]
    agent.ask("a", answer("1"), tools=tools)
    agent.ask("b", answer("2"), tools=[*tools, {"name": "book"}], temperature=0.5)
    agent.ask("c", answer("3"), model="claude-opus-4-5", system="You plan better trips.")
    out = agent.show()
    assert turn(out, 1)[:3] == ["2 → system You plan trips.", "→ tools search", "→ with max_tokens=99"]
    assert turn(out, 2)[:3] == ["4 → tools + book", "→ temperature unset → 0.5", "→ user b"]
    assert set(turn(out, 3)[:-2]) == {
        "6 → model claude-sonnet-4-6 → claude-opus-4-5",
        "→ system changed: You plan better trips.",
        "→ tools - search, - book",
        "→ temperature 0.5 → unset",
    }


def test_a_rewritten_history_is_reported_with_how_many_messages_were_dropped(agent):
    for number in range(6):
        agent.ask(f"question {number}", answer(f"answer {number}"))
    agent.messages[:10] = [{"role": "user", "content": "In short: five questions."}]
    agent.ask("go on", answer("gladly"))
    assert turn(agent.show("--all"), 7) == [
        "14 → history rewritten: 10 messages dropped",
        "→ user In short: five questions.",
        "→ user go on",
        "15 ← gladly",
    ]


def test_two_conversations_in_one_lane_are_distinguished(agent):
    first, second = agent.messages, []
    for number in range(2):
        agent.messages = first
        agent.ask(f"first {number}", answer(f"answer {number} to the first"))
        agent.messages = second
        agent.ask(f"second {number}", answer(f"answer {number} to the second"))
    out = agent.show()
    assert turn(out, 2)[:2] == ["4 → history another conversation", "→ user second 0"]
    assert turn(out, 3)[:2] == ["6 → history an earlier conversation continues", "→ user first 1"]
    assert turn(out, 4)[:2] == ["8 → history an earlier conversation continues", "→ user second 1"]


def test_moved_cache_markers_are_no_change_of_history(agent):
    marked = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]
    agent.ask(marked, answer("1"))
    agent.messages[0] = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    agent.ask("b", answer("2"))
    assert turn(agent.show(), 2) == ["4 → user b", "5 ← 2"]


def test_retries_stand_in_their_turn(agent):
    agent.ask("hi", ConnectionError("reset"))
    agent.ask(None, answer("Hello."), attempt=2)
    lines = turn(agent.show(), 1)
    assert lines[-2].startswith("3 ✗ attempt 1 ConnectionError: reset") and lines[-1] == "5 ← Hello."


def test_lanes_are_named_where_there_are_several(agent):
    agent.ask("main task", answer("I delegate."))
    one, agent.messages = agent.messages, []
    agent.ask("sub task", answer("Sub answer."), lane="researcher", system="You research.")
    agent.messages = one
    agent.ask("more", answer("Done."))
    out = agent.show()
    assert "turn 2  [researcher]" in out and "turn 3  [main]" in out
    assert "4 → system You research." in turn(out, 2)
    assert turn(out, 3) == ["6 → user more", "7 ← Done."]


def test_thinking_is_marked_and_an_unusual_stop_is_reported(agent):
    thought = {"type": "thinking", "thinking": "Hmm, Lisbon.", "signature": "x"}
    agent.ask("hi", answer(thought, "Half an ans", stop="max_tokens"))
    assert turn(agent.show(), 1)[-3:] == [
        "3 ← thinking Hmm, Lisbon.", "← Half an ans", "← stopped by max_tokens",
    ]  # fmt: skip


def test_tokens_money_and_time_stand_at_the_right_edge_and_in_the_totals(agent):
    agent.ask("hi", answer("1", usage=(1000, 200, 0)))
    agent.ask("ho", answer("2", usage=(1000, 200, 12000)))
    out = agent.show()
    heads = [line for line in out.splitlines() if line.startswith("turn ")]
    assert all(len(line) == 80 for line in heads) and heads[1].find("13.0k+200") > 0
    assert "$0.006 " in heads[0] and "12.0k cached" in heads[1] and "$0.0096" in heads[1]
    assert "14,400 tokens (14,000 in, 400 out, 12,000 cached)" in out
    assert "cost  $0.0156, estimated; prices: genai-prices" in out
    assert "\ntime  model " in out


def test_money_that_is_not_known_says_why_once(agent):
    agent.ask("hi", {**answer("1"), "model": "my-own"}, model="my-own")
    agent.ask("ho", {**answer("2"), "model": "my-own"}, model="my-own")
    out = agent.show()
    assert "cost  unknown: no price for my-own (2 calls)" in out and "$" not in out


def test_idle_time_is_reported(agent):
    lines = [
        {"ts": 1000.0, "run": "r", "kind": "llm_call", "content": "one"},
        {"ts": 1012.4, "run": "r", "kind": "tool_call", "name": "search", "args": {}},
        {"ts": 1013.0, "run": "r", "kind": "tool_result", "output": "x"},
    ]
    agent.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = typed("show", agent.path).out
    assert "… 12 s later" in out and "the prompt was not recorded" in out
    assert "time  tools 600 ms, elsewhere 12 s" in out


def test_a_long_run_keeps_its_ends_and_every_turn_its_number(agent):
    for number in range(30):
        agent.ask(f"question {number + 1}", answer(f"answer {number + 1}"))
    out = agent.show()
    numbers = [int(line.split()[1]) for line in out.splitlines() if line.startswith("turn ")]
    assert numbers == [1, 2, 25, 26, 27, 28, 29, 30] and "… 22 more turns; --all shows them" in out
    assert turn(out, 25) == ["50 → user question 25", "51 ← answer 25"]
    assert agent.show("--all").count("\nturn ") == 30


def test_the_ends_of_a_large_run_are_shown_from_what_is_recorded_there_alone(agent):
    for number in range(1, 201):
        large = (
            "x" * 60_000 if 20 < number <= 180 else ""
        )  # more bytes than are read of a run to show its ends
        agent.ask(f"question {number}", answer(f"answer {number}{large}"))
        if number == 198:
            agent.messages[:-4] = [{"role": "user", "content": "in short"}]
    out = agent.show()
    numbers = [int(line.split()[1]) for line in out.splitlines() if line.startswith("turn ")]
    assert numbers == [1, 2, *range(195, 201)]
    assert turn(out, 198) == ["396 → user question 198", "397 ← answer 198"]
    assert turn(out, 199)[0] == "398 → history rewritten: 392 messages dropped"
    assert turn(out, 199)[1:] == ["→ user in short", "→ user question 199", "399 ← answer 199"]
    assert turn(out, 200) == ["400 → user question 200", "401 ← answer 200"]
    assert "cost  not summed up in a run of this size: ask `reenact stats`" in out


def test_the_articles_lines_and_step_logs_are_shown_as_turns_and_report_once_what_they_lack(tmp_path):
    with reenact.StepLog(tmp_path / "a.jsonl") as log:
        for _ in range(3):
            log.record_llm_call(MODEL, 10, 2, "tool_use", duration_ms=40)
            log.record_tool_call("search", {"q": "x"}, "y", None, duration_ms=2)
    out = typed("show", "--all", tmp_path / "a.jsonl").out
    assert out.count("the prompt was not recorded") == out.count("the answer's text was not recorded") == 1
    assert turn(out, 2)[0].startswith('5 ▸ search(q="x")') and turn(out, 2)[1] == "◂ y"


@pytest.mark.parametrize("width", [40, 80])
def test_hostile_and_endless_texts_stay_within_their_lines(agent, width):
    evil = "\x1b]0;t\x07\x1b[2J" + "日本語" * 40 + "\n" * 500 + "x" * 100_000 + "\u202e\x9b1m"
    agent.ask(evil, answer(evil, ("t1", evil, {evil: evil})), system=evil, **{"evil\x1b[2J": 1})
    agent.tap.record_tool_result("search", evil, call=agent.tap.record_tool_call(evil, {evil: evil}))
    out = agent.show(COLUMNS=str(width))
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
    reported = out.partition("\nturn 1")[2].partition("\n\n")[0]
    assert "KB more" in reported and reported.count("\n") < 50
    wide = [
        line for line in reported.splitlines() if len(line) + sum(char in "日本語" for char in line) > width
    ]
    assert wide == []


def test_other_providers_messages_are_read(tmp_path):
    path = tmp_path / "a.jsonl"
    agent = Agent(path)
    tap, call_id = agent.tap, "call_1"
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"}]
    use = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": '{"at": "Lisbon"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [use]}
    body = {"model": "gpt-4o", "messages": messages}
    call = tap.record_model_request(body, provider="openai")
    tap.record_model_response(
        {"model": "gpt-4o", "choices": [{"message": message, "finish_reason": "tool_calls"}]}, call=call
    )
    messages += [message, {"role": "tool", "tool_call_id": call_id, "content": "sunny"}]
    call = tap.record_model_request(body, provider="openai")
    printed = {"role": "assistant", "content": "Sunny."}
    tap.record_model_response(
        {"model": "gpt-4o", "choices": [{"message": printed, "finish_reason": "stop"}]}, call=call
    )
    out = agent.show()
    assert turn(out, 1) == [
        "2 → system Be brief.", "→ user Weather?", '3 ▸ look(at="Lisbon")', "4 ◂ sunny",
    ]  # fmt: skip
    assert turn(out, 2) == ["4 → the results above", "5 ← Sunny."]


def test_json_has_money_and_a_line_per_turn_on_request(agent):
    agent.ask("Plan Lisbon", answer("Looking.", ("t1", "search", {"q": "hotels"})))
    agent.tap.record_tool_result("search", "82", call=agent.tap.record_tool_call("search", {"q": "hotels"}))
    agent.ask([result("t1", "82")], answer("Done."))
    agent.tap.close()
    run, *events = typed("show", agent.path, "--json").rows
    assert run["money"]["usd"] == pytest.approx(0.0012) and run["time"]["model"] >= 0
    assert [event["turn"] for event in events] == [0, 1, 1, 1, 1, 2, 2, 2]
    run, one, two = typed("show", agent.path, "--json", "--turns").rows
    assert run["tot"]["turns"] == 2
    assert one["new"] == [{"role": "user", "sort": "text", "text": "Plan Lisbon", "answers": None}]
    assert [tool["tool"] for tool in one["tools"]] == ["search"] and one["stop_reason"] == "tool_use"
    assert two["new"][-1] == {"role": "user", "sort": "result", "text": "82", "answers": "t1"}
    assert two["answer"][0]["text"] == "Done." and two["tokens"]["in"] == 100
    assert typed("show", agent.path, "--json", "--turns", "--turn", "2").rows[1:] == [two]


def test_a_terminal_gets_signs_an_encoding_has(agent):
    agent.ask("hi", answer("é"))
    out = agent.show(PYTHONIOENCODING="ascii")
    assert "2 > system  You plan trips." in out and out.isascii()


def test_a_torn_file_is_shown_as_far_as_it_goes(agent):
    agent.ask("Plan Lisbon", answer("Looking."))
    agent.ask("And?", answer("Done."))
    agent.tap.close()
    data = agent.path.read_bytes()
    agent.path.write_bytes(data[: data.index(b'"Done."') - 40])
    code, out, err = typed("show", agent.path)
    assert code == 0 and "← Looking." in out and "→ user  And?" in out and "still going on" in out
    assert err


def test_long_results_are_those_of_the_blob(agent):
    agent.ask("Go", answer(("t1", "search", {})))
    agent.tap.record_tool_result("search", LONG, call=agent.tap.record_tool_call("search", {}))
    agent.tap.close()
    assert os.path.isdir(agent.path.with_suffix(".blobs"))
    out = typed("show", agent.path, "--turn", "1", COLUMNS="80").out
    assert out.count("Hotel Lisboa, 82 EUR.") > 70 and "KB more" in out


@pytest.mark.long
def test_lines_of_many_megabytes_are_named_and_not_read(tmp_path):
    large, path = "x" * (65 << 20), tmp_path / "a.jsonl"
    call, tool = "a" * 16, "b" * 16
    events = [
        {"kind": "run.start", "v": "1.0", "name": "large"},
        {"kind": "model.request", "call": call, "body": {"messages": [{"role": "user", "content": "LARGE"}]}},
        {"kind": "model.response", "call": call, "body": {"role": "assistant", "content": "Hello."}},
        {"kind": "tool.called", "call": tool, "tool": "search", "args": {"q": "x"}},
        {"kind": "tool.result", "call": tool, "tool": "search", "result": "LARGE"},
    ]
    with open(path, "w") as file:
        for step, event in enumerate(events, 1):
            line = json.dumps({"ts": 1e9 + step, "run": "r", "w": "00000000", "step": step, **event})
            before, found, after = line.partition("LARGE")
            file.writelines([before, large if found else "", after, "\n"])
    code, out, _ = typed("show", path, COLUMNS="80")
    assert code == 0
    assert turn(out, 1)[0].startswith("2 → model.request (a line of over 64 MB")
    assert turn(out, 1)[-3:] == ["3 ← Hello.", '4 ▸ search(q="x")', "5 ◂ (a line of over 64 MB)"]


def test_a_large_run_of_few_events_is_shown_from_its_ends(tmp_path):
    path = tmp_path / "a.jsonl"
    with reenact.Trace(path, redact=False) as trace:
        for number in range(300):
            trace.step("note", number=number, text="x" * 60_000)
    out = typed("show", path).out
    assert "number=0" in out and "number=299" in out and "number=150" not in out
    assert "… 240 more events; --all shows them" in out


def test_what_the_provider_reports_is_distinguished_from_what_is_estimated(tmp_path):
    import_module("genai_prices")
    usage = {"prompt_tokens": 100_000, "completion_tokens": 0}
    steps = [("llm_call", {"model": "gpt-4o", "usage": usage | cost}) for cost in ({}, {"cost": 1.5})]
    path = write_trace(tmp_path / "run.jsonl", steps)
    assert "cost  $1.75, estimated ($1.50 as the provider says); prices: " in typed("show", path).out
