"""Conversations that the provider keeps: what was sent before is shown, marked as not sent, and never sent again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import reenact
from support.forked import type_in
from support.provider import Provider
from support.typed import typed

AGENT = """
import json, os, sys
from urllib.request import Request, urlopen

def post(path, **body):
    request = Request(os.environ["MODEL_URL"] + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urlopen(request))

def by_response():
    request_input, before = "Find a hotel", {}
    while request_input:
        found = post("/v1/responses", model="m", instructions="Plan.", input=request_input, **before)
        uses = [item for item in found["output"] if item["type"] == "function_call"]
        request_input = [{"type": "function_call_output", "call_id": use["call_id"], "output": "82 EUR"} for use in uses]
        before = {"previous_response_id": found["id"]}

def by_conversation():
    for text in ("one", "two"):
        post("/v1/responses", model="m", input=text, conversation=sys.argv[2])

def by_thread():
    messages, before = [{"role": "user", "content": "Find a hotel"}], {}
    while messages:
        found = post("/v1/messages", model="m", max_tokens=9, messages=messages, **before)
        results = [{"type": "tool_result", "tool_use_id": part["id"], "content": "82 EUR"}
                   for part in found["content"] if part["type"] == "tool_use"]
        messages = results and [{"role": "user", "content": results}]
        before = {"thread": {"previous_message_id": found["id"]}}

globals()[sys.argv[1]]()
"""


class Desk:
    """A folder with an agent that leaves its history with the provider."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        (folder / "agent.py").write_text(AGENT)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.folder, self.env = folder, {**clean, "MODEL_URL": provider.url("tools-2")}

    def __call__(self, *words: str) -> str:
        done = type_in(words, self.folder, self.env, session=True)
        assert done.returncode == 0, done
        return done.stdout + done.stderr

    def record(self, *way: str) -> str:
        self("run", "--name", way[0], "agent.py", *way)
        [path] = (self.folder / ".reenact").glob(f"*-{way[0]}-*.jsonl")
        return str(path)


@pytest.fixture
def desk(tmp_path: Path, provider: Provider) -> Desk:
    return Desk(tmp_path, provider)


def test_messages_show_what_a_response_id_continues_and_send_only_the_request(desk: Desk) -> None:
    path = desk.record("by_response")
    first, second, third = (reenact.replay(path, turn=turn) for turn in (1, 2, 3))
    assert (first.kept, first.missing, first.findings) == ([], None, [])
    assert [len(first), len(second), len(third)] == [1, 1, 1]
    assert third.request()["previous_response_id"] and third.request()["input"] == list(third)
    assert second.kept[0] == {"role": "user", "content": "Find a hotel"}
    kinds = [each.get("type", each.get("role")) for each in third.kept]
    answer = ["message", "function_call"]
    assert kinds == ["user", *answer, "function_call_output", *answer]
    assert third.missing is None
    [finding] = third.findings
    assert finding.code == "not-whole"
    assert f"{len(third.kept)} messages before it are kept by the provider, not sent" in finding.message
    [shown] = typed("messages", path, "--turn", "3", "--json").rows
    assert (shown["messages"], shown["kept"], shown["missing"]) == (list(third), third.kept, None)
    lines = typed("messages", path, "--turn", "3").out.splitlines()
    assert lines[lines.index("user  not sent  12 bytes") + 1] == "  Find a hotel"
    results = [line for line in lines if line.startswith("◂ ")]
    assert ["not sent" in line for line in results] == [True, False]
    assert not any(line.startswith("◂ tool") for line in results), "a result is named after its kept use"
    assert lines[-1].startswith(f"1 message after {len(third.kept)} messages kept by the provider, not sent")
    text = typed("messages", path, "--turn", "3", "--as", "text").out
    assert text.index("(kept by the provider, not sent)") < text.index("Find a hotel") < text.index("(sent)")
    other = third.to("anthropic")
    assert other.kept[0]["role"] == "user" and len(other) == 1


def test_contexts_and_show_have_it_too(desk: Desk) -> None:
    path = desk.record("by_response")
    dbg = reenact.Debugger.load(path)
    requests = dbg.where(event_type="model.request")
    seen = [dbg.context_at(request) for request in requests]
    assert [each.not_sent for each in seen] == [0, 3, 6]
    assert seen[2][:6] == reenact.replay(path, turn=3).kept and seen[2][6:] == list(
        reenact.replay(path, turn=3)
    )
    assert seen[2][: len(seen[1])] == seen[1] and all(each.missing is None for each in seen)
    assert dbg.state_at(requests[2]).context == seen[2]
    shown = typed("debug", path, "-c", "jump turn:3; ctx; delta; ctx 0").out.splitlines()
    rows = [line.split() for line in shown if line[:1].isdigit() or line[:2].strip().isdigit()]
    marked = [row[0] for row in rows if row[2:4] == ["not", "sent"]]
    assert marked[:6] == list("012345")
    assert (
        "1 message in the request at 6, 105 tokens as the provider counted; ctx N shows one in full" in shown
    )
    assert "6 messages before it are kept by the provider, not sent" in shown
    drawn = typed("show", path).out
    assert "history  turn 1 continues: kept by the provider, not sent" in drawn
    assert "history  turn 2 continues: kept by the provider, not sent" in drawn
    assert "another conversation" not in drawn


def test_a_thread_of_anthropic_is_continued_and_its_results_are_kept(desk: Desk) -> None:
    path = desk.record("by_thread")
    third = reenact.replay(path, turn=3)
    assert [each["role"] for each in third.kept] == ["user", "assistant", "user", "assistant"]
    assert [each["content"][0]["type"] for each in third] == ["tool_result"], "not cut for want of its use"
    assert [finding.code for finding in third.findings] == ["not-whole"]
    assert "another conversation" not in typed("show", path).out


def test_what_is_not_recorded_of_a_conversation_is_named(desk: Desk) -> None:
    path = desk.record("by_conversation", "conv_7")
    first, second = reenact.replay(path, turn=1), reenact.replay(path, turn=2)
    gap = "what was before, conv_7, is kept by the provider and not recorded in this run"
    assert (first.kept, first.missing, second.missing) == ([], gap, gap)
    assert second.kept[0] == {"role": "user", "content": "one"} and len(second) == 1
    assert gap in first.findings[0].message and gap in second.findings[0].message
    assert gap in typed("debug", path, "-c", "jump turn:2; ctx").out
    assert "history  conv_7 continues: kept by the provider and not recorded" in typed("show", path).out


@pytest.mark.long
def test_a_fork_shows_it_and_refuses_to_change_it(desk: Desk, provider: Provider) -> None:
    desk.record("by_response")
    at = ("fork", "by_response", "--at", "turn:3", "--live-tools", "lookup", "--stale-world")
    for words, problem in [
        (("--drop", "2"), "the provider stores this conversation"),
        (("--set", "input.4.content=x"), "kept by the provider as resp_0002, not sent"),
        (("--tool-result", "x", "--tool", "call_0001"), "kept by the provider as resp_0002, not sent"),
    ]:
        refused = type_in((*at, *words), desk.folder, desk.env, session=True)
        assert refused.returncode == 2 and problem in refused.stderr, refused
    provider.reset()
    desk(*at, "--tool-result", "90 EUR")
    [sent] = [json.loads(each.body) for each in provider.settled()]
    assert sent["previous_response_id"] == "resp_0002"
    assert sent["input"] == [{"type": "function_call_output", "call_id": "call_0002", "output": "90 EUR"}]
    [path] = (desk.folder / ".reenact").glob("*-by_response-fork-*.jsonl")
    forked = reenact.replay(path, turn=3)
    assert len(forked.kept) == 6 and forked[0]["output"] == "90 EUR" and forked.missing is None


def printed(text: str) -> dict[str, Any]:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {"object": "response", "id": "resp_1", "status": "completed", "output": [message]}


def test_content_that_was_withheld_is_named_too(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with reenact.Tap(path) as tap:
        with reenact.private():
            call = tap.record_model_request({"model": "m", "input": [{"role": "user", "content": "hush"}]})
            tap.record_model_response(printed("a secret"), call=call)
        tap.record_model_request({"model": "m", "input": "on", "previous_response_id": "resp_1"})
    assert reenact.replay(path, turn=2).missing == "the content of 2 of them is not recorded"


def test_an_id_that_is_used_again_means_its_latest_answer(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with reenact.Tap(path) as tap:
        for name in ("old", "new"):
            call = tap.record_model_request({"model": "m", "input": name})
            tap.record_model_response(printed(f"{name} answer"), call=call)
        tap.record_model_request({"model": "m", "input": "on", "previous_response_id": "resp_1"})
    kept = reenact.replay(path, turn=3).kept
    assert [kept[0]["content"], kept[1]["content"][0]["text"]] == ["new", "new answer"]
