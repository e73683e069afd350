"""State: where a run stood right after one of its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import schema
from ..summary import Totals
from ..tracefile import dialects
from ..tracefile.calls import Call
from ..tracefile.event import Event
from ..tracefile.recording import Recording
from .links import Links

if TYPE_CHECKING:
    from ..prices import Bill

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
    """The calls that had begun and not ended."""
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


def state_at(recording: Recording, links: Links, event: Event) -> State:
    """Go through the run up to an event and sum it up."""
    last = recording.count() - 1 if event.index is None else event.index
    totals, values = Totals(), None
    for one in recording.events[: last + 1]:
        totals.add(dialects.event_type(one.kind), one._raw())
        values = one if one.kind == SNAPSHOT else values
        one._forget()
    calls = [call for call in recording.calls() if (call.event.index or 0) <= last]
    ended = [call for call in calls if call.end is not None and (call.end.index or 0) <= last]
    turn = links.turn_of(event) or next(
        (turn for turn in reversed(links.turns) if (turn.request.index or 0) <= last), None
    )
    started = recording.started
    elapsed = (
        None if started is None or event.timestamp is None else max(event.timestamp - started, 0.0) * 1000
    )
    done = set(map(id, ended))
    return State(
        event=event,
        turn=None if turn is None else turn.number,
        lane="main" if turn is None else turn.lane,
        elapsed_ms=elapsed,
        open=[call for call in calls if id(call) not in done],
        totals=totals,
        cost=bill_of(ended),
        values={} if values is None else _own_fields(values),
        _recording=recording,
    )


def bill_of(calls: Iterable[Call]) -> Bill:
    """Return what the model calls among these cost."""
    from ..prices import Book

    book = Book.open()
    bill = book.bill()
    for call in calls:
        if call.kind == "model" and call.end is not None:
            begin = call.begin if call.begin is not call.end else None
            bill.add(book.price(call.end._raw(), None if begin is None else begin._raw()))
            call.end._forget()
            if begin is not None:
                begin._forget()
    return bill


def _own_fields(event: Event) -> dict[str, Any]:
    return {key: value for key, value in event.payload.items() if key not in schema.ENVELOPE}
