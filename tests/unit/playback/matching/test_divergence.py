"""The report of a run that left its recording: what, where, where from, why perhaps, what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.playback.matching import divergence
from reenact.playback.matching import frontier as f
from reenact.playback.matching import likely_causes as causes
from reenact.playback.matching.modes import KEEP_GOING
from reenact.playback.matching.player import Player
from reenact.playback.matching.request import MODEL, Request
from reenact.playback.matching.tape import Tape
from reenact.wire.json_differences import MISSING, Difference, differences, likeness
from support.simulated import URL, body, user

FOUND = "Hotel Lisboa on the seventh hill, 82 EUR a night"


@pytest.fixture
def tape(tmp_path: Path) -> Tape:
    """A question, a tool, and a question that holds its result; then another tool."""
    with Tap(tmp_path / "trip.jsonl") as tap:
        messages: list[Any] = [user("Plan Lisbon")]
        call = tap.record_model_request(body(messages, system="You plan trips."), url=URL)
        use = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "hotels"}}
        answer = {"type": "message", "role": "assistant", "content": [use], "stop_reason": "tool_use"}
        tap.record_model_response(answer, call=call, status=200)
        tool = tap.record_tool_call("search", {"q": "hotels"})
        tap.record_tool_result("search", FOUND, call=tool)
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": FOUND}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        call = tap.record_model_request(body(messages, system="You plan trips."), url=URL)
        tap.record_model_response({"content": "done"}, call=call, status=200)
        tap.record_tool_result("book", "ok", call=tap.record_tool_call("book", {"room": 7}))
    return Tape.load(str(tmp_path / "trip.jsonl"))


def request_like(tape: Tape, number: int, **changes: Any) -> Request:
    """The recorded request, with changes."""
    request = tape.calls[number].request
    return Request(MODEL, "POST", {**request.body, **changes}, url=URL)


def divergence_of(tape: Tape, requests: list[Request], mode: str = KEEP_GOING) -> divergence.Divergence:
    player = Player(tape, mode=mode, patience=0.01)
    for request in requests:
        found = player.ask(request)
    assert isinstance(found, f.Miss)
    return player.explain(found)


def test_a_changed_prompt(tape: Tape) -> None:
    report = divergence_of(tape, [request_like(tape, 0, system="You plan short trips.")])
    assert (report.code, report.number, report.call) == (f.CHANGED, 1, tape.calls[0].id)
    assert (report.path, report.recorded_value, report.now_value) == (
        "system",
        "'You plan trips.'",
        "'You plan short trips.'",
    )
    assert report.came_from == "your code"
    assert report.hints == ("prompt",)
    assert report.text().splitlines() == [
        "changed-request: This request differs from the recorded one.",
        "  recorded  step 2: model POST /v1/messages",
        "  now       call 1: model POST /v1/messages",
        "  differs at system",
        "    recorded 'You plan trips.'",
        "    now      'You plan short trips.'   from your code",
        "  hint: the text comes from your code: a prompt or its template was changed",
        "  next: add --rebase   # accept the change; answers stay the recorded ones",
    ]


def test_where_the_texts_came_from(tape: Tape) -> None:
    """The tool's result is cut short now: its words are the tool's; recorded, they were too."""
    first, tool = tape.calls[0].request, tape.calls[1].request
    messages = tape.calls[2].request.body["messages"]
    messages[2]["content"][0]["content"] = "Found: seventh hill"
    report = divergence_of(tape, [first, tool, request_like(tape, 2, messages=messages)])
    assert report.path == "messages[2].content[0].content"
    assert report.recorded_came_from == "the tool result at step 5"
    assert report.came_from == "your code: tool search did not run, its recorded result was returned"
    messages[2]["content"][0]["content"] = "seventh hill"
    report = divergence_of(tape, [first, tool, request_like(tape, 2, messages=messages)])
    assert report.came_from == "the result of tool search, step 4"
    assert "answer" in report.hints


def test_the_other_verdicts(tape: Tape) -> None:
    requests = [call.request for call in tape.calls]
    report = divergence_of(tape, [requests[0], Request.tool("search", {"q": "hostels"})])
    assert (report.code, report.path, report.now) == (f.CHANGED, "args.q", "tool search")
    assert report.hints == ("tool-call",) and report.next[-1].startswith("add --live-tools search ")
    assert divergence_of(tape, [requests[0], requests[2]], f.STRICT).code == f.REORDERED
    assert divergence_of(tape, [requests[0], requests[2]], f.STRICT).hints == ("race",)
    assert divergence_of(tape, [*requests, requests[3]]).code == f.EXHAUSTED
    kind = divergence_of(tape, [request_like(tape, 0, stream=True)])
    assert (kind.code, kind.path, kind.hints) == (f.WRONG_KIND, "stream", ("stream",))
    other = divergence_of(tape, [requests[0], Request.tool("delete", {})])
    assert (other.code, other.recorded) == (f.WRONG_KIND, "step 4: tool search")
    assert other.hints == ("tool-call",) and not any("--live-tools" in each for each in other.next)
    player = Player(tape)
    player.ask(requests[0])
    assert [(each.code, each.recorded) for each in player.report()] == [
        (f.MISSING_CALL, "step 4: tool search"),
        (f.MISSING_CALL, "step 6: model POST /v1/messages"),
        (f.MISSING_CALL, "step 8: tool book"),
    ]
    for each in player.report():
        assert each.as_dict().keys() == {"code", "recorded", "call", "differing", "next"}
        assert each.text().startswith("missing-call: ")


@pytest.mark.parametrize(
    ("recorded", "now", "hint"),
    [
        ("today is 2026-11-15", "today is 2026-11-16", causes.CLOCK),
        ("it is 09:41 now", "it is 17:03 now", causes.CLOCK),
        ("at 1763200000.5", "at 1763286400.25", causes.CLOCK),
        (
            "run 4bf92f35-77b3-4da6-a3ce-929d0e0e4736 of",
            "run 00a84d90-4e76-4b2d-8000-aaaaaaaaaaaa of",
            causes.RANDOM_ID,
        ),
        ("see <Plan object at 0x7f3dbd07b7d0>", "see <Plan object at 0x7f788fa3d0d0>", causes.ADDRESS),
        ("open /tmp/abc123/plan.md", "open /tmp/zzz999/plan.md", causes.TEMP_PATH),
        ("tags: {'sea', 'hills', 'tram'}", "tags: {'tram', 'sea', 'hills'}", causes.ORDER),
    ],
)
def test_likely_causes(recorded: str, now: str, hint: str) -> None:
    one, other = {"messages": [recorded]}, {"messages": [now]}
    (difference,) = differences(one, other)
    assert causes.likely_causes(difference, one, other) == [hint]


def test_more_causes(tape: Tape) -> None:
    one = {"tools": [{"name": "a"}, {"name": "b"}]}
    other = {"tools": [{"name": "b"}, {"name": "a"}]}
    assert causes.likely_causes(next(differences(one, other)), one, other) == [causes.ORDER]
    assert divergence_of(tape, [request_like(tape, 0, model="claude-opus-4-6")]).hints == ("model",)
    assert divergence_of(tape, [request_like(tape, 0, thinking={"type": "enabled"})]).hints == ("field",)
    assert set(causes.WORDS) == {
        value for name, value in vars(causes).items() if name.isupper() and type(value) is str
    }


def test_every_verdict_has_its_sentence() -> None:
    codes = {f.REORDERED, f.CHANGED, f.WRONG_KIND, f.EXTRA, f.EXHAUSTED, f.MISSING_CALL, f.AMBIGUOUS}
    assert codes == divergence.SENTENCES.keys()


def test_differences_and_likeness() -> None:
    one = {"system": "s", "messages": [{"c": "a"}, {"c": "b"}, {"c": "c"}]}
    other = {"messages": [{"c": "a"}, {"c": "x"}, {"c": "b"}, {"c": "c"}], "tools": []}
    assert [(d.pointer, d.recorded, d.now) for d in differences(one, other)] == [
        ("system", "s", MISSING),
        ("messages[1]", MISSING, {"c": "x"}),
        ("tools", MISSING, []),
    ]
    assert list(differences({"a": 1}, {"a": 1.0})) == [Difference(("a",), 1, 1.0)]
    assert likeness(one, one) == 1.0
    assert likeness({"a": "x y"}, {"a": "p q"}) == 0.0
    long = " ".join(map(str, range(1000)))
    assert likeness({"a": long}, {"a": long.replace(" 500 ", " five ")}) > 0.99
    assert likeness({}, {}) == 1.0
