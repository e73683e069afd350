"""Whose answer a tool call follows: never another run's, and each tool use is claimed once."""

from __future__ import annotations

import contextvars
import threading
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact import Tap


def ask(tap: Tap, *tool_uses: dict[str, Any]) -> str:
    call = tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "go"}]})
    tap.record_model_response({"role": "assistant", "content": list(tool_uses), "stop_reason": "tool_use"})
    return call


def test_a_tool_does_not_follow_an_answer_of_the_run_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REENACT_DIR", str(tmp_path))
    tap = Tap()
    with reenact.run("first"):
        ask(tap)
    with reenact.run("second") as second:
        tap.record_tool_call("search", {})
        assert second.path is not None
        called = [event for event in reenact.read_events(second.path) if event.kind == "tool.called"]
    assert called[0].payload["parent"] is None


def test_equal_tool_uses_called_by_threads_at_once_are_all_recorded_each_with_its_own_id() -> None:
    events: list[dict[str, Any]] = []
    tap = Tap(writer=events.append)
    uses = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "search", "input": {"q": "x", "n": 1}}
        for n in range(16)
    ]
    ask(tap, *uses)

    def call() -> None:
        tap.record_tool_call("search", {"n": 1, "q": "x"})

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(call,)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tap.close()
    ids = [event["tool_id"] for event in events if event["kind"] == "tool.called"]
    assert sorted(ids) == sorted(use["id"] for use in uses)
