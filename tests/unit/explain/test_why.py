"""Where a text or a value came from, and what used it: chains in runs that the recorder wrote."""

from __future__ import annotations

import anthropic
import openai
import pytest

import reenact
from reenact import Debugger, Tap, UsageError
from reenact.explain.text_match import Sought
from reenact.explain.why import CANNOT_TELL, FOUND, NO_ORIGIN, evidence
from support.runs_to_debug import answer, request, user

HOTELS = '{"hotels": ["casa-do-tejo", "lisboa-plaza"], "currency": "EUR"}'


def record(path, *, recorded_tools=True, **options):
    """A user wants a hotel; a search names one, which is booked: 2 to 11 with tools, 2 to 7 without."""
    tap = Tap(path, **options)
    messages = [user("Please book a room in Lisbon for 3 nights.")]
    steps = [
        (answer("I will search.", ("t1", "search", {"city": "Lisbon"})), HOTELS),
        (answer("", ("t2", "book", {"hotel": "lisboa-plaza", "card": "visa-4242"})), "booked: ref 77-ABX"),
        (answer("Your room at lisboa-plaza is booked, reference 77-ABX."), None),
    ]
    for response, result in steps:
        call = tap.record_model_request(
            {**request(*messages), "system": "You book hotels. Be brief and polite."}, "anthropic"
        )
        tap.record_model_response(response, call=call)
        messages.append({"role": "assistant", "content": response["content"]})
        use = response["content"][-1]
        if result is None:
            break
        if recorded_tools:
            tool = tap.record_tool_call(use["name"], use["input"])
            tap.record_tool_result(use["name"], result, call=tool)
        messages.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": result}],
            }
        )
    tap.close()
    return Debugger.load(path)


def places(chain):
    return [(step.event.step, step.what, step.how) for step in chain.steps]


def test_an_argument_leads_to_the_user_through_tool_and_response(tmp_path):
    dbg = record(tmp_path / "t.jsonl")
    (chain,) = dbg.why("8.args.hotel").chains
    assert places(chain) == [
        (8, "argument", "question"),
        (7, "response", "link"),
        (5, "tool result", "exact"),
        (4, "tool call", "link"),
        (3, "response", "link"),
        (2, "user message", "exact"),
    ]
    assert (chain.verdict, chain.producer.event.step, chain.reason) == (
        FOUND,
        5,
        "the tool search returned it",
    )
    begin, end = chain.producer.span
    assert chain.producer.text[begin:end] == "lisboa-plaza" and chain.confidence == 0.95


def test_history_that_is_sent_again_is_skipped(tmp_path):
    dbg = record(tmp_path / "t.jsonl")
    why = dbg.why("77-ABX")
    assert why.producer.step == 9 and why.producer.event_type == "tool.result"
    assert [step.event.step for step in why.chains[0].steps][:2] == [11, 9]
    assert why.chains[0].also == ()  # the request at 10 only sends it on
    why = dbg.why("for 3 nights")
    assert (why.producer.step, why.chains[0].steps[0].what) == (2, "user message")
    assert dbg.why("Be brief and polite").chains[0].producer.what == "system prompt"


def test_derived_tools_have_the_same_chain(tmp_path):
    dbg = record(tmp_path / "t.jsonl", recorded_tools=False)
    (chain,) = dbg.why("5.1.args.hotel").chains
    addresses = [(step.event.step, step.event.derived_number, step.what) for step in chain.steps]
    assert addresses == [
        (5, 1, "argument"),
        (5, None, "response"),
        (4, 1, "tool result"),
        (3, 1, "tool call"),
        (3, None, "response"),
        (2, None, "user message"),
    ]
    assert dbg.why("77-ABX").producer.derived_number == 1


def test_what_the_model_invents_has_no_recorded_origin(tmp_path):
    dbg = record(tmp_path / "t.jsonl")
    (chain,) = dbg.why("8.args.card").chains
    assert (chain.verdict, chain.producer.event.step) == (NO_ORIGIN, 7)
    assert chain.reason == "the model wrote it, and nothing that it had been sent holds it"
    why = dbg.why("a text that is nowhere")
    assert (why.verdict, why.producer, why.chains[0].steps) == (NO_ORIGIN, None, ())


def test_a_sentence_of_the_model_is_explained_by_the_facts_in_it(tmp_path):
    why = record(tmp_path / "t.jsonl").why("Your room at lisboa-plaza is booked, reference 77-ABX.")
    assert why.verdict == NO_ORIGIN  # the sentence itself is the model's
    assert {chain.text: chain.producer.event.step for chain in why.chains[1:]} == {"77-ABX": 9}


def test_an_event_is_explained_by_each_of_its_values(tmp_path):
    dbg = record(tmp_path / "t.jsonl")
    why = dbg.why(dbg.recording.event(8))
    assert {chain.path: chain.verdict for chain in why.chains} == {
        "args.hotel": FOUND,
        "args.card": NO_ORIGIN,
    }
    assert why.verdict == FOUND
    (result,) = dbg.why("turn:2.messages[2]").chains[:1]
    assert [step.event.step for step in result.steps][:2] == [6, 5] and result.steps[1].how == "link"


def test_without_a_question_the_last_answer_or_the_failure_is_explained(tmp_path):
    dbg = record(tmp_path / "t.jsonl")
    assert dbg.why().event.step == 11
    with pytest.raises(ConnectionError), reenact.run("trip", path=tmp_path / "f.jsonl"):
        tap = Tap()
        call = tap.record_model_request(request(user("Track order 7781-X")), "anthropic")
        tap.record_model_response(answer("", ("t1", "track", {"order": "7781-X"})), call=call)
        tool = tap.record_tool_call("track", {"order": "7781-X"})
        tap.record_tool_result("track", error="no order '7781-X' in orders-db", call=tool)
        raise ConnectionError("no order '7781-X' in orders-db")
    why = Debugger.load(tmp_path / "f.jsonl").why()
    assert why.event.event_type == "tool.result" and why.chains[0].steps[1].what == "tool call"
    by_path = {chain.path: chain.producer.what for chain in why.chains}
    assert by_path["args.order"] == "user message"


def test_how_it_was_found(tmp_path):
    tap = Tap(tmp_path / "t.jsonl")
    long = "the quick brown fox jumps over the lazy dog while nine clever cats look on from the old garden wall today"
    call = tap.record_model_request(request(user(f'Say: {long}\nAnd "Rua\tAugusta  9".')), "anthropic")
    tap.record_model_response(answer("Fine."), call=call)
    tap.close()
    dbg = Debugger.load(tmp_path / "t.jsonl")
    found = {
        text: (why.chains[0].steps[0].how, why.producer.step)
        for text in (
            "the lazy dog",
            "RUA AUGUSTA 9",
            "rua\\taugusta 9",
            long.replace("today", "tonight"),
            "garde",
        )
        if (why := dbg.why(text)).producer is not None
    }
    assert found == {
        "the lazy dog": ("exact", 2),
        "RUA AUGUSTA 9": ("normalised", 2),
        "rua\\taugusta 9": ("normalised", 2),
        long.replace("today", "tonight"): ("fuzzy", 2),
        "garde": ("exact", 2),  # part of a word, if nothing else is found
    }
    assert dbg.why("garde").chains[0].confidence < dbg.why("garden").chains[0].confidence
    assert dbg.why(" ".join(reversed(long.split()))).verdict == NO_ORIGIN


def test_a_text_in_another_lane_and_one_made_inside_a_tool(tmp_path):
    tap = Tap(tmp_path / "t.jsonl")
    outer = tap.record_model_request(request(user("Research it")), "anthropic")
    tap.record_model_response(answer("", ("t1", "delegate", {"to": "expert"})), call=outer)
    tool = tap.record_tool_call("delegate", {"to": "expert"})
    inner = tap.record_model_request(request(user("You are the expert.")), "anthropic", lane="expert")
    tap.record_model_response(answer("The answer is plate tectonics."), call=inner)
    tap.record_tool_result("delegate", "expert says: The answer is plate tectonics.", call=tool)
    tap.close()
    path = tmp_path / "t.jsonl"
    # `parent` of a request made in a tool is recorded by the seams; by hand it is found as an earlier text
    assert Debugger.load(path).why("The answer is plate tectonics.").producer.step == 6


@pytest.mark.parametrize("content", ["hash", "none"])
def test_withheld_content_is_no_proof_of_absence(tmp_path, content):
    dbg = record(tmp_path / "t.jsonl", content=content)
    why = dbg.why("lisboa-plaza")
    assert why.verdict == CANNOT_TELL and "withheld" in why.chains[0].reason


def test_a_redacted_secret_cannot_be_told(tmp_path):
    tap = Tap(tmp_path / "t.jsonl")
    secret = "sk-ant-" + "api03-" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7fG9h"
    tap.record_model_request(request(user(f"my key is {secret}")), "anthropic")
    tap.close()
    dbg = Debugger.load(tmp_path / "t.jsonl")
    assert dbg.why(secret).verdict == CANNOT_TELL
    assert dbg.why("no such words at all").verdict == NO_ORIGIN


def test_a_missing_blob_cannot_be_told(tmp_path):
    dbg = record(tmp_path / "t.jsonl")
    tap = Tap(tmp_path / "b.jsonl")
    tap.record_tool_result("read", "word " * 100_000 + "needle", call=tap.record_tool_call("read", {}))
    tap.close()
    assert Debugger.load(tmp_path / "b.jsonl").why("needle").producer.event_type == "tool.result"
    for blob in (tmp_path / "b.blobs").iterdir():
        blob.unlink()
    assert Debugger.load(tmp_path / "b.jsonl").why("needle").verdict == CANNOT_TELL
    assert dbg.why("needle").verdict == NO_ORIGIN


def test_uses_are_requests_arguments_and_texts(tmp_path):
    dbg = record(tmp_path / "t.jsonl")
    found = dbg.uses(5)
    assert [(use.event.step, use.what, use.how) for use in found.uses] == [
        (6, "request", "link"),
        (8, "argument", "exact"),
    ]
    assert (found.requests, found.last_request.step) == (2, 10)
    (request_, text) = dbg.uses(9).uses
    assert (request_.event.step, text.event.step, text.what, text.text) == (10, 11, "response", "77-ABX")
    # the city was the user's before the model wrote it
    assert [use.confidence < 0.5 for use in dbg.uses(3).uses if use.what == "argument"] == [True]
    assert dbg.uses(2).requests == 2


def test_a_compacted_history_no_longer_carries_an_event(tmp_path):
    tap, path = Tap(tmp_path / "t.jsonl"), tmp_path / "t.jsonl"
    first = [user("I cannot eat peanuts."), user("I like the sea.")]
    for messages in (
        first[:1],
        first,
        [user("Summary: likes the sea.")],
        [user("Summary: likes the sea."), user("x")],
    ):
        tap.record_model_response(
            answer("ok"), call=tap.record_model_request(request(*messages), "anthropic")
        )
    tap.close()
    found = Debugger.load(path).uses(2)
    assert (found.requests, found.last_request.step) == (1, 4)


@pytest.mark.parametrize("make", ["anthropic", "openai"])
def test_a_run_of_a_real_sdk(tmp_path, provider, make):
    provider.reset()
    path = tmp_path / "t.jsonl"
    tap = Tap(path)

    @tap.tool
    def lookup(question):
        return f"{question} Lisbon has seven hills. Source: guide.pdf"

    if make == "anthropic":
        client = tap.wrap(anthropic.Anthropic(base_url=provider.url("tools-2"), api_key="none"))
        messages = [{"role": "user", "content": "How many hills?"}]
        while True:
            got = client.messages.create(model="m", max_tokens=99, messages=messages)
            uses = [block for block in got.content if block.type == "tool_use"]
            messages.append({"role": "assistant", "content": got.content})
            if not uses:
                break
            results = [
                {"type": "tool_result", "tool_use_id": use.id, "content": lookup(**use.input)} for use in uses
            ]
            messages.append({"role": "user", "content": results})
    else:
        client = tap.wrap(openai.OpenAI(base_url=provider.url("tools-2", "/v1"), api_key="none"))
        messages = [{"role": "user", "content": "How many hills?"}]
        while True:
            got = client.chat.completions.create(model="m", messages=messages).choices[0].message
            messages.append(got.model_dump(exclude_none=True))
            if not got.tool_calls:
                break
            for use in got.tool_calls:
                import json

                result = lookup(**json.loads(use.function.arguments))
                messages.append({"role": "tool", "tool_call_id": use.id, "content": result})
    tap.close()
    dbg = Debugger.load(path)
    first = dbg.first(event_type="tool.result")
    (chain, *_) = dbg.why("Lisbon has seven hills.").chains
    assert (chain.verdict, chain.producer.event, chain.steps[0].what) == (FOUND, first, "response")
    assert [step.what for step in chain.steps] == ["response", "tool result", "tool call", "response"]
    called = dbg.first(event_type="tool.called")
    assert dbg.why(called).chains[0].verdict == NO_ORIGIN  # the question is the model's own
    assert {use.what for use in dbg.uses(first).uses} >= {"request", "response"}


@pytest.mark.parametrize("question", ["", "  ", "99.args.city", "8.args.nothing", "turn:99", "8.args[", 12.5])
def test_unusable_questions(tmp_path, question):
    dbg = record(tmp_path / "t.jsonl")
    if question == "8.args[":
        assert dbg.why(question).verdict == NO_ORIGIN  # a text like any other
        return
    with pytest.raises((UsageError, reenact.errors.ReenactError)):
        dbg.why(question)


def test_a_number_is_an_event_if_there_is_one_and_else_a_text(tmp_path):
    dbg = record(tmp_path / "t.jsonl")
    assert dbg.why("8").event.step == 8
    assert dbg.why("4242").event is None and dbg.why("4242").producer.step == 7
    assert dbg.why("'8'").event is None and dbg.why("8", is_text=True).event is None


def test_an_empty_run_has_nothing_to_explain(tmp_path):
    Tap(tmp_path / "t.jsonl").close()
    dbg = Debugger.load(tmp_path / "t.jsonl")
    assert dbg.why("text").verdict == NO_ORIGIN
    with pytest.raises(UsageError, match="neither an error nor an answer"):
        dbg.why()


def test_steps_without_requests_are_searched_too(tmp_path):
    """The front ends of the first and third article record no prompt."""
    trace = reenact.Trace(tmp_path / "t.jsonl")
    trace.step("tool_call", name="search", args={"q": "hotels"})
    trace.step("tool_result", content="Hotel Lisboa-77 costs 82 EUR")
    trace.step("llm_call", model="m", content="It costs 82 EUR at Hotel Lisboa-77")
    trace.close()
    why = Debugger.load(tmp_path / "t.jsonl").why("Lisboa-77")
    assert why.verdict == FOUND and why.producer.event_type == "tool.result"


def test_evidence_is_what_can_be_traced():
    assert evidence("no order '7781-X' at https://a.b/c?d=1, call Maria Silva") == [
        "7781-X", "https://a.b/c?d=1", "Maria Silva",
    ]  # fmt: skip
    assert evidence("all is well") == ["all is well"] and evidence("  ") == []


def test_words_end_where_words_end():
    assert Sought("42").exact("142 and 421") is None
    assert Sought("42").exact("is 42.") is not None
    assert Sought("東京").exact("私は東京に行く", within_words=True) is not None
