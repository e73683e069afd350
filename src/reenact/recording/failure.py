"""Where a run failed: the event a debugger opens at."""

from __future__ import annotations

from ..tracefile import status as states
from ..tracefile.event import ErrorText, Event
from ..tracefile.line_heads import is_error
from .recording import Recording

_LOOK_BACK = 300
"""Events at the end among which the failure is sought; a large run must open at once."""

_UNTOLD = (states.UNKNOWN, states.UNCLOSED)


def failure_of(recording: Recording) -> Event | None:
    """Return the event a failed run failed at, None for a run that did not, as far as its end tells.

    Of an exception the first event that reports it; of a killed run the last event there is.
    """
    status, events = recording.status, recording.events
    if not events or (status not in states.FAILED and status not in _UNTOLD):
        return None
    if status in _UNTOLD:
        return events[-1] if is_error(events[-1]) else None
    if status == states.KILLED:
        return events[-1]
    run_error = recording.error
    found: Event | None = None
    for index in range(len(events) - 1, max(-1, len(events) - 1 - _LOOK_BACK), -1):
        event = events[index]
        if is_error(event) and (found is None or _is_same(event.error, run_error)):
            found = event
    return found or events[-1]


def _is_same(error: ErrorText | None, run_error: ErrorText | None) -> bool:
    if error is None or run_error is None or str(error) != str(run_error):
        return False
    return (
        error.type is None
        or run_error.type is None
        or error.type.split(".")[-1] == run_error.type.split(".")[-1]
    )
