"""Events of a run, one after the other -> its RunStats; holds only what is still open.

Calls are joined by the joiner of ``recording``, so that all commands speak of the same calls. Model calls are
counted under model and stop reason, tool calls under their tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .. import schema
from ..money.ledger import Ledger
from ..money.prices import Book
from ..recording.calls import HTTP, MODEL, TOOL, Call, Joiner
from ..recording.derived_tools import Deriver, ToolUseAt
from ..recording.recording import Recording
from ..tracefile import dialects, run_files
from ..tracefile.dialects import OURS
from ..tracefile.events.event import ErrorText, Event
from ..tracefile.status import status_of
from ..wire.json_values import string
from ..wire.neutral import ToolResult
from ..wire.providers import gemini, openai_chat
from .rows import NOT_RECORDED, CallStats, RunStats

OTHERS = "(others)"
MAX_NAMES = 1000
"""Of distinct tools, models or errors of one run; a hostile file must not fill memory."""
MAX_NAME = 200


def stop_reason(fields: dict[str, Any], kind: str) -> str:
    """Return why a model call stopped, ``max_tokens`` also where a ``llm_call`` has OpenAI's ``length``."""
    reason = fields.get("stop_reason")
    if type(reason) is not str or not reason:
        return NOT_RECORDED
    if kind == schema.LLM_CALL:  # as the agent's author spelled it
        reason = openai_chat.STOP.get(reason) or gemini.STOP.get(reason) or reason
    return reason[:MAX_NAME]


def known_name(name: str, names: dict[str, Any]) -> str:
    name = name[:MAX_NAME]
    return name if name in names or len(names) < MAX_NAMES else OTHERS


_ERROR_NAME = re.compile(r"([A-Za-z_][\w.]{2,80}):\s")


class Gatherer(Joiner):
    """Takes in the events of one run, joins them to calls and lets go of each call that has ended."""

    def __init__(self, path: str, run: str | None, book: Book) -> None:
        super().__init__()
        self.row = RunStats(path)
        self.row.id = run
        self.root: str | None = None
        self._book = book
        self._ledger = Ledger(book)
        self._deriver = Deriver(self._derived)
        self._open: dict[Call, dict[str, Any] | None] = {}
        """The calls that may not have ended, with what of its request decides the price of a model call."""
        self._failed: dict[str, str] = {}
        """What the last failed model call of a lane is counted under."""
        self._retried: dict[str, int] = {}
        """Failures of a lane's turn that a retry followed; whether one of them succeeds is not known yet."""
        self._start: tuple[dict[str, Any], float | None] | None = None
        self._end: dict[str, Any] | None = None
        self._is_empty = True

    def add(self, event: Event) -> None:
        """Count the next event."""
        fields = event.stored_fields
        row = self.row
        ts, _, writer, _, written_kind, dialect = event.stored_head
        row.ended = ts
        if self._is_empty:
            row.started, self._is_empty = ts, False
        kind = dialects.event_type(written_kind)
        if dialect == OURS and schema.is_bookkeeping(kind):
            self._take_bookkeeping(kind, event, fields)
            return
        errors = row.totals.errors
        row.totals.writer = writer
        row.totals.add(kind, fields)
        change = row.totals.errors - errors
        if change:
            self._count_error(event, change, fields)
        self.feed(event, fields)

    def _take_bookkeeping(self, kind: str, event: Event, fields: dict[str, Any]) -> None:
        if kind == schema.RUN_START and self._start is None:
            self._start = fields, event.timestamp
        elif kind == schema.RUN_END and self.root in (None, event.writer):
            self._end = fields

    def _count_error(self, event: Event, change: int, fields: dict[str, Any]) -> None:
        types = self.row.error_types
        if change < 0:  # a retry: its lane's last failure was none after all
            lane = event.writer + (string(fields.get("lane")) or "main")
            name = self._failed.pop(lane, None)
            if len(self._retried) < MAX_NAMES:
                self._retried[lane] = self._retried.get(lane, 0) - change
            if name is not None and types.get(name):
                types[name] += change
                if not types[name]:
                    del types[name]
            return
        name = known_name(error_name(event.error), types)
        types[name] = types.get(name, 0) + change
        if dialects.event_type(event.kind) == schema.MODEL_RESPONSE and len(self._failed) < MAX_NAMES:
            call = self.by_id.get(string(fields.get("call")) or "")
            self._failed[event.writer + (call.lane if call is not None else "main")] = name

    def began(self, call: Call) -> None:
        begin, facts = call.begin, None
        if begin is not None and call.kind == MODEL and call.attempt == 1:
            self._retried.pop(begin.writer + call.lane, None)  # another turn: the last one failed
        if begin is not None and call.kind == TOOL:
            self._deriver.called(call.parent, begin.writer, begin.stored_fields, call.tool)
        elif begin is not None and call.kind == MODEL and begin.kind != schema.LLM_CALL:
            facts = self._ledger.request_facts(begin.stored_fields, begin.stored_in)
            self._deriver.request(call.id, (begin.writer, call.lane), begin, None)
        if call.kind != HTTP:
            self._open[call] = facts

    def ended(self, call: Call) -> None:
        if call.kind == HTTP or call.end is None:
            return
        facts, end = self._open.pop(call, None), call.end
        if call.kind == MODEL:
            stats = self._answered(call, end, facts)
        else:
            stats = self._tool(call.tool, has_begun=call.begin is not None)
        stats.failed += call.error is not None
        duration = call.duration_ms
        if duration is not None and 0 <= duration < 1e13:
            stats.durations.append(duration)

    def _answered(self, call: Call, end: Event, facts: dict[str, Any] | None) -> CallStats:
        """Count a model call that has ended."""
        fields, kind = end.stored_fields, dialects.event_type(end.kind)
        stats = self._cell(self._ledger.model(fields, facts), stop_reason(fields, kind))
        if call.begin is not None and kind != schema.LLM_CALL:
            stats.totals.add(schema.MODEL_REQUEST, {"attempt": call.attempt})
        stats.totals.add(kind, fields)
        stats.cost.add(self._ledger.price(fields, facts))
        self._deriver.answered(call.id, (end.writer, call.lane), fields, None)
        if call.error is None:
            self.row.retried += self._retried.pop(end.writer + call.lane, 0)
        return stats

    def _tool(self, name: str | None, *, has_begun: bool) -> CallStats:
        """Count a tool call."""
        tools = self.row.tools
        name = known_name(name or "?", tools)
        stats = tools.get(name)
        if stats is None:
            stats = tools[name] = CallStats()
        if has_begun:
            stats.totals.add(schema.TOOL_CALLED, {})
        return stats

    def _derived(self, use: ToolUseAt, result: ToolResult | None, at: None) -> None:
        """Count a tool that is known from model traffic only; its duration is not known."""
        self.row.totals.tool_calls += 1
        stats = self._tool(use.name, has_begun=True)
        stats.open += result is None
        stats.failed += result is not None and result.failed

    def _left_open(self, call: Call, facts: dict[str, Any] | None) -> None:
        """Count a call that has no end."""
        if call.kind == MODEL:
            stats = self._cell(self._ledger.model({}, facts), NOT_RECORDED)
            stats.totals.add(schema.MODEL_REQUEST, {"attempt": call.attempt})
        else:
            stats = self._tool(call.tool, has_begun=True)
        stats.open += 1
        stats.failed += call.error is not None

    def _cell(self, model: str | None, reason: str) -> CallStats:
        cells = self.row.by_model_and_stop
        key = (model[:MAX_NAME] if model else NOT_RECORDED, reason)
        if key not in cells and len(cells) >= MAX_NAMES:
            key = (OTHERS, OTHERS)
        stats = cells.get(key)
        if stats is None:
            stats = cells[key] = CallStats()
            stats.cost = self._book.bill()
        return stats

    def finish(self, findings: int, *, is_whole: bool = True) -> RunStats:
        """Nothing comes any more: return the run, or a part of it."""
        row = self.row
        start, ts = self._start or (None, None)
        row.status = status_of(start, self._end, ts)
        name = start.get("name") if start is not None else None
        row.name = name if type(name) is str else run_files.name_of(row.path)
        if start is not None:
            meta, parent = start.get("meta"), start.get("parent_run")
            row.meta = meta if type(meta) is dict else {}
            row.parent_run = parent if type(parent) is str else None
        row.findings = findings
        for call, facts in list(self._open.items()):
            if call.is_open:
                self._left_open(call, facts)
            else:  # a tool that failed without a result
                self.ended(call)
        if is_whole:  # else a requested tool may yet be called
            self._deriver.finish()
        return row


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
        gatherer.add(event)
    return gatherer.finish(len(recording.findings), is_whole=events is None)
