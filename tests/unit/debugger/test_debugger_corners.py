"""Answers at the corners: names that are escaped in the file, retries, bookkeeping, hostile sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reenact import Debugger
from reenact.debugger.stepper import Stepper
from reenact.errors import UsageError
from reenact.recording import call_tree
from reenact.recording.calls import Call
from reenact.recording.origins import Origin
from reenact.recording.prompt import context_of, delta_of
from reenact.recording.recording import Recording
from reenact.testing import write_trace
from support.examples import one_in


def opened(tmp_path: Path, events: list[tuple[str, dict[str, Any]]]) -> Stepper:
    path = write_trace(tmp_path / "run.jsonl", events)
    return Stepper(lambda: Recording.load(path))


def message_of(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def request_event(call: str, *messages: dict[str, Any], **fields: Any) -> tuple[str, dict[str, Any]]:
    return "model.request", {"call": call, **fields, "body": {"model": "gpt-4o", "messages": list(messages)}}


def test_a_lane_name_that_is_escaped_in_the_file_is_shown_unescaped(tmp_path: Path) -> None:
    stepper = opened(tmp_path, [request_event("a1", message_of("user", "hi"), lane='Über "x"')])
    assert stepper.lane_at(0) == 'Über "x"'


def test_a_pattern_is_sought_in_the_words_not_in_their_escapes(tmp_path: Path) -> None:
    stepper = opened(tmp_path, [("note", {"cities": ["Köln"]}), ("note", {"cities": ["Bonn"]})])
    debugger = Debugger(stepper.recording)
    assert [event.index for event in debugger.where('match("Köln", cities)')] == [0]


def test_what_is_new_in_a_retry_is_what_was_new_in_its_turn(tmp_path: Path) -> None:
    more = [message_of("user", "hi"), message_of("assistant", "yes?"), message_of("user", "more")]
    stepper = opened(
        tmp_path,
        [
            request_event("a1", more[0]),
            ("model.response", {"call": "a1", "error": None, "content": "yes?"}),
            request_event("a2", *more, attempt=1),
            ("model.response", {"call": "a2", "error": {"type": "overloaded", "message": "later"}}),
            request_event("a3", *more, attempt=2),
        ],
    )
    delta = delta_of(stepper.recording, stepper.events[4])
    assert delta is not None and delta.previous == stepper.events[0]
    assert [part.text for part in delta.parts] == ["yes?", "more"]


def test_the_first_line_of_a_run_stands_before_all_its_events_and_the_last_after_them(tmp_path: Path) -> None:
    stepper = opened(tmp_path, [request_event("a1", message_of("user", "hi")), ("note", {})])
    debugger = Debugger(stepper.recording)
    start, *_, end = debugger.all(system=True)
    assert (debugger.state_at(start).totals.steps, debugger.state_at(end).totals.steps) == (0, 2)


def test_money_so_far_is_that_of_the_summary_also_where_a_request_keeps_its_model(tmp_path: Path) -> None:
    url = "https://api.openai.com/v1/chat/completions"
    kept = {"base": "a1", "keep": {"model": True, "messages": 1}, "n": 2}
    stepper = opened(
        tmp_path,
        [
            request_event("a1", message_of("user", "hi"), url=url, n=1),
            ("model.response", {"call": "a1", "error": None, "usage": {"input": 1000, "output": 1000}}),
            (
                "model.request",
                {"call": "a2", "url": url, **kept, "body": {"messages": [message_of("user", "x")]}},
            ),
            ("model.response", {"call": "a2", "error": None, "usage": {"input": 1000, "output": 1000}}),
        ],
    )
    through = []
    for index in (3, 1, 3):
        stepper.go(f"#{index}")
        through.append(stepper.spent().cost.as_dict())
    assert through[0] == through[2] == Debugger(stepper.recording).summary().cost.as_dict()
    assert through[1]["priced"] + sum(through[1]["unknown"].values()) == 1


@pytest.mark.parametrize(
    "reference", one_in(3, [{"$answer": "lost"}, {"$same": ["a1", 3]}, {"tool_call_id": "lost"}])
)
def test_many_messages_of_unknown_origin_are_not_sought_for_ever(
    tmp_path: Path, reference: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reenact.recording.origins._LOOKS", 500)
    stepper = opened(tmp_path, [*[("note", {})] * 200, request_event("a1", *[reference] * 1000)])
    looked = 0
    fetch = stepper.recording.event_at

    def counting(position: int) -> Any:
        nonlocal looked
        looked += 1
        return fetch(position)

    monkeypatch.setattr(stepper.recording, "event_at", counting)
    context = context_of(stepper.recording, stepper.events[200])
    assert context is not None and {part.origin.how for part in context.messages if part.origin} == {
        "request"
    }
    assert looked < 3000


def test_each_of_many_tools_without_an_end_is_looked_at_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reenact.recording.call_tree._MOST_OPEN", 10)
    looked = 0
    is_open_at = call_tree._is_open_at

    def counting(call: Call, index: int) -> bool:
        nonlocal looked
        looked += 1
        return is_open_at(call, index)

    monkeypatch.setattr(call_tree, "_is_open_at", counting)
    stepper = opened(tmp_path, [("tool.called", {"call": f"c{n}", "tool": "t"}) for n in range(1000)])
    assert len(stepper.tree.lane_calls["main"]) == 1000
    assert looked < 3000


BEDROCK = {
    "toolConfig": {"tools": [{"toolSpec": {"name": "search"}}, {"toolSpec": {"name": "book"}}]},
    "messages": [
        {"role": "user", "content": [{"text": "Lisbon"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "u1", "name": "search", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "u1", "content": [{"text": "found"}]}}]},
    ],
}
GEMINI = {
    "tools": [{"functionDeclarations": [{"name": "search"}, {"name": "book"}]}],
    "contents": [{"role": "user", "parts": [{"text": "Lisbon"}]}],
}


@pytest.mark.parametrize("body", [BEDROCK, GEMINI])
def test_tools_are_named_whoever_offers_them(tmp_path: Path, body: dict[str, Any]) -> None:
    stepper = opened(tmp_path, [("model.request", {"call": "a1", "body": body})])
    context = context_of(stepper.recording, stepper.events[0])
    assert context is not None and context.parts[0].text == "search, book"


def test_the_result_of_a_tool_comes_from_where_it_was_recorded_in_bedrocks_shape(tmp_path: Path) -> None:
    result = {"call": "t1", "tool": "search", "tool_id": "u1", "error": None, "result": "found"}
    stepper = opened(tmp_path, [("tool.result", result), ("model.request", {"call": "a1", "body": BEDROCK})])
    context = context_of(stepper.recording, stepper.events[1])
    assert context is not None and context.messages[2].origin == Origin(
        [stepper.events[0]], "tool", stepper.events[1]
    )


def test_asking_about_what_was_not_found_says_so(tmp_path: Path) -> None:
    debugger = Debugger.load(
        write_trace(tmp_path / "run.jsonl", [request_event("a1", message_of("user", "hi"))])
    )
    for question in (debugger.context_at, debugger.state_at, debugger.before, debugger.after):
        with pytest.raises(UsageError, match="not None: nothing was found"):
            question(debugger.first(event_type="tool.result"))  # type: ignore[arg-type]


def test_processes_side_by_side_have_turns_and_lanes_of_their_own(tmp_path: Path) -> None:
    """Both say ``main``; a retry in one is none of the other's turn."""
    path, step = tmp_path / "run.jsonl", {"aaaa0000": 0, "bbbb0000": 0}
    with path.open("w") as file:
        for number, (writer, kind, fields) in enumerate(
            [
                ("aaaa0000", "run.start", {"v": "1.0"}),
                ("bbbb0000", "proc.start", {"v": "1.0", "parent_w": "aaaa0000"}),
                ("aaaa0000", "model.request", {"call": "a1"}),
                ("bbbb0000", "model.request", {"call": "b1"}),
                ("bbbb0000", "model.response", {"call": "b1", "error": None}),
                ("aaaa0000", "model.response", {"call": "a1", "error": "overloaded"}),
                ("aaaa0000", "model.request", {"call": "a2", "attempt": 2}),
                ("aaaa0000", "model.response", {"call": "a2", "error": None}),
                ("bbbb0000", "model.request", {"call": "b2"}),
            ]
        ):
            step[writer] += 1
            head = {"ts": float(number), "run": "0" * 32, "w": writer, "step": step[writer], "kind": kind}
            file.write(json.dumps(head | fields) + "\n")
    debugger = Debugger.load(path)
    turns = [[call.id for call in turn.attempts] for turn in debugger.turns()]
    assert turns == [["a1", "a2"], ["b1"], ["b2"]]
    lanes = {lane: [call.id for call in calls] for lane, calls in debugger.lanes().items()}
    assert lanes == {"main": ["a1", "a2"], "pbbbb": ["b1", "b2"]}
    last = debugger.recording.events[-1]
    assert [event.call for event in debugger.before(last, event_type="model.request")] == ["b1"]


@pytest.mark.parametrize("text", ["(" * 500 + "1" + ")" * 500, "[" + "len, " * 300 + "x() for x in y]"])
def test_a_long_expression_is_not_repeated_whole(tmp_path: Path, text: str) -> None:
    debugger = Debugger.load(write_trace(tmp_path / "run.jsonl", [("note", {})]))
    with pytest.raises(UsageError) as refused:
        debugger.where(text)
    assert len(str(refused.value).splitlines()[0]) < 200


def test_a_summary_counts_one_as_one(tmp_path: Path) -> None:
    debugger = Debugger.load(write_trace(tmp_path / "run.jsonl", [("llm_call", {"error": "no answer"})]))
    assert "1 event, 1 turn, 1 error" in str(debugger.summary())


def test_a_retry_makes_good_only_the_failure_of_its_own_process(tmp_path: Path) -> None:
    """Two processes, both in their own lane main: one is asking while the other fails and tries again."""
    from reenact import lines

    def line(step: int, w: str, kind: str, **fields: object) -> str:
        return lines.whole(float(len(rows) + 1), "r" * 32, w, step, kind, fields).rstrip("\n")

    rows: list[str] = []
    body = {"model": "m", "messages": []}
    error = {"type": "overloaded_error", "message": "", "frames": []}
    for step, w, kind, fields in [
        (1, "aaaaaaaa", "run.start", {"v": "1.0"}),
        (2, "aaaaaaaa", "model.request", {"call": "aaaaaaaa00000001", "attempt": 1, "body": body}),
        (1, "bbbbbbbb", "proc.start", {"v": "1.0", "parent_w": "aaaaaaaa"}),
        (3, "aaaaaaaa", "model.response", {"call": "aaaaaaaa00000001", "error": error}),
        (2, "bbbbbbbb", "model.request", {"call": "bbbbbbbb00000001", "attempt": 1, "body": body}),
        (4, "aaaaaaaa", "model.request", {"call": "aaaaaaaa00000002", "attempt": 2, "body": body}),
        (5, "aaaaaaaa", "model.response", {"call": "aaaaaaaa00000002", "error": None}),
        (3, "bbbbbbbb", "model.response", {"call": "bbbbbbbb00000001", "error": None}),
    ]:
        rows.append(line(step, w, kind, **fields))
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(rows) + "\n")
    dbg = Debugger.load(path)
    assert dbg.errors() == [] and dbg.recording.totals.errors == 0 == dbg.summary().errors
    assert dbg.summary().error_types == {} and dbg.summary().retried == 1
