"""Which turn, lane and request an event belongs to: one answer, whoever is asked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.recording import index as index_module
from reenact.recording.recording import Recording
from reenact.testing import write_trace
from support.typed import typed


def request(call, text, lane=None, **more):
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    named = {} if lane is None else {"lane": lane}
    return "model.request", {"call": call, **named, **more, "provider": "anthropic", "body": body}


def response(call, text, uses=()):
    content = [{"type": "text", "text": text}, *({"type": "tool_use", **use} for use in uses)]
    usage = {"input_tokens": 10, "output_tokens": 5}
    body = {"type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": content}
    return "model.response", {"call": call, "provider": "anthropic", "body": {**body, "usage": usage}}


def tool(call, name="search", **more):
    return [("tool.called", {"call": call, **more, "tool": name, "args": {"q": 1}}),
            ("tool.result", {"call": call, "result": "found"})]  # fmt: skip


TWO_LANES = [request("a", "one", "A"), response("a", "A"), request("b", "two", "B"), response("b", "B")]
ONE = [{"role": "user", "content": "one"}]


@pytest.fixture
def no_parent(tmp_path):
    """A tool that names its lane and not the model call that led to it, after another lane's turn."""
    path = tmp_path / "lanes.jsonl"
    write_trace(path, [*TWO_LANES, *tool("t", lane="A")])
    return path


def tool_events(path):
    return [event for event in Recording.load(path).events if event.event_type.startswith("tool.")]


def test_show_puts_the_tool_in_its_lanes_turn(no_parent):
    first, second = typed("show", no_parent).out.split("turn 2", 1)
    assert "search(q=1)" in first and "search" not in second
    turns = typed("show", no_parent, "--json", "--turns").rows[1:]
    assert [[each["tool"] for each in turn["tools"]] for turn in turns] == [["search"], []]


def test_the_flat_listing_and_json_number_the_tool_alike(no_parent):
    headings = [
        line for line in typed("show", no_parent, "--events").out.splitlines() if line.startswith("turn")
    ]
    assert headings == ["turn 1", "turn 2", "turn 1"]
    rows = [row for row in typed("show", no_parent, "--json").rows[1:] if row["kind"].startswith("tool.")]
    assert [row["turn"] for row in rows] == [1, 1]


@pytest.mark.parametrize("step", ["6", "7"])
def test_debug_says_the_turn_and_shows_the_lanes_messages(no_parent, step):
    assert "turn 1, lane A" in typed("debug", no_parent, "--at", step, "-c", "w").out
    context = typed("debug", no_parent, "--at", step, "-c", "ctx").out
    assert "one" in context and "two" not in context
    row = typed("debug", no_parent, "--json", "--at", step, "-c", "w").rows[-2]
    assert (row["turn"], row["lane"]) == (1, "A")


def test_the_debugger_api_says_the_same(no_parent):
    debugger = reenact.Debugger.load(no_parent)
    assert [[call.id for call in turn.tools] for turn in debugger.turns()] == [["t"], []]
    assert {lane: [call.id for call in calls] for lane, calls in debugger.lanes().items()} == {
        "A": ["a", "t"], "B": ["b"],
    }  # fmt: skip
    for event in tool_events(no_parent):
        state = debugger.state_at(event)
        assert (state.turn, state.lane, state.context) == (1, "A", ONE)
        assert debugger.context_at(event) == ONE
        (before,) = debugger.before(event, event_type="model.request")
        assert before.call == "a"


def test_messages_are_those_of_the_tools_lane(no_parent):
    (reported,) = typed("messages", no_parent, "--call", "t", "--json").rows
    assert reported["messages"] == ONE
    assert list(reenact.replay(no_parent, call="t")) == ONE
    assert reenact.replay(no_parent, 5)[0] == ONE[0]  # up to the tool's begin


def test_stats_count_one_tool_and_two_turns(no_parent):
    rows = typed("stats", no_parent, "--json").rows
    reported = json.dumps(rows)
    assert '"turns": 2' in reported and '"search"' in reported


def test_a_tool_without_lane_and_parent_answers_the_use_of_the_only_lane(tmp_path):
    path = tmp_path / "bare.jsonl"
    use = {"id": "u1", "name": "search", "input": {"q": 2}}
    write_trace(path, [request("a", "one", "A"), response("a", "A", [use]), *tool("t")])
    debugger = reenact.Debugger.load(path)
    assert [call.derived for call in debugger.calls("tool")] == [False]
    assert debugger.summary().tool_calls == 1
    assert list(debugger.lanes()) == ["A"] and debugger.recording.index.lane_at(2) == "A"
    assert "never" not in typed("show", path).out


# The same answers from the events near by, which is how a large run is read.

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "retry", "tool", "tool of a call", "note", "end"]),
        st.sampled_from([None, "A", "B"]),
        st.integers(0, 9),
    ),
    max_size=30,
)


def some_run(steps):
    calls, open_tools = [], []
    for number, (what, lane, pick) in enumerate(steps):
        named = {} if lane is None else {"lane": lane}
        if what in ("ask", "retry"):
            calls.append(f"c{number}")
            again = {"attempt": 2} if what == "retry" else {}
            yield request(calls[-1], f"text {number}", lane, **again)
            if pick % 2:
                yield response(calls[-1], "yes")
        elif what.startswith("tool"):
            parent = {"parent": calls[pick % len(calls)]} if calls and what == "tool of a call" else {}
            begin, end = tool(f"t{number}", **parent, **named)
            yield begin
            open_tools.append(end)
        elif what == "end" and open_tools:
            yield open_tools.pop(pick % len(open_tools))
        else:
            yield "note", {"text": "noted", **named}


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_near_events_say_the_same_as_all_calls(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("near") / "run.jsonl"
    # A retry without a first attempt begins a turn of its own, which only all calls together show.
    first = [request("first", "one"), request("first-a", "one", "A"), request("first-b", "one", "B")]
    write_trace(path, [*first, *some_run(steps)])
    recording = Recording.load(path)
    index, near = recording.index, index_module._Near(recording)
    for event in recording.events:
        at = event.index
        assert (near.turn(at), near.lane(at)) == (index.turn_at(at), index.lane_at(at)), event
        assert near.cause(at) == index.cause_at(at)
        begin = near.model_begin(at)
        assert recording.events[begin] == index.model_call_of(event).begin


def test_a_large_run_says_the_same(tmp_path):
    path = tmp_path / "large.jsonl"
    write_trace(path, [*TWO_LANES * 1300, *tool("t", lane="A")])
    recording = Recording.load(path)
    assert not recording.is_small
    called, result = len(recording.events) - 2, len(recording.events) - 1
    for at in (called, result):
        assert (recording.index.turn_at(at), recording.index.lane_at(at)) == (2599, "A")
    assert recording.context_at(recording.events[result]) == ONE
    assert not recording.has_joined


def test_very_many_questions_about_a_large_run_join_its_calls_once(tmp_path):
    path = tmp_path / "large.jsonl"
    names = [f"c{number}" for number in range(2600)]
    write_trace(path, [event for name in names for event in (request(name, "one"), response(name, "yes"))])
    recording = Recording.load(path)
    numbers = [recording.index.turn_number(event) for event in recording.events]
    assert recording.has_joined
    assert numbers == [recording.index.turn_of(event).number for event in recording.events]


def test_a_tool_derived_from_calls_without_ids_is_counted_by_runs_too(tmp_path):
    path = tmp_path / "nameless.jsonl"
    use = {"id": "u1", "name": "search", "input": {"q": 1}}
    found = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u1", "content": "found"}]}
    first, answered, later = request("", "one"), response("", "A", [use]), request("", "one")
    later[1]["body"]["messages"] += [{"role": "assistant", "content": answered[1]["body"]["content"]}, found]
    for _, fields in (first, answered, later):
        del fields["call"]
    write_trace(path, [first, answered, later])
    tools = [call for call in Recording.load(path).calls(derived=True) if call.kind == "tool"]
    assert [(call.tool, call.result) for call in tools] == [("search", "found")]
    row = reenact.runs(path)[0]
    assert {name: stats.calls for name, stats in row.tools.items()} == {"search": 1}
    assert row.tool_calls == 1


def test_an_id_that_is_used_again_after_its_call_ended_is_another_call(tmp_path):
    path = tmp_path / "again.jsonl"
    write_trace(path, [*TWO_LANES, *TWO_LANES, response("a", "late")])
    calls = Recording.load(path).calls()
    steps = [(call.id, call.begin and call.begin.index, call.end and call.end.index) for call in calls]
    assert steps == [("a", 0, 1), ("b", 2, 3), ("a", 4, 5), ("b", 6, 7), ("a", None, 8)]
    assert reenact.runs(path)[0].llm_calls == 5
