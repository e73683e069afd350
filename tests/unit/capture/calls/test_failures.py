"""What is said of an error: its causes, its group's members, an HTTP status alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from reenact import Tap, read_events
from reenact.capture.calls.error_fields import failure
from support.provider import Provider


def recorded(tmp_path: Path, error: BaseException) -> dict[str, Any]:
    with Tap(tmp_path / "run.jsonl") as tap:
        tap.record_tool_result("search", None, error, call=tap.record_tool_call("search", {}))
    line = next(line for line in (tmp_path / "run.jsonl").read_text().splitlines() if '"tool.result"' in line)
    found: dict[str, Any] = json.loads(line)["error"]
    return found


def test_the_cause_of_an_exception_is_on_record(tmp_path: Path) -> None:
    try:
        try:
            raise ConnectionResetError("peer went away")
        except ConnectionResetError as exc:
            raise RuntimeError("no plan") from exc
    except RuntimeError as exc:
        error = recorded(tmp_path, exc)
    assert (error["type"], error["cause"]["type"], error["cause"]["message"]) == (
        "RuntimeError", "ConnectionResetError", "peer went away",
    )  # fmt: skip
    assert error["cause"]["frames"][0].startswith("test_failures.py:")


def test_a_group_names_its_members_and_a_circle_of_causes_ends(tmp_path: Path) -> None:
    one, other = ValueError("a"), KeyError("b")
    one.__cause__, other.__cause__ = other, one
    error = recorded(tmp_path, ExceptionGroup("tasks failed", [one, *[OSError(str(n)) for n in range(20)]]))
    assert error["group"][0]["type"] == "ValueError"
    assert len(error["group"]) == 5
    assert "21 sub-exceptions" in error["message"]


def test_a_bad_status_is_an_error_whatever_the_body_says(tmp_path: Path) -> None:
    with Tap(tmp_path / "run.jsonl") as tap:
        call = tap.record_model_request({"model": "m", "messages": []})
        tap.record_model_response(b"<html>502 Bad Gateway</html>", call=call, status=502)
    event = next(
        event for event in read_events(str(tmp_path / "run.jsonl")) if event.kind == "model.response"
    )
    assert event.error is not None and event.error.type == "http_502"
    assert event.payload["body"] == "<html>502 Bad Gateway</html>"
    assert event.payload["tot"]["err"] == 1


def test_an_error_deep_in_libraries_names_the_agents_own_line_first() -> None:
    def agent() -> None:
        json.loads("{", cls=json.JSONDecoder)

    try:
        agent()
    except ValueError as exc:
        reported = failure(exc)
    assert reported is not None
    own, *others = reported["frames"]
    assert own.startswith("test_failures.py:") and own.endswith(" in agent")
    assert [place.split(":")[0] for place in others] == ["decoder.py"] * 2


def test_an_error_just_below_the_agents_code_has_its_frames_before_those_of_the_library() -> None:
    def plan() -> None:
        json.loads("{")

    def agent() -> None:
        plan()

    try:
        agent()
    except ValueError as exc:
        reported = failure(exc)
    assert reported is not None and len(reported["frames"]) == 3
    places = [place.split(":")[0] for place in reported["frames"]]
    assert places == ["test_failures.py", "decoder.py", "decoder.py"]
    assert reported["frames"][0].endswith(" in plan")


@pytest.mark.parametrize("scenario", ["reset-0", "reset-3"])
def test_an_exception_of_a_library_names_the_line_that_called(
    scenario: str, tmp_path: Path, provider: Provider
) -> None:
    def plan(client: httpx.Client) -> None:
        client.post(
            provider.url(scenario, "/v1/messages"), json={"model": "m", "messages": [], "stream": True}
        )

    with Tap(tmp_path / "run.jsonl") as tap, tap.wrap(httpx.Client()) as client:
        with pytest.raises(httpx.TransportError):
            plan(client)
    (answer,) = [event for event in read_events(tmp_path / "run.jsonl") if event.kind == "model.response"]
    assert answer.error is not None
    frames = answer.error.frames
    assert len(frames) <= 3 and frames[0].startswith("test_failures.py:") and frames[0].endswith(" in plan")
