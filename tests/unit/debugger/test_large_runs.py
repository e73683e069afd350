"""Large runs: what is read of them, and how often."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.debugger.ending import open_calls
from reenact.debugger.stepper import Stepper
from reenact.debugger.story import story_of
from reenact.recording.recording import Recording
from reenact.tracefile import records
from support.examples import long


def record(path: Path, turns: int, *, failing: int | None = None, recorded: bool = True) -> None:
    """Record an agent that calls a tool in every turn, in conversations of ten turns."""
    tap = Tap(output_path=path, redact=False)
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        if turn % 10 == 0:
            messages = [{"role": "user", "content": f"question {turn}"}]
        body = {"model": "m", "max_tokens": 9, "messages": messages}
        call = tap.record_model_request(body, provider="anthropic")
        use = {"type": "tool_use", "id": f"t{turn}", "name": "look", "input": {"n": turn}}
        answer = {"role": "assistant", "content": [use]}
        tap.record_model_response({"type": "message", "model": "m", **answer}, call=call)
        if recorded:
            tool = tap.record_tool_call("look", {"n": turn})
            tap.record_tool_result("look", f"seen {turn}", None, call=tool)
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": f"seen {turn}"}
        if turn == failing:
            result |= {"is_error": True}
        messages = [*messages, answer, {"role": "user", "content": [result]}]
    tap.close()


def large(path: Path) -> Stepper:
    stepper = Stepper(lambda: Recording.load(path))
    assert not stepper.recording.is_small
    return stepper


@pytest.mark.long
def test_a_search_for_errors_derives_no_tools_where_none_can_have_failed(tmp_path: Path) -> None:
    record(tmp_path / "run.jsonl", 2_600, recorded=False)
    stepper = large(tmp_path / "run.jsonl")
    stepper.stops.add("error")
    assert not stepper.run().reasons
    assert not stepper.recording.has_derived and not stepper.recording.has_joined


@pytest.mark.long
def test_a_search_for_errors_stops_at_the_derived_result_that_is_one(tmp_path: Path) -> None:
    record(tmp_path / "run.jsonl", 2_600, failing=2_003, recorded=False)
    stepper = large(tmp_path / "run.jsonl")
    stepper.stops.add("error")
    assert stepper.run().reasons
    assert (stepper.event.kind, stepper.event.tool_id) == ("tool.result", "t2003")
    assert stepper.event.error == "seen 2003"


@pytest.mark.parametrize("recorded", [True, long(False)], ids=["recorded", "derived"])
def test_show_decodes_no_line_more_than_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    record(tmp_path / "run.jsonl", 2_600, recorded=recorded)
    decoded: Counter[bytes] = Counter()
    parse = records.parse
    monkeypatch.setattr(records, "parse", lambda line: (decoded.update((bytes(line),)), parse(line))[1])
    recording = Recording.load(tmp_path / "run.jsonl")
    story = story_of(recording)
    open_calls(recording, [*story.calls, *story.derived])
    assert decoded and max(decoded.values()) <= 2


def test_a_rebuilt_request_reads_no_response_of_conversations_before_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "run.jsonl", 200)
    step = Recording.load(tmp_path / "run.jsonl").calls()[-2].event.step
    recording = Recording.load(tmp_path / "run.jsonl")
    last = recording.at_step(step or 0)
    assert last is not None and last.kind == "model.request"
    read: Counter[bytes] = Counter()
    parse = records.parse
    monkeypatch.setattr(records, "parse", lambda line: (read.update((bytes(line),)), parse(line))[1])
    messages = recording.context_at(last)
    assert [message["role"] for message in messages] == ["user", *["assistant", "user"] * 9]
    assert 0 < sum(b'"kind": "model.response"' in line for line in read) < 12
