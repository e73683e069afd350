"""runs(): what many runs amount to, and that it is what each of them says by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

import reenact
from reenact import Recording, runs
from reenact.errors import MissingExtra, NoSuchRun, TraceFileError, UsageError
from support.many import TS, Pen, agent, answer

CORPUS = Path(__file__).parents[2] / "corpus"


@pytest.fixture
def logs(tmp_path):
    """Three runs: two fine, one with a failing tool and out of tokens."""
    agent(tmp_path / "a.jsonl", name="trip", meta={"environment": "prod"})
    agent(tmp_path / "b.jsonl", name="trip", meta={"environment": "dev"}, tools=("search", "book"))
    failure = {"name": "bill", "stop": "max_tokens", "tools": ("search",), "fails": TimeoutError("too late")}
    agent(tmp_path / "c.jsonl", **failure)
    return tmp_path


def test_a_row_has_the_facts_of_its_run(logs):
    row = runs(logs / "b.jsonl")[0]
    recording = Recording.load(logs / "b.jsonl")
    assert (row.id, row.name, row.status) == (recording.run_id, "trip", "ok")
    assert os.path.samefile(row.path, logs / "b.jsonl")
    assert (row.started, row.ended) == (recording.started, recording.ended)
    assert row.duration_ms == pytest.approx((row.ended - row.started) * 1000)
    assert row.meta == {"environment": "dev"}
    assert (row.turns, row.llm_calls, row.tool_calls, row.steps) == (1, 1, 2, 6)
    assert (row.tokens_in, row.tokens_out, row.tokens, row.errors) == (100, 20, 120, 0)
    assert list(row.tools) == ["search", "book"]
    assert row.stop_reasons == {"end_turn": 1}
    assert list(row.models) == ["claude-sonnet-4-6"]
    assert row.cost.priced == 1
    assert row.cost.usd == Decimal("0.0006")  # 100 at $3 and 20 at $15 a million


def test_many_runs_are_a_sequence_with_sums(logs):
    found = runs(logs)
    assert [row.name for row in found] == ["trip", "trip", "bill"]
    assert found.statuses == {"ok": 3}
    assert found.totals == sum_of(Recording.load(path).totals for path in sorted(logs.glob("*.jsonl")))
    assert found.totals.errors == 1
    assert found.error_types == {"TimeoutError": 1}
    assert found.stop_reasons == {"end_turn": 2, "max_tokens": 1}
    assert {name: stats.calls for name, stats in found.tools.items()} == {"search": 3, "book": 1}
    assert found.tools["search"].failed == 1
    assert found.cost.usd == 3 * Decimal("0.0006")
    assert "genai-prices" in found.cost.source
    assert len(found[1:]) == 2 and isinstance(found[1:], type(found))


def sum_of(totals):
    result = next(totals)
    for one in totals:
        result += one
    return result


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*/*.jsonl")), ids=lambda path: path.stem)
def test_every_file_of_the_corpus_says_the_same_here_as_on_its_own(file):
    found = runs(file)
    if found.skipped:
        with pytest.raises(reenact.errors.TraceFileError):
            Recording.load(file)
        return
    for row in found:
        alone = Recording.load(file, run=row.id) if row.id is not None else Recording.load(file)
        if sum(other.id == row.id for other in found) > 1:
            continue  # the same run twice in a file: a recording shows the newest
        calls = alone.calls()
        assert row.totals == alone.totals
        assert (row.status, row.started, row.ended, row.name) == (
            alone.status, alone.started, alone.ended, alone.name,
        )  # fmt: skip
        for kind, stats in (("model", row.by_model_and_stop), ("tool", row.tools)):
            own = [call for call in calls if call.kind == kind]
            assert sum(one.open for one in stats.values()) == sum(call.is_open for call in own)
            assert sum(one.failed for one in stats.values()) == sum(call.error is not None for call in own)
            durations = sorted(took for one in stats.values() for took in one.durations)
            assert durations == sorted(call.duration_ms for call in own if call.duration_ms is not None)
        assert sum(row.error_types.values()) == row.errors


def test_seed_case_3_6_each_in_one_call(logs):
    assert [row.name for row in runs(logs).where(stop_reason="max_tokens")] == ["bill"]
    assert [row.name for row in runs(logs, where='stop_reason == "max_tokens"')] == ["bill"]
    assert runs(logs).p95("tool") > 0
    assert runs(logs).p95("run") >= runs(logs).p50("run") > 0
    assert [row.cost.usd for row in runs(logs)] == [Decimal("0.0006")] * 3


def test_percentiles_are_nearest_ranks_over_all_samples(tmp_path):
    pen = Pen().start()
    for number in range(1, 101):
        pen("tool.called", call=f"c{number}", tool="even" if number % 2 == 0 else "odd")
        pen("tool.result", call=f"c{number}", tool="x", duration_ms=number, error=None)
    found = runs(pen.save(tmp_path / "t.jsonl"))
    assert (found.p50("tool"), found.p95("tool"), found.p99("tool")) == (50, 95, 99)
    assert (found.percentile(100, "tool"), found.percentile(0.5, "tool")) == (100, 1)
    assert found.p95("tool", "even") == 96
    assert found.p95("tool", name="nope") is None
    assert found.p95("model") is None
    assert found.tools["odd"].percentile(50) == 49
    for bad in (0, 101, -1, "x"):
        with pytest.raises(UsageError):
            found.percentile(bad, "tool")
    with pytest.raises(UsageError, match="tools"):
        found.p95("tools")


def test_open_calls_are_counted_and_take_no_part_in_percentiles(tmp_path):
    pen = Pen().start(pid=2**22 + 12345)
    pen("model.request", call="m1", body={"model": "gpt-5", "messages": []})
    pen("tool.called", call="t1", tool="slow").save(tmp_path / "t.jsonl")
    row = runs(tmp_path)[0]
    assert row.status == "killed"
    assert row.duration_ms == 2000  # to its last line
    assert row.tools["slow"].open == 1 and not row.tools["slow"].durations
    assert row.models["gpt-5"].open == 1
    assert (row.turns, row.llm_calls, row.tool_calls) == (1, 0, 1)
    assert row.cost.text() == "-"  # nothing was answered, so nothing is known to be owed


def test_a_running_run_is_counted_but_its_duration_is_not_over(tmp_path):
    Pen(ts=__import__("time").time()).start(pid=os.getpid())("note").save(tmp_path / "t.jsonl")
    found = runs(tmp_path)
    assert found.statuses == {"running": 1}
    assert found[0].duration_ms == 1000
    assert found.p50("run") is None


def test_retried_attempts_are_calls_of_one_turn_and_their_tokens_count(tmp_path):
    pen = Pen().start()
    overloaded = {"type": "overloaded_error", "message": "later"}
    for attempt, error in ((1, overloaded), (2, overloaded), (3, None)):
        call = f"m{attempt}"
        pen("model.request", call=call, lane="main", attempt=attempt, body={"model": "claude-sonnet-4-6"})
        pen(
            "model.response", call=call, duration_ms=5, model=None if error else "claude-sonnet-4-6",
            stop_reason=None if error else "end_turn", usage={"input": 10, "output": 1}, error=error,
        )  # fmt: skip
    row = runs(pen.save(tmp_path / "t.jsonl"))[0]
    assert (row.turns, row.llm_calls, row.errors, row.retried) == (1, 3, 0, 2)
    assert (row.tokens_in, row.tokens_out) == (30, 3)
    assert row.error_types == {}
    model = row.models["claude-sonnet-4-6"]
    assert (model.calls, model.failed, model.totals.turns) == (3, 2, 1)


def test_the_model_of_a_failed_call_is_that_of_its_request_also_where_that_is_a_delta(tmp_path):
    pen = Pen().start()
    long = "x" * 9000
    body = {"messages": [{"role": "user", "content": long}], "model": "gpt-5", "tools": []}
    pen("model.request", call="m1", n=1, body=body)
    pen("model.response", call="m1", model="gpt-5", error=None, usage={"input": 1, "output": 1})
    kept = {"model": True, "tools": True, "messages": 1}
    pen(
        "model.request",
        call="m2",
        base="m1",
        keep=kept,
        n=2,
        body={"messages": [{"role": "user", "content": long}]},
    )
    pen("model.response", call="m2", error={"type": "timeout", "message": "t"})
    row = runs(pen.save(tmp_path / "t.jsonl"))[0]
    assert list(row.models) == ["gpt-5"]
    assert row.models["gpt-5"].failed == 1


def test_calls_of_several_models_go_each_to_its_own(tmp_path):
    with reenact.Tap(tmp_path / "t.jsonl") as tap:
        for model, tokens in (("claude-sonnet-4-6", 10), ("claude-haiku-4-5", 20), ("claude-sonnet-4-6", 30)):
            call = tap.record_model_request({"model": model, "messages": []}, provider="anthropic")
            tap.record_model_response(answer(model, input_tokens=tokens), call=call)
    models = runs(tmp_path)[0].models
    assert {name: (one.calls, one.totals.tokens_in) for name, one in models.items()} == {
        "claude-sonnet-4-6": (2, 40),
        "claude-haiku-4-5": (1, 20),
    }


def test_mixed_dialects_and_several_runs_in_one_file(tmp_path):
    lines = [
        (CORPUS / "dialects" / name).read_text() for name in ("trace.jsonl", "step_log.jsonl", "family.jsonl")
    ]
    pen = Pen(run="ours").start()("tool.called", call="c", tool="search")
    (tmp_path / "all.jsonl").write_text("".join(lines) + pen.text)
    found = runs(tmp_path)
    assert {row.id for row in found} == {"3f2a9c01", "run-1", "r", "ours"}
    assert found.stop_reasons == {"tool_use": 1, "end_turn": 1}
    by_id = {row.id: row for row in found}
    assert (by_id["3f2a9c01"].turns, by_id["3f2a9c01"].tool_calls, by_id["3f2a9c01"].errors) == (2, 1, 1)
    assert by_id["run-1"].tokens == 3320
    assert by_id["run-1"].cost.unknown == {"no price for m": 2}
    assert found.tools["search"].calls == 4


def test_openai_s_word_in_a_step_log_is_understood(tmp_path):
    log = reenact.StepLog(tmp_path / "s.jsonl", "run-1")
    for reason in ("length", "stop", "tool_calls", "MAX_TOKENS", "odd"):
        log.record_llm_call("m", 1, 1, reason)
    log.record_llm_call("m", 1, 1)
    log.close()
    assert runs(tmp_path).stop_reasons == {"max_tokens": 2, "end_turn": 1, "odd": 1, "tool_use": 1}
    assert [group.key for group in runs(tmp_path).by("stop_reason")][-1] == "-"


def test_segments_and_child_processes_are_one_run_however_they_are_named(tmp_path):
    Pen(w="0000000a").start()("note").save(tmp_path / "t.jsonl")
    more = Pen(w="0000000a", ts=TS + 60)
    more.step = 2
    more("run.more", v="1.0", segment=1)("note").save(tmp_path / "t.s0001.jsonl")
    child = Pen(w="0000000b", ts=TS + 10)("proc.start", v="1.0", parent_w="0000000a")
    child("tool.called", call="c1", tool="x").save(tmp_path / "t.p0000000b.jsonl")
    for paths in (
        [tmp_path],
        [tmp_path / "t.jsonl"],
        sorted(tmp_path.glob("*.jsonl")),
        [tmp_path, tmp_path / "t.jsonl"],
    ):
        found = runs(*paths)
        assert len(found) == 1, paths
        assert (found[0].steps, found[0].tool_calls) == (3, 1)
        assert found[0].findings == 0
    assert len(runs(tmp_path / "t.p0000000b.jsonl")) == 1


def test_the_same_id_run_twice_is_two_runs(tmp_path):
    text = Pen().start()("note").text + Pen(w="00000002", ts=TS + 50).start()("note").text
    (tmp_path / "t.jsonl").write_text(text)
    assert [row.steps for row in runs(tmp_path)] == [1, 1]


def test_what_is_no_trace_is_named_and_left_out(logs):
    (logs / "binary.jsonl").write_bytes(bytes(range(256)) * 10)
    (logs / "claude.jsonl").write_text('{"type":"user","uuid":"1","sessionId":"2"}\n')
    (logs / "newer.jsonl").write_text(Pen()("run.start", v="9.0").text)
    (logs / "gone.jsonl").symlink_to(logs / "nowhere")
    os.mkfifo(logs / "pipe.jsonl")
    (logs / "empty.jsonl").write_text("")
    (logs / "notes.txt").write_text("not looked at")
    found = runs(logs)
    assert len(found) == 3
    reasons = {os.path.basename(one.path): (one.code, one.message) for one in found.skipped}
    assert reasons["binary.jsonl"] == ("foreign", "not a trace: it is binary")
    assert "Claude Code" in reasons["claude.jsonl"][1]
    assert reasons["newer.jsonl"][0] == "unreadable" and "9.0" in reasons["newer.jsonl"][1]
    assert "a link" in reasons["gone.jsonl"][1]
    assert "pipe" in reasons["pipe.jsonl"][1]
    assert [one.code for one in found.findings] == ["empty"]


def test_a_damaged_run_is_counted_and_its_damage_named(logs):
    data = (logs / "a.jsonl").read_bytes()
    (logs / "a.jsonl").write_bytes(data[:-30])
    found = runs(logs)
    assert len(found) == 3
    assert [row.findings for row in found] == [1, 0, 0]
    assert [one.code for one in found.findings] == ["torn"]


def test_a_growing_run_is_read_as_far_as_it_is(tmp_path):
    path = tmp_path / "t.jsonl"
    tap = reenact.Tap(path)
    tap.record_tool_call("search", {})
    assert (runs(path)[0].tool_calls, runs(path)[0].status) == (1, "running")
    tap.record_tool_call("search", {})
    assert runs(path)[0].tool_calls == 2
    tap.close()
    assert runs(path)[0].status == "ok"


def test_runs_by_address_and_default_folder(logs, monkeypatch):
    monkeypatch.setenv("REENACT_DIR", str(logs))
    assert len(runs()) == 3
    assert [row.name for row in runs("bill")] == ["bill"]
    assert [row.name for row in runs("@last")] == ["bill"]
    whole = runs(logs)[0].id
    assert [row.id for row in runs(whole[:12])] == [whole]
    assert len(runs("bill", logs / "a.jsonl")) == 2
    monkeypatch.setenv("REENACT_DIR", str(logs / "nope"))
    assert len(runs()) == 0


def test_what_is_not_there_is_reported(logs, monkeypatch):
    monkeypatch.setenv("REENACT_DIR", str(logs))
    with pytest.raises(TraceFileError, match="does not exist"):
        runs(logs / "nope.jsonl")
    with pytest.raises(TraceFileError, match="does not exist"):
        runs(str(logs / "nope") + "/")
    with pytest.raises(NoSuchRun):
        runs("nobody")


def test_no_runs_have_sums_too(tmp_path):
    found = runs(tmp_path)
    assert (len(found), found.totals.turns, found.cost.text(), found.p95("run")) == (0, 0, "-", None)
    assert found.by("model") == [] and found.by("day") == []
    assert repr(found) == "<Runs 0>"
    assert found.df().empty


def test_since_is_about_the_beginning(tmp_path):
    for name, ts in (("old", TS), ("new", TS + 86400)):
        Pen(run=name, ts=ts).start(name=name)("note").save(tmp_path / f"{name}.jsonl")
    assert [row.name for row in runs(tmp_path, since=TS + 1)] == ["new"]
    assert [row.name for row in runs(tmp_path, since=TS)] == ["old", "new"]
    assert [row.name for row in runs(tmp_path).since("2025-11-16T00:00:00+00:00")] == ["new"]
    assert len(runs(tmp_path, since="1h")) == 0
    shared = tmp_path / "shared.jsonl"
    shared.write_text((tmp_path / "old.jsonl").read_text() + (tmp_path / "new.jsonl").read_text())
    assert [row.name for row in runs(shared, since=TS + 1)] == ["new"]
    with pytest.raises(UsageError, match="yesterday"):
        runs(tmp_path, since="yesterday")


def test_a_data_frame_has_a_row_for_each_run_or_group(logs):
    frame = runs(logs).df()
    assert list(frame["name"]) == ["trip", "trip", "bill"]
    assert frame["usd"].sum() == pytest.approx(0.0018)
    assert list(frame["meta.environment"].fillna("-")) == ["prod", "dev", "-"]
    assert str(frame["started"].dtype).startswith("datetime64")
    assert list(runs(logs).df("tool")["tool"]) == ["search", "book"]


def test_a_frame_has_tokens_and_keeps_the_types_of_metadata(tmp_path):
    for number, meta in enumerate([{"shard": 3, "is_new": True}, {}]):
        reenact.Trace(tmp_path / f"{number}.jsonl", meta=meta).close()
    frame = runs(tmp_path).df()
    assert (frame["meta.shard"].dtype, frame["meta.is_new"].dtype) == ("Int64", "boolean")
    assert set(frame["meta.shard"].dropna()) == {3} and "tokens" in frame


def test_without_pandas_the_fix_is_reported(logs, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra) as reported:
        runs(logs).df()
    assert reported.value.hint == "pip install pandas"


def test_hostile_names_fill_no_memory(tmp_path):
    pen = Pen().start()
    for number in range(1500):
        pen("tool.called", call=f"c{number}", tool=f"tool {number}" + "x" * 500)
        pen("tool.result", call=f"c{number}", tool="t", error={"type": f"E{number}", "message": ""})
    row = runs(pen.save(tmp_path / "t.jsonl"))[0]
    assert len(row.tools) <= 1001 and row.tools["(others)"].calls == 500
    assert max(map(len, row.tools)) <= 200
    assert len(row.error_types) <= 1001 and sum(row.error_types.values()) == row.errors == 1500


def test_odd_values_raise_nothing(tmp_path):
    pen = Pen().start(meta=[1], pid="x")
    pen("model.request", call=5, lane=3, attempt="x", body=[])
    pen(
        "model.response", call=["x"], duration_ms="long", model=7, stop_reason={"a": 1}, usage="many", error=0
    )
    pen("tool.called", call="c", tool=None)
    pen("tool.result", call="c", duration_ms=-5, error={"type": 5})
    pen("tool.result", call="c", duration_ms=True, error=None)
    pen("llm_call", model=None, usage=[1], duration_ms=1e300)
    pen("error", error=None)
    found = runs(pen.save(tmp_path / "t.jsonl"))
    alone = Recording.load(tmp_path / "t.jsonl")
    assert found[0].totals == alone.totals
    assert found.p50("tool") is None
    assert found[0].tools["?"].calls == 1


def test_memory_does_not_grow_with_the_file(tmp_path):
    with open(tmp_path / "big.jsonl", "w") as file:
        pen = Pen().start()
        file.write(pen.text)
        for number in range(6_000):
            pen.text = ""
            pen("tool.called", call=f"c{number}", tool="t", args={"q": "y" * 2000})
            pen("tool.result", call=f"c{number}", tool="t", duration_ms=1.5, error=None, result="x" * 8000)
            file.write(pen.text)
    code = (
        "import resource, sys; from reenact import runs; runs(sys.argv[2]);"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; found = runs(sys.argv[1]);"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "print(found.totals.tool_calls, after - before)"
    )
    small = Pen().start()("note").save(tmp_path / "small.jsonl")
    command = [sys.executable, "-c", code, str(tmp_path / "big.jsonl"), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    calls, grown = map(int, done.stdout.split())
    assert calls == 6_000
    assert grown < 12_000, f"{grown} KB for a file of {os.path.getsize(tmp_path / 'big.jsonl'):,} bytes"


def test_metadata_that_is_no_text_is_chosen_by_its_value(tmp_path):
    agent(tmp_path / "a.jsonl", meta={"debug": True, "tags": ["x"], "retries": 3})
    agent(tmp_path / "b.jsonl", meta={"debug": False})
    found = runs(tmp_path)
    chosen = [
        found.where(debug=True),
        found.where("debug=true"),
        found.where(tags=["x"]),
        found.where(retries=3),
    ]
    assert [[Path(row.path).name for row in some] for some in chosen] == [["a.jsonl"]] * 4
    assert len(found.where(path=tmp_path / "b.jsonl")) == 1
