"""Suspects of small runs, one rule at a time: what is one, what is none, how they rank."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact import Debugger, Tap
from reenact.cli.main import main
from reenact.debugger.suspects.suspect import DIFFERS, KINDS, Suspect

FAILS = object()
"""In place of a result: the tool has none."""


class Talk:
    """An agent's conversation, recorded step by step as its loop would."""

    def __init__(self, path: Path, tools: Any = None, **more: Any) -> None:
        self.tap = Tap(path)
        self.path = path
        self.messages: list[Any] = []
        self.settings = {"model": "m", "max_tokens": 900, **({"tools": tools} if tools else {}), **more}
        self._number = 0

    def user(self, text: str) -> Talk:
        self.messages.append({"role": "user", "content": text})
        return self

    def says(self, *blocks: Any, stop: str = "end_turn", lane: str = "main") -> Talk:
        """The model answers with texts, and with tool uses (name, arguments)."""
        call = self.tap.record_model_request(
            {**self.settings, "messages": self.messages}, "anthropic", lane=lane
        )
        content = [{"type": "text", "text": each} if isinstance(each, str) else each for each in blocks]
        self.messages = [*self.messages, {"role": "assistant", "content": content}]
        body = {"type": "message", "role": "assistant", "content": content, "stop_reason": stop}
        self.tap.record_model_response(body, call=call)
        return self

    def calls(self, tool: str, args: Any, result: Any, *, sent: Any = None, text: str = "") -> Talk:
        """The model calls a tool, which returns, or raises an exception; ``sent``: what the model gets."""
        self._number += 1
        use = {"type": "tool_use", "id": f"toolu_{self._number}", "name": tool, "input": args}
        self.says(*([text] if text else []), use, stop="tool_use")
        begun = self.tap.record_tool_call(tool, args, tool_id=use["id"])
        failed = isinstance(result, Exception)
        if result is not FAILS:
            self.tap.record_tool_result(
                tool, None if failed else result, error=result if failed else None, call=begun
            )
        content = sent if sent is not None else str(result) if not isinstance(result, str) else result
        block = {"type": "tool_result", "tool_use_id": use["id"], "content": content}
        self.messages = [
            *self.messages,
            {"role": "user", "content": [block | ({"is_error": True} if failed and sent is None else {})]},
        ]
        return self

    def suspects(self) -> list[Suspect]:
        self.tap.close()
        return Debugger.load(self.path).suspects()

    def shown(self) -> list[str]:
        return [each.kind for each in self.suspects() if each.is_shown]


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "run.jsonl").user("Where is order ORD-1042? Cancel it if it is late.")


OFFERED = [
    {
        "name": "charge",
        "description": "Charge a card. The amount is in USD.",
        "input_schema": {
            "type": "object",
            "properties": {
                "amount": {"type": "number", "description": "Amount in USD."},
                "mode": {"enum": ["now", "later"]},
            },
            "required": ["amount"],
            "additionalProperties": False,
        },
    }
]


def test_a_plain_run_has_none(talk: Talk) -> None:
    talk.calls("find_order", {"id": "ORD-1042"}, {"id": "ORD-1042", "state": "shipped"})
    assert talk.says("It is shipped.").suspects() == []


def test_a_suspect_is_frozen_and_says_where_it_is(talk: Talk) -> None:
    talk.calls("find_order", {"id": "ORD-1042"}, ValueError("no\x1b[31m database"))
    (suspect,) = talk.says("It is shipped.").suspects()
    assert suspect.kind in KINDS and 0 < suspect.confidence <= 1
    assert (suspect.kind, suspect.address, suspect.event.step) == ("tool error", "5", 5)
    assert suspect.evidence == 'find_order(id="ORD-1042"): ValueError: no database'
    with pytest.raises(dataclasses.FrozenInstanceError):
        suspect.kind = "other"  # type: ignore[misc]


def test_an_error_that_was_made_up_for_ranks_low(talk: Talk) -> None:
    talk.calls("find_order", {"id": "ORD-1042"}, TimeoutError("slow"))
    talk.calls("find_order", {"id": "ORD-1042"}, {"id": "ORD-1042"}).says("Found it.")
    (suspect,) = talk.suspects()
    assert suspect.kind == "tool error" and not suspect.is_shown


def test_an_error_for_one_thing_is_not_made_up_for_by_another(talk: Talk) -> None:
    talk.user("Pay invoices INV-1, INV-2 and INV-3.")
    talk.calls("pay_invoice", {"id": "INV-1"}, "paid")
    talk.calls("pay_invoice", {"id": "INV-2"}, ConnectionError("bank is down"))
    talk.calls("pay_invoice", {"id": "INV-3"}, "paid")
    assert talk.says("All are paid.").shown() == ["tool error"]


def test_an_error_that_the_model_did_not_see_is_said_with_what_it_was_sent(talk: Talk) -> None:
    talk.calls("find_order", {"id": "ORD-1042"}, ConnectionError("db:5432"), sent="Please try again later.")
    (suspect,) = talk.says("It is on its way.").suspects()
    assert suspect.kind == "hidden error"
    assert suspect.evidence.endswith('ConnectionError: db:5432; the model was sent "Please try again later."')


@pytest.mark.parametrize(
    ("result", "answer", "kinds"),
    [
        ('{"error": "no such table"}', "Done, it is shipped.", ["error as result"]),
        ("Error: permission denied", "Done, it is shipped.", ["error as result"]),
        ('{"ok": false}', "Done, it is shipped.", ["error as result"]),
        ("Error: permission denied", "Sorry, I could not look it up.", []),
        ('{"error": null, "state": "shipped"}', "Done, it is shipped.", []),
        ("[]", "It is shipped.", ["empty result"]),
        ("[]", "There is no such order, nothing was found.", []),
        ('{"rows": [1], "has_more": true}', "There is one row.", ["partial result"]),
        ('{"rows": [1, 2], "total": 90}', "There are 2 rows.", ["partial result"]),
        ("M\u00c3\u00bcller", "Her name is Mueller.", ["garbled result"]),
        ("M\u00fcller", "Her name is Mueller.", []),
        ('{"id": "ORD-9"}', "It is ORD-9.", ["mismatched result"]),
    ],
    ids=repr,
)
def test_a_result_that_says_something_is_wrong_with_it(
    result: str, answer: str, kinds: list[str], talk: Talk
) -> None:
    assert talk.calls("find_order", {"id": "ORD-1042"}, result).says(answer).shown() == kinds


@pytest.mark.parametrize(
    ("returned", "sent", "shown"),
    [
        ("900 EUR", "120 EUR", ["changed result"]),
        ("line\n" * 500, "line\n" * 20, ["changed result"]),
        ("line\n" * 500, "line\n" * 20 + "… 480 lines truncated", []),
        ("900 EUR", "The price is 900 EUR.", []),
    ],
    ids=["another", "cut", "cut with a mark", "in a sentence"],
)
def test_a_result_that_changed_on_its_way(returned: str, sent: str, shown: list[str], talk: Talk) -> None:
    assert talk.calls("price", {"city": "Oslo"}, returned, sent=sent).says("Fine.").shown() == shown


def test_the_address_of_a_changed_result_is_the_request_that_brought_it(talk: Talk) -> None:
    talk.calls("price", {"city": "Oslo"}, "900 EUR", sent="120 EUR")
    (suspect,) = talk.says("Fine.").suspects()
    assert suspect.event.kind == "model.request" and suspect.confidence > 0.9


def test_equal_calls_with_equal_results_and_a_poll_that_ended(talk: Talk, tmp_path: Path) -> None:
    other = Talk(tmp_path / "other.jsonl").user("Wait for job j-9.")
    for each in (talk, other):
        for _ in range(5):
            each.calls("poll", {"job": "job"}, "PENDING")
    assert talk.says("It does not end.").shown() == ["repeated call"]
    assert other.calls("poll", {"job": "job"}, "DONE").says("It is done.").shown() == []


def test_a_change_that_was_made_twice(talk: Talk) -> None:
    for receipt in ("r-1", "r-2"):
        talk.calls("charge_card", {"customer": "ORD-1042"}, receipt)
    assert talk.says("Paid.").shown() == ["repeated call"]


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ({"id": "ORD-1042"}, []),
        ({"id": "ord_1042"}, []),
        ({"id": "ORD-1024"}, ["unknown argument"]),
        ({"customer_id": "C-77120"}, ["unknown argument"]),
        ({"query": "late orders of May"}, []),
        ({"file": "report_v2.txt"}, []),
        ({"date": "2031-05-20"}, []),
        ({"limit": 500}, []),
    ],
    ids=repr,
)
def test_an_argument_that_stands_nowhere_before(args: dict[str, Any], shown: list[str], talk: Talk) -> None:
    assert talk.calls("find_order", args, "state: shipped").says("It is shipped.").shown() == shown


def test_what_was_withheld_may_have_held_the_argument(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "run.jsonl").user("My password=hunter2hunter2X, my customer id too.")
    assert talk.calls("find_order", {"customer_id": "C-77120"}, "shipped").says("Shipped.").shown() == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"amount": 12.5}, None),
        ({"amount": "12.5"}, 'amount is "12.5", not of type number'),
        ({}, "amount is missing"),
        ({"amount": 1, "mode": "soon"}, 'mode is "soon", not one of ["now", "later"]'),
        ({"amount": 1, "note": "x"}, "note is not a property of it"),
    ],
    ids=repr,
)
def test_arguments_against_the_schema_in_the_request(
    args: dict[str, Any], words: str | None, tmp_path: Path
) -> None:
    talk = Talk(tmp_path / "run.jsonl", OFFERED).user("Charge 12.5 USD, then 1 USD.")
    found = talk.calls("charge", args, "done").says("Done.").suspects()
    assert [each.evidence.partition("schema: ")[2] for each in found] == ([words] if words else [])


def test_a_tool_that_was_not_offered(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "run.jsonl", OFFERED).user("Charge it.")
    assert talk.calls("pay", {}, "done").says("Done.").shown() == ["schema violation"]


def test_an_answer_against_the_schema_of_its_request(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    for answer, shown in (
        ('{"n": 3}', []),
        ('{"n": "three"}', ["schema violation"]),
        ("3", ["schema violation"]),
    ):
        talk = Talk(tmp_path / f"{len(answer)}.jsonl", response_format=wanted).user("How many?")
        assert talk.says(answer).shown() == shown


def test_a_number_in_another_unit(tmp_path: Path) -> None:
    offered = [*OFFERED, {"name": "find_price", "input_schema": {"type": "object"}}]
    in_cents = Talk(tmp_path / "a.jsonl", offered).user("Charge it.")
    in_cents.calls("find_price", {}, {"price_cents": 1999}).calls("charge", {"amount": 1999}, "done")
    assert in_cents.says("Done.").shown() == ["other unit"]
    in_answer = Talk(tmp_path / "b.jsonl").user("How heavy is it, in kg?")
    in_answer.calls("weigh", {}, "882 lb")
    assert in_answer.says("It is 882 kg.").shown() == ["other unit"]
    converted = Talk(tmp_path / "c.jsonl").user("How heavy is it, in kg?")
    assert converted.calls("weigh", {}, "882 lb").says("It is 400 kg, which is 882 lb.").shown() == []


@pytest.mark.parametrize("stop", ["max_tokens", "refusal"])
def test_an_answer_that_was_cut(stop: str, talk: Talk) -> None:
    assert talk.says("It is shipped and", stop=stop).shown() == ["cut answer"]


def test_an_answer_that_was_cut_and_continued_ranks_low(talk: Talk) -> None:
    talk.says("It is shipped and", stop="max_tokens").user("Continue.")
    assert talk.says("on its way.").shown() == []


def test_a_condition_that_a_shortened_conversation_leaves_out(talk: Talk, tmp_path: Path) -> None:
    talk.user("I cannot eat peanuts. I like the sea.").says("Noted.").user("Where do I eat?").says(
        "Where are you?"
    )
    talk.messages = [{"role": "user", "content": "The user likes the sea and asked about order ORD-1042."}]
    (suspect,) = [each for each in talk.says("At the harbour.").suspects() if each.is_shown]
    assert suspect.kind == "lost context" and "I cannot eat peanuts" in suspect.evidence
    kept = (
        Talk(tmp_path / "kept.jsonl")
        .user("I cannot eat peanuts.")
        .says("Noted.")
        .user("Where?")
        .says("Here.")
    )
    kept.messages = [{"role": "user", "content": "The user cannot eat peanuts."}]
    assert kept.says("At the harbour.").shown() == []


def test_a_destructive_call_that_nobody_spoke_of(talk: Talk) -> None:
    talk.calls("cancel_order", {"id": "ORD-1042"}, "ok").calls("delete_account", {"id": "ORD-1042"}, "ok")
    found = [each for each in talk.says("Done.").suspects() if each.is_shown]
    assert [(each.kind, each.evidence.partition(": ")[2]) for each in found] == [
        ("unasked action", "nothing before speaks of delete")
    ]


def test_attempts_of_a_model_call(talk: Talk, tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    other = Talk(tmp_path / "other.jsonl")
    for each in (talk, other):
        for attempt in range(1, 4):
            call = each.tap.record_model_request(body, "anthropic", attempt=attempt)
            each.tap.record_model_response(error=RuntimeError("overloaded"), status=529, call=call)
    assert talk.shown() == ["retries"]
    assert other.user("Hi").says("Hello.").shown() == []


def test_a_call_that_never_ended(talk: Talk) -> None:
    talk.calls("find_order", {"id": "ORD-1042"}, FAILS)
    assert "no answer" in talk.says("It is shipped.").shown()


def test_the_surest_comes_first_and_of_one_kind_the_first_counts_most(talk: Talk) -> None:
    talk.calls("find_order", {"id": "ORD-1042"}, ValueError("one"))
    talk.calls("find_customer", {"name": "order"}, ValueError("two"))
    talk.calls("price", {"city": "order"}, "900 EUR", sent="120 EUR")
    found = talk.says("Fine.").suspects()
    assert [each.kind for each in found] == ["changed result", "tool error", "tool error"]
    assert found[1].confidence > found[2].confidence and "one" in found[1].evidence
    assert Debugger.load(talk.path).suspects() == found


def test_a_listing_marks_the_run_and_keeps_the_mark(
    talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")
    talk.calls("price", {"city": "Oslo"}, "900 EUR", sent="120 EUR").says("Fine.").tap.close()
    assert main(["ls", str(tmp_path)]) == 0
    assert '! price(city="Oslo"): the tool returned "900 EUR"' in capsys.readouterr().out
    assert (tmp_path / "cache" / "reenact" / "suspects.marks").exists()
    assert main(["ls", "--json", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["suspects"]["shown"] == 1


def priced(path, price: int, *, fails: bool) -> None:
    """A run of one name that asks a tool for a price, and may fail after it."""
    try:
        with reenact.run("trip", path=path):
            tap = reenact.Tap()
            call = tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "go"}]})
            tap.record_model_response({"role": "assistant", "content": "the price?"}, call=call)
            tap.record_tool_result("get_price", price, call=tap.record_tool_call("get_price", {"hotel": "x"}))
            if fails:
                raise ValueError("over budget")
    except ValueError:
        pass


def test_where_a_failed_run_first_differs_from_one_that_passed_is_a_suspect(tmp_path) -> None:
    priced(tmp_path / "1.jsonl", 142, fails=False)
    priced(tmp_path / "2.jsonl", 7, fails=True)  # failed runs are not compared with
    priced(tmp_path / "3.jsonl", 8900, fails=True)
    (found,) = [each for each in Debugger.load(tmp_path / "3.jsonl").suspects() if each.kind == DIFFERS]
    assert found.evidence.startswith('get_price(hotel="x"): the same tool with the same arguments returned')
    assert found.event.kind == "tool.called" and found.confidence == 0.6
    for path, fails in (("4.jsonl", False), ("5.jsonl", True)):
        priced(tmp_path / path, 8900, fails=fails)
    assert DIFFERS not in {each.kind for each in Debugger.load(tmp_path / "4.jsonl").suspects()}
    last = [each for each in Debugger.load(tmp_path / "5.jsonl").suspects() if each.kind == DIFFERS]
    assert [each.confidence for each in last] == [0.1]  # the failure itself is all that differs


def test_a_failed_run_with_no_other_beside_it_is_compared_with_none(tmp_path) -> None:
    priced(tmp_path / "1.jsonl", 142, fails=True)
    assert DIFFERS not in {each.kind for each in Debugger.load(tmp_path / "1.jsonl").suspects()}
