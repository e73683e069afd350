"""Events of a run, one after the other -> its RunStats; holds only what is still open.

Calls are joined by the same rules as the debugger's, so that both speak of the same calls.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from .. import schema
from ..money.ledger import Ledger
from ..money.prices import Book
from ..recording.calls import MODEL, TOOL, Call, Joiner
from ..recording.derived_tools import Deriver, ToolUseAt
from ..recording.recording import Recording
from ..tracefile import dialects, run_files
from ..tracefile.dialects import OURS, Envelope
from ..tracefile.event import ErrorText, Event
from ..tracefile.event_source import Shelf
from ..tracefile.status import status_of
from ..wire.neutral import ToolResult
from ..wire.providers import gemini, openai_chat
from .rows import UNTOLD, CallStats, RunStats

# Calls -> the sums of their run: model calls under model and stop reason, tool calls under their tool.

OTHERS = "(others)"
MAX_NAMES = 1000
"""Of tools, models or errors told apart in one run; a hostile file must not fill memory."""
MAX_NAME = 200


class Begun:
    """What is kept of a call that has not ended."""

    __slots__ = ("attempt", "kind", "lane", "request", "tool")

    def __init__(self, kind: str, fields: dict[str, Any], request: dict[str, Any] | None) -> None:
        self.kind = kind
        self.request = request
        """What of its request decides the price, of a model call."""
        self.tool = tool_name(fields) if kind == TOOL else None
        self.lane = lane_of(fields)
        self.attempt = fields.get("attempt")


class Sums:
    """Adds calls to the sums of a run, each where it belongs."""

    def __init__(self, row: RunStats, book: Book) -> None:
        self._row = row
        self._book = book
        self._ledger = Ledger(book)

    def request(self, fields: dict[str, Any], shelf: Shelf) -> dict[str, Any]:
        """Return what of a request decides the price of its call."""
        return self._ledger.request_facts(fields, shelf)

    def answered(self, begun: Begun | None, fields: dict[str, Any], kind: str) -> CallStats:
        """Count a model call that has ended."""
        request = begun.request if begun is not None else None
        stats = self._cell(self._ledger.model(fields, request), stop_reason(fields, kind))
        if begun is not None and kind != schema.LLM_CALL:
            stats.totals.add(schema.MODEL_REQUEST, {"attempt": begun.attempt})
        stats.totals.add(kind, fields)
        stats.cost.add(self._ledger.price(fields, request))
        return stats

    def tool(self, name: str | None, has_begun: bool) -> CallStats:
        """Count a tool call."""
        tools = self._row.tools
        name = known_name(name or "?", tools)
        stats = tools.get(name)
        if stats is None:
            stats = tools[name] = CallStats()
        if has_begun:
            stats.totals.add(schema.TOOL_CALLED, {})
        return stats

    def took(self, stats: CallStats, duration: object, failed: bool) -> None:
        """Count how a call ended."""
        stats.failed += failed
        if (type(duration) is float or type(duration) is int) and 0 <= duration < 1e13:
            stats.durations.append(duration)

    def left_open(self, begun: Begun, *, failed: bool = False) -> None:
        """Count a call that has no end."""
        if begun.kind == MODEL:
            stats = self._cell(self._ledger.model({}, begun.request), UNTOLD)
            stats.totals.add(schema.MODEL_REQUEST, {"attempt": begun.attempt})
        else:
            stats = self.tool(begun.tool, True)
        stats.open += 1
        stats.failed += failed

    def _cell(self, model: object, reason: str) -> CallStats:
        cells = self._row.by_model_and_stop
        key = (model[:MAX_NAME] if type(model) is str and model else UNTOLD, reason)
        stats = cells.get(key)
        if stats is None:
            if len(cells) >= MAX_NAMES:
                key = (OTHERS, OTHERS)
            stats = cells.get(key)
            if stats is None:
                stats = cells[key] = CallStats()
                stats.cost = self._book.bill()
        return stats


def tool_name(fields: dict[str, Any]) -> str | None:
    """Return the name of a tool, as an event's ``tool_name`` does."""
    name = fields.get("tool")
    if type(name) is str:
        return name
    return next((fields[key] for key in dialects.TOOL_KEYS if type(fields.get(key)) is str), None)


def stop_reason(fields: dict[str, Any], kind: str) -> str:
    """Return why a model call stopped, ``max_tokens`` also where a ``llm_call`` has OpenAI's ``length``."""
    reason = fields.get("stop_reason")
    if type(reason) is not str or not reason:
        return UNTOLD
    if kind == schema.LLM_CALL:  # as the agent's author spelled it
        reason = openai_chat.STOP.get(reason) or gemini.STOP.get(reason) or reason
    return reason[:MAX_NAME]


def known_name(name: str, names: dict[str, Any]) -> str:
    name = name[:MAX_NAME]
    return name if name in names or len(names) < MAX_NAMES else OTHERS


def lane_of(fields: dict[str, Any]) -> str:
    lane = fields.get("lane")
    return lane if type(lane) is str else "main"


def parent_of(fields: dict[str, Any]) -> str | None:
    parent = fields.get("parent")
    return parent if type(parent) is str else None


def has_error(fields: dict[str, Any]) -> bool:
    """True if the end of a call says that it failed."""
    return any(fields.get(key) is not None for key in dialects.ERROR_KEYS)


_ERROR_NAME = re.compile(r"([A-Za-z_][\w.]{2,80}):\s")


class Gatherer:
    """Takes in the events of one run."""

    def __init__(self, path: str, run: str | None, book: Book) -> None:
        self.row = RunStats(path)
        self.row.id = run
        self.root: str | None = None
        self._sums = Sums(self.row, book)
        self._open: dict[str, Begun] = {}
        """The calls that have an id and no end yet."""
        self._deriver = Deriver(self._derived)
        self._others = _Nameless(self._sums, self._deriver)
        self._failed: dict[str, str] = {}
        """What the last failed model call of a lane is counted under."""
        self._start: tuple[dict[str, Any], float | None] | None = None
        self._end: dict[str, Any] | None = None
        self._empty = True
        self._shelf: Shelf
        self._event: Callable[[], Event]
        """Makes the event that is being counted."""

    def take(self, event: Event) -> None:
        """Count the next event of an open recording."""
        self.add(event.stored_head, event.stored_fields, event.stored_at, event.stored_in)

    def add(self, envelope: Envelope, fields: dict[str, Any], place: int, shelf: Shelf) -> None:
        """Count the next event."""
        row = self.row
        row.ended = envelope.ts
        if self._empty:
            row.started, self._empty = envelope.ts, False
        kind = dialects.event_type(envelope.kind)
        call = fields.get("call")
        joins = _BY_ID.get(kind) if type(call) is str else None
        if joins is None and envelope.dialect == OURS and schema.is_bookkeeping(kind):
            self._book(kind, envelope, fields)
            return
        errors = row.totals.errors
        row.totals.writer = envelope.w
        row.totals.add(kind, fields)
        change = row.totals.errors - errors
        if joins is None or change:
            event = Event(envelope, fields, place, shelf, None)
            if change:
                self._error(event, change, call, fields)
            if joins is None and kind in _NAMELESS:
                self._others.feed(event, fields)
                return
        self._others.tool_error = None  # it stands right before the call it belongs to
        if joins is not None:
            self._shelf = shelf
            self._event = partial(Event, envelope, fields, place, shelf, None)
            joins(self, call, envelope.w, fields)

    def _book(self, kind: str, envelope: Envelope, fields: dict[str, Any]) -> None:
        if kind == schema.RUN_START and self._start is None:
            self._start = fields, envelope.ts
        elif kind == schema.RUN_END and self.root in (None, envelope.w):
            self._end = fields

    def _error(self, event: Event, change: int, call: object, fields: dict[str, Any]) -> None:
        types = self.row.error_types
        if change < 0:  # a retry: its lane's last failure was none after all
            name = self._failed.pop(event.writer + lane_of(fields), None)
            self.row.retried -= change
            if name is not None and types.get(name):
                types[name] += change
                if not types[name]:
                    del types[name]
            return
        name = known_name(error_name(event.error), types)
        types[name] = types.get(name, 0) + change
        if dialects.event_type(event.kind) == schema.MODEL_RESPONSE and len(self._failed) < MAX_NAMES:
            begun = self._open.get(call) if type(call) is str else None
            self._failed[event.writer + (begun.lane if begun is not None else "main")] = name

    def _asks(self, call: str, writer: str, fields: dict[str, Any]) -> None:
        self._begins(call, Begun(MODEL, fields, self._sums.request(fields, self._shelf)))
        self._deriver.request(call, (writer, lane_of(fields)), fields, None, lambda: self._event().body)

    def _begins(self, call: str, begun: Begun) -> None:
        before = self._open.setdefault(call, begun)
        if before is not begun:  # the same id twice: the second has no end of its own
            self._sums.left_open(begun)

    def _uses(self, call: str, writer: str, fields: dict[str, Any]) -> None:
        begun = Begun(TOOL, fields, None)
        self._begins(call, begun)
        self._deriver.called(parent_of(fields), writer, fields, begun.tool)

    def _answers(self, call: str, writer: str, fields: dict[str, Any]) -> None:
        begun = self._ends(MODEL, call)
        stats = self._sums.answered(begun, fields, schema.MODEL_RESPONSE)
        self._sums.took(stats, fields.get("duration_ms"), has_error(fields))
        lane = begun.lane if begun is not None else "main"
        self._deriver.answered(call, (writer, lane), fields, None)

    def _results(self, call: str, writer: str, fields: dict[str, Any]) -> None:
        begun = self._ends(TOOL, call)
        stats = self._sums.tool(begun.tool if begun is not None else tool_name(fields), begun is not None)
        self._sums.took(stats, fields.get("duration_ms"), has_error(fields))

    def _derived(self, use: ToolUseAt, result: ToolResult | None, at: None) -> None:
        """Count a tool that only the wire tells of; how long it took is not known."""
        self.row.totals.tool_calls += 1
        stats = self._sums.tool(use.name, True)
        stats.open += result is None
        stats.failed += result is not None and result.failed

    def _ends(self, kind: str, call: str) -> Begun | None:
        begun = self._open.get(call)
        if begun is None or begun.kind != kind:
            return None  # its begin is lost
        return self._open.pop(call)

    def finish(self, findings: int, *, is_whole: bool = True) -> RunStats:
        """Nothing comes any more: return the run, or a part of it."""
        row = self.row
        start, ts = self._start or (None, None)
        row.status = status_of(start, self._end, ts)
        name = start.get("name") if start is not None else None
        row.name = name if type(name) is str else os.path.basename(run_files.member(row.path).stem)
        if start is not None:
            meta, parent = start.get("meta"), start.get("parent_run")
            row.meta = meta if type(meta) is dict else {}
            row.parent_run = parent if type(parent) is str else None
        row.findings = findings
        for begun in self._open.values():
            self._sums.left_open(begun)
        self._others.finish()
        if is_whole:  # else who is asked for may yet be called
            self._deriver.finish()
        return row


_BY_ID: dict[str, Callable[[Gatherer, Any, str, dict[str, Any]], None]] = {
    schema.MODEL_REQUEST: Gatherer._asks,
    schema.MODEL_RESPONSE: Gatherer._answers,
    schema.TOOL_CALLED: Gatherer._uses,
    schema.TOOL_RESULT: Gatherer._results,
}
_NAMELESS = frozenset((*_BY_ID, schema.LLM_CALL, schema.TOOL_CALL, schema.OLD_TOOL_RESULT, schema.ERROR))


class _Nameless(Joiner):
    """Calls without an id, joined by the rules of their dialect; each is let go of when it ends."""

    def __init__(self, sums: Sums, deriver: Deriver) -> None:
        super().__init__()
        self._sums = sums
        self._deriver = deriver
        self._open: dict[Call, Begun] = {}

    def began(self, call: Call) -> None:
        fields = call.begin.stored_fields if call.begin is not None else {}
        asks = call.kind == MODEL and call.begin is not None and call.begin.kind != schema.LLM_CALL
        begun = self._open[call] = Begun(
            call.kind, fields, self._sums.request(fields, call.event.stored_in) if asks else None
        )
        begun.tool = call.tool
        if call.kind == TOOL and call.begin is not None:
            self._deriver.called(call.parent, call.event.writer, call.event.stored_fields, call.tool)

    def ended(self, call: Call) -> None:
        begun, end = self._open.pop(call), call.end
        assert end is not None
        has_begun = call.begin is not None
        if call.kind == MODEL:
            kind = dialects.event_type(end.kind)
            stats = self._sums.answered(begun if has_begun else None, end.stored_fields, kind)
        else:
            stats = self._sums.tool(call.tool, has_begun)
        self._sums.took(stats, call.duration_ms, call.error is not None)

    def finish(self) -> None:
        """What has no end now is open; a tool that failed without a result has ended."""
        for call, begun in list(self._open.items()):
            if call.is_open:
                self._sums.left_open(begun, failed=call.error is not None)
            else:
                self.ended(call)


def error_name(error: ErrorText | None) -> str:
    """Return what an error is counted under: its type, else the beginning of its text."""
    if error is None:
        return "error"
    if error.type:
        return error.type[:MAX_NAME]
    named = _ERROR_NAME.match(error)
    return named[1] if named is not None else " ".join(error[:60].split()) or "error"


# The figures of a recording that is open: the same sums as over many runs, of all of it or of a part.


def stats_of(recording: Recording, events: Iterable[Event] | None = None) -> RunStats:
    """Sum up a run, or only these events of it."""
    gatherer = Gatherer(recording.path, recording.run_id, Book.open())
    gatherer.root = recording.first_writer
    for event in recording.lines if events is None else events:
        gatherer.take(event)
    return gatherer.finish(len(recording.findings), is_whole=events is None)
