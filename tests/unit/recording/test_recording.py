from __future__ import annotations

import os
import subprocess
import sys

import pytest

from reenact import Recording
from reenact.errors import NoSuchEvent, NoSuchRun, TraceFileError
from reenact.tracefile import columns
from support.written import RUN, TS, A, B, Pen, W, worked_example


def load(tmp_path, *lines, **options):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines))
    return Recording.load(path, **options)


def test_the_worked_example_says_what_the_format_says_of_it(tmp_path):
    run = Recording.load(worked_example(tmp_path))
    assert run.count() == 7
    assert run.count(system=True) == 10
    assert (run.run_id, run.name, run.status, run.error) == (RUN, "trip", "error", None)
    assert run.meta == {"agent_version": "1.4.2", "environment": "prod"}
    assert run.input == {"task": "Lisbon"}
    assert run.totals.as_tot() == run.tot == {"turns": 2, "in": 52, "out": 31, "err": 2}
    assert run.writers == [W, "77aa01bc"]
    assert len(run.context_at(run.event("6"))) == 3
    assert len(run.context_at(run.event("6"))[2]["content"][0]["content"]) == 204_800
    assert run.findings == []


def test_events_is_a_sequence_of_views(tmp_path):
    run = Recording.load(worked_example(tmp_path))
    assert len(run.events) == 7
    assert [e.index for e in run.events] == [0, 1, 2, 3, 4, 5, 6]
    assert run.events[-1].kind == "error"
    assert [e.step for e in run.events[1:4]] == [3, 4, 5]
    assert [e.step for e in run.events[::-2]] == [8, 6, 4, 2]
    assert [e.kind for e in run.lines if e.index is None] == ["run.start", "proc.start", "run.end"]
    with pytest.raises(IndexError):
        run.events[7]


def test_calls_are_joined_and_turns_grouped(tmp_path):
    run = Recording.load(worked_example(tmp_path))
    first, tool, second = run.calls()
    assert (first.id, first.kind, first.begin.step, first.end.step) == (A, "model", 2, 3)
    assert (tool.id, tool.kind, tool.tool, tool.parent, tool.duration_ms) == (B, "tool", "search", A, 40.1)
    assert second.error == "overloaded"
    turns = run.turns()
    assert [turn.number for turn in turns] == [1, 2]
    assert turns[0].tools == [tool]


def test_addresses_lead_to_events(tmp_path):
    run = Recording.load(worked_example(tmp_path))
    steps = {"6": 6, "p77aa:1": 1, "p9f:3": 3, "turn:2": 6, "call:b7e1": 4, "call:" + A: 2, "@error": 7}
    assert {address: run.event(address).step for address in steps} == steps
    assert run.event("p77aa:1").writer == "77aa01bc"
    assert run.event(9).kind == "run.end"
    for address in (
        "0",
        "10",
        "99999999999999999999",
        "turn:0",
        "turn:3",
        "turn:x",
        "call:",
        "call:zz",
        "p:1",
        "pffff:1",
        "nonsense",
        "-1",
    ):
        with pytest.raises(NoSuchEvent) as why:
            run.event(address)
        assert why.value.hint


def test_a_retry_belongs_to_its_turn_and_takes_its_error_back(tmp_path):
    pen = Pen()
    run = load(
        tmp_path, pen("run.start", v="1.0"),
        pen("model.request", call="a", body={}), pen("model.response", call="a", error={"type": "x"}),
        pen("model.request", call="b", attempt=2, body={}), pen("model.response", call="b", error=None),
        pen("tool.called", call="t", parent="b", tool="s"), pen("tool.result", call="t", tool="s", error="bad"),
    )  # fmt: skip
    (turn,) = run.turns()
    assert [call.id for call in turn.attempts] == ["a", "b"]
    assert turn.error is None
    assert [call.id for call in turn.tools] == ["t"]
    assert run.event("@error").kind == "tool.result"
    assert run.totals.errors == 1


def test_calls_in_flight_at_death_are_open(tmp_path):
    pen = Pen()
    run = load(
        tmp_path,
        pen("run.start", v="1.0"),
        pen("tool.called", call="a", tool="x"),
        pen("tool.called", tool="y"),
        pen("tool.result", call="zz", tool="z", error=None),
    )
    assert [(call.tool, call.is_open, call.begin is None) for call in run.calls()] == [
        ("x", True, False),
        ("y", True, False),
        ("z", False, True),
    ]


def test_calls_without_ids_are_joined_by_tool(tmp_path):
    pen = Pen()
    run = load(
        tmp_path, pen("run.start", v="1.0"),
        pen("tool.called", tool="x", args=1), pen("tool.called", tool="y", args=2), pen("tool.called", tool="x", args=3),
        pen("tool.result", tool="x", result="one", error=None), pen("tool.result", tool="y", result="two", error=None), pen("tool.result", tool="x", result="three", error=None),
        pen("model.request", body={}), pen("model.response", body={}, error=None),
    )  # fmt: skip
    assert [(c.begin.args, c.end.result) for c in run.calls() if c.kind == "tool"] == [
        (1, "one"),
        (2, "two"),
        (3, "three"),
    ]
    assert not any(call.is_open for call in run.calls())


def test_lanes_do_not_share_retries(tmp_path):
    pen = Pen()
    run = load(
        tmp_path, pen("run.start", v="1.0"),
        pen("model.request", call="a", lane="l1", body={}), pen("model.request", call="b", lane="l2", body={}),
        pen("model.request", call="c", lane="l1", attempt=2, body={}),
    )  # fmt: skip
    assert [[call.id for call in turn.attempts] for turn in run.turns()] == [["a", "c"], ["b"]]


def test_the_newest_run_of_a_shared_file_is_taken_with_a_finding(tmp_path):
    one, two = Pen(run="r1", w="1"), Pen(run="r2", w="2")
    lines = [
        one("run.start", v="1.0", name="first"),
        two("run.start", v="1.0", name="second"),
        two("note"),
        two("run.end", status="ok"),
        one("note"),
        one("note"),
        one("run.end", status="error"),
    ]
    run = load(tmp_path, *lines)
    assert (run.name, run.count(), run.status) == ("second", 1, "ok")
    assert [f.code for f in run.findings] == ["several-runs"]
    assert load(tmp_path, *lines, run="r1").count() == 2
    assert load(tmp_path, *lines, run="*").count() == 3
    with pytest.raises(NoSuchRun):
        load(tmp_path, *lines, run="r")


def test_the_same_id_started_twice_is_two_executions(tmp_path):
    one, two = Pen(run="same", w="1"), Pen(run="same", w="2", ts=TS + 9)
    run = load(
        tmp_path,
        one("run.start", v="1.0"),
        one("note", n_=1),
        two("run.start", v="1.0"),
        two("note", n_=2),
        two("note", n_=3),
    )
    assert [e.n_ for e in run.events] == [2, 3]
    assert [f.code for f in run.findings] == ["several-runs"]


def test_a_childs_events_belong_to_the_execution_of_its_parent(tmp_path):
    one, two, child = Pen(run="same", w="1"), Pen(run="same", w="2"), Pen(run="same", w="c")
    lines = [
        one("run.start", v="1.0"),
        two("run.start", v="1.0"),
        child("proc.start", v="1.0", parent_w="1"),
        child("note", n_=1),
        two("note", n_=2),
    ]
    assert [e.n_ for e in load(tmp_path, *lines).events] == [2]


def test_status_distinguishes_running_killed_and_unknown(tmp_path):
    host = os.uname().nodename
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    import time

    now = time.time()
    cases = [
        ({"pid": os.getpid(), "host": host}, now, "running"),
        ({"pid": os.getpid()}, now, "running"),
        ({"pid": os.getpid(), "host": host}, 1000.0, "killed"),  # the number was given to a later process
        ({"pid": int(child.stdout), "host": host}, now, "killed"),
        ({"pid": os.getpid(), "host": "another-host"}, now, "unknown"),
        ({"pid": "x"}, now, "unknown"),
        ({}, now, "unknown"),
    ]
    for fields, ts, expected in cases:
        pen = Pen(ts=ts)
        assert load(tmp_path, pen("run.start", v="1.0", **fields), pen("note")).status == expected
    pen = Pen()
    assert (
        load(tmp_path, pen("run.start", v="1.0", pid=os.getpid()), pen("run.end", status="cancelled")).status
        == "cancelled"
    )


def test_an_empty_file_is_an_empty_recording_and_a_missing_one_an_error(tmp_path):
    run = load(tmp_path)
    assert (run.count(), run.name, run.status, run.started, run.ended) == (0, "t", "unknown", None, None)
    assert [f.code for f in run.findings] == ["empty"]
    with pytest.raises(TraceFileError, match="does not exist"):
        Recording.load(tmp_path / "x.jsonl")


def test_a_folder_stands_for_its_newest_run(tmp_path):
    worked_example(tmp_path)
    assert Recording.load(tmp_path).name == "trip"


def big_run(pen, count=300):
    yield pen("run.start", v="1.0", name="big", pid=1)
    for i in range(count):
        yield pen(
            "tool.called", call=f"{i:016x}", tool="x", args={"kind": "run.end", "text": '"kind": "run.end"'}
        )
        if i == 100:
            yield pen("proc.note", what="quota")
        yield pen(
            "tool.result",
            call=f"{i:016x}",
            tool="x",
            error=None,
            tot={"turns": 0, "in": 0, "out": 0, "err": 0},
            result="y" * 50,
        )
    yield pen("run.end", status="ok", tot={"turns": 0, "in": 0, "out": 0, "err": 0})


def test_a_large_gapless_file_reads_the_same_without_being_parsed(tmp_path, monkeypatch):
    lines = list(big_run(Pen()))
    parsed = load(tmp_path, *lines)
    monkeypatch.setattr(columns, "LARGE", 1)
    quick = load(tmp_path, *lines)
    assert quick.execution.totals is None
    assert quick.count() == parsed.count() == 600
    assert [(e.index, e.step, e.kind) for e in quick.lines] == [
        (e.index, e.step, e.kind) for e in parsed.lines
    ]
    assert quick.tot == parsed.tot
    assert quick.totals == parsed.totals
    assert quick.event("500") == parsed.event("500")
    assert quick.events[250].payload == parsed.events[250].payload


def test_a_large_file_with_any_irregularity_is_read_through(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "LARGE", 1)
    lines = list(big_run(Pen()))
    run = load(tmp_path, *lines[:50], *lines[51:])
    assert run.count() == 599
    assert [f.code for f in run.findings] == ["gap"]
    run = load(tmp_path, *lines[:-1], lines[-1][:30])
    assert [f.code for f in run.findings] == ["torn"]


def test_an_event_that_breaks_after_opening_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "LARGE", 1)
    lines = list(big_run(Pen()))
    lines[10] = lines[10][:-4] + b"\xff\xff}\n"
    run = load(tmp_path, *lines)
    assert run.findings == []
    event = run.event("11")
    assert event.payload["kind"] == event.kind
    assert len(run.findings) == 1
    assert len(list(run.events)) == 600


def test_a_step_is_found_by_its_number_where_lines_of_a_large_file_changed_places(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "LARGE", 1)
    lines = list(big_run(Pen()))
    lines[100], lines[101] = lines[101], lines[100]
    run = load(tmp_path, *lines)
    assert [run.event(str(step)).step for step in (100, 101, 102, 103)] == [100, 101, 102, 103]


def test_an_error_that_names_the_tool_just_begun_ends_its_call(tmp_path):
    pen = Pen()
    run = load(
        tmp_path,
        pen("run.start", v="1.0"),
        pen("tool_call", name="search", args={"q": 1}),
        pen("error", tool="search", err="boom"),
        pen("tool_call", name="search", args={"q": 2}),
        pen("error", tool="search", err="boom again"),
        pen("tool_result", id="c", output="sorry"),
        pen("tool_call", name="search", args={"q": 3}),
        pen("tool_result", id="d", output="found"),
        pen("tool_call", name="book", args={}),
    )
    calls = run.calls()
    assert [(call.tool, call.error, call.is_open) for call in calls] == [
        ("search", "boom", False), ("search", "boom again", False), ("search", None, False), ("book", None, True),
    ]  # fmt: skip
    assert [call.end.step for call in calls[:3]] == [3, 6, 8]
