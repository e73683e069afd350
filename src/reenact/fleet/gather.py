"""Events of a run, one after the other -> its RunStats; holds only what is still open.

Calls are joined by the same rules as the debugger's, so that both speak of the same calls.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from .. import schema
from ..tracefile import dialects, family
from ..tracefile.calls import MODEL, Call, Joiner
from ..tracefile.dialects import OURS, Envelope
from ..tracefile.event import ErrorText, Event
from ..tracefile.shelf import Shelf
from ..tracefile.status import status_of
from .rows import UNTOLD, CallStats, RunStats

if TYPE_CHECKING:
    from ..prices import Book

OTHERS = "(others)"
_MAX_NAMES = 1000
"""Of tools, models or errors told apart in one run; a hostile file must not fill memory."""
_MAX_NAME = 200
_MAX_MODELS = 256
"""Requests whose model is remembered; one that builds on another builds on one of the last few."""

_CALL_KINDS = frozenset(
    (
        schema.MODEL_REQUEST,
        schema.MODEL_RESPONSE,
        schema.LLM_CALL,
        schema.TOOL_CALLED,
        schema.TOOL_RESULT,
        schema.TOOL_CALL,
        schema.OLD_TOOL_RESULT,
        schema.ERROR,
    )
)
_ERROR_NAME = re.compile(r"([A-Za-z_][\w.]{2,80}):\s")


class Gatherer:
    """Takes in the events of one run."""

    def __init__(self, path: str, run: str | None, book: Book) -> None:
        self.row = RunStats(path)
        self.row.id = run
        self.root: str | None = None
        self._calls = _Calls(self.row, book)
        self._failed: dict[str, str] = {}
        self._start: tuple[dict[str, Any], float | None] | None = None
        self._end: dict[str, Any] | None = None
        self._empty = True

    def add(self, envelope: Envelope, fields: dict[str, Any], place: int, shelf: Shelf) -> None:
        """Count the next event."""
        row, ts = self.row, envelope.ts
        if self._empty:
            row.started, self._empty = ts, False
        row.ended = ts
        kind = dialects.event_type(envelope.kind)
        if envelope.dialect == OURS and schema.is_bookkeeping(kind):
            self._book(kind, envelope, fields)
            return
        errors = row.totals.errors
        row.totals.add(kind, fields)
        changed = row.totals.errors != errors
        if kind in _CALL_KINDS or changed:
            event = Event(envelope, fields, place, shelf, None)
            self._calls.lane = None
            self._calls.feed(event)
            if changed:
                self._error(event, row.totals.errors - errors, fields)
            event._forget()

    def _book(self, kind: str, envelope: Envelope, fields: dict[str, Any]) -> None:
        if kind == schema.RUN_START and self._start is None:
            self._start = fields, envelope.ts
        elif kind == schema.RUN_END and self.root in (None, envelope.w):
            self._end = fields

    def _error(self, event: Event, change: int, fields: dict[str, Any]) -> None:
        types = self.row.error_types
        if change < 0:  # a retry: its lane's last failure was none after all
            name = self._failed.pop(_lane(fields), None)
            self.row.retried -= change
            if name is not None and types.get(name):
                types[name] += change
                if not types[name]:
                    del types[name]
            return
        name = _known(error_name(event.error), types)
        types[name] = types.get(name, 0) + change
        if self._calls.lane is not None and len(self._failed) < _MAX_NAMES:
            self._failed[self._calls.lane] = name

    def finish(self, findings: int) -> RunStats:
        """Nothing comes any more: return the run."""
        row = self.row
        start, ts = self._start or (None, None)
        row.status = status_of(start, self._end, ts)
        name = start.get("name") if start is not None else None
        row.name = name if type(name) is str else os.path.basename(family.member(row.path).stem)
        if start is not None:
            meta, parent = start.get("meta"), start.get("parent_run")
            row.meta = meta if type(meta) is dict else {}
            row.parent_run = parent if type(parent) is str else None
        row.findings = findings
        self._calls.finish()
        return row


class _Calls(Joiner):
    """Sums up each call when it ends, and lets go of it."""

    def __init__(self, row: RunStats, book: Book) -> None:
        super().__init__()
        self.lane: str | None = None
        """Of the model call that the event fed last has ended."""
        self._row = row
        self._book = book
        self._open: dict[Call, dict[str, Any] | None] = {}
        """With what its request says, where there is one."""
        self._models: dict[str, str] = {}

    def began(self, call: Call) -> None:
        asks = call.kind == MODEL and call.begin is not None and call.begin.kind != schema.LLM_CALL
        self._open[call] = self._request(call, call.begin._raw()) if asks and call.begin is not None else None

    def _request(self, call: Call, fields: dict[str, Any]) -> dict[str, Any]:
        """Return what of a request tells its price, the model put in where it is kept from an earlier one."""
        asked: dict[str, Any] = {key: fields[key] for key in ("provider", "url", "model") if key in fields}
        body = fields.get("body")
        model = body.get("model") if type(body) is dict else None
        if type(model) is not str and "model" not in asked:
            model = self._models.get(str(fields.get("base")))
        if type(model) is str:
            asked["model"] = model
            if call.id is not None:
                self._models[call.id] = model
                if len(self._models) > _MAX_MODELS:
                    del self._models[next(iter(self._models))]
        return asked

    def ended(self, call: Call) -> None:
        end = call.end
        assert end is not None
        fields = end._raw()
        asked = self._open.pop(call, None)
        if call.id is not None and self.by_id.get(call.id) is call:
            del self.by_id[call.id]
        if call.kind == MODEL:
            stats = self._answered(call, asked, fields, dialects.event_type(end.kind))
        else:
            stats = self._tool(call)
            stats.totals.add(schema.TOOL_RESULT, fields)
        stats.failed += call.error is not None
        duration = call.duration_ms
        if duration is not None and type(duration) is not bool and 0 <= duration < 1e13:
            stats.durations.append(duration)

    def _answered(
        self, call: Call, asked: dict[str, Any] | None, fields: dict[str, Any], kind: str
    ) -> CallStats:
        self.lane = call.lane
        told = fields.get("model")
        stats = self._cell(
            told if type(told) is str else (asked or {}).get("model"), stop_reason(fields, kind)
        )
        if asked is not None:
            stats.totals.add(schema.MODEL_REQUEST, {"attempt": call.attempt})
        stats.totals.add(kind, fields)
        stats.cost.add(self._book.price(fields, asked))
        return stats

    def _tool(self, call: Call) -> CallStats:
        tools = self._row.tools
        name = _known(call.tool or "?", tools)
        stats = tools.get(name)
        if stats is None:
            stats = tools[name] = CallStats()
        if call.begin is not None:
            stats.totals.add(schema.TOOL_CALLED, {})
        return stats

    def _cell(self, model: object, reason: str) -> CallStats:
        cells = self._row.by_model_and_stop
        key = (model[:_MAX_NAME] if type(model) is str and model else UNTOLD, reason)
        if key not in cells and len(cells) >= _MAX_NAMES:
            key = (OTHERS, OTHERS)
        stats = cells.get(key)
        if stats is None:
            stats = cells[key] = CallStats()
        return stats

    def finish(self) -> None:
        """What has no end now is open; a tool that failed without a result has ended."""
        for call, asked in list(self._open.items()):
            if not call.is_open:
                self.ended(call)
            elif call.kind == MODEL:
                stats = self._cell((asked or {}).get("model"), UNTOLD)
                stats.totals.add(schema.MODEL_REQUEST, {"attempt": call.attempt})
                stats.open += 1
            else:
                self._tool(call).open += 1


def stop_reason(fields: dict[str, Any], kind: str) -> str:
    """Return why a model call stopped, ``max_tokens`` also where a ``llm_call`` has OpenAI's ``length``."""
    reason = fields.get("stop_reason")
    if type(reason) is not str or not reason:
        return UNTOLD
    if kind == schema.LLM_CALL:  # as the agent's author spelled it
        from ..wire import gemini, openai_chat

        reason = openai_chat.STOP.get(reason) or gemini.STOP.get(reason) or reason
    return reason[:_MAX_NAME]


def error_name(error: ErrorText | None) -> str:
    """Return what an error is counted under: its type, else the beginning of its text."""
    if error is None:
        return "error"
    if error.type:
        return error.type[:_MAX_NAME]
    named = _ERROR_NAME.match(error)
    return named[1] if named is not None else " ".join(error[:60].split()) or "error"


def _known(name: str, names: dict[str, Any]) -> str:
    name = name[:_MAX_NAME]
    return name if name in names or len(names) < _MAX_NAMES else OTHERS


def _lane(fields: dict[str, Any]) -> str:
    lane = fields.get("lane")
    return lane if type(lane) is str else "main"
