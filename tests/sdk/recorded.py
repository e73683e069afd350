"""What a trace must say of a played cell, judged by what the provider received and sent."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from reenact.recording.calls import Call
from reenact.recording.recording import Recording
from reenact.wire import reading
from reenact.wire.messages import tool_results
from support.provider import Received, script
from support.provider.routes import OTHER, TALK
from support.provider.scenario import Scenario

from .table import Cell

STOP = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens"}
NAMELESS = {"cohere", "ollama"}
"""Providers whose errors have no type."""
BROKEN = {"cut", "closed", "refused", "timeout"}
WHOLE = {"ok", "gzip", "shredded", "drip", "retried", "started twice"}
ENDINGS = {
    "closed": {"error", "cut"},
    "malformed": {"closed", "complete", "cut"},  # it depends on how far the SDK reads on
    "error inside": {"error"},
    "abandoned": {"closed"},
    "cancelled": {"cancelled"},
    "error": {"complete", "closed"},
    "overloaded": {"complete", "closed"},
}


def check(cell: Cell, path: Path, log: list[Received], is_seen: Callable[[Received], bool]) -> None:
    """Compare a trace with the provider's log; `is_seen` says which requests are no model's but told of."""
    recording = Recording.load(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[-1]["kind"] == "run.end" and lines[-1]["dropped"] == 0, lines[-1]
    assert not list(path.parent.glob("*.blobs/*.part")), "an answer that is over leaves nothing behind"
    received_requests = [each for each in log if _dialect(each)]
    requests = [event for event in recording.events if event.kind == "model.request"]
    responses = {
        event.call: event.stored_fields for event in recording.events if event.kind == "model.response"
    }
    assert len(responses) == len(requests), [line["kind"] for line in lines]
    others = [line for line in lines if line["kind"] == "http.response"]
    assert len(others) == sum(_is_other(each) and is_seen(each) for each in log)
    check_calls(cell, requests, responses, received_requests, path)
    _check_tools(recording, received_requests)
    if cell.method == "many at once":
        assert len({request.stored_fields["lane"] for request in requests}) == len(requests)
    else:
        assert {request.stored_fields["lane"] for request in requests} <= {"main"}


def check_calls(
    cell: Cell, requests: list[Any], responses: dict[str, Any], received_requests: list[Received], path: Path
) -> None:
    """Compare a cell's requests, and the responses by their calls, with what the provider received of it."""
    assert len(requests) == len(received_requests), f"{len(requests)} of {len(received_requests)} requests"
    for number, (request, received) in enumerate(zip(requests, received_requests, strict=True)):
        _check_request(cell, request, received, number)
        _check_response(
            cell, responses[request.call], received, path, is_last=number == len(received_requests) - 1
        )


def _check_tools(recording: Recording, received_requests: list[Received]) -> None:
    """What answers asked for and what the agent then sent back is there as calls, though nobody reported it."""
    uses = [use for call in recording.calls() if call.end for use in _uses(call)]
    tools = [call for call in recording.calls(derived=True) if call.derived]
    assert [(call.tool, call.args) for call in tools] == uses
    bodies = [json.loads(each.body) for each in received_requests]
    lists = [body.get("messages", body.get("input", body.get("contents"))) for body in bodies]
    result_counts = [len([result for item in items for result in tool_results(item)]) for items in lists]
    is_kept_there = any(reading.kept_conversation(body) for body in bodies)
    assert sum(not call.is_open for call in tools) == (sum if is_kept_there else max)([0, *result_counts])


def _uses(call: Call) -> list[tuple[str, object]]:
    assert call.end is not None
    return [] if call.error is not None else [use[1:3] for use in reading.tool_uses(call.end.body)]


def _path(received: Received) -> str:
    return "/" + unquote(received.target.partition("?")[0]).split("/", 3)[3]


def _dialect(received: Received) -> Any:
    found = [dialect for pattern, dialect, _ in TALK if re.fullmatch(pattern, _path(received))]
    return found[0] if found else None


def _is_other(received: Received) -> bool:
    return any(re.fullmatch(pattern, _path(received)) for pattern, _, _ in OTHER)


def _check_request(cell: Cell, request: Any, received: Received, number: int) -> None:
    raw = request.stored_fields
    assert request.body == json.loads(received.body)
    assert raw["url"].endswith(received.target)
    assert raw["ts"] <= received.at + (time.time() - time.perf_counter()) + 0.002, "told before it was sent"
    if cell.outcome == "retried":
        assert raw.get("attempt", 1) == number + 1
    secrets = ("authorization", "api-key", "cookie")
    assert not [name for name in raw.get("headers", {}) if any(word in name for word in secrets)]


def _check_response(
    cell: Cell, reported: dict[str, Any], received: Received, path: Path, is_last: bool
) -> None:
    refused = received.status is not None and received.status >= 400
    if received.status is None or (cell.outcome == "cut" and "status" not in reported):
        assert "status" not in reported
    else:
        assert reported["status"] == received.status
    outcome = cell.outcome if is_last else "error" if refused else "ok"
    if "left early" in cell.method:
        outcome = "abandoned"
    if outcome in WHOLE and cell.fails:
        outcome = "malformed"  # the SDK gives up on a good answer
    assert reported["ended"] in ENDINGS.get(outcome, {"complete"} if outcome in WHOLE else {"error"}), (
        reported
    )
    failed = refused or outcome in BROKEN | {"error inside", "cancelled"}
    assert (reported["error"] is not None) == failed, reported
    if refused and reported["ended"] == "complete" and cell.sdk not in NAMELESS:
        assert not reported["error"]["type"].startswith("http_"), "the provider names its errors"
    _check_stream(reported, received, path)
    if reported["ended"] == "complete" and outcome in WHOLE:
        _check_answer(reported, received)


def _check_stream(reported: dict[str, Any], received: Received, path: Path) -> None:
    raw = reported.get("raw")
    if raw is None:
        return
    blob = next(path.parent.glob(f"*.blobs/**/*{raw['$blob'].removeprefix('sha256:')[2:]}*"))
    head, _, data = zlib.decompress(blob.read_bytes()).partition(b"\n")
    sent = received.answer
    if raw["form"] == "decoded":
        sent = zlib.decompressobj(31).decompress(sent)
    assert sent.startswith(data) and data
    assert sum(size for size, _ in json.loads(head)["chunks"]) == len(data)


def _check_answer(reported: dict[str, Any], received: Received) -> None:
    body = json.loads(received.body)
    scenario = Scenario.parse(received.target.split("/")[2])
    turn = script.turn(scenario, _dialect(received).rounds(body))
    streamed = len(received.sent) > 2
    assert ("raw" in reported) == streamed
    if streamed:
        assert reported["ttft_ms"] > 0
    assert reported["stop_reason"] == STOP[turn.stop]
    assert "restart" in scenario or reading.text(reported["body"]).startswith(turn.text)
    assert [use[1:3] for use in reading.tool_uses(reported["body"])] == [
        (use.name, use.args) for use in turn.tools
    ]
    assert turn.usage is not None
    silent = "chat/completions" in received.target and streamed and not body.get("stream_options")
    if silent:
        assert "usage" not in reported
    else:
        assert (reported["usage"]["input"], reported["usage"]["output"]) == (
            turn.usage.input,
            turn.usage.output,
        )
