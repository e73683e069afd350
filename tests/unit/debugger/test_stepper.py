"""The stepping engine: lanes, calls, breakpoints, watches, search, marks, both ways."""

from __future__ import annotations

import json

import pytest

import reenact
from reenact.debugger.expressions import Expr
from reenact.errors import NoSuchEvent, UsageError
from reenact.recording.event_addresses import failure_of
from reenact.recording.prompt import context_of, delta_of
from reenact.recording.recording import Recording
from support.stepped import Writer, record_team, stepper_of


@pytest.fixture
def team(tmp_path):
    record_team(tmp_path / "team.jsonl")
    return stepper_of(tmp_path / "team.jsonl")


def step_of(stepper):
    return stepper.event.step


def walk(stepper, move, *arguments):
    """The steps a move passes until it stays."""
    passed = []
    while move(*arguments).moved:
        passed.append(step_of(stepper))
    return passed


def test_next_stays_in_the_lane_and_step_does_not(team):
    assert walk(team, team.next) == [3, 4, 11, 12, 13, 14, 15]
    assert team.next().note == "End of trace."
    assert walk(team, team.next, -1) == [14, 13, 12, 11, 4, 3, 2]
    assert team.next(-1).note == "Beginning of trace."
    assert walk(team, team.step) == list(range(3, 16))
    assert walk(team, team.step, -1) == list(range(14, 1, -1))


def test_the_end_of_a_lane_is_not_the_end_of_the_trace(team):
    team.go("10")
    move = team.next()
    assert not move.moved and "lane researcher" in move.note and step_of(team) == 10
    assert not team.next(-1).note and step_of(team) == 9


def test_every_event_has_a_lane_and_a_turn(team):
    lanes = [team.lane_at(index) for index in range(len(team.events))]
    assert lanes == ["main"] * 3 + ["researcher"] * 6 + ["main"] * 5
    turns = [team.turn_at(index) for index in range(len(team.events))]
    assert turns == [1, 1, 1, 2, 2, 2, 2, 3, 3, 1, 4, 4, 4, 4]


def test_turns_are_those_of_the_recording(team):
    for turn in team.recording.turns():
        for call in (*turn.attempts, *turn.tools):
            for event in (call.begin, call.end):
                assert team.turn_at(event.index) == turn.number


def test_out_goes_to_the_end_of_the_call_begun_here_then_of_the_one_around(team):
    team.go("7")
    assert team.out().moved and step_of(team) == 8  # search ends
    assert team.out().moved and step_of(team) == 11  # the tool the sub-agent ran in ends
    move = team.out()
    assert not move.moved and move.note == "No call is open around this event; c continues."


def test_up_and_down_follow_calls(team):
    team.go("8")
    passed = [step_of(team) for _ in range(4) if team.up().moved]
    assert passed == [5, 4, 2]
    assert team.up().note == "No call led to this event."
    passed = [step_of(team) for _ in range(4) if team.down().moved]
    assert passed == [4, 5, 7]
    assert team.down().note == "This event led to no call."


def test_parallel_sub_agents_are_in_the_tools_that_began_them(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    writer.ask()
    writer.answer()
    first, second = writer.call("delegate", {"n": 1}), writer.call("delegate", {"n": 2})
    writer.ask("one")
    writer.ask("two")
    writer.answer("two")
    writer.result("delegate", second)
    writer.answer("one")
    writer.result("delegate", first)
    writer.close()
    stepper = stepper_of(tmp_path / "a.jsonl")
    parents = {}
    for lane in ("one", "two"):
        call = stepper.tree.lane_calls[lane][0]
        parents[lane] = stepper.tree.parent(call).event.args["n"]
    assert parents == {"one": 1, "two": 2}


@pytest.mark.parametrize(
    ("where", "stops"),
    [
        ("error", [13]),
        ("tool:search", [7]),
        ("tool:*", [4, 7]),
        ("agent:researcher", [5]),
        ("lane:main", [11]),
        ('text~"Hotel L[i]sboa"', [8, 10, 11]),
        ("text~Booked", [15]),
        ('kind == "model.request"', [5, 9, 12, 14]),
        ("usage.output > 2", [3, 6, 10, 15]),
        ("9", [9]),
        ("turn:4", [12]),
        ("@error", []),
    ],
)
def test_breakpoints_stop_at_the_same_events_both_ways(team, where, stops):
    if where == "@error":
        with pytest.raises(NoSuchEvent):  # the failure was made good by a retry
            team.stops.add(where)
        return
    team.stops.add(where)
    forward = []
    while (move := team.run()).reasons:
        forward.append(step_of(team))
    assert forward == stops and move.note == "End of trace." and step_of(team) == 15
    backward = []
    while (move := team.run(-1)).reasons:
        backward.append(step_of(team))
    first = [2] if team.stops.get(1).matches(team.events[0]) else []
    assert backward == [step for step in reversed(stops) if step != 15] + first
    assert move.note == "Beginning of trace." and step_of(team) == 2


def test_a_loop_is_the_same_tool_with_equal_arguments_in_one_lane(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    writer.ask()
    writer.answer()
    for n in range(6):
        args = {"a": 1, "b": 2} if n % 2 else {"b": 2, "a": 1}
        writer.result("search", writer.call("search", args))
        writer.result("search", writer.call("search", {"n": n}))
    writer.close()
    stepper = stepper_of(tmp_path / "a.jsonl")
    stepper.stops.add("loop>3")
    stops = []
    while stepper.run().reasons:
        stops.append((step_of(stepper), stepper.event.args))
    assert [args for _, args in stops] == [{"a": 1, "b": 2}] * 3
    assert len({step for step, _ in stops}) == 3


def test_condition_ignore_temporary_and_disabled_breakpoints(team):
    point = team.stops.add("tool:*")
    point.condition = Expr('tool == "search"')
    assert team.run().reasons and step_of(team) == 7
    team.go("first")
    point.condition, point.ignore = None, 1
    assert team.run().reasons and step_of(team) == 7 and point.ignore == 0
    team.go("first")
    point.enabled = False
    once = team.stops.add("tool:*", temporary=True)
    assert [reason.point for reason in team.run().reasons] == [once] and step_of(team) == 4
    assert not team.run().reasons
    with pytest.raises(UsageError, match="there is no breakpoint or watch 2"):
        team.stops.get(2)


def test_until_stops_on_the_way_and_at_its_place(team):
    assert team.until("9").moved and step_of(team) == 9
    team.go("first")
    team.stops.add("tool:search")
    assert team.until("9").reasons and step_of(team) == 7
    assert not team.until("9").reasons and step_of(team) == 9
    assert team.until().moved and step_of(team) == 15  # no further turn in this lane
    with pytest.raises(UsageError, match="not after this event"):
        team.until("4")


def test_until_without_a_place_goes_to_the_lanes_next_turn(team):
    assert team.until().moved and step_of(team) == 12


def test_a_watch_stops_where_the_value_changes_both_ways(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl") as trace:
        for value in (1, 1, None, 1, 2, None, 2, 3):
            trace.step("note", **({} if value is None else {"plan": value}))
    stepper = stepper_of(tmp_path / "a.jsonl")
    stepper.stops.watch("plan")
    seen = []
    while (move := stepper.run()).reasons:
        seen.append((stepper.index, move.reasons[0].change.old, move.reasons[0].change.new))
    assert seen == [(4, 1, 2), (7, 2, 3)]
    stepper.go("last")
    back = []
    while (move := stepper.run(-1)).reasons:
        back.append((stepper.index, move.reasons[0].change.old, move.reasons[0].change.new))
    assert back == [(4, 1, 2), (0, None, 1)]


def test_last_change_of_a_value(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl") as trace:
        for value in (1, 2, 2, None, 2):
            trace.step("note", **({} if value is None else {"plan": value}))
    stepper = stepper_of(tmp_path / "a.jsonl")
    stepper.go("last")
    assert stepper.to_last_change("plan").moved and stepper.index == 1
    assert stepper.to_last_change("plan").moved and stepper.index == 0
    assert not stepper.to_last_change("plan").moved
    with pytest.raises(UsageError, match="no event has a field 'nothing'"):
        stepper.to_last_change("nothing")


def test_search_both_ways_and_again(team):
    assert team.find("Hotel Lisboa").moved and step_of(team) == 8
    assert team.find("").moved and step_of(team) == 10
    assert team.find("", -1).moved and step_of(team) == 8
    assert not team.find("no such text").moved and step_of(team) == 8
    with pytest.raises(UsageError, match="regular expression"):
        team.find("(")


def test_search_looks_into_long_texts_kept_elsewhere(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    writer.result("search", writer.call("search"), "x" * 100_000 + " needle")
    writer.close()
    stepper = stepper_of(tmp_path / "a.jsonl")
    assert stepper.find("needle").moved and step_of(stepper) == 3
    assert stepper.find("ne+dle", -1).note


@pytest.mark.parametrize(
    ("address", "step"),
    [
        ("12", 12), ("turn:2", 5), ("#0", 2), ("#13", 15), ("-1", 15), ("-14", 2), ("%0", 2), ("%50", 8),
        ("%100", 15), ("first", 2), ("last", 15), ("1", 2), ("16", 15),
    ],
)  # fmt: skip
def test_addresses(team, address, step):
    team.go("5")
    team.go(address)
    assert step_of(team) == step


@pytest.mark.parametrize(
    "address", ["99", "#14", "-15", "-0", "%101", "@nowhere", "turn:9", "call:zz", "", "x"]
)
def test_a_wrong_address_is_reported_and_moves_nothing(team, address):
    team.go("5")
    with pytest.raises(NoSuchEvent):
        team.go(address)
    assert step_of(team) == 5


def test_marks_and_the_way_back(team):
    team.go("5")
    assert team.mark("here") == "here" and team.mark() == "m1" and team.mark() == "m2"
    team.go("12")
    team.step()
    assert team.go("@here").moved and step_of(team) == 5
    assert [step_of(team) for _ in range(3) if team.retrace(-1).moved] == [13, 12, 5]
    assert [step_of(team) for _ in range(9) if team.retrace(1).moved] == [12, 13, 5]
    assert team.retrace(1).note == "No later position."
    team.retrace(-1)
    team.go("7")  # a new way: what was ahead is forgotten
    assert not team.retrace(1).moved
    for name in ("error", "a b", "1st", "@x"):
        with pytest.raises(UsageError):
            team.mark(name)


def test_a_run_that_grows_is_gone_on_with(tmp_path):
    tap = reenact.Tap(tmp_path / "a.jsonl")
    call = tap.record_tool_call("search", {})
    stepper = stepper_of(tmp_path / "a.jsonl")
    assert stepper.step().note == "The run is still going; no newer event yet."
    tap.record_tool_result("search", "done", call=call)
    assert stepper.next().moved and step_of(stepper) == 3
    stepper.stops.add("error")
    assert stepper.run().note == "The run is still going; no newer event yet."
    tap.record_tool_result("search", None, ValueError("no"), call=tap.record_tool_call("search", {}))
    tap.close()
    assert stepper.run().reasons and step_of(stepper) == 5
    assert stepper.step().note == "End of trace."


def test_marks_stay_with_their_events_when_another_process_writes_before_them(tmp_path):
    path = tmp_path / "a.jsonl"
    writer = Writer(path)
    writer.ask()
    writer.answer()
    writer.close()
    stepper = stepper_of(path)
    stepper.go("last")
    stepper.mark("answer")
    head = json.loads(path.read_text().splitlines()[0])
    ts = head["ts"]
    child = [
        {
            "ts": ts,
            "run": head["run"],
            "w": "77aa01bc",
            "step": 1,
            "kind": "proc.start",
            "v": "1.0",
            "pid": 1,
        },
        {"ts": ts, "run": head["run"], "w": "77aa01bc", "step": 2, "kind": "note", "text": "from a child"},
    ]
    (tmp_path / "a.p77aa01bc.jsonl").write_text("".join(json.dumps(line) + "\n" for line in child))
    assert stepper.refresh()
    assert len(stepper.events) == 3 and stepper.event.kind == "model.response"
    stepper.go("first")
    assert stepper.lane_at(stepper.index) == "p77aa" and stepper.event.text == "from a child"
    assert stepper.go("@answer").moved and stepper.event.kind == "model.response"


def test_the_context_says_where_each_message_came_from(tmp_path):
    writer = Writer(tmp_path / "a.jsonl")
    tap = writer.tap
    messages = [{"role": "user", "content": "Plan Lisbon"}]
    body = {"model": "m-1", "max_tokens": 9, "system": "You plan.", "messages": messages}
    use = [{"type": "tool_use", "id": f"toolu_{n}", "name": "search", "input": {"n": n}} for n in (1, 2)]
    answer = {
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": use,
        "stop_reason": "tool_use",
    }
    call = tap.record_model_request(body, provider="anthropic")  # 2
    tap.record_model_response(answer | {"usage": {"input_tokens": 20, "output_tokens": 5}}, call=call)  # 3
    for n in (1, 2):
        id = tap.record_tool_call("search", {"n": n})  # 4, 6
        tap.record_tool_result("search", f"result {n}", call=id)  # 5, 7
    messages.append({"role": "assistant", "content": use})
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"result {n}"} for n in (1, 2)]
    messages.append({"role": "user", "content": results})
    messages.append({"role": "user", "content": "Be quick."})
    call = tap.record_model_request(body, provider="anthropic")  # 8
    tap.record_model_response(answer | {"usage": {"input_tokens": 90, "output_tokens": 5}}, call=call)  # 9
    tap.close()
    stepper = stepper_of(tmp_path / "a.jsonl")
    context = context_of(stepper.recording, stepper.events[-1])
    assert [(part.number, part.role) for part in context.parts] == [
        (None, "system"), (0, "user"), (1, "assistant"), (2, "tool"), (3, "user"),
    ]  # fmt: skip
    origins = [(part.origin.how, [e.step for e in part.origin.events]) for part in context.messages]
    assert origins == [("request", [2]), ("answer", [3]), ("tool", [5, 7]), ("request", [8])]
    assert context.tokens == 90 and abs(sum(map(context.share, context.parts)) - 1) < 1e-9
    delta = delta_of(stepper.recording, stepper.events[-1])
    assert (delta.kept, delta.gone, [part.number for part in delta.parts]) == (1, 0, [1, 2, 3])


def test_origins_are_found_by_comparing_where_requests_are_stored_whole(tmp_path):
    def line(kind, index, **fields):
        return json.dumps(
            {"event_type": kind, "run_id": "r", "index": index, "timestamp": 1.0 + index, **fields}
        )

    first = [{"role": "user", "content": "Plan"}]
    then = [*first, {"role": "assistant", "content": "Where to?"}, {"role": "user", "content": "Lisbon"}]
    lines = [
        line("model.request", 0, body={"model": "m", "messages": first}),
        line(
            "model.response",
            1,
            body={"choices": [{"message": {"role": "assistant", "content": "Where to?"}}]},
        ),
        line("model.request", 2, body={"model": "m", "messages": then}),
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    stepper = stepper_of(tmp_path / "a.jsonl")
    context = context_of(stepper.recording, stepper.events[2])
    origins = [(part.origin.how, [e.index for e in part.origin.events]) for part in context.messages]
    assert origins == [("request", [0]), ("answer", [1]), ("request", [2])]


def test_a_run_without_a_model_call_has_no_context(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl") as trace:
        trace.step("note", text="hello")
    stepper = stepper_of(tmp_path / "a.jsonl")
    assert context_of(stepper.recording, stepper.event) is None
    assert delta_of(stepper.recording, stepper.event) is None


def test_an_empty_run_says_so(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl"):
        pass
    stepper = stepper_of(tmp_path / "a.jsonl")
    assert stepper.step().note == "End of trace." and stepper.run(-1).note == "Beginning of trace."
    assert not stepper.next().moved
    for ask in (lambda: stepper.event, lambda: stepper.go("1"), stepper.mark, stepper.up, stepper.out):
        with pytest.raises(NoSuchEvent, match="no event"):
            ask()


@pytest.mark.parametrize(
    "text", ["", "tol:search", "text~(", "loop>", "kind = 1", "open('x')", "e.__class__", "99", "@nowhere"]
)
def test_a_wrong_breakpoint_is_reported_and_takes_no_number(team, text):
    with pytest.raises((UsageError, NoSuchEvent)):
        team.stops.add(text)
    assert team.stops.add("error").number == 1


def test_where_a_run_failed(tmp_path):
    writer = Writer(tmp_path / "ok.jsonl")
    writer.ask()
    writer.answer(error=TimeoutError("x"))
    writer.close()
    assert failure_of(Recording.load(tmp_path / "ok.jsonl")) is None  # the run itself ended well

    def failing():
        with reenact.run("bad", path=tmp_path / "bad.jsonl"):
            tap = reenact.Tap()
            tap.record_tool_result("a", None, LookupError("first"), call=tap.record_tool_call("a"))
            tap.record_tool_result("b", None, ValueError("no rooms"), call=tap.record_tool_call("b"))
            tap.record_tool_result("c", "fine", call=tap.record_tool_call("c"))
            raise ValueError("no rooms")

    with pytest.raises(ValueError, match="no rooms"):
        failing()
    recording = Recording.load(tmp_path / "bad.jsonl")
    assert failure_of(recording).tool_name == "b"


def test_a_failure_at_the_very_first_event(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"ts": 1.0, "step": 1, "kind": "error", "message": "no key"}\n')
    recording = Recording.load(tmp_path / "a.jsonl")
    assert failure_of(recording).index == 0
