"""Every command and every function that says what a run cost and how many tokens it used says the same."""

from __future__ import annotations

import json
import re
from importlib import import_module

import pytest

import reenact
from reenact.playback.fork.tool_policy import Caps, Spent
from reenact.testing import write_trace
from support.examples import long, one_in
from support.typed import typed, typed_many

import_module("genai_prices")

MODEL = "claude-sonnet-4-6"  # $3 and $15 for a million tokens
USAGE = {"input_tokens": 1000, "output_tokens": 500}
ONE = 0.0105
"""Dollars of one call."""


def request_event(call, **fields):
    return "model.request", {"call": call, "provider": "anthropic", **fields}


def answered(call, **fields):
    body = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "ok"}],
        "usage": USAGE,
    }
    return "model.response", {"call": call, "provider": "anthropic", "body": body, **fields}


def whole(text):
    return {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": text}]}


def kept(base):
    """A request written as what is new: the model is that of an earlier one."""
    keep = {"model": True, "max_tokens": True, "messages": 1}
    return {"base": base, "keep": keep, "n": 2, "body": {"messages": [{"role": "user", "content": "two"}]}}


def lanes_that_continue(count):
    for number in range(count):
        yield request_event(f"a{number}", lane=f"lane {number}", body=whole("one"))
        yield answered(f"a{number}")
    for number in range(count):
        yield request_event(f"b{number}", lane=f"lane {number}", **kept(f"a{number}"))
        yield answered(f"b{number}")


def a_long_chain(count):
    yield from (request_event("0", body=whole("one")), answered("0"))
    for number in range(1, count):
        yield from (request_event(str(number), **kept(str(number - 1))), answered(str(number)))


def a_base_further_on():
    return [
        request_event("b", **kept("a")),
        answered("b"),
        request_event("a", body=whole("one")),
        answered("a"),
    ]


def usage_beside(**fields):
    return [
        request_event("a", body=whole("one")),
        answered("a", body={"type": "message", "content": []}, **fields),
    ]


def of_openai():
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    message = {"role": "assistant", "content": "ok"}
    body = {"object": "chat.completion", "choices": [{"message": message}], "usage": usage}
    asks = "model.request", {"call": "a", "provider": "openai", "body": whole("one")}
    return [asks, ("model.response", {"call": "a", "provider": "openai", "body": body})]


def step_log_with_a_body():
    return [("llm_call", {"model": MODEL, "body": answered("a")[1]["body"]})]


RUNS = {
    "300 lanes that keep the model": (lambda: lanes_that_continue(300), 600),
    "each request keeps the model of the one before": (lambda: a_long_chain(250), 250),
    "a base further on in the file": (a_base_further_on, 2),
    "usage in the body only": (lambda: [request_event("a", body=whole("one")), answered("a")], 1),
    "usage as the recorder writes it": (lambda: usage_beside(usage={"input": 1000, "output": 500}), 1),
    "usage as the provider writes it": (lambda: usage_beside(usage=USAGE), 1),
    "counts beside each other": (lambda: usage_beside(**USAGE), 1),
    "usage in a body of OpenAI's": (of_openai, 1),
    "usage in the body of a StepLog's line": (step_log_with_a_body, 1),
}


def money(text):
    """The dollars in a text for people, at most 1 % off."""
    return pytest.approx(float(re.search(r"\$([\d,.]+)", text)[1].replace(",", "")), rel=0.01)


@pytest.mark.parametrize("name", one_in(2, RUNS, first=1))
def test_all_say_the_same_of_money_and_tokens(tmp_path, name):
    events, calls = RUNS[name]
    path = write_trace(tmp_path / "run.jsonl", events())
    last = reenact.Recording.load(path).events[-1].step
    cost, tokens = pytest.approx(calls * ONE), (calls * 1000, calls * 500)

    shown, as_json, turns, stats, stats_json, by_model, listed, where, info = typed_many(
        [
            ["show", path],
            ["show", path, "--json"],
            ["show", path, "--json", "--turns"],
            ["stats", path],
            ["stats", path, "--json"],
            ["stats", path, "--by", "model", "--json"],
            ["ls", tmp_path, "--json"],
            ["debug", path, "--at", last, "-c", "w"],
            ["debug", path, "--at", last, "-c", "info"],
        ]
    )
    many = f"{sum(tokens):,} tokens ({tokens[0]:,} in, {tokens[1]:,} out)"
    assert many in shown.out and calls * ONE == money(shown.out.rpartition("cost  ")[2])
    run = json.loads(as_json.out.splitlines()[0])
    assert (run["money"]["usd"], run["tot"]["in"], run["tot"]["out"]) == (cost, *tokens)
    rows = [row for row in turns.rows if "tokens" in row]
    assert [(row["tokens"]["in"], row["tokens"]["out"]) for row in rows] == [(1000, 500)] * calls
    assert [row["money"]["usd"] for row in rows] == [ONE] * calls
    assert {row["model"] for row in rows} == {MODEL}
    assert f"{tokens[0]:,} in, {tokens[1]:,} out" in stats.out
    assert calls * ONE == money(stats.out.partition("cost")[2])
    facts = json.loads(stats_json.out)
    assert (facts["cost"]["usd"], facts["tokens"]["in"], facts["tokens"]["out"]) == (cost, *tokens)
    assert (facts["cost"]["unknown"], facts["models"]) == ({}, {MODEL: calls})
    assert [(row["tokens_in"], row["tokens_out"]) for row in by_model.rows] == [tokens]
    assert (listed.rows[0]["tokens"]["in"], listed.rows[0]["tokens"]["out"]) == tokens
    assert f"so far {tokens[0]:,} tokens in, {tokens[1]:,} out, cost " in where.out
    assert calls * ONE == money(where.out.rpartition("cost")[2])
    assert f"{tokens[0]:,} in, {tokens[1]:,} out" in info.out

    debugger = reenact.Debugger.load(path)
    state = debugger.state_at(debugger.last())
    for sums in (debugger.summary(), reenact.runs(path), state):
        assert (float(sums.cost.usd), sums.cost.unknown_calls) == (cost, 0)
        assert (sums.totals.tokens_in, sums.totals.tokens_out) == tokens
    spent = Spent(debugger.recording)
    assert (float(spent.bill.usd), spent.tokens_in, spent.tokens_out) == (cost, *tokens)
    assert float(Caps(1, 1, 1, str(tmp_path), path).spent()) == cost


def test_a_line_about_an_answer_has_the_tokens_that_stand_in_its_body_only(tmp_path):
    path = write_trace(tmp_path / "run.jsonl", [request_event("a", body=whole("one")), answered("a")])
    shown, followed, context = typed_many(
        [["show", path, "--events"], ["tail", path], ["debug", path, "--at", 2, "-c", "ctx"]]
    )
    assert "1000+500" in shown.out and "1000+500" in followed.out
    debugger = reenact.Debugger.load(path)
    assert "1000+500" in debugger.last().summary()
    assert "1,000 tokens as the provider counted" in context.out


def test_a_base_that_leads_round_in_a_circle_has_no_model(tmp_path):
    path = write_trace(
        tmp_path / "run.jsonl",
        [request_event("a", **kept("b")), answered("a"), request_event("b", **kept("a")), answered("b")],
    )
    shown, stats = typed_many([["show", path], ["stats", path, "--json"]])
    assert "unknown: no model name (2 calls)" in shown.out
    assert json.loads(stats.out)["cost"]["unknown"] == {"no model name": 2}


@pytest.mark.parametrize(
    "own", [long(False, id="list price"), pytest.param(True, id="own price of the requested model")]
)
def test_a_turn_of_a_large_run_costs_what_stats_say(tmp_path, own):
    """In a large file the base is far away, and the answer may not name the model, or by another name."""
    events = [request_event("0", body={**whole("one"), "model": "in-house" if own else MODEL}), answered("0")]
    long = {"body": {"messages": [{"role": "user", "content": "x" * 100_000}]}}
    for number in range(1, 100):
        answer = answered(str(number), **({"model": MODEL} if own else {}))
        events += [request_event(str(number), **{**kept(str(number - 1)), **long}), answer]
    path = write_trace(tmp_path / "run.jsonl", events)
    if own:
        (tmp_path / "reenact.toml").write_text('[prices."in-house"]\ninput = 1000\noutput = 2000\n')
    shown, stats = typed("show", path, cwd=tmp_path), typed("stats", path, "--json", cwd=tmp_path)
    assert "not summed up in a run of this size" in shown.out
    cost = json.loads(stats.out)["cost"]
    assert (cost["priced"], cost["unknown"]) == (100, {})
    turns = [line for line in shown.out.splitlines() if line.startswith("turn ")]
    assert len(turns) > 1 and turns[-1].startswith("turn 100 ")
    for turn in turns:
        assert (2 if own else ONE) == money(turn)
    assert cost["usd"] == pytest.approx(200 if own else 100 * ONE)
