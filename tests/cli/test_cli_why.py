"""reenact why: the answer, its exit code, as JSON, and what unusable input gets."""

from __future__ import annotations

import pytest

from reenact import Tap
from support.runs_to_debug import answer, request, user
from support.typed import typed


@pytest.fixture(scope="module")
def trip(tmp_path_factory):
    """A price comes from a tool, a city from the user; the model invents a card. Its text is hostile."""
    path = tmp_path_factory.mktemp("trip") / "trip.jsonl"
    tap = Tap(path)
    messages = [user("Book Lisbon\x1b[31m now")]
    call = tap.record_model_request(request(*messages), "anthropic")
    body = answer("Looking.", ("t1", "price", {"city": "Lisbon"}))
    tap.record_model_response(body, call=call)
    tool = tap.record_tool_call("price", {"city": "Lisbon"})
    tap.record_tool_result("price", "8900\x1b]0;evil\x07 cents", call=tool)
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "8900\x1b]0;evil\x07 cents"}
    messages += [{"role": "assistant", "content": body["content"]}, {"role": "user", "content": [result]}]
    call = tap.record_model_request(request(*messages), "anthropic")
    body = answer("It costs 8900.", ("t2", "pay", {"card": "visa-4242", "sum": 8900}))
    tap.record_model_response(body, call=call)
    tool = tap.record_tool_call("pay", {"card": "visa-4242", "sum": 8900})
    tap.record_tool_result("pay", error="declined: visa-4242", call=tool)
    tap.close()
    return path


@pytest.mark.parametrize(
    ("question", "code", "parts"),
    [
        (["8900"], 0, ["found: the tool price returned it", "←   5  tool result, first"]),
        (["8.args.sum"], 0, ["args.sum = ", "found: the tool price returned it"]),
        (["8.args.card"], 1, ["no recorded origin: the model wrote it"]),
        (["Atlantis"], 1, ["no recorded origin: no event of the run holds it"]),
        (["--uses", "5"], 0, ["1 later request carries it", "argument", "pay args.sum: 8900"]),
        (["--uses", "9"], 1, ["No later event contains what it brought."]),
        (["@error"], 0, ["9  pay", "declined", "args.card", "args.sum"]),
        (["--text", "77"], 1, ["no event of the run holds it"]),
    ],
    ids=str,
)  # fmt: skip
def test_a_question_is_answered_with_an_exit_code(trip, question, code, parts):
    done = typed("why", trip, *question, COLUMNS="80")
    assert (done.code, done.err) == (code, "")
    assert all(part in done.out for part in parts), done.out
    assert "\x1b" not in done.out and max(map(len, done.out.splitlines())) <= 110


def test_without_a_question_the_end_of_the_run_is_explained(trip):
    done = typed("why", trip)
    assert done.code == 0 and "8900" in done.out  # the run itself did not fail: its last answer


def test_the_answer_as_json(trip):
    (row,) = typed("why", trip, "8.args.sum", "--json").rows
    assert (row["verdict"], row["event"], row["producer"]) == ("found", "8", "5")
    (chain,) = row["chains"]
    assert [step["address"] for step in chain["steps"]][:3] == ["8", "7", "5"]
    assert chain["steps"][1]["how"] == "link" and 0 < chain["confidence"] <= 1
    (row,) = typed("why", trip, "--uses", "5", "--json").rows
    assert (row["requests"], row["last_request"]) == (1, "6")
    assert {use["what"] for use in row["uses"]} == {"request", "argument", "response"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["8.args.nothing"], "there is no 'nothing' in it"),
        (["turn:99"], "no event of trip is at turn:99"),
        (["99.args.city"], "no event of trip is at 99"),
        ([""], "an empty text comes from everywhere"),
        (["--uses", "nowhere"], "no event of trip is at nowhere"),
        (["x", "--uses", "5"], "--uses takes the event itself"),
        (["--text"], "--text needs a QUESTION"),
        (["call:zz"], None),
    ],
    ids=str,
)  # fmt: skip
def test_unusable_input_is_reported_without_a_traceback(trip, words, said):
    done = typed("why", trip, *words)
    if said is None:
        assert done.code == 1  # a text like any other
    else:
        assert done.code == 2 and said in done.err and done.out == ""


def test_a_run_that_is_no_trace(tmp_path):
    (tmp_path / "x.jsonl").write_text("hello\n")
    assert typed("why", tmp_path / "x.jsonl", "a").code == 2
    assert typed("why", tmp_path / "none.jsonl", "a").code == 2
