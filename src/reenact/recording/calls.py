"""Begin and end events -> calls, and model calls with their retries and tools -> turns.

Joined by call id where there is one; else by the rules of each shape (see ``schema``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import schema
from ..shown import ShownAsHtml
from ..totals import Totals
from ..tracefile import dialects
from ..tracefile.events.event import ErrorText, Event, error_of, tool_of
from ..tracefile.events.text import call_text, plain, short_json
from ..wire.neutral import ToolResult
from ..wire.results import CONTRADICTED, OTHER_FORM, SAME, compare_error, compare_result

MODEL, TOOL, HTTP = "model", "tool", "http"

_MAX_MS = 1e13
"""A longer call, of 300 years, is a wrong number."""


class Sent:
    """What the model was sent as the result of a tool call, found by the id of the tool use."""

    __slots__ = ("_result", "is_certain", "request")

    def __init__(self, request: Event, result: ToolResult, *, is_certain: bool) -> None:
        self.request = request
        """The request that brought it."""
        self.is_certain = is_certain
        """False if two equal tool uses stand in one response, or the result is only known from the words of a
        message: which result is whose is not certain."""
        self._result = result

    @property
    def value(self) -> Any:
        """The result as the provider carries it."""
        return self.request.restore_value(self._result.value)

    @property
    def failed(self) -> bool:
        """True if it was sent as an error."""
        return self._result.failed


class Call(ShownAsHtml):
    """One model or tool call, or another call to a model's API (``http``).

    ``end`` is None while it runs, or for ever if the process died in it.
    """

    __slots__ = (
        "attempt", "begin", "duration_ms", "end", "error", "id", "kind", "lane", "names_lane", "parent",
        "requested_by", "sent", "tool",
    )  # fmt: skip

    def __init__(self, kind: str, begin: Event | None, fields: dict[str, Any]) -> None:
        self.kind = kind
        self.begin = begin
        self.end: Event | None = None
        self.id = _text(fields.get("call"))
        self.parent = _text(fields.get("parent"))
        self.requested_by: Call | None = None
        """The model call that led to a tool; None for other calls, and where there is none."""
        lane = _text(fields.get("lane"))
        self.names_lane = lane is not None
        self.lane = lane or "main"
        attempt = fields.get("attempt")
        self.attempt = attempt if type(attempt) is int else 1
        self.tool: str | None = None
        self.error: ErrorText | None = None
        self.duration_ms: float | None = None
        self.sent: Sent | None = None
        """What the model was sent as the result of a recorded tool; None where no request brought one.
        Filled in by ``derived_tools``."""

    @property
    def is_open(self) -> bool:
        """True if no end was recorded: in flight, or so when the process died."""
        return self.end is None

    @property
    def event(self) -> Event:
        """The event the call began with, or what is left of it."""
        event = self.begin or self.end
        assert event is not None
        return event

    derived = False
    """True for a tool that only the wire shows (see ``derived_tools``)."""

    @property
    def args(self) -> Any:
        """What a tool was called with; None for other calls."""
        return self.event.args if self.kind == TOOL else None

    @property
    def result(self) -> Any:
        """What a tool gave; None for other calls, and while it runs."""
        return self.end.result if self.kind == TOOL and self.end is not None else None

    @property
    def tool_id(self) -> str | None:
        """The provider's id of the use that a tool call answers."""
        return _text(self.event.tool_id) if self.kind == TOOL else None

    @property
    def source(self) -> str | None:
        """Where a tool call comes from: ``reported`` (``@tap.tool`` or by hand), ``found`` (a function of the
        program that was watched), ``mcp``, the name of a framework, or ``derived``; None for other calls."""
        if self.kind != TOOL or self.derived:
            return "derived" if self.derived else None
        return _text(self.event.source) or "reported"

    @property
    def verdict(self) -> str | None:
        """How what the model was sent relates to what a recorded tool returned: ``same``, ``other form`` or
        ``contradicted``; None where there are not two to compare."""
        if self.sent is None or self.end is None or self.derived:
            return None
        if self.error is not None:
            return compare_error(str(self.error), self.sent.value, failed=self.sent.failed)
        if self.end.is_partial or self.end.suspended is not None:
            return None
        found = compare_result(self.result, self.sent.value)
        return OTHER_FORM if found == CONTRADICTED and not self.sent.is_certain else found

    @property
    def can_answer(self) -> bool:
        """False for a tool call that must not answer another one: it is derived, or it was found and the
        model was sent another result, or, if only the name of the function fits, maybe another one."""
        if self.source not in (schema.FOUND, *schema.FRAMEWORKS):
            return not self.derived
        is_certain = self.event.stored_fields.get("matched") is None
        return self.verdict != CONTRADICTED and (is_certain or self.verdict == SAME)

    def close(self, event: Event, fields: dict[str, Any]) -> None:
        """Take in the end of the call."""
        self.end = event
        error = error_of(event, fields)
        if error is not None:  # an empty text is an error too
            self.error = error
        duration = fields.get("duration_ms")
        if type(duration) is float or type(duration) is int:
            self.duration_ms = duration if abs(duration) < _MAX_MS else None

    def __repr__(self) -> str:
        what = self._words()
        if self.error is not None:
            kind = f"{self.error.type}: " if self.error.type else ""
            return f"<Call {what} ✗ {plain(kind + self.error, 80)}>"
        if self.is_open:
            return f"<Call {what} open>"
        result = f" → {short_json(self.result, 60)}" if self.kind == TOOL else " ok"
        return f"<Call {what}{result}>"

    def _words(self) -> str:
        """Return the tool with its arguments, else the kind and the model."""
        if self.kind == TOOL:
            return f"tool {call_text(self.tool, self.args, 80)}"
        model = self.end.model if self.end is not None else None
        return f"{self.kind} {plain(model, 60)}" if type(model) is str else self.kind


class Turn:
    """One model call with its retries, and the tools it led to."""

    __slots__ = ("attempts", "number", "tools")

    def __init__(self, number: int, call: Call) -> None:
        self.number = number
        """1-based."""
        self.attempts = [call]
        self.tools: list[Call] = []

    @property
    def call(self) -> Call:
        """The attempt that counts: the last."""
        return self.attempts[-1]

    @property
    def lane(self) -> str:
        return self.call.lane

    @property
    def request(self) -> Event:
        """The event the turn began with."""
        return self.attempts[0].event

    @property
    def response(self) -> Event | None:
        return self.call.end

    @property
    def error(self) -> ErrorText | None:
        return self.call.error

    def __repr__(self) -> str:
        return f"<Turn {self.number} {len(self.attempts)} attempts, {len(self.tools)} tools>"


def join_calls(events: Iterable[Event]) -> list[Call]:
    """Return the calls of a run in the order they began."""
    return join_known((event, event.stored_fields) for event in events)


def join_known(events: Iterable[tuple[Event, dict[str, Any]]]) -> list[Call]:
    """Return the calls of a run, from those fields of its events that link and count."""
    joiner = _AllCalls()
    for event, fields in events:
        joiner.feed(event, fields)
    return joiner.calls


class Joiner:
    """Joins begins and ends as they come; calls ``began`` and ``ended`` once for each call."""

    def __init__(self) -> None:
        self.by_id: dict[str, Call] = {}
        """Open calls by their id; the first of several that share one."""
        self.nameless: dict[str, list[Call]] = {}
        """Open calls without an id, by tool name; models under their type."""
        self.tool_error: tuple[str, ErrorText] | None = None

    def began(self, call: Call) -> None:
        """A call was met for the first time."""

    def ended(self, call: Call) -> None:
        """A call has its end, and nothing more will come of it."""

    def feed(self, event: Event, fields: dict[str, Any]) -> None:
        """Take in the next event; of its fields those that neither link nor count may be missing."""
        error_before, self.tool_error = self.tool_error, None
        join = _JOINS.get(dialects.event_type(event.kind))
        if join is not None:
            join(self, event, fields)
        elif event.kind == schema.TOOL_CALL:
            self._tool_call(event, fields, error_before)

    def _model_request(self, event: Event, fields: dict[str, Any]) -> None:
        self.begin(Call(MODEL, event, fields), schema.MODEL_REQUEST)

    def _model_response(self, event: Event, fields: dict[str, Any]) -> None:
        self.end(MODEL, schema.MODEL_REQUEST, event, fields)

    def _llm_call(self, event: Event, fields: dict[str, Any]) -> None:
        self.whole(Call(MODEL, event, fields), event, fields)

    def _tool_called(self, event: Event, fields: dict[str, Any]) -> None:
        call = Call(TOOL, event, fields)
        call.tool = tool_of(event.kind, fields)
        self.begin(call, call.tool or "")

    def _tool_result(self, event: Event, fields: dict[str, Any]) -> None:
        self.end(TOOL, tool_of(event.kind, fields) or schema.TOOL_CALL, event, fields)

    def _tool_call(
        self, event: Event, fields: dict[str, Any], error_before: tuple[str, ErrorText] | None
    ) -> None:
        """Take in a tool as the first article writes it: with its result, or followed by a ``tool_result``
        that does not name its tool, so that the latest begun is meant."""
        call = Call(TOOL, event, fields)
        if schema.is_finished_tool_call(fields):
            self.whole(call, event, fields)
            return
        call.tool = tool_of(event.kind, fields)
        if error_before is not None and error_before[0] == call.tool:
            call.error = error_before[1]
        self.begin(call, schema.TOOL_CALL)

    def _http_request(self, event: Event, fields: dict[str, Any]) -> None:
        self.begin(Call(HTTP, event, fields), schema.HTTP_REQUEST)

    def _http_response(self, event: Event, fields: dict[str, Any]) -> None:
        self.end(HTTP, schema.HTTP_REQUEST, event, fields)

    def _error(self, event: Event, fields: dict[str, Any]) -> None:
        tool, error = tool_of(event.kind, fields), error_of(event, fields)
        if tool is None or error is None:
            return
        begun = self.nameless.get(schema.TOOL_CALL)
        if begun and begun[-1].is_open and begun[-1].tool == tool:
            begun[-1].close(event, fields)  # a tool_result may still follow
        else:
            # The first article writes a tool's error just before the tool_call it belongs to.
            self.tool_error = tool, error

    def begin(self, call: Call, name: str) -> None:
        self.began(call)
        waiting = self.nameless.get(name)
        while waiting and not waiting[-1].is_open:
            self.ended(waiting.pop())  # it failed, and no result followed
        if call.id is not None:
            self.by_id.setdefault(call.id, call)
        else:
            self.nameless.setdefault(name, []).append(call)

    def whole(self, call: Call, event: Event, fields: dict[str, Any]) -> None:
        call.tool = tool_of(event.kind, fields) if call.kind == TOOL else None
        self.began(call)
        call.close(event, fields)
        self.ended(call)

    def end(self, kind: str, name: str, event: Event, fields: dict[str, Any]) -> None:
        call = self.by_id.get(_text(fields.get("call")) or "")
        if call is None and "call" not in fields:
            waiting = self.nameless.get(name) or (
                self.nameless.get(schema.TOOL_CALL) if kind == TOOL else None
            )
            if waiting:
                call = waiting.pop(-1 if waiting is self.nameless.get(schema.TOOL_CALL) else 0)
        failed_before = call is not None and call.end is not None and call.end.kind == schema.ERROR
        if call is None or (call.end is not None and not failed_before) or call.kind != kind:
            call = Call(kind, None, fields)  # its begin is lost
            call.end = event
            call.tool = tool_of(event.kind, fields) if kind == TOOL else None
            self.began(call)
        elif call.id is not None:
            del self.by_id[call.id]
        call.close(event, fields)
        self.ended(call)


_JOINS = {
    schema.MODEL_REQUEST: Joiner._model_request,
    schema.MODEL_RESPONSE: Joiner._model_response,
    schema.LLM_CALL: Joiner._llm_call,
    schema.TOOL_CALLED: Joiner._tool_called,
    schema.TOOL_RESULT: Joiner._tool_result,
    schema.OLD_TOOL_RESULT: Joiner._tool_result,
    schema.HTTP_REQUEST: Joiner._http_request,
    schema.HTTP_RESPONSE: Joiner._http_response,
    schema.ERROR: Joiner._error,
}


class _AllCalls(Joiner):
    """Keeps the calls, and finds the model call that led to each tool: see ``index`` for the rules."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self._latest: dict[tuple[str | None, str | None], Call] = {}
        """The latest model call of each lane, each writer and the run."""
        self._named: dict[str, Call] = {}
        """The latest call of each id."""

    def began(self, call: Call) -> None:
        self.calls.append(call)
        writer = call.event.writer
        if call.kind == MODEL:
            for key in ((writer, call.lane), (writer, None), (None, None)):
                self._latest[key] = call
        elif call.kind == TOOL:
            self._find_model_call(call, writer)
        if call.id is not None:
            self._named[call.id] = call

    def _find_model_call(self, call: Call, writer: str) -> None:
        latest = self._latest
        parent = self._named.get(call.parent) if call.parent is not None else None
        linked = parent if parent is None or parent.kind == MODEL else parent.requested_by
        near = latest.get((writer, call.lane)) or latest.get((writer, None))
        call.requested_by = linked or near or latest.get((None, None))
        source = linked or near
        if source is not None and not call.names_lane:
            call.lane = source.lane


def group_turns(calls: Iterable[Call]) -> list[Turn]:
    """Return the turns of joined calls in order; a tool goes with the model call that led to it."""
    turns: list[Turn] = []
    by_call: dict[int, Turn] = {}
    in_lane: dict[tuple[str, str], Turn] = {}
    for call in calls:
        lane = call.event.writer, call.lane  # processes run side by side even where both say main
        if call.kind == MODEL:
            turn = in_lane.get(lane) if call.attempt > 1 else None
            if turn is None:
                turn = in_lane[lane] = Turn(len(turns) + 1, call)
                turns.append(turn)
            else:
                turn.attempts.append(call)
            by_call[id(call)] = turn
        elif call.kind == TOOL and call.requested_by is not None:
            by_call[id(call.requested_by)].tools.append(call)
    return turns


def _text(value: object) -> str | None:
    return value if type(value) is str else None


def tokens_of(calls: Iterable[Call]) -> Totals:
    """Return the tokens of the model calls that ended."""
    totals = Totals()
    for call in calls:
        if call.end is not None:
            totals.add(dialects.event_type(call.end.kind), call.end.stored_fields)
    return totals
