"""``python -m reenact.playback.replay.enter``: a recorded function or handler is called again here.

What it returned, or what the application answered, goes to stdout. It ends as a program would: with 1 if the
function raised or the application failed.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

from ...capture.calls.failure import failure
from ...capture.recorder.jsonable import to_json
from ...capture.runs.current import process_recorder
from ...errors import Diverged, UsageError
from ...recording.recording import Recording
from .entry import Entry, call_of
from .plan import Plan
from .report import Input, Report, Unusable
from .web_app import NotStarted, Response

UNUSABLE = 2


def main() -> int:
    """Make the call that the plan's recording was; returns the exit code."""
    plan = Plan.here()
    report = Report(plan.report)
    try:
        call = _call(plan, report)
    except UsageError as exc:
        return _unusable(report, exc)
    try:
        result = call()
    except NotStarted as exc:
        return _unusable(report, exc)
    if isinstance(result, Response):
        return _answered(result)
    if result is not None:
        print(to_json(result), flush=True)
    return 0


def _call(plan: Plan, report: Report) -> Callable[[], Any]:
    recording = Recording.load(plan.path, plan.run, blobs=plan.blobs)
    entry = Entry.of(recording)
    if entry is None:
        raise UsageError("the recording does not name a function to call")
    try:
        call = call_of(entry)
    except Diverged:
        module, name = entry.place
        whole = (
            f"; or replay all of it: reenact replay {recording.parent_run[:12]}"
            if recording.parent_run
            else ""
        )
        raise UsageError(
            f"{entry.source or module} calls a model or tool when it is imported, before {name} is called",
            hint=f'what it does by itself belongs under if __name__ == "__main__":{whole}',
        ) from None
    for what in entry.lossy:
        report.note(Input(what))
    return call


def _unusable(report: Report, exc: UsageError) -> int:
    """Let the supervisor say why nothing was called."""
    report.note(Unusable(str(exc), exc.hint))
    return UNUSABLE


def _answered(response: Response) -> int:
    """Print an answer, and end the run as its handler ended."""
    if response.exception is not None:
        traceback.print_exception(response.exception)
    sys.stdout.flush()
    sys.stdout.buffer.write(response.body if response.body.endswith(b"\n") else response.body + b"\n")
    sys.stdout.flush()
    told: dict[str, Any] = {} if response.status is None else {"http_status": response.status}
    is_failed = response.exception is not None or (response.status or 500) >= 500
    error = failure(response.exception)
    if error is not None:
        told["error"] = error
        process_recorder().emit("error", {"where": "run", "error": error})
    process_recorder().exit("error" if is_failed else "ok", told)
    return int(is_failed)


if __name__ == "__main__":
    sys.exit(main())
