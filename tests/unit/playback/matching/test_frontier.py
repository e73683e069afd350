"""Whatever was recorded and whatever is asked: no answer to another question, none twice, none out of turn."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact import Tap
from reenact.playback.matching import frontier as f
from reenact.playback.matching.modes import KEEP_GOING
from reenact.playback.matching.request import MODEL, Request
from reenact.playback.matching.tape import NEVER, RecordedCall, Tape
from support.examples import up_to
from support.simulated import URL, body, user

numbers = count()


def request_with(text: str, **more: Any) -> Request:
    return Request(MODEL, "POST", body([user(text)], **more), url=URL)


def recording(folder: Path, steps: list[tuple[str, str, str]]) -> Tape:
    """Write what is said to have happened: (``begin`` or ``end``, a name, what it asks); names are lanes' too."""
    path = folder / f"{next(numbers)}.jsonl"
    with Tap(path) as tap:
        calls: dict[str, str] = {}
        for what, name, text in steps:
            if what == "begin":
                lane = name.partition("/")[0] if "/" in name else "main"
                calls[name] = tap.record_model_request(body([user(text)]), lane=lane, url=URL)
            else:
                tap.record_model_response({"content": f"to {name}"}, call=calls[name], status=200)
    return Tape.load(str(path))


@st.composite
def recorded_steps(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Any intervals, in any lanes, of few questions, so that many are asked more than once; some never end."""
    calls = draw(
        st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from("xyz")), min_size=1, max_size=9)
    )
    steps = []
    for number, (lane, text) in enumerate(calls):
        begin, length = draw(st.integers(0, 30)), draw(st.integers(0, 30))
        name = f"{lane}/{number}"
        steps.append((begin, 0, number, ("begin", name, text)))
        if draw(st.integers(0, 9)):
            steps.append((begin + length, 1, number, ("end", name, text)))
    return [step for *_, step in sorted(steps)]


SOME = settings(up_to(600), deadline=None)


@SOME
@given(
    steps=recorded_steps(),
    texts=st.lists(st.sampled_from("wxyz"), max_size=14),
    mode=st.sampled_from([f.STRICT, KEEP_GOING, f.REBASE]),
)
def test_no_answer_to_another_question_and_none_twice(
    tmp_path_factory: pytest.TempPathFactory, steps: Any, texts: list[str], mode: str
) -> None:
    tape = recording(tmp_path_factory.mktemp("any"), steps)
    frontier = f.Frontier(tape.calls, mode=mode)
    served: list[RecordedCall] = []
    for text in texts:
        request = request_with(text)
        before = {call.id for call in tape.calls} - {call.id for call in served}
        found = frontier.ask(request)
        if isinstance(found, f.Miss):
            equal = [
                call
                for call in tape.calls
                if call.id in before and call.fingerprint.l1 == request.fingerprint.l1
            ]
            assert not equal or (mode == f.STRICT and found.code == f.REORDERED)
            continue
        call = found.call
        assert call.fingerprint.l1 == request.fingerprint.l1 or f.DRIFT in found.notes
        assert call.id in before
        if mode == f.STRICT:
            done = {each.id for each in served}
            skipped = [
                e for e in tape.calls if e.lane == call.lane and e.id not in done and e.end < call.begin
            ]
            assert not skipped
        served.append(call)
    unserved = {call.id for call in tape.calls} - {call.id for call in served}
    assert {call.id for call in frontier.missing()} == unserved


@SOME
@given(steps=recorded_steps(), data=st.data())
def test_every_order_that_could_have_been_is_answered(
    tmp_path_factory: pytest.TempPathFactory, steps: Any, data: st.DataObject
) -> None:
    """Calls that overlapped may come in any order: each gets an answer, and all are used up."""
    tape = recording(tmp_path_factory.mktemp("any"), steps)
    frontier = f.Frontier(tape.calls)
    left = list(tape.calls)
    while left:
        could = [c for c in left if not any(e.lane == c.lane and e.end < c.begin for e in left)]
        call = data.draw(st.sampled_from(could))
        found = frontier.ask(Request(MODEL, "POST", call.request.body, url=URL))
        assert isinstance(found, f.Served)
        left.remove(found.call)
    assert frontier.missing() == []
    assert isinstance(frontier.ask(request_with("x")), f.Miss)


@pytest.fixture
def three(tmp_path: Path) -> Tape:
    return recording(
        tmp_path,
        [
            (what, text, f"tell me about {text}")
            for text in ("rome", "oslo", "riga")
            for what in ("begin", "end")
        ],
    )


def miss(tape: Tape, *requests: Request, mode: str = f.STRICT) -> f.Miss:
    frontier = f.Frontier(tape.calls, mode=mode)
    found = [frontier.ask(request) for request in requests][-1]
    assert isinstance(found, f.Miss)
    return found


def test_the_verdicts(three: Tape) -> None:
    rome, oslo, riga = (request_with(f"tell me about {name}") for name in ("rome", "oslo", "riga"))
    changed = miss(three, rome, request_with("tell me about turku"))
    assert (changed.code, changed.nearest.number, changed.number) == (f.CHANGED, 1, 2)
    assert miss(three, riga).code == f.REORDERED
    assert miss(three, rome, request_with("what is six times nine")).code == f.EXTRA
    assert miss(three, rome, rome).code == f.EXTRA
    assert miss(three, rome, oslo, riga, rome).code == f.EXHAUSTED
    assert miss(three, Request.tool("search", {"q": 1})).code == f.WRONG_KIND
    other_path = Request(MODEL, "POST", rome.body, url="https://api.anthropic.com/v2/messages")
    assert miss(three, other_path).code == f.WRONG_KIND


@pytest.mark.parametrize("mode", [f.STRICT, KEEP_GOING, f.REBASE])
def test_a_plain_response_never_answers_a_request_for_a_stream(three: Tape, mode: str) -> None:
    found = miss(three, request_with("tell me about rome", stream=True), mode=mode)
    assert (found.code, found.nearest.number) == (f.WRONG_KIND, 0)


def test_an_edited_request_does_not_hold_up_what_follows(three: Tape) -> None:
    frontier = f.Frontier(three.calls, mode=KEEP_GOING)
    questions = ["tell me about roma", "tell me about oslo", "tell me about riga"]
    first, *others = [frontier.ask(request_with(text)) for text in questions]
    assert isinstance(first, f.Miss) and first.code == f.CHANGED
    assert [(found.call.number, found.notes) for found in others] == [(1, ()), (2, ())]
    assert [call.number for call in frontier.missing()] == [0]


def test_what_was_sent_the_very_same_goes_before_what_is_only_equal(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        bodies = [
            body(
                [
                    {
                        "role": "assistant",
                        "content": [{"type": "tool_use", "id": id_, "name": "f", "input": {}}],
                    }
                ]
            )
            for id_ in ("a", "b")
        ]
        for call in [tap.record_model_request(each, url=URL) for each in bodies]:
            tap.record_model_response({"content": call}, call=call, status=200)
    tape = Tape.load(str(path))
    frontier = f.Frontier(tape.calls)
    found = [frontier.ask(Request(MODEL, "POST", each, url=URL)) for each in reversed(bodies)]
    assert [(each.call.number, each.notes) for each in found] == [(1, ()), (0, ())]


def test_retries_are_answered_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        for attempt, status in ((1, 429), (2, 529), (3, 200)):
            call = tap.record_model_request(body([user("hi")]), url=URL, attempt=attempt)
            tap.record_model_response(
                {"type": "error" if status > 200 else "message"}, call=call, status=status
            )
    tape = Tape.load(str(path))
    frontier = f.Frontier(tape.calls)
    found = [frontier.ask(request_with("hi")) for _ in range(3)]
    assert [(each.call.attempt, each.call.answer.status) for each in found] == [(1, 429), (2, 529), (3, 200)]


def test_a_call_in_flight_at_the_end_holds_nobody_up(tmp_path: Path) -> None:
    tape = recording(
        tmp_path,
        [
            ("begin", "dead", "x"),
            ("begin", "b", "y"),
            ("end", "b", "y"),
            ("begin", "c", "z"),
            ("end", "c", "z"),
        ],
    )
    frontier = f.Frontier(tape.calls)
    assert isinstance(frontier.ask(request_with("y")), f.Served)
    assert isinstance(frontier.ask(request_with("z")), f.Served)
    (dead,) = frontier.missing()
    assert (dead.end, dead.outcome, dead.has_response) == (NEVER, "in-flight", False)
