"""State: where a run stood right after one of its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import schema
from ..figures.one_run import stats_of
from ..summary import Totals
from ..tracefile.calls import Call
from ..tracefile.event import Event
from ..tracefile.recording import Recording
from .links import Links

if TYPE_CHECKING:
    from ..money.prices import Bill

SNAPSHOT = "state"
"""The kind an agent writes its own state under: ``trace.step("state", plan=…)``."""


@dataclass(frozen=True, slots=True)
class State:
    """Where a run stood."""

    event: Event
    """The last event that is counted in."""
    turn: int | None
    """The turn it belongs to, else the one that was going on; None before the first."""
    lane: str
    elapsed_ms: float | None
    """Since the run's first line."""
    open: list[Call]
    """The calls that had begun and not ended, tools that were asked for and not answered among them."""
    totals: Totals
    """Sums of all events so far."""
    cost: Bill
    """Money spent so far."""
    values: dict[str, Any]
    """What the agent itself last recorded as its state, with kind ``state``; empty if it never did."""
    _recording: Recording = field(repr=False)

    @property
    def context(self) -> list[Any]:
        """The messages the model saw in the request that led here."""
        return self._recording.context_at(self.event)


def state_at(recording: Recording, links: Links, event: Event, last: int) -> State:
    """Go through the run up to an event, the one with the index ``last``, and sum it up."""
    so_far = stats_of(recording, recording.events[: last + 1])
    calls = [call for call in recording.calls(derived=True) if (call.event.index or 0) <= last]
    turn = links.turn_of(event) or next(
        (turn for turn in reversed(links.turns) if (turn.request.index or 0) <= last), None
    )
    started, now = recording.started, event.timestamp
    return State(
        event=event,
        turn=None if turn is None else turn.number,
        lane="main" if turn is None else turn.lane,
        elapsed_ms=None if started is None or now is None else max(now - started, 0.0) * 1000,
        open=[call for call in calls if call.end is None or (call.end.index or 0) > last],
        totals=so_far.totals,
        cost=so_far.cost,
        values=_snapshot(recording, last),
        _recording=recording,
    )


def _snapshot(recording: Recording, last: int) -> dict[str, Any]:
    """Return what the newest event of kind ``state`` says."""
    types = recording.event_types()
    newest = next((index for index in range(last, -1, -1) if types[index] == SNAPSHOT), None)
    payload = {} if newest is None else recording.events[newest].payload
    return {key: value for key, value in payload.items() if key not in schema.ENVELOPE}
