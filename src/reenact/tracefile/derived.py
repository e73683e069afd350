"""Tool calls nobody reported, as the wire tells them: beside the recorded ones in ``calls`` and ``turns``.

They are no events: no count, index or address changes by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from ..wire.json_values import as_text
from ..wire.neutral import ToolResult
from ..wire.reading import tool_uses
from .calls import MODEL, TOOL, Call, Turn, group_turns
from .derive import Asked, Deriver
from .event import ErrorText, Event


class DerivedCall(Call):
    """A tool call derived from the wire.

    ``begin`` is the answer that asked for it, ``end`` the request that brought its result back to the
    model, None if that never happened. ``duration_ms`` is the time between, so no more than an upper bound.
    """

    __slots__ = ("_provider", "_result", "_tool_id", "order")

    derived = True

    def __init__(self, asked: Asked, by: Call, result: ToolResult | None, told: Event | None) -> None:
        assert by.end is not None
        super().__init__(TOOL, by.end, {"parent": by.id, "lane": by.lane})
        self.tool = asked.name or None
        self.order = asked.order
        self._provider = asked.provider
        self._tool_id = asked.id
        self._result = None if result is None else result.value
        self.end = told
        if result is not None and result.failed:
            self.error = ErrorText(as_text(self.result))
        asked_at = by.end.timestamp
        if told is not None and told.timestamp is not None and asked_at is not None:
            took = told.timestamp - asked_at
            self.duration_ms = round(took * 1000, 3) if 0 <= took < 1e9 else None

    @property
    def args(self) -> Any:
        return tool_uses(self.event.body, self._provider)[self.order].args

    @property
    def result(self) -> Any:
        return None if self.end is None else self.end._value(self._result)

    @property
    def tool_id(self) -> str | None:
        return self._tool_id


def derived_tools(calls: Iterable[Call]) -> list[DerivedCall]:
    """Return the tools that recorded calls tell of beside themselves, in the order they were asked for."""
    found: list[DerivedCall] = []

    def tell(asked: Asked, result: ToolResult | None, request: Any) -> None:
        found.append(DerivedCall(asked, asked.at, result, request))

    deriver = Deriver(tell)
    for event, call in _in_order(calls):
        lane = event.writer, call.lane
        if call.kind == TOOL:
            deriver.called(call.parent, lane, event._raw(), call.tool)
        elif event is call.end:
            deriver.answered(call.id, lane, event._raw(), call)
        else:
            deriver.asked(call.id, lane, event._raw(), event, partial(getattr, event, "body"))
        event._forget()
    deriver.finish()
    return sorted(found, key=lambda call: (call.event.index or 0, call.order))


def _in_order(calls: Iterable[Call]) -> list[tuple[Event, Call]]:
    """Return the begins of tools and both ends of model calls as they stand in the file."""
    events = []
    for call in calls:
        ends = (call.event,) if call.kind == TOOL else (call.begin, call.end) if call.kind == MODEL else ()
        events += [(event, call) for event in ends if event is not None and event.index is not None]
    return sorted(events, key=lambda pair: pair[0].index or 0)


def with_derived(calls: Sequence[Call], derived: Sequence[DerivedCall]) -> list[Call]:
    """Return all calls in the order they began."""
    if not derived:
        return list(calls)
    return sorted([*calls, *derived], key=lambda call: call.event.index or 0)


def turns_of(calls: Sequence[Call], derived: Iterable[DerivedCall] | None = None) -> list[Turn]:
    """Return the turns of recorded calls, with the tools derived from them."""
    turns = group_turns(calls)
    by_answer = {turn.response: turn for turn in turns if turn.response is not None}
    for call in derived_tools(calls) if derived is None else derived:
        turn = by_answer.get(call.event)
        if turn is not None:
            turn.tools.append(call)
    return turns
