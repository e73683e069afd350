"""Whose answer a tool call follows: never another run's, and each tool use is claimed once."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact import Tap
from reenact.capture.calls import open_calls
from support.typed import typed


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


def answer(tap: Tap, lane: str, *uses: dict[str, Any]) -> str:
    """Record a model call of a lane whose answer asks for these tools."""
    body = {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": lane}]}
    call = tap.record_model_request(body, lane=lane)
    content = [{"type": "tool_use", **use} for use in uses] or [{"type": "text", "text": "done"}]
    stop = "tool_use" if uses else "end_turn"
    response = {"type": "message", "role": "assistant", "content": content, "stop_reason": stop}
    tap.record_model_response(response, call=call)
    return call


def search(id: str, q: str = "x") -> dict[str, Any]:
    return {"id": id, "name": "search", "input": {"q": q}}


def recorded(record: Callable[[Tap], None]) -> list[dict[str, Any]]:
    """Return the tool calls that a function records."""
    events: list[dict[str, Any]] = []
    tap = Tap(writer=events.append)
    record(tap)
    tap.close()
    return [event for event in events if event["kind"] == "tool.called"]


@pytest.mark.parametrize("others", [1, 3])
@pytest.mark.parametrize("args", [{"q": "x"}, None])
def test_a_tool_follows_the_lane_with_the_response_that_requests_it(
    tmp_path: Path, others: int, args: Any
) -> None:
    path = tmp_path / "lanes.jsonl"
    with reenact.run("lanes", path=path):
        tap = Tap()
        asking = answer(tap, "A", search("toolu_1"))
        for number in range(others):
            answer(tap, f"B{number}")
        tap.record_tool_result("search", "found", call=tap.record_tool_call("search", args))
    (called,) = (event for event in reenact.read_events(path) if event.kind == "tool.called")
    assert called.payload["parent"] == asking
    assert called.payload["tool_id"] == ("toolu_1" if args else None)
    shown = typed("show", path).out
    assert shown.count("search(") == 1 and "never" not in shown
    assert shown.index("search(") < shown.index("turn 2")


def test_the_arguments_decide_where_two_lanes_ask_for_the_same_tool() -> None:
    calls: list[str] = []

    def record(tap: Tap) -> None:
        calls.extend(answer(tap, lane, search(f"toolu_{lane}", lane)) for lane in "AB")
        for q in ("A", "B", "neither"):
            tap.record_tool_call("search", {"q": q})

    first, second, third = recorded(record)
    assert (first["parent"], first["tool_id"]) == (calls[0], "toolu_A")
    assert (second["parent"], second["tool_id"]) == (calls[1], "toolu_B")
    assert (third["parent"], third["tool_id"]) == (calls[1], None)


def test_the_id_of_a_tool_use_decides_before_all() -> None:
    calls: list[str] = []

    def record(tap: Tap) -> None:
        calls.extend(answer(tap, lane, search(f"toolu_{lane}")) for lane in "AB")
        tap.record_tool_call("search", {"q": "other"}, tool_id="toolu_A")

    (called,) = recorded(record)
    assert (called["parent"], called["tool_id"]) == (calls[0], "toolu_A")


@pytest.mark.parametrize(
    ("name", "is_claimed"),
    [("refund", True), ("server__refund", True), ("server.refund", True), ("prefund", False)],
)
def test_a_tool_is_for_the_use_that_a_framework_acts_upon_if_only_a_server_stands_before_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, is_claimed: bool
) -> None:
    monkeypatch.setattr(open_calls, "opened_uses", lambda _, uses: open_calls.open_uses.extend(uses))

    def record(tap: Tap) -> None:
        answer(tap, "A", {"id": "toolu_1", "name": name, "input": {"order": 1}})
        (use,) = open_calls.open_uses
        acted_upon = open_calls.invoke(use, ())
        tap.record_tool_call("refund", {"order": 2})
        acted_upon.end()
        open_calls.close_uses([use])

    (called,) = recorded(record)
    assert called["tool_id"] == ("toolu_1" if is_claimed else None)


def test_a_use_that_its_own_lane_has_left_behind_is_not_answered_later() -> None:
    calls: list[str] = []

    def record(tap: Tap) -> None:
        calls.extend([answer(tap, "A", search("toolu_1")), answer(tap, "A"), answer(tap, "B")])
        tap.record_tool_call("search", {"q": "x"})

    (called,) = recorded(record)
    assert (called["parent"], called["tool_id"]) == (calls[2], None)


def test_a_task_does_not_take_what_another_tasks_answer_asks_for() -> None:
    calls: list[str] = []

    def record(tap: Tap) -> None:
        contextvars.copy_context().run(lambda: calls.append(answer(tap, "A", search("toolu_1"))))
        calls.append(answer(tap, "B"))
        tap.record_tool_call("search", {"q": "x"})

    (called,) = recorded(record)
    assert (called["parent"], called["tool_id"]) == (calls[1], None)
