"""reenact behind the baselines' interface, and the drivers that feed the agent run to each side."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .baselines.common import Baseline
from .workload import Step


class ReenactTrace(Baseline):
    """``Trace.step`` as a user calls it; ``options`` go to the front end."""

    def __init__(self, path: Path, **options: Any) -> None:
        from reenact import Trace

        super().__init__(path)
        self.trace = Trace(path, **options)

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self.trace.step(kind, **payload)

    def close(self) -> None:
        self.trace.close()


def feed_tap(path: Path, steps: Iterator[Step], **options: Any) -> int:
    """Record a run through Tap; return the CPU nanoseconds inside our calls, opening and closing included."""
    from reenact import Tap

    clock = time.thread_time_ns
    begin = clock()
    tap = Tap(output_path=path, **options)
    spent = clock() - begin
    calls: dict[object, Any] = {}
    for kind, conversation, fields in steps:
        begin = clock()
        if kind == "request":
            calls[conversation] = tap.record_model_request(fields["body"], provider="anthropic")
        elif kind == "response":
            tap.record_model_response(fields["body"], call=calls[conversation])
        elif kind == "called":
            calls[fields["id"]] = tap.record_tool_call(fields["tool"], fields["args"])
        else:
            tap.record_tool_result(fields["tool"], fields["result"], None, call=calls[fields["id"]])
        spent += clock() - begin
    begin = clock()
    tap.close()
    return spent + clock() - begin


def feed_baseline(recorder: Baseline, steps: Iterator[Step]) -> int:
    """Record the same run through a baseline; return the CPU nanoseconds inside its calls."""
    clock = time.thread_time_ns
    spent = 0
    for kind, _, fields in steps:
        if kind in ("request", "response"):
            fields = {"body": fields["body"]}
        begin = clock()
        recorder.record(kind, fields)
        spent += clock() - begin
    return spent
