from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from reenact import Recording, read_events
from reenact.errors import NotATrace
from reenact.tracefile import dialects
from support.written import Pen

SAMPLES = Path(__file__).parents[3] / ".." / "shared" / "samples"


def write(tmp_path, *objects):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(o if isinstance(o, str) else json.dumps(o) + "\n" for o in objects))
    return path


def read(path):
    found = []
    return list(read_events(path, on_finding=found.append)), [f.code for f in found]


def test_a_file_of_the_first_articles_trace_is_read_as_its_code_writes_it(tmp_path):
    common = {"run": "3f2a9c01"}
    path = write(
        tmp_path,
        {
            "ts": 1763200000.1,
            **common,
            "kind": "llm_call",
            "turn": 0,
            "content": None,
            "usage": {"prompt_tokens": 9, "completion_tokens": 3},
        },
        {"ts": 1763200000.2, **common, "kind": "error", "tool": "search", "err": "timeout"},
        {"ts": 1763200000.3, **common, "kind": "tool_call", "name": "search", "args": {"q": "hotels"}},
        {"ts": 1763200000.4, **common, "kind": "tool_result", "id": "call_1", "output": "error: timeout"},
        {"ts": 1763200000.5, **common, "kind": "final", "text": "done"},
    )
    events, codes = read(path)
    assert codes == []
    assert [e.event_type for e in events] == [
        "model.response",
        "error",
        "tool.called",
        "tool.result",
        "final",
    ]
    assert (events[2].tool_name, events[2].args) == ("search", {"q": "hotels"})
    assert events[3].result == "error: timeout"
    assert events[1].error == "timeout"
    assert events[4].content == "done"
    assert [e.step for e in events] == [1, 2, 3, 4, 5]
    run = Recording.load(path)
    assert run.totals.as_tot() == {"turns": 1, "in": 9, "out": 3, "err": 1}
    model, tool = run.calls()
    assert (tool.tool, tool.error, tool.is_open) == ("search", "timeout", False)
    assert run.turns()[0].tools == [tool]
    assert run.status == "unknown"
    assert run.event("3").tool_name == "search"


def test_a_file_of_the_third_articles_step_log_is_read_as_its_code_writes_it(tmp_path):
    path = write(
        tmp_path,
        {
            "type": "llm_call",
            "model": "m",
            "input_tokens": 1200,
            "output_tokens": 80,
            "stop_reason": "tool_use",
            "run_id": "run-1",
            "step": 1,
            "ts": 1763200000.1,
        },
        {
            "run_id": "run-1",
            "step": 2,
            "type": "tool_call",
            "tool": "search",
            "input": {"q": 1},
            "output": None,
            "error": "",
            "duration_ms": 12,
            "ts": 1763200000.2,
        },
    )
    events, codes = read(path)
    assert codes == []
    assert [e.event_type for e in events] == ["model.response", "tool.result"]
    assert [e.kind for e in events] == ["llm_call", "tool_call"]
    assert events[0].error is None
    assert events[1].error == ""
    assert events[1].run_id == "run-1"
    assert Recording.load(path).totals.as_tot() == {"turns": 1, "in": 1200, "out": 80, "err": 1}


def test_the_familys_other_spellings_are_read(tmp_path):
    path = write(
        tmp_path,
        {
            "event_type": "tool.called",
            "timestamp": "2026-01-02T03:04:05Z",
            "run_id": "r",
            "tool_name": "search",
            "tool_args": {"q": 1},
        },
        {"kind": "tool_returned", "ts": 1767323046, "run_id": "r", "tool_name": "search", "tool_output": [1]},
        {"index": 2, "step_type": "error", "content": "boom", "timestamp": 1767323047000},
        {
            "action": "tool_call",
            "line": 3,
            "tool": "x",
            "input": {},
            "output": 1,
            "error": {"name": "ValueError", "message": "bad"},
        },
        {"type": "llm_request", "recorded_at": "2026-01-02T03:04:09+00:00", "run": "r"},
    )
    events, codes = read(path)
    assert codes == []
    assert [e.event_type for e in events] == [
        "tool.called",
        "tool.result",
        "error",
        "tool.result",
        "model.request",
    ]
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC).timestamp()
    assert [e.timestamp for e in events] == [when, when + 1, when + 2, None, when + 4]
    assert events[0].args == {"q": 1}
    assert events[1].result == [1]
    assert events[2].error == "boom"
    assert (events[3].error, events[3].error.type) == ("bad", "ValueError")


def test_dollar_keys_of_a_foreign_dialect_are_left_alone(tmp_path):
    path = write(
        tmp_path,
        {"ts": 1.0, "run": "r", "kind": "note", "q": {"$float": "nan", "$$x": 1, "$blob": "sha256:0"}},
    )
    assert read(path)[0][0].payload["q"] == {"$float": "nan", "$$x": 1, "$blob": "sha256:0"}


def docker(text, stream="stdout"):
    return json.dumps({"log": text, "stream": stream, "time": "2026-01-02T03:04:05.6Z"}) + "\n"


WRAPPERS = {
    "docker": lambda line: docker(line),
    "docker split": lambda line: (
        docker(line[:50]) + docker("noise\n", "stderr") + docker(line[50:70]) + docker(line[70:])
    ),
    "cri": lambda line: f"2026-01-02T03:04:05.678901234Z stdout F {line}",
    "cri split": lambda line: (
        f"2026-01-02T03:04:05.6Z stdout P {line[:60]}\n2026-01-02T03:04:05.6Z stdout F {line[60:]}"
    ),
    "cloudwatch json": lambda line: json.dumps({"timestamp": 1767323045000, "message": line}) + "\n",
    "cloudwatch text": lambda line: f"2026-01-02T03:04:05.678Z {line}",
    "aws logs tail": lambda line: f"2026-01-02T03:04:05.678000+00:00 app/web/1234 {line}",
}


@pytest.mark.parametrize("how", WRAPPERS)
def test_our_lines_are_taken_out_of_container_logs(tmp_path, how):
    pen = Pen()
    lines = [
        pen("run.start", v="1.0", name="t"),
        pen("tool.called", call="a", tool="x", args={"q": "ü"}),
        pen("run.end", status="ok"),
    ]
    path = write(tmp_path, *(WRAPPERS[how](line.decode()) for line in lines))
    events, codes = read(path)
    assert [e.kind for e in events] == ["run.start", "tool.called", "run.end"]
    assert [c for c in codes if c != "other-lines"] == []
    run = Recording.load(path)
    assert run.status == "ok"
    assert run.events[0].args == {"q": "ü"}
    assert run.event(2).tool_name == "x"


def test_dialects_may_be_mixed_in_one_file(tmp_path):
    pen = Pen()
    path = write(
        tmp_path,
        pen("run.start", v="1.0").decode(),
        {"ts": 1763200000.5, "run": "old", "kind": "final", "text": "x"},
        docker(pen("note", x=1).decode()),
        {"run_id": "s", "step": 1, "type": "llm_call", "ts": 1763200000.9},
    )
    events, codes = read(path)
    assert [e.kind for e in events] == ["run.start", "final", "note", "llm_call"]
    assert codes == []


FOREIGN = {
    "a Claude Code session": {
        "type": "assistant",
        "uuid": "u",
        "sessionId": "s",
        "timestamp": "2026-01-02T03:04:05Z",
        "message": {"role": "assistant"},
    },
    "an OpenTelemetry export": {"resourceSpans": []},
    "a Codex session": {
        "timestamp": "2026-01-02T03:04:05Z",
        "type": "response_item",
        "payload": {"type": "message"},
    },
}


@pytest.mark.parametrize("what", FOREIGN)
def test_foreign_formats_are_refused_by_name(tmp_path, what):
    with pytest.raises(NotATrace, match=what):
        read(write(tmp_path, FOREIGN[what], FOREIGN[what]))


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared samples are not on this machine")
def test_no_sample_of_another_tool_is_taken_for_a_trace():
    files = [path for path in SAMPLES.rglob("*") if path.suffix in (".jsonl", ".json") and path.is_file()]
    assert len(files) > 50
    taken = []
    for path in files:
        try:
            taken += [path.name for event in read_events(path)][:1]
        except NotATrace:
            pass
    assert taken == []


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1763200000, 1763200000),
        (1763200000123, 1763200000.123),
        (1763200000123456789, 1763200000.1234567),
        ("2025-11-15T09:46:40", 1763200000),
        (float("nan"), None),
        (True, None),
        ("soon", None),
        (10**400, None),
    ],
)
def test_times_are_read_in_every_unit(value, seconds):
    assert dialects.timestamp(value) == (pytest.approx(seconds) if seconds is not None else None)
