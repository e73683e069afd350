"""Rotation in the middle of a conversation: nothing is lost, and every segment can be read alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reenact import Recording, Tap


def converse(tap: Tap, turns: int) -> list[list[dict[str, Any]]]:
    """Record a conversation; returns the messages of every request as they were sent."""
    messages: list[dict[str, Any]] = []
    sent = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn} " + "x" * 100})
        sent.append(list(messages))
        tap.record_model_request({"model": "m", "messages": messages}, provider="anthropic")
        answer = {"role": "assistant", "content": f"answer {turn} " + "y" * 100}
        tap.record_model_response(answer)
        messages.append(answer)
    return sent


def test_a_request_that_fills_a_segment_is_not_counted_as_lost(tmp_path: Path, capsys: Any) -> None:
    with Tap(tmp_path / "run.jsonl", segment_bytes=3_000) as tap:
        sent = converse(tap, 40)
        assert tap.lost == 0
    assert capsys.readouterr().err == ""
    recording = Recording.load(tmp_path / "run.jsonl")
    assert recording.findings == []
    requests = [event for event in recording.events if event.kind == "model.request"]
    assert [event.payload["body"]["messages"] for event in requests] == sent


def test_no_line_refers_to_an_earlier_segment(tmp_path: Path) -> None:
    with Tap(tmp_path / "run.jsonl", segment_bytes=3_000) as tap:
        converse(tap, 40)
    segments = sorted(tmp_path.glob("*.jsonl"))
    assert len(segments) > 5
    for segment in segments:
        here: set[str] = set()
        for event in map(json.loads, segment.read_bytes().splitlines()):
            referred = {message["$answer"] for message in _messages(event) if "$answer" in message}
            referred |= {message["$same"][0] for message in _messages(event) if "$same" in message}
            assert referred | ({event["base"]} if "base" in event else set()) <= here
            here.add(event.get("call", ""))


def _messages(event: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = event.get("body", {}).get("messages", [])
    return found
