"""The content of a run, whoever draws it."""

from __future__ import annotations

from reenact.debugger.story import time_spent
from reenact.recording.recording import Recording


def test_calls_at_the_same_time_are_counted_once(tmp_path):
    lines = [
        '{"ts": 100.0, "run": "r", "kind": "note"}',
        '{"ts": 104.0, "run": "r", "kind": "tool_call", "name": "a", "args": {}, "output": "x", "duration_ms": 3000}',
        '{"ts": 105.0, "run": "r", "kind": "tool_call", "name": "b", "args": {}, "output": "x", "duration_ms": 3000}',
        '{"ts": 109.0, "run": "r", "kind": "llm_call", "content": "x", "duration_ms": 2000}',
        '{"ts": 110.0, "run": "r", "kind": "final", "text": "x"}',
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    calls = Recording.load(tmp_path / "a.jsonl").calls()
    assert time_spent(calls, 100.0, 110.0) == {"model": 2.0, "tools": 4.0, "elsewhere": 4.0}
    assert time_spent(calls, None, 110.0) is None
