"""Every recording snippet of the three articles does what its article says, run as a user runs it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording, StepLog, Trace, read_events

HERE = Path(__file__).parent


def run(program: str, folder: Path, typed: str = "") -> str:
    done = subprocess.run(
        [sys.executable, str(HERE / program)],
        cwd=folder,
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(path: Path) -> list[dict[str, Any]]:
    """The steps of a file, read by nothing but json."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in found if not line["kind"].startswith(("run.", "proc."))]


def test_1_1_trace_makes_its_folder_and_writes_one_object_per_line(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "deep" / "er" / "run.jsonl")
    trace.step("note", a=1)
    first = lines(tmp_path / "deep/er/run.jsonl")  # readable while open
    trace.step("final", text="done")
    trace.close()
    assert [(line["kind"], line["run"]) for line in lines(tmp_path / "deep/er/run.jsonl")] == [
        ("note", trace.run_id),
        ("final", trace.run_id),
    ]
    assert first[0]["a"] == 1 and isinstance(first[0]["ts"], float)


def test_1_2_the_loop_goes_on_after_a_failing_tool_and_caps_only_the_file(tmp_path: Path) -> None:
    assert "longest 9000" in run("lisbon_agent.py", tmp_path)
    steps = lines(tmp_path / "traces/run.jsonl")
    assert [step["kind"] for step in steps] == [
        "llm_call", "tool_call", "tool_result", "error", "tool_call", "tool_result",
        "llm_call", "tool_call", "tool_result", "llm_call", "final",
    ]  # fmt: skip
    assert steps[3]["tool"] == "flaky" and steps[5]["output"] == "error: no answer"
    assert steps[8]["output"] == "x" * 4000


def test_1_3_and_1_4_replay_gives_messages_a_provider_accepts(tmp_path: Path) -> None:
    run("lisbon_agent.py", tmp_path)
    printed = run("replay_lisbon.py", tmp_path).splitlines()
    assert "'no-prompt'" in printed[0]
    for line in printed[1:13]:
        roles = re.findall(r"'(user|assistant|tool)'", line)
        assert roles[:1] == ["user"]
        # Two tools are asked for in the first turn, one in the second: no prefix leaves one unanswered.
        assert roles[1:] in (
            [],
            ["assistant", "tool", "tool"],
            ["assistant", "tool", "tool", "assistant", "tool"],
            ["assistant", "tool", "tool", "assistant", "tool", "assistant"],
        ), line
    assert printed[13] == "['user', 'assistant', 'tool', 'tool', 'assistant', 'tool'] 4000"


def test_1_5_head_grep_and_diff_work_on_the_file(tmp_path: Path) -> None:
    run("lisbon_agent.py", tmp_path)
    path = str(tmp_path / "traces/run.jsonl")
    head = subprocess.run(["head", "-n", "5", path], capture_output=True, text=True, check=True).stdout
    assert [json.loads(line)["kind"] for line in head.splitlines()][:2] == ["run.start", "llm_call"]
    grep = subprocess.run(
        ["grep", "-c", '"kind": "tool_call"', path], capture_output=True, text=True, check=True
    )
    assert grep.stdout.strip() == "3"
    assert subprocess.run(["diff", path, path], check=False).returncode == 0


def test_1_6_a_long_tool_output_stays_short_in_the_line_and_whole_in_a_blob(tmp_path: Path) -> None:
    output = "".join(f"row {n};" for n in range(30_000))
    with Trace(tmp_path / "run.jsonl") as trace:
        trace.step("tool_result", id="call_1", output=output)
        trace.step("tool_result", id="call_2", output=output)
    (line, _) = lines(tmp_path / "run.jsonl")
    assert len(json.dumps(line)) < 4_500
    assert [
        event.result for event in read_events(str(tmp_path / "run.jsonl")) if event.kind == "tool_result"
    ] == [output] * 2
    assert len(list((tmp_path / "run.blobs").iterdir())) == 1  # equal results once


def test_2_3_tools_are_paired_and_failures_named(tmp_path: Path) -> None:
    assert run("tap_tools.py", tmp_path).splitlines() == [
        "3",
        "raised division by zero",
        "['run.start', 'tool.called', 'tool.result']",
        "6",
    ]
    called, result, called_2, failed = lines(tmp_path / "runs/run-20260524.jsonl")
    assert (called["kind"], called["tool"], called["args"]) == ("tool.called", "add", {"a": 1, "b": 2})
    assert (result["call"], result["result"], result["error"]) == (called["call"], 3, None)
    assert failed["call"] == called_2["call"] and failed["result"] is None
    assert failed["error"]["type"] == "ZeroDivisionError" and failed["error"]["message"] == "division by zero"
    assert failed["error"]["frames"][0].startswith("tap_tools.py:")


def test_2_4_to_2_10_the_post_mortem_prints_what_the_article_prints(tmp_path: Path) -> None:
    run("revenue_agent.py", tmp_path)
    printed = run("post_mortem.py", tmp_path).splitlines()
    assert printed[:5] == [
        "Total events: 34",
        "  model.request: 5",
        "  model.response: 5",
        "  tool.called: 12",
        "  tool.result: 12",
    ]
    assert re.fullmatch(r"\[\d+\.\d+\] search\(\{'query': 'Q1 revenue, part 0\.0'\}\)", printed[5])
    assert all(re.match(r"\[\d+\.\d+\] search\(", line) for line in printed[5:17])
    assert re.fullmatch(r"First failure: search at \d+\.\d+", printed[17])
    assert printed[18] == "Error: search returned 0 results"
    assert printed[19] == "Last model response: Turn 2: I will look for part 2."
    context, after = (line for line in printed if line.startswith(("Prompt: ", "Next: ")))
    assert printed[20] == 'search({"query": "Q1 revenue, part 2.0"})'
    assert (context, after) == ("Prompt: 5 messages, index 16", "Next: 24")
    assert len(printed) - printed.index(after) - 1 == 34


def test_2_7_the_loop_jumps_inspects_and_ends(tmp_path: Path) -> None:
    run("revenue_agent.py", tmp_path)
    shown = run("step_through.py", tmp_path, typed="n\nj 25\ni\n" + "n\n" * 20)
    at = re.findall(r"^(?:\(n\)ext .* > )?\[(\d+)\] (\S+) \|", shown, re.MULTILINE)
    assert [int(index) for index, _ in at] == [0, 1, *range(25, 34)]
    assert shown.rstrip().endswith("End of trace.")
    payload = json.loads(shown[shown.index("> {") + 2 : shown.index("\n}") + 2])
    assert payload["kind"] == at[2][1] == "model.response"
    assert run("step_through.py", tmp_path, typed="q\n").count("[0]") == 1


def test_3_1_the_summary_prints_what_the_article_prints(tmp_path: Path) -> None:
    printed = run("step_log.py", tmp_path).splitlines()
    assert printed[:3] == ["Steps: 3", "Total tokens: 3320", "Tool calls: 1"]
    assert re.fullmatch(r"Duration: [\d.]+ms", printed[3])


def test_3_2_the_record_shapes_hold_the_articles_fields(tmp_path: Path) -> None:
    run("step_log.py", tmp_path)
    call, tool, _ = lines(tmp_path / "logs/agent-steps.jsonl")
    assert call["run"] == "run-abc123"
    assert {"model", "input_tokens", "output_tokens", "stop_reason", "duration_ms"} <= set(call)
    assert (tool["tool"], tool["input"], tool["error"], tool["duration_ms"]) == (
        "search_documents",
        {"query": "Q3 revenue"},
        None,
        240,
    )


def test_3_3_threads_share_a_log_and_every_step_has_its_own_number(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    with StepLog(path=path, run_id="r") as log, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: log.record_tool_call(tool="t", input={"n": n}), range(800)))
        summary = log.summarize()
    steps = lines(path)
    assert sorted(step["step"] for step in steps) == list(range(2, 802))
    assert {step["input"]["n"] for step in steps} == set(range(800))
    assert summary.total_steps == summary.tool_call_count == 800


def test_3_4_missing_token_counts_do_not_break_the_summary(tmp_path: Path) -> None:
    with StepLog(path=tmp_path / "s.jsonl", run_id="r") as log:
        log.record_llm_call(model="m", input_tokens=None, output_tokens=7, stop_reason=None)
        log.record_tool_call(tool="t", input={}, error="")  # a time-out's empty text is an error too
        summary = log.summarize()
    assert list(summary.__dict__)[:7] == [
        "run_id", "total_steps", "llm_call_count", "tool_call_count", "total_tokens", "error_count", "duration_ms",
    ]  # fmt: skip
    assert (summary.total_tokens, summary.error_count) == (7, 1)


def test_3_5_each_run_has_its_file_and_an_end_either_way(tmp_path: Path) -> None:
    assert run("step_log_agent.py", tmp_path).splitlines() == ["done", "raised nothing there", "3 30 1 0"]
    recordings = [Recording.load(str(path)) for path in sorted((tmp_path / "logs").iterdir())]
    assert len(recordings) == 2
    assert sorted(recording.totals.errors for recording in recordings) == [0, 1]
    assert all(recording.status in ("unclosed", "ok") for recording in recordings)
    assert not (tmp_path / ".reenact").exists()
    failed = next(recording for recording in recordings if recording.totals.errors)
    error = next(event.error for event in failed.events if event.error is not None)
    assert (str(error), error.type) == ("nothing there", "LookupError")


def test_3_7_a_cloud_path_is_a_clear_error_and_no_local_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="object storage"):
        StepLog(path="s3://bucket/logs/", run_id="r")
    assert list(tmp_path.iterdir()) == []


def test_3_8_a_five_step_run_is_under_two_kilobytes(tmp_path: Path) -> None:
    path = tmp_path / "steps.jsonl"
    with StepLog(path=path, run_id="run-abc123") as log:
        for _ in range(3):
            log.record_llm_call(
                model="claude-sonnet-4-6",
                input_tokens=1200,
                output_tokens=340,
                stop_reason="tool_use",
                duration_ms=1840,
            )
        for _ in range(2):
            log.record_tool_call(
                tool="search_documents",
                input={"query": "Q3 revenue"},
                output={"results": [1, 2]},
                duration_ms=240,
            )
    assert path.stat().st_size < 2_000
