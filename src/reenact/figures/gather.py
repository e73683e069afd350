"""Events of a run, one after the other -> its RunStats; holds only what is still open.

Calls are joined by the same rules as the debugger's, so that both speak of the same calls.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import schema
from ..tracefile import dialects, family
from ..tracefile.calls import MODEL, TOOL, Call, Joiner
from ..tracefile.derive import Asked, Deriver
from ..tracefile.dialects import OURS, Envelope
from ..tracefile.event import ErrorText, Event
from ..tracefile.shelf import Shelf
from ..tracefile.status import status_of
from ..wire.neutral import ToolResult
from .rows import RunStats
from .sums import MAX_NAME, MAX_NAMES, Begun, Sums, has_error, known_name, lane_of, parent_of, tool_name

if TYPE_CHECKING:
    from ..money.prices import Book

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
        self.add(event._envelope, event._raw(), event._place, event._shelf)
        event._forget()

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
                self._others.feed(event)
                event._forget()
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
        self._deriver.asked(call, (writer, lane_of(fields)), fields, None, lambda: self._event().body)

    def _begins(self, call: str, begun: Begun) -> None:
        before = self._open.setdefault(call, begun)
        if before is not begun:  # the same id twice: the second has no end of its own
            self._sums.left_open(begun)

    def _uses(self, call: str, writer: str, fields: dict[str, Any]) -> None:
        begun = Begun(TOOL, fields, None)
        self._begins(call, begun)
        self._deriver.called(parent_of(fields), (writer, begun.lane), fields, begun.tool)

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

    def _derived(self, asked: Asked, result: ToolResult | None, at: None) -> None:
        """Count a tool that only the wire tells of; how long it took is not known."""
        self.row.totals.tool_calls += 1
        stats = self._sums.tool(asked.name, True)
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
        row.name = name if type(name) is str else os.path.basename(family.member(row.path).stem)
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
        fields = call.begin._raw() if call.begin is not None else {}
        asks = call.kind == MODEL and call.begin is not None and call.begin.kind != schema.LLM_CALL
        begun = self._open[call] = Begun(
            call.kind, fields, self._sums.request(fields, call.event._shelf) if asks else None
        )
        begun.tool = call.tool
        if call.kind == TOOL and call.begin is not None:
            self._deriver.called(call.parent, (call.event.writer, call.lane), call.event._raw(), call.tool)

    def ended(self, call: Call) -> None:
        begun, end = self._open.pop(call), call.end
        assert end is not None
        has_begun = call.begin is not None
        if call.kind == MODEL:
            kind = dialects.event_type(end.kind)
            stats = self._sums.answered(begun if has_begun else None, end._raw(), kind)
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
