"""Tools derived from the wire: what responses request, and the results in later requests.

A result goes with the nearest answer before it, in its own line of work, that still waits for it; ids
repeat within a run, so there is no map of them. A tool that was recorded itself takes its use: it is not
derived, and learns what the model was sent for that use, to be compared with what it returned (``Sent``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from ..tracefile.events.event import ErrorText, Event
from ..tracefile.events.rebuilt_requests import (
    answer_named,
    base_of,
    has_nothing_new,
    is_repeated,
    kept_messages,
    messages_of,
    repeat_of,
)
from ..wire import reading
from ..wire.json_values import as_text, canonical, string
from ..wire.messages import tool_results
from ..wire.neutral import ToolResult, ToolUse
from ..wire.pairing import IN_TEXT, is_answer, is_models, observation
from ..wire.reading import tool_uses
from .calls import MODEL, TOOL, Call, Sent, Turn, group_turns

Lane = tuple[str, str]
"""Writer and lane: processes run side by side even where both say ``main``."""

_MOST_WAITING = 256
"""Answers whose tools are waited for; of an older one no result will come."""

_NEAR = 16
"""Answers of a lane, the newest, among which a result finds the one with its tool use."""

_MOST_REPEATED = 1_000
"""Messages kept from an earlier conversation, the newest, among which results are sought."""


class ToolUseAt:
    """A tool use that waits for its result."""

    __slots__ = ("args", "at", "id", "is_alone", "name", "order", "provider", "recorded")

    def __init__(self, use: ToolUse, order: int, provider: str | None, at: Any) -> None:
        self.id, self.name, self.args = use.id, use.name, use.args
        self.recorded: Any = None
        """What came with the tool call that was recorded itself; None: there is none so far."""
        self.is_alone = True
        """False if its answer has an equal use: which of their results is whose is not certain."""
        self.order = order
        """Among the uses of its answer, as this provider spells them."""
        self.provider = provider
        self.at = at
        """What came with the answer."""


class _Answer:
    """The uses of one answer that still wait."""

    __slots__ = ("call", "lane", "length", "seen_by", "uses")

    def __init__(self, call: str | None, lane: Lane, length: int, uses: list[ToolUseAt]) -> None:
        self.call = call
        self.lane = lane
        self.length = length
        """Of the conversation it answers, in messages."""
        self.uses = uses
        self.seen_by: set[str] = set()
        """Requests that were searched for its results from its place on; what one builds on is not again."""

    def saw(self, call: str) -> None:
        if len(self.seen_by) > _MOST_WAITING:  # then one of the next is searched once more
            self.seen_by.clear()
        self.seen_by.add(call)


class Deriver:
    """Takes in the model and tool events of a run in their order; holds only what still waits."""

    def __init__(
        self, report: Callable[[ToolUseAt, ToolResult | None, Any], None], *, with_recorded: bool = False
    ) -> None:
        self._report = report
        """Called once with each use, its result and what came with the request that brought it, or None."""
        self._with_recorded = with_recorded
        """Report also the uses whose tools were recorded themselves."""
        self._waiting: dict[_Answer, None] = {}
        """Oldest first, as in each lane."""
        self._in_lane: dict[Lane, dict[_Answer, None]] = {}
        self._by_call: dict[str, _Answer] = {}
        self._requests: dict[str, tuple[str | None, int]] = {}
        """Provider and length of those that have no answer yet."""

    def answered(self, call: str | None, lane: Lane, fields: dict[str, Any], at: Any) -> None:
        """Take in an answer as it stands in its line."""
        body = fields.get("body")
        if type(body) is not dict or fields.get("error") is not None:
            return
        provider, length = self._requests.pop(call or "", (None, 0))
        provider = provider or string(fields.get("provider"))
        uses = reading.tool_uses(body, provider)
        if uses:
            waiting = [ToolUseAt(use, order, provider, at) for order, use in enumerate(uses)]
            if self._with_recorded:
                kinds = [(use.name, canonical(use.args)) for use in waiting]
                number = Counter(kinds)
                for use, kind in zip(waiting, kinds, strict=True):
                    use.is_alone = number[kind] == 1
            answer = _Answer(call, lane, length, waiting)
            self._waiting[answer] = self._in_lane.setdefault(lane, {})[answer] = None
            if call is not None:
                self._by_call[call] = answer
            if len(self._waiting) > _MOST_WAITING:
                self._give_up(next(iter(self._waiting)))

    def called(
        self, parent: str | None, writer: str, fields: dict[str, Any], name: str | None, at: Any = True
    ) -> None:
        """Take in a tool call that was recorded itself, with what comes with it: its use is not derived."""
        asker = self._by_call.get(parent or "")
        lane = self._lane_of_tool(asker, writer, fields)
        near = islice(reversed(self._in_lane.get(lane, {})), _NEAR)
        others = islice(reversed(self._waiting), _NEAR)
        answers = list(dict.fromkeys((*([] if asker is None else [asker]), *near, *others)))
        tool_id, args = string(fields.get("tool_id")), fields.get("args", fields.get("arguments"))
        for is_it in (
            lambda use: tool_id is not None and use.id == tool_id,
            lambda use: use.recorded is None and _is_same_tool(use.name, name) and use.args == args,
        ):
            if self._record(answers, is_it, at):
                return
        if tool_id is None and answers and (answers[0] is asker or answers[0].lane == lane):
            self._record(answers[:1], lambda use: use.recorded is None and use.name == name, at)

    def _record(self, answers: list[_Answer], is_it: Callable[[ToolUseAt], bool], at: Any) -> bool:
        """Mark the first such use as recorded; of several attempts at one use the last counts."""
        if not self._with_recorded:
            return self._take(answers, is_it) is not None
        use = next((use for answer in answers for use in answer.uses if is_it(use)), None)
        if use is not None:
            use.recorded = at
        return use is not None

    def _lane_of_tool(self, asker: _Answer | None, writer: str, fields: dict[str, Any]) -> Lane:
        """Return the lane a tool names, else that of its model call: see ``index`` for the rules."""
        lane = string(fields.get("lane"))
        if lane is not None:
            return writer, lane
        if asker is not None:
            return asker.lane
        main = writer, "main"
        if main in self._in_lane:
            return main
        return next((one.lane for one in reversed(self._waiting) if one.lane[0] == writer), main)

    def request(self, call: str | None, lane: Lane, event: Event, at: Any) -> None:
        """Take in a request as it stands in its line: what it holds of new results."""
        fields = event.stored_fields
        length, kept = fields.get("n"), kept_messages(fields)
        if call is not None and len(self._requests) < _MOST_WAITING:
            size = length if type(length) is int else 0
            self._requests[call] = string(fields.get("provider")), size
        if not self._waiting:
            return
        written = messages_of(fields.get("body"))
        last = next(reversed(self._in_lane.get(lane, {})), None)
        begin, base = kept, base_of(fields)
        continues = any(answer_named(line) in self._by_call for line in written)
        if last is not None and kept > last.length > 0 and base not in last.seen_by and not continues:
            # A conversation had word for word before: its results stand in what is kept from then.
            begin = last.length
            positions = range(max(begin, kept - _MOST_REPEATED), kept)
            before = [repeat_of(base or "", position) for position in positions]
            written = list(map(event.stored_message, [*before, *written]))
        answers = self._line_of(lane, fields, written)
        for answer in answers:
            if call is not None and (begin <= answer.length or base in answer.seen_by):
                answer.saw(call)
        newest, further = _results(written, event)
        for result in newest:
            self._give(answers, result, at)
        for result in further:
            if result.id is not None:
                self._give(answers, result, at)
        if written and answers and not newest and not further:
            self._give_text(answers[0], observation(event.restore_value(written[-1])), at)

    def finish(self) -> None:
        """Nothing comes any more: what waits now was never answered."""
        for answer in list(self._waiting):
            self._give_up(answer)

    def _give_up(self, answer: _Answer) -> None:
        for use in answer.uses:
            self._report(use, None, None)
        self._forget(answer)

    def _forget(self, answer: _Answer) -> None:
        self._waiting.pop(answer, None)
        in_lane = self._in_lane[answer.lane]
        in_lane.pop(answer, None)
        if not in_lane:
            del self._in_lane[answer.lane]
        if self._by_call.get(answer.call or "") is answer:
            del self._by_call[answer.call or ""]

    def _give(self, answers: list[_Answer], result: ToolResult, at: Any) -> None:
        use = self._take(answers, lambda use: use.id is not None and use.id == result.id)
        if use is None:  # where one of both has no id it is by name and order, of the nearest answer
            use = self._take(answers[:1], lambda use: is_answer(result, use.id, use.name))
        if use is not None:
            self._report(use, result, at)

    def _give_text(self, answer: _Answer, result: ToolResult | None, at: Any) -> None:
        """Give the words of a message to all uses of an answer: which of them is whose is not known."""
        if result is not None:
            while (use := self._take([answer], lambda use: True)) is not None:
                self._report(use, result, at)

    def _take(self, answers: list[_Answer], is_it: Callable[[ToolUseAt], bool]) -> ToolUseAt | None:
        for answer in answers:
            for use in answer.uses:
                if is_it(use):
                    answer.uses.remove(use)
                    if not answer.uses:
                        self._forget(answer)
                    return use
        return None

    def _line_of(self, lane: Lane, fields: dict[str, Any], elements: list[Any]) -> list[_Answer]:
        """Return who waits in the line of work of a request: the answers it holds, then those of its lane."""
        links = [
            call for call in (*map(answer_named, reversed(elements)), base_of(fields)) if call is not None
        ]
        linked = [self._by_call[link] for link in links if link in self._by_call]
        near = islice(reversed(self._in_lane.get(lane, {})), _NEAR)
        return list(dict.fromkeys((*linked, *near)))


def _results(written: list[Any], event: Event) -> tuple[list[ToolResult], list[ToolResult]]:
    """Return the results after the model's last message, and those further back, the newest first.

    What is further back and word for word as before is old: no message that it repeats is read.
    """
    newest: list[ToolResult] = []
    further: list[ToolResult] = []
    is_further = False
    for line in reversed(written):
        if answer_named(line) is not None:
            is_further = True
            continue
        if is_further and has_nothing_new(line):
            continue
        element = event.stored_message(line) if is_repeated(line) else line
        is_further = is_further or _is_answer(element)
        if not is_further:
            newest[:0] = tool_results(element)
        elif not has_nothing_new(line):
            further += reversed(tool_results(element))
    return newest, further


def _is_answer(element: Any) -> bool:
    """True for a message of the model."""
    return type(element) is dict and is_models(element)


def _is_same_tool(requested: str, recorded: str | None) -> bool:
    """True if it is the tool, also where an agent puts the name of its server before the tool's own."""
    if not recorded or not requested.endswith(recorded):
        return False
    before = requested[: -len(recorded)]
    return not before or not before[-1].isalnum()


# Tool calls nobody reported, from model traffic: beside the recorded ones in ``calls`` and ``turns``.
#
# They are not events: no count, index or address changes by them.


class DerivedCall(Call):
    """A tool call derived from the wire.

    ``begin`` is the response that requests it, ``end`` the request that brought its result back to the
    model, None if that never happened. ``duration_ms`` is the time between, so no more than an upper bound.
    """

    __slots__ = ("_provider", "_result", "_tool_id", "order")

    derived = True

    def __init__(
        self, use: ToolUseAt, by: Call, result: ToolResult | None, result_event: Event | None
    ) -> None:
        assert by.end is not None
        super().__init__(TOOL, by.end, {"parent": by.id, "lane": by.lane})
        self.requested_by = by
        self.tool = use.name or None
        self.order = use.order
        self._provider = use.provider
        self._tool_id = use.id
        self._result = None if result is None else result.value
        self.end = result_event
        if result is not None and result.failed:
            self.error = ErrorText(as_text(self.result))
        requested_at = by.end.timestamp
        if result_event is not None and result_event.timestamp is not None and requested_at is not None:
            took = result_event.timestamp - requested_at
            self.duration_ms = round(took * 1000, 3) if 0 <= took < 1e9 else None

    @property
    def args(self) -> Any:
        return tool_uses(self.event.body, self._provider)[self.order].args

    @property
    def result(self) -> Any:
        return None if self.end is None else self.end.restore_value(self._result)

    @property
    def tool_id(self) -> str | None:
        return self._tool_id


def derived_tools(calls: Iterable[Call]) -> list[DerivedCall]:
    """Return the tools that recorded calls imply, in the order the model requested them.

    Recorded tool calls learn what the model was sent as their results (``Call.sent``).
    """
    found: list[DerivedCall] = []

    def report(use: ToolUseAt, result: ToolResult | None, request: Any) -> None:
        if use.recorded is None:
            found.append(DerivedCall(use, use.at, result, request))
        elif result is not None:
            use.recorded.sent = Sent(request, result, is_certain=use.is_alone and result.form != IN_TEXT)

    deriver = Deriver(report, with_recorded=True)
    for event, call in _in_order(calls):
        lane = event.writer, call.lane
        if call.kind == TOOL:
            deriver.called(call.parent, event.writer, event.stored_fields, call.tool, call)
        elif event is call.end:
            deriver.answered(call.id, lane, event.stored_fields, call)
        else:
            deriver.request(call.id, lane, event, event)
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


def turns_of(calls: Sequence[Call], derived: Iterable[DerivedCall]) -> list[Turn]:
    """Return the turns of recorded calls, with the tools derived from them."""
    turns = group_turns(calls)
    by_answer = {turn.response: turn for turn in turns if turn.response is not None}
    for call in derived:
        turn = by_answer.get(call.event)
        if turn is not None:
            turn.tools.append(call)
    return turns
