"""Debugger answers what a post-mortem asks, as the second article shows it and beyond."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact import Debugger, StepLog, Tap, Trace, UsageError
from reenact import run as recorded_run
from reenact.errors import NotATrace, TraceFileError
from support.runs_to_debug import answer, five_turns, request, two_agents, user

CORPUS = Path(__file__).parents[2] / "corpus"


def test_counts_are_the_articles(tmp_path: Path) -> None:
    dbg = five_turns(tmp_path / "run.jsonl")
    assert dbg.count() == 34
    assert list(dbg.event_counts().items()) == [
        ("model.request", 5), ("model.response", 5), ("tool.called", 12), ("tool.result", 12),
    ]  # fmt: skip
    assert dbg.count(event_type="tool.*") == 24
    assert dbg.count(event_type=["tool.called", "model.request"]) == 17
    assert dbg.count(tool_name="search", event_type="tool.result") == 12
    assert dbg.count(lambda e: e.error is not None) == 4 == dbg.count("error") == len(dbg.errors())
    assert dbg.count(system=True) == 36 == len(dbg.all(system=True))
    assert dbg.event_counts(system=True)["run.start"] == 1


def test_first_last_between(tmp_path: Path) -> None:
    dbg = five_turns(tmp_path / "run.jsonl")
    failure = dbg.first(event_type="tool.result", where=lambda e: e.error is not None)
    assert failure is not None and failure.index == 25 and failure.error == "search returned 0 results"
    last = dbg.last(event_type="tool.result")
    assert last is not None and last.index == 33
    assert [event.index for event in dbg.between(failure, last)] == list(range(26, 33))
    assert [event.index for event in dbg.between(failure, last, event_type="model.request")] == [28]
    assert dbg.first(tool_name="nothing") is None and dbg.last("index > 99") is None


def test_before_and_after_go_by_nearness_in_a_run_of_one_agent(tmp_path: Path) -> None:
    dbg = five_turns(tmp_path / "run.jsonl")
    failure = dbg.first("error")
    assert failure is not None
    assert dbg.before(failure, event_type="model.response", n=1)[0].content.startswith("turn 3")
    before = dbg.before(failure, event_type="model.response", n=3)
    assert [event.content.splitlines()[0] for event in before] == ["turn 1", "turn 2", "turn 3"]
    assert [event.index for event in dbg.before(failure, n=2)] == [23, 24]
    assert [event.index for event in dbg.after(failure, n=2)] == [26, 27]
    assert len(dbg.before(failure, n=None)) == 25 and len(dbg.after(failure, n=None)) == 8
    assert [e.index for e in dbg.after(failure, event_type="model.request")] == [28]
    assert dbg.before(dbg.all()[0], event_type="model.request") == []
    results = dbg.before(failure, event_type="tool.result", n=3)
    assert [event.args or event.result for event in results] == ["ok", "ok", "ok"]


@pytest.mark.parametrize("lanes", [True, False])
def test_before_and_after_follow_causes_between_parallel_agents(tmp_path: Path, lanes: bool) -> None:
    dbg = two_agents(tmp_path / "run.jsonl", lanes=lanes)
    failure = dbg.first("error")
    assert failure is not None
    request_ = dbg.before(failure, event_type="model.request", n=1)[0]
    assert dbg.context_at(request_)[0]["content"] == "go north"
    requests = dbg.before(failure, event_type="model.request", n=5)
    assert [dbg.context_at(event)[0]["content"] for event in requests] == ["go north", "go north"]
    for number, name in ((0, "north"), (1, "south")):
        begin = dbg.where(event_type="model.request")[number]
        assert dbg.after(begin, event_type="model.response")[0].content.startswith(f"{name} 0")
        printed = [event.args["to"] for event in dbg.after(begin, event_type="tool.called", n=None)]
        assert printed == [name, name]
    if lanes:
        assert list(dbg.lanes()) == ["north", "south"]


def test_context_at_is_what_the_model_saw(tmp_path: Path) -> None:
    dbg = five_turns(tmp_path / "run.jsonl")
    failure = dbg.first("error")
    assert failure is not None
    context = dbg.context_at(failure)
    assert len(context) == 7 and context[0] == user("Summarize the Q1 revenue report.")
    assert context[-1]["content"][0]["tool_use_id"] == "toolu_20"


def test_state_at_sums_up_to_an_event_and_names_what_is_open(tmp_path: Path) -> None:
    dbg = five_turns(tmp_path / "run.jsonl")
    called = dbg.first(event_type="tool.called")
    assert called is not None
    state = dbg.state_at(called)
    assert (state.turn, state.lane, state.totals.turns, state.totals.tool_calls) == (1, "main", 1, 1)
    assert state.totals.total_tokens == 15
    assert [call.tool for call in state.open] == ["search"]
    assert state.context == [user("Summarize the Q1 revenue report.")]
    last = dbg.state_at(dbg.all()[-1])
    assert last.open == [] and last.totals == dbg.summary().totals and last.turn == 5
    assert last.cost.priced == 5 and last.cost.usd == dbg.summary().cost.usd > 0


def test_state_at_has_what_the_agent_snapshot_last(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "run.jsonl")
    trace.step("state", plan=["a"], budget=3)
    trace.step("note", x=1)
    trace.step("state", plan=[], budget=2)
    trace.close()
    dbg = Debugger.load(tmp_path / "run.jsonl")
    notes = dbg.where(event_type="note")
    assert dbg.state_at(notes[0]).values == {"plan": ["a"], "budget": 3}
    assert dbg.state_at(dbg.all()[-1]).values == {"plan": [], "budget": 2}
    assert dbg.state_at(notes[0]).turn is None and dbg.state_at(notes[0]).context == []


def test_summary_has_the_run_in_figures(tmp_path: Path) -> None:
    summary = five_turns(tmp_path / "run.jsonl").summary()
    assert (summary.steps, summary.turns, summary.errors, summary.tokens) == (34, 5, 4, 75)
    assert {name: (stats.calls, stats.failed) for name, stats in summary.tools.items()} == {"search": (12, 4)}
    assert summary.stop_reasons == {"tool_use": 5}
    text = str(summary)
    assert "34 events, 5 turns, 4 errors" in text and "search 12 (4 failed)" in text and "$0.0" in text


def test_a_function_that_fails_where_a_field_is_missing_does_not_match_there(tmp_path: Path) -> None:
    dbg = five_turns(tmp_path / "run.jsonl")
    assert dbg.count(lambda e: e.usage["output"] > 4) == 5
    with pytest.raises(UsageError, match=r"failed on all 34 events.*TypeError"):
        dbg.where(lambda e: e.no_such["a"]["b"])
    with pytest.raises(ZeroDivisionError):
        dbg.where(lambda e: 1 / 0)


def test_a_wrong_question_is_reported_in_a_sentence(tmp_path: Path) -> None:
    dbg = five_turns(tmp_path / "run.jsonl")
    with pytest.raises(UsageError, match="not None: nothing was found"):
        dbg.before(dbg.first("index > 1000"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot stand in an expression"):
        dbg.where('open("x")')
    with pytest.raises(UsageError, match="n is how many"):
        dbg.before(dbg.all()[3], n=-1)
    with pytest.raises(UsageError, match="event_type is a name"):
        dbg.where(event_type=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a function or an expression"):
        dbg.where(7)  # type: ignore[arg-type]


def test_a_run_of_finished_tool_calls_only(tmp_path: Path) -> None:
    log = StepLog(tmp_path / "run.jsonl", run_id="r1")
    log.record_llm_call("gpt-5-mini", 100, 10, "tool_use")
    log.record_tool_call("search", {"q": 1}, None, error="boom", duration_ms=4)
    log.close()
    dbg = Debugger.load(tmp_path / "run.jsonl")
    assert dbg.event_counts() == {"model.response": 1, "tool.result": 1}
    assert [e.tool_name for e in dbg.where(event_type="tool.called")] == ["search"]
    failure = dbg.first(event_type="tool.result", where=lambda e: e.error is not None)
    assert failure is not None and dbg.context_at(failure) == []
    assert dbg.before(failure, event_type="model.request") == []
    assert len(dbg.before(failure, event_type="model.response")) == 1
    assert dbg.summary().tokens == 110 and dbg.summary().cost.priced == 1


def test_a_failure_at_event_0(tmp_path: Path) -> None:
    with pytest.raises(KeyError), recorded_run("early", path=str(tmp_path / "run.jsonl")):
        raise KeyError("no config")
    tap = Tap(tmp_path / "tool.jsonl")
    tap.record_tool_result("search", None, error="boom")
    tap.close()
    dbg = Debugger.load(tmp_path / "tool.jsonl")
    failure = dbg.first("error")
    assert failure is not None and failure.index == 0
    assert dbg.before(failure, event_type="model.request") == [] and dbg.before(failure) == []
    assert dbg.context_at(failure) == [] and dbg.state_at(failure).totals.errors == 1


@pytest.mark.parametrize("name", sorted(p.name for p in (CORPUS / "dialects").iterdir()))
def test_every_dialect_answers_every_question(name: str) -> None:
    dbg = Debugger.load(CORPUS / "dialects" / name)
    assert dbg.count() == sum(dbg.event_counts().values()) == len(dbg.where()) > 0
    for event in dbg.all():
        dbg.before(event, event_type="model.request")
        dbg.after(event, event_type="tool.result", n=None)
        assert dbg.state_at(event).totals.steps == event.index + 1
    assert str(dbg.summary())
    assert dbg.state_at(dbg.all()[-1]).totals == dbg.summary().totals


@pytest.mark.parametrize("name", sorted(p.name for p in (CORPUS / "damaged").glob("*.jsonl")))
def test_every_damaged_file_answers_every_question(name: str) -> None:
    try:
        dbg = Debugger.load(CORPUS / "damaged" / name)
    except NotATrace:
        return  # told in a sentence
    for event in dbg.all():
        dbg.context_at(event)
        dbg.state_at(event)
    assert dbg.count() == sum(dbg.event_counts().values())
    str(dbg.summary())


def test_several_runs_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "shared.jsonl"
    for name in ("one", "two"):
        log = StepLog(path, run_id=name)
        log.record_tool_call(name, {})
        log.close()
    assert [e.tool_name for e in Debugger.load(path).all()] == ["two"]
    assert Debugger.load(path).findings[0].code == "several-runs"
    assert [e.tool_name for e in Debugger.load(path, run="one").all()] == ["one"]
    assert Debugger.load(path, run="*").count() == 2
    with pytest.raises(TraceFileError, match="does not exist"):
        Debugger.load(tmp_path / "none.jsonl")


def test_a_growing_run_is_a_snapshot_until_reloaded(tmp_path: Path) -> None:
    tap = Tap(tmp_path / "run.jsonl")
    tap.record_model_response(
        answer("hello"), call=tap.record_model_request(request(user("hi")), "anthropic")
    )
    dbg = Debugger.load(tmp_path / "run.jsonl")
    tap.record_tool_call("search", {})
    assert dbg.count() == 2 == len(dbg.all()) and dbg.summary().status == "running"
    assert dbg.reload() == 1 and dbg.count() == 3
    assert [call.tool for call in dbg.calls("tool")] == ["search"] and dbg.calls(tool="search")[0].is_open
    tap.close()
    assert dbg.reload() == 0 and dbg.recording.status == "ok"
