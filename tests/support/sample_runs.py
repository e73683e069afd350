"""Real runs of other people's agents as recordings: read from `../shared/samples`, recorded through our `Tap`.

The samples are not part of the repository; a test that needs them skips where they are absent (`present`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reenact import Tap

SAMPLES = Path(__file__).parents[3] / "shared" / "samples"
present = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample traces are not here")


class Sample(NamedTuple):
    """One run as a conversation in the shape of OpenAI's chat API."""

    name: str
    passed: bool | None
    """None: whether it reached its goal is not known."""
    messages: list[dict[str, Any]]


def tau_bench() -> Iterator[Sample]:
    """Yield 200 runs of an airline's agent, each with the verdict of the benchmark."""
    for run in json.loads((SAMPLES / "tau-bench" / "tau-bench__gpt-4o-airline.json").read_text()):
        name = f"airline-{run['task_id']}-{run['trial']}"
        yield Sample(name, run["reward"] == 1.0, run["traj"])


def swe_agent() -> Iterator[Sample]:
    """Yield runs of SWE-agent; one that submitted a solution counts as passed. Without tool calls in their
    messages, what a command printed is the user's message."""
    for path in sorted((SAMPLES / "swe-agent").glob("*.traj")):
        run = json.loads(path.read_text())
        history = [each for each in run.get("history", ()) if not each.get("is_demo")]
        keys = ("role", "content", "tool_calls", "tool_call_ids")
        messages = [{key: each[key] for key in keys if each.get(key)} for each in history]
        for message in messages:
            ids = message.pop("tool_call_ids", None)
            if ids and message["role"] in ("tool", "user"):
                message |= {"role": "tool", "tool_call_id": ids[0]}
        status = run.get("info", {}).get("exit_status")
        if any(message["role"] == "assistant" for message in messages):
            yield Sample(path.stem.removeprefix("SWE-agent__"), status == "submitted" or None, messages)


def record(
    sample: Sample, path: Path, tools: list[dict[str, Any]] | None = None, model: str = "gpt-4o"
) -> Path:
    """Record a run as its agent would have: each request with all messages so far, each tool with its result."""
    with Tap(path, name=sample.name) as tap:
        record_in(tap, sample.messages, {"model": model} | ({"tools": tools} if tools else {}))
    return path


def record_in(tap: Tap, messages: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Record one conversation in a run that is open."""
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        body = settings | {"messages": messages[:at]}
        call = tap.record_model_request(body, "openai", url="https://api.openai.com/v1/chat/completions")
        uses = message.get("tool_calls") or []
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if uses else "stop"}
        answer = {"id": f"chatcmpl-{at}", "object": "chat.completion", "model": settings["model"]}
        tap.record_model_response(answer | {"choices": [choice]}, call=call)
        results = {each.get("tool_call_id"): each.get("content") for each in _results(messages, at)}
        for use in uses:
            name, args = use["function"]["name"], json.loads(use["function"]["arguments"])
            begun = tap.record_tool_call(name, args, tool_id=use["id"])
            if use["id"] in results:
                tap.record_tool_result(name, results[use["id"]], call=begun)


def _results(messages: list[dict[str, Any]], at: int) -> Iterator[dict[str, Any]]:
    for message in messages[at + 1 :]:
        if message["role"] != "tool":
            return
        yield message
