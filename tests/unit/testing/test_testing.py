"""reenact.testing: a block recorded, a run asserted, a trace written by hand, without a test runner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reenact import Debugger, Tap, read_events
from reenact.testing import (
    assert_no_errors,
    assert_trajectory,
    assert_within,
    recorded,
    tools_of,
    write_trace,
)

ANSWER: dict[str, Any] = {
    "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "done"}], "usage": {"input_tokens": 900, "output_tokens": 100},
}  # fmt: skip


def agent(fail: bool = False, model: str = "claude-sonnet-4-5") -> None:
    tap = Tap()
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    tap.record_model_response({**ANSWER, "model": model}, call=tap.record_model_request(body, "anthropic"))
    for tool in ("search", "book"):
        tap.record_tool_call(tool, {"q": tool})
        tap.record_tool_result(tool, "ok", error="sold out" if fail and tool == "book" else None)


def test_a_recorded_block_answers_questions() -> None:
    with recorded() as run:
        agent()
    assert run.debugger.count() == 6 and run.debugger.recording.status == "ok"
    assert tools_of(run) == [("search", {"q": "search"}), ("book", {"q": "book"})]
    assert_trajectory(run, ["search", "book"])
    assert_trajectory(run, ["book", "search"], "any-order")
    assert_no_errors(run)
    assert_within(run, turns=1, tool_calls=2, tokens=1000, usd=1)


def test_inside_the_block_it_is_what_happened_so_far() -> None:
    with recorded() as run:
        tap = Tap()
        tap.record_tool_call("search", {})
        assert tools_of(run) == [("search", {})]
        tap.record_tool_result("search", 1)
        tap.record_tool_call("book", {})
        assert len(tools_of(run)) == 2


def test_failures_say_what_the_run_did() -> None:
    with recorded() as run:
        agent(fail=True)
    with pytest.raises(
        AssertionError, match=r"in this order:\n  \+ search\(.*\)\n    book\(.*\)\n.*\nthe run:\n"
    ):
        assert_trajectory(run, ["book"])
    with pytest.raises(AssertionError, match=r"1 errors:\n  tool.result book .*sold out"):
        assert_no_errors(run)
    with pytest.raises(
        AssertionError, match="1 turns, 0 allowed; 1,000 tokens, 999 allowed; cost .*, .* allowed"
    ):
        assert_within(run, turns=0, tokens=999, usd=0.000001)


def test_an_unknown_cost_is_not_within_any_budget() -> None:
    with recorded() as run:
        agent(model="nobody-knows-this-model")
    with pytest.raises(AssertionError, match="unknown"):
        assert_within(run, usd=1000)


def test_an_exception_passes_through_and_is_an_error_of_the_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), recorded(path=tmp_path / "kept.jsonl") as run:
        raise ValueError("stop")
    with pytest.raises(AssertionError, match="stop"):
        assert_no_errors(run)
    assert (tmp_path / "kept.jsonl").exists()
    assert_trajectory(str(tmp_path / "kept.jsonl"), [])


def test_a_trace_written_by_hand_is_read_like_any_other(tmp_path: Path) -> None:
    events = [("note", {"a": 1}), ("error", {"error": {"type": "E", "message": "m"}}), ("run.mine", {})]
    path = write_trace(tmp_path / "a.jsonl", events)
    assert [event.kind for event in read_events(path)] == [
        "run.start",
        "note",
        "error",
        "user.run.mine",
        "run.end",
    ]
    first = Path(path).read_bytes()
    assert Path(write_trace(tmp_path / "b.jsonl", events)).read_bytes() == first
    killed = Debugger.load(write_trace(tmp_path / "c.jsonl", events, status=None))
    assert killed.recording.end is None and killed.count() == 3 and killed.findings == []


def test_it_needs_no_test_runner() -> None:
    code = "import sys, reenact.testing; print('pytest' in sys.modules, 'hypothesis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
