"""``python -m reenact.playback.replay.call_entry``: call a recorded function or web application again.

Prints the result or response to stdout. Exits with 1 if the function raised or the application failed.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

from ...capture.calls.error_fields import failure
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
    """Repeat the recorded call of the plan; return the exit code."""
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
            hint=f'put code that runs on import under if __name__ == "__main__":{whole}',
        ) from None
    for part in entry.lossy:
        report.note(Input(part))
    return call


def _unusable(report: Report, exc: UsageError) -> int:
    """Report why nothing was called; the supervisor prints it."""
    report.note(Unusable(str(exc), exc.hint))
    return UNUSABLE


def _answered(response: Response) -> int:
    """Print a response, and end the run with the outcome of its handler."""
    if response.exception is not None:
        traceback.print_exception(response.exception)
    sys.stdout.flush()
    sys.stdout.buffer.write(response.body if response.body.endswith(b"\n") else response.body + b"\n")
    sys.stdout.flush()
    fields: dict[str, Any] = {} if response.status is None else {"http_status": response.status}
    is_failed = response.exception is not None or (response.status or 500) >= 500
    error = failure(response.exception)
    if error is not None:
        fields["error"] = error
        process_recorder().emit("error", {"where": "run", "error": error})
    process_recorder().exit("error" if is_failed else "ok", fields)
    return int(is_failed)


if __name__ == "__main__":
    sys.exit(main())
