"""Runs by a fact of theirs, or by a fact of their calls; whatever the key, nothing is lost or twice."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reenact import Recording, runs
from reenact.errors import UsageError
from support.examples import up_to
from support.many import TS, Pen, agent

KEYS = ("model", "tool", "stop_reason", "day", "name", "status", "run", "meta.environment")


@pytest.fixture
def logs(tmp_path):
    agent(tmp_path / "a.jsonl", name="trip", meta={"environment": "prod"}, tools=("search", "book"))
    agent(tmp_path / "b.jsonl", name="trip", meta={"environment": "dev"}, model="claude-haiku-4-5")
    agent(tmp_path / "c.jsonl", name="bill", stop="max_tokens", fails=TimeoutError("late"))
    return tmp_path


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("model", {"claude-sonnet-4-6": 2, "claude-haiku-4-5": 1}),
        ("tool", {"search": 3, "book": 1}),
        ("stop_reason", {"end_turn": 2, "max_tokens": 1}),
        ("name", {"trip": 2, "bill": 1}),
        ("status", {"ok": 3}),
        ("meta.environment", {"prod": 1, "dev": 1, "-": 1}),
        ("meta.nope", {"-": 3}),
    ],
)
def test_each_group_knows_its_runs(logs, by, expected):
    assert {group.key: len(group.runs) for group in runs(logs).by(by)} == expected


def test_groups_of_calls_and_of_runs_have_their_own_durations(logs):
    found = runs(logs)
    search = next(group for group in found.by("tool") if group.key == "search")
    assert search.percentile(95) == found.p95("tool", "search")
    assert (search.calls.calls, search.failed) == (3, 1)
    trip = next(group for group in found.by("name") if group.key == "trip")
    assert trip.percentile(50) == found.p50("run", "trip") == min(row.duration_ms for row in trip.runs)


def test_days_are_local(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        Pen(ts=TS).start()("note").save(tmp_path / "t.jsonl")
        Pen(run="odd", ts=9e12).start()("note").save(tmp_path / "odd.jsonl")
        keys = [group.key for group in runs(tmp_path).by("day")]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert keys == ["-", "2025-11-15"]  # what has no time of this world comes first


@pytest.mark.parametrize("by", ["", "models", "environment", "meta.", "__class__"])
def test_a_key_there_is_not_is_refused_with_those_there_are(logs, by):
    with pytest.raises(UsageError) as reported:
        runs(logs).by(by)
    assert "meta.KEY" in reported.value.hint


@pytest.mark.parametrize("by", KEYS)
def test_a_group_as_plain_values_has_what_it_is_grouped_by_first(logs, by):
    for group in runs(logs).by(by):
        facts = group.as_dict()
        assert next(iter(facts)) == by and facts[by] == group.key
        assert {"failed", "p50_ms", "p95_ms", "p99_ms", "total_ms"} <= facts.keys()
        assert all(value is None or type(value) in (str, int, float) for value in facts.values())


ids = st.one_of(st.none(), st.sampled_from(["a", "b", "c"]))
errors = st.sampled_from([None, {"type": "E", "message": "m"}, "Boom: it broke", ""])
durations = st.sampled_from([None, 0, 1.5, 20])
tools = st.sampled_from(["x", "y"])
usages = st.sampled_from([None, {"input": 5, "output": 2, "cache_read": 1}, {"prompt_tokens": 3}])
lanes = st.sampled_from(["main", "other"])


def line(kind, **fields):
    return st.tuples(st.just(kind), st.fixed_dictionaries(fields))


events = st.lists(
    st.one_of(
        line("model.request", call=ids, lane=lanes, attempt=st.sampled_from([None, 1, 2]), body=st.just({"model": "m"})),
        line("model.response", call=ids, duration_ms=durations, error=errors, usage=usages,
             stop_reason=st.sampled_from([None, "end_turn", "max_tokens"])),
        line("tool.called", call=ids, tool=tools),
        line("tool.result", call=ids, tool=tools, duration_ms=durations, error=errors),
        line("llm_call", model=st.sampled_from([None, "n"]), input_tokens=st.just(3), output_tokens=st.just(1),
             error=errors, duration_ms=durations),
        line("tool_call", name=tools),
        line("tool_call", tool=tools, output=st.just("o"), error=errors, duration_ms=durations),
        line("tool_result", output=st.just("o")),
        line("error", tool=tools, err=st.just("timeout")),
        line("note", text=st.just("n")),
    ),
    max_size=30,
)  # fmt: skip


def unique(events):
    """Each id begins once: the same id again means a file that was damaged by being joined with itself."""
    begun = set()
    for kind, fields in events:
        if kind in ("model.request", "tool.called") and fields["call"] is not None:
            if fields["call"] in begun:
                continue
            begun.add(fields["call"])
        yield kind, {key: value for key, value in fields.items() if key not in ("call", "attempt") or value}


@settings(up_to(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=events)
def test_any_run_says_the_same_as_in_the_debugger_and_every_grouping_adds_up(tmp_path, events):
    pen = Pen().start()
    for kind, fields in unique(events):
        pen(kind, **fields)
    path = pen.save(tmp_path / "t.jsonl")
    found, alone = runs(path), Recording.load(path)
    row, calls = found[0], alone.calls()
    assert row.totals == alone.totals
    assert sum(row.error_types.values()) == row.errors
    assert min(row.error_types.values(), default=1) > 0
    for kind, parts in (("model", row.models), ("tool", row.tools)):
        own = [call for call in calls if call.kind == kind]
        assert sum(part.open for part in parts.values()) == sum(call.is_open for call in own)
        assert sum(part.failed for part in parts.values()) == sum(call.error is not None for call in own)
        took = sorted(value for part in parts.values() for value in part.durations)
        assert took == sorted(call.duration_ms for call in own if call.duration_ms is not None)
    assert sum(part.calls for part in row.models.values()) == row.llm_calls
    assert sum(part.calls for part in row.tools.values()) == row.tool_calls
    assert sum(part.totals.turns for part in row.models.values()) == row.turns
    for by in KEYS:
        groups = found.by(by)
        if by != "tool":
            assert sum(group.totals.total_tokens for group in groups) == row.tokens
            assert sum(group.cost.unknown_calls for group in groups) == row.cost.unknown_calls
