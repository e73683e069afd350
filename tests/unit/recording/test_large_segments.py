"""A large run in several segments is opened by its offsets, and says the same as one read line by line."""

from __future__ import annotations

import pytest

import reenact
from reenact.recording.recording import Recording
from reenact.tracefile import columns


@pytest.fixture
def segments(tmp_path):
    tap = reenact.Tap(tmp_path / "a.jsonl", segment_bytes=20_000, redact=False)
    for number in range(60):
        body = {"model": "m", "messages": [{"role": "user", "content": f"question {number}" + "x" * 900}]}
        call = tap.record_model_request(body, provider="anthropic", lane="even" if number % 2 else "main")
        answer = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "y" * 700}]}
        tap.record_model_response(answer | {"usage": {"input_tokens": 5, "output_tokens": 2}}, call=call)
    tap.close()
    assert len(list(tmp_path.glob("a.s*.jsonl"))) > 2
    return tmp_path / "a.jsonl"


def opened(path, monkeypatch, *, quick):
    monkeypatch.setattr(columns, "LARGE", 0 if quick else 1 << 60)
    recording = Recording.load(path)
    assert (recording.execution.totals is None) is quick
    return recording


def contents(recording):
    return {
        "lines": [(event.kind, event.step, event.index, event.call) for event in recording.lines],
        "events": [event.content for event in recording.events],
        "tot": recording.tot,
        "writers": recording.writers,
        "status": recording.status,
        "context": recording.context_at(recording.events[-1]),
        "steps": [recording.at_step(step).kind for step in (1, 2, 50, 122)],
        "findings": [finding.code for finding in recording.findings],
    }


def test_both_ways_say_the_same(segments, monkeypatch):
    quick = contents(opened(segments, monkeypatch, quick=True))
    assert quick == contents(opened(segments, monkeypatch, quick=False))
    assert quick["tot"] == {"turns": 60, "in": 300, "out": 120, "err": 0}


def test_a_lost_segment_is_not_overlooked(segments, monkeypatch):
    segments.with_name("a.s0002.jsonl").unlink()
    monkeypatch.setattr(columns, "LARGE", 0)
    recording = Recording.load(segments)
    assert recording.findings and recording.events[-1].kind == "model.response"
    assert recording.tot["turns"] < 60


def test_a_last_segment_without_sums_does_not_hide_those_before(segments, monkeypatch):
    last = sorted(segments.parent.glob("a.s*.jsonl"))[-1]
    lines = last.read_bytes().splitlines(keepends=True)
    assert b'"kind": "run.more"' in lines[0]
    last.write_bytes(b"".join(lines[:2]))
    assert opened(segments, monkeypatch, quick=True).tot == opened(segments, monkeypatch, quick=False).tot
