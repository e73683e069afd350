"""How a run ended: its error, what a process was doing when it died, and the event to look at.

For a killed run the calls without an end show where it died.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import schema
from ..recording.calls import MODEL, TOOL, Call, join_calls
from ..recording.derived_tools import derived_tools
from ..recording.event_addresses import failure_of
from ..recording.recording import Recording
from ..tracefile import status as states
from ..tracefile.events.event import ErrorText, Event
from ..tracefile.events.event_text import address, describe, error_dict, tool_text
from ..tracefile.events.text import call_text

_LOOK_BACK = 2000
"""Events at the end of a long run among which open calls are searched for."""


def open_calls(recording: Recording, near_end: Sequence[Call] | None = None) -> list[Call]:
    """Return the calls that show where processes were when they ended, oldest first.

    In a run that was ended properly, those of further processes that were not. ``near_end`` are the
    calls of its last events with the derived ones, if they are at hand.
    """
    is_dead = died_without_a_word(recording)
    if not is_dead and len(recording.writers) == 1:
        return []
    calls = [call for call in _last_ones(near_end or _near_end(recording)) if call.is_open]
    if is_dead or not calls:
        return calls
    ended = {event.writer for event in recording.lines[-_LOOK_BACK:] if event.kind == schema.PROC_END}
    return [call for call in calls if call.event.writer not in {*ended, recording.first_writer}]


def _near_end(recording: Recording) -> list[Call]:
    if recording.is_small:
        return recording.calls(derived=True)
    calls = join_calls(recording.events[-_LOOK_BACK:])
    return [*calls, *derived_tools(calls)]


def _last_ones(calls: Sequence[Call]) -> list[Call]:
    """Return the recorded calls, then the derived tools that the last response of each lane requests."""
    last: dict[tuple[str, str], Event] = {}
    for call in calls:
        if call.kind == MODEL:
            last[call.event.writer, call.lane] = call.end or call.event
    tools = [
        call for call in calls if call.derived and last.get((call.event.writer, call.lane)) == call.event
    ]
    return [*(call for call in calls if not call.derived), *tools]


def died_without_a_word(recording: Recording) -> bool:
    """True if the first process wrote no end: of a killed one only its supervisor knows.

    So it is after ``os._exit``; an end of its own would hold how many events were dropped.
    """
    end = recording.end
    if end is None or recording.status == states.KILLED:
        return True
    fields = end.stored_fields
    return fields.get("by") == "supervisor" and "dropped" not in fields


_SEEN = {
    states.RUNNING: ("is inside", "is waiting for the result of", "is waiting for"),
    states.KILLED: ("died inside", "died before the result of", "died while waiting for"),
}
_UNSURE = "was last seen inside", "was last seen before the result of", "was last seen waiting for"


def inside(call: Call, status: str, root: str | None) -> str:
    """Return what an open call means: ``died inside tool search(q="hotels")``.

    The status is that of the run's first process; of another one nobody knows whether it is alive.
    """
    event = call.event
    step = f" (step {address(event, root)})" if event.step is not None else ""
    is_further = event.writer != root
    in_tool, before_result, at_model = _UNSURE if is_further else _SEEN.get(status, _UNSURE)
    who = "a further process " if is_further else ""
    if call.derived:
        return f"{who}{before_result} tool {call_text(call.tool, call.args, 200)}{step}"
    if call.kind == TOOL:
        return f"{who}{in_tool} tool {tool_text(event, 200)}{step}"
    return f"{who}{at_model} the model ({describe(event).text}){step}"


def ending_error(recording: Recording) -> ErrorText | None:
    """Return the error a run ended with: its own, else that of its last event if it is one."""
    error = recording.error
    if error is None and recording.status in (states.ERROR, states.KILLED):
        for event in reversed(recording.events[-20:]):
            if event.error is not None:
                return event.error
    return error


def ending(recording: Recording) -> dict[str, Any]:
    """Return how the run ended, for ``--json``."""
    status = recording.status
    error = ending_error(recording)
    calls, root = open_calls(recording), recording.first_writer
    return {
        "status": status,
        "exit": recording.end.exit if recording.end is not None else None,
        "error": None if error is None else error_dict(error),
        "inside": [{"step": at.event.step, "call": at.id, "text": inside(at, status, root)} for at in calls],
    }


def failed_at(recording: Recording, calls: Sequence[Call]) -> Event | None:
    """Return the event to look at: what a process died inside of, else where the error came up."""
    if calls and died_without_a_word(recording) and recording.status not in (states.RUNNING, states.STOPPED):
        return calls[-1].event
    return failure_of(recording)
