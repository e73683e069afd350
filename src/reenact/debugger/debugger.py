"""Debugger: questions to a recording, as the post-mortem of a failed run asks them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .. import schema
from ..compare.moments import MomentsDiff, diff_turns
from ..errors import UsageError
from ..explain.claims import Claims, claims_of
from ..explain.uses import Uses, uses_of
from ..explain.why import Explainer, Why
from ..money.prices import Bill
from ..recording.calls import Call, Turn
from ..recording.event_addresses import errors as counted_errors
from ..recording.index import Index
from ..recording.kept_conversations import SeenMessages
from ..recording.recording import Recording
from ..shown import ShownAsHtml
from ..stats.rows import RunStats
from ..stats.sums import stats_of
from ..totals import Totals
from ..tracefile.events.event import Event
from ..tracefile.findings import Finding
from .event_filters import Filter, Where, types_of
from .questions import ask
from .step_session import StepSession
from .suspects.search import all_suspects
from .suspects.suspect import Suspect

# State: where a run stood right after one of its events.

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
    """The calls that had begun and not ended, requested tools without a result among them."""
    totals: Totals
    """Sums of all events so far."""
    cost: Bill
    """Money spent so far."""
    values: dict[str, Any]
    """What the agent itself last recorded as its state, with kind ``state``; empty if it never did."""
    _recording: Recording = field(repr=False)

    @property
    def context(self) -> SeenMessages:
        """The messages the model saw in the request that led here."""
        return self._recording.context_at(self.event)


def state_at(recording: Recording, event: Event, last: int) -> State:
    """Go through the run up to an event, the one with the index ``last``, and sum it up."""
    so_far = stats_of(recording, recording.events[: last + 1])
    calls = [call for call in recording.calls(derived=True) if (call.event.index or 0) <= last]
    turn = recording.index.turn_of(event)
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
    """Return the fields of the newest event of kind ``state``."""
    types = recording.event_types()
    newest = next((index for index in range(last, -1, -1) if types[index] == SNAPSHOT), None)
    payload = {} if newest is None else recording.events[newest].payload
    return {key: value for key, value in payload.items() if key not in schema.ENVELOPE}


Types = str | Iterable[str] | None

_JOINED = ("model.", "tool.", schema.LLM_CALL, schema.TOOL_CALL, schema.OLD_TOOL_RESULT)
"""How the types begin whose events belong to calls, and so to a line of work."""


class Debugger(ShownAsHtml):
    """One run, and the questions it answers.

    Where events are selected, ``where`` is a function of an event or an expression as text,
    ``event_type`` a kind as written or normalised (``tool.*`` fits several), and every other keyword
    a field that must be equal. Events come oldest first.
    """

    def __init__(self, recording: Recording, *, blobs: str | None = None) -> None:
        self.recording = recording
        self._blobs = blobs
        self._explainer: Explainer | None = None

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], run: str | None = None, *, blobs: str | None = None
    ) -> Debugger:
        """Open one run of a file or folder: the newest unless ``run`` says which, ``"*"`` all as one."""
        return cls(Recording.load(path, run, blobs=blobs), blobs=blobs)

    def reload(self) -> int:
        """Read again a run that still grows; returns how many events are new."""
        old = self.recording
        self.recording = Recording.load(old.path, old.run_id, blobs=self._blobs)
        return self.recording.count() - old.count()

    @property
    def findings(self) -> list[Finding]:
        """Damage and gaps found so far."""
        return self.recording.findings

    def all(self, *, system: bool = False) -> Sequence[Event]:
        """Return all events, with ``system=True`` also the recorder's bookkeeping; fetched when looked at."""
        return self.recording.lines if system else self.recording.events

    def count(
        self, where: Where = None, *, event_type: Types = None, system: bool = False, **equal: Any
    ) -> int:
        """Return how many events there are, or match."""
        if where is None and event_type is None and not equal:
            return self.recording.count(system=system)
        return sum(1 for _ in self._matching(where, event_type, equal, system=system))

    def event_counts(self, *, system: bool = False) -> dict[str, int]:
        """Return how many events there are of each type, in order of first appearance."""
        return dict(Counter(self.recording.event_types(system=system)))

    def where(
        self, where: Where = None, *, event_type: Types = None, system: bool = False, **equal: Any
    ) -> list[Event]:
        """Return the events that match."""
        return list(self._matching(where, event_type, equal, system=system))

    def first(self, where: Where = None, *, event_type: Types = None, **equal: Any) -> Event | None:
        """Return the first event that matches, or None."""
        return next(self._matching(where, event_type, equal), None)

    def last(self, where: Where = None, *, event_type: Types = None, **equal: Any) -> Event | None:
        """Return the last event that matches, or None."""
        return next(self._matching(where, event_type, equal, backwards=True), None)

    def before(
        self, event: Event, where: Where = None, *, event_type: Types = None, n: int | None = 1, **equal: Any
    ) -> list[Event]:
        """Return the nearest ``n`` events before one (None: all), oldest first.

        Asked for model or tool events it follows what led to the event (its call, the model call that
        asked for it, the conversation before that), so other agents' events between are not taken for it.
        """
        index = self._line_of(event, event_type)
        pool = index.past(event) if index else reversed(self.recording.events[: max(self._index(event), 0)])
        return list(islice(Filter(where, event_type, equal).over(pool), _number(n)))[::-1]

    def after(
        self, event: Event, where: Where = None, *, event_type: Types = None, n: int | None = 1, **equal: Any
    ) -> list[Event]:
        """Return the nearest ``n`` events after one (None: all), oldest first; causes as in ``before``."""
        index = self._line_of(event, event_type)
        pool = index.future(event) if index else self.recording.events[self._index(event) + 1 :]
        return list(islice(Filter(where, event_type, equal).over(pool), _number(n)))

    def between(
        self, first: Event, last: Event, where: Where = None, *, event_type: Types = None, **equal: Any
    ) -> list[Event]:
        """Return the events after ``first`` and before ``last``, neither of them included."""
        pool = self.recording.events[self._index(first) + 1 : max(self._index(last), 0)]
        return list(Filter(where, event_type, equal).over(pool))

    def calls(self, kind: str | None = None, *, tool: str | None = None) -> list[Call]:
        """Return the calls in the order they began: all, of a kind (``"model"``, ``"tool"``) or of a tool.

        Tools that nobody reported are derived from the model traffic (``derived``).
        """
        return [
            call
            for call in self.recording.calls(derived=True)
            if kind in (None, call.kind) and (tool is None or tool == call.tool)
        ]

    def turns(self) -> list[Turn]:
        """Return the turns; turn n is element n - 1. Their tools are those of ``calls()``."""
        return self.recording.turns(derived=True)

    def lanes(self) -> dict[str, list[Call]]:
        """Return the calls of each lane, lanes in order of first appearance."""
        lanes: dict[str, list[Call]] = {}
        for call in self.recording.calls(derived=True):
            lanes.setdefault(self.recording.index.lane_of(call), []).append(call)
        return lanes

    def errors(self) -> list[Event]:
        """Return the events that are errors; an attempt that was retried is none."""
        return list(counted_errors(self.recording))

    def suspects(self) -> list[Suspect]:
        """Return what may have made the run go wrong, the likeliest first, each with its evidence."""
        return all_suspects(self.recording)

    def context_at(self, event: Event) -> SeenMessages:
        """Return all messages the model saw in a request, or in the one that led to an event.

        Those that the provider had already, and the request did not carry, come first (``not_sent``).
        """
        self._index(event)  # says so if it is none
        return self.recording.context_at(event)

    def diff_turns(self, then: int, now: int | None = None) -> MomentsDiff:
        """Compare what the model saw in two turns; ``now`` is the last one unless it is named.

        After a compaction it is compared with the conversation that was replaced, not with its summary.
        """
        return diff_turns(self.recording, then, now)

    def state_at(self, event: Event) -> State:
        """Return where the run stood right after an event: turn, open calls, sums, money, context."""
        last = min(self._index(event), self.recording.count() - 1)
        return state_at(self.recording, event, last)

    def why(self, question: str | Event | None = None, *, is_text: bool = False) -> Why:
        """Return the first producer of a text or value, and the chain of events to it.

        The question is a text, an event, the address of one, or the path of a value (``12.args.city``);
        with ``is_text`` always a text. Without one: what fed the error or the answer that the run ended with.
        """
        return ask(self.explainer, question, is_text=is_text)

    def uses(self, event: Event | str | int) -> Uses:
        """Return where later requests, arguments and texts contain what an event brought."""
        if isinstance(event, str | int):
            event = self.recording.event(event)
        self._index(event)
        return uses_of(self.explainer, event)

    def claims(self, event: Event | str | int | None = None) -> Claims:
        """Return the sentences of an answer with the event and span that support each.

        The answer is that of the model call that the event belongs to, by default the last one of the run.
        """
        if isinstance(event, str | int):
            event = self.recording.event(event)
        return claims_of(self.explainer, event)

    @property
    def explainer(self) -> Explainer:
        """What answers ``why`` and ``uses``; it reads the run once, when it needs to."""
        if self._explainer is None or self._explainer.recording is not self.recording:
            self._explainer = Explainer(self.recording)
        return self._explainer

    def summary(self) -> RunStats:
        """Return the run in figures, as ``runs()`` has them of many; printed, a few lines of text."""
        return stats_of(self.recording)

    def step_session(self) -> StepSession:
        """Return a cursor that steps through the events."""
        return StepSession(self.recording)

    def _matching(
        self,
        where: Where,
        event_type: Types,
        equal: dict[str, Any],
        *,
        system: bool = False,
        backwards: bool = False,
    ) -> Iterator[Event]:
        events = self.all(system=system)
        return Filter(where, event_type, equal).over(reversed(events) if backwards else events)

    def _line_of(self, event: Event, event_type: Types) -> Index | None:
        """Return the index if a line of work is wanted and the event is in one."""
        types = types_of(event_type)
        if types is None or not all(name.startswith(_JOINED) for name in types):
            return None
        index = self.recording.index
        return index if index.turn_of_call(event) is not None else None

    def _index(self, event: object) -> int:
        """Return where an event stands; bookkeeping stands before all others, the run's end after them."""
        if not isinstance(event, Event):
            what = "None: nothing was found" if event is None else type(event).__name__
            hint = "first() and last() return None if nothing matches"
            raise UsageError(f"an event is needed here, not {what}", hint=hint)
        if event.index is not None:
            return event.index
        return self.recording.count() if event.kind == schema.RUN_END else -1

    def __repr__(self) -> str:
        return f"<Debugger of {self.recording!r}>"


def _number(n: int | None) -> int | None:
    if n is not None and (type(n) is not int or n < 0):
        raise UsageError(f"n is how many events to return, not {n!r}", hint="n=None returns all")
    return n
