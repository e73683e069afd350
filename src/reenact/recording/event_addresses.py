"""The address of an event: a step, a turn, a call or ``@error``. It stays valid while the run grows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import schema
from ..errors import NoSuchEvent
from ..totals import Failures
from ..tracefile import status as states
from ..tracefile.events.event import ErrorText, Event, is_error

if TYPE_CHECKING:
    from .recording import Recording

_DERIVED = re.compile(r"(\d{1,18}|p[0-9a-f]{1,32}:\d{1,18})\.(\d{1,9})\Z", re.ASCII)
_WRITER_STEP = re.compile(r"p([0-9a-f]{1,32}):(\d{1,18})\Z")


def find_event(recording: Recording, address: str | int) -> Event:
    """Return the event of a run at an address."""
    text = str(address).strip()
    found: Event | None = None
    if text.isascii() and text.isdigit() and len(text) < 19:
        found = recording.at_step(int(text))
        hint = f"its first writer has {recording.count(system=True):,} lines at most"
    elif text.startswith("turn:"):
        number, turns = text[5:], recording.tot["turns"]
        if number.isascii() and number.isdigit():
            found = recording.index.begin_of_turn(int(number[:18]))
        hint = f"it has {turns} {'turn' if turns == 1 else 'turns'}"
    elif text.startswith("call:"):
        found, hint = _by_call(recording, text[5:])
    elif text == "@error":
        found, hint = first_error(recording), "no event of it is an error"
    elif (parts := _WRITER_STEP.match(text)) is not None:
        writers = [writer for writer in recording.writers if writer.startswith(parts[1])]
        found = recording.at_step(int(parts[2]), writers[0]) if len(writers) == 1 else None
        hint = "its writers are " + ", ".join(f"p{writer}" for writer in recording.writers[:8])
    elif (parts := _DERIVED.match(text)) is not None:
        found = _derived(recording, find_event(recording, parts[1]), int(parts[2]))
        hint = f"the event at {parts[1]} carries no derived tool of that number"
    else:
        hint = "an event is 12, p77aa:12, turn:3, call:a1b2 or @error"
    if found is None:
        raise NoSuchEvent(f"no event of {recording.name} is at {text}", asked=text, hint=hint)
    return found


def _derived(recording: Recording, carrier: Event, number: int) -> Event | None:
    beside = [] if carrier.index is None else recording.entries.beside(carrier.index)
    return next((event for _, event in beside if event.derived_number == number), None)


def _by_call(recording: Recording, prefix: str) -> tuple[Event | None, str]:
    request = None if recording.is_small else recording.request_of(prefix)
    if request is not None:
        return request, ""
    calls = [
        call for call in recording.calls() if prefix and call.id is not None and call.id.startswith(prefix)
    ]
    exact = [call for call in calls if call.id == prefix] or calls
    if len(exact) == 1:
        return exact[0].event, ""
    if not exact:
        return None, f"none of its {len(recording.calls())} calls has such an id"
    return None, "it could be " + ", ".join(str(call.id) for call in exact[:5])


def errors(recording: Recording) -> Iterator[Event]:
    """Yield the events that are errors and that no retry followed; of one failure, the first."""
    retried = {call.end for turn in recording.turns() for call in turn.attempts[:-1] if call.end is not None}
    failures = Failures()
    for event in recording.events:
        if event.error is None:
            continue
        if event.event_type == schema.ERROR and failures.explain(event.writer, event.stored_fields):
            continue
        if event.event_type != schema.ERROR:
            failures.add(event.writer, event.stored_fields)
        if event not in retried:
            yield event


def first_error(recording: Recording) -> Event | None:
    """Return the first event that is an error and that no retry followed."""
    return next(errors(recording), None)


# Where a run failed: the event a debugger opens at.

_LOOK_BACK = 300
"""Events at the end among which the failure is sought; a large run must open at once."""

_NOT_RECORDED = (states.UNKNOWN, states.UNCLOSED)


def failure_of(recording: Recording) -> Event | None:
    """Return the event a failed run failed at, None for a run that did not, as far as its end shows.

    Of an exception the first event that reports it; of a killed run the last event there is.
    """
    status, events = recording.status, recording.events
    if not events or (status not in states.FAILED and status not in _NOT_RECORDED):
        return None
    if status in _NOT_RECORDED:
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
