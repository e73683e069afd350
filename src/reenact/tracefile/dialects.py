"""Which spelling a JSON object is, and where its envelope stands: ours, the articles', their family's.

Pure functions over parsed objects and text; the reader asks for every line, so ours is decided first.
Here, and in ``lines.peek``, the envelope of an untrusted line is checked: a time, step or writer that cannot
be is not passed on.
Foreign formats are refused here rather than half understood: importers read them.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..lines import LAST_STEP, LATEST, is_writer_id

OURS, TRACE, STEP_LOG, FAMILY = "ours", "trace", "step-log", "family"


class Envelope(NamedTuple):
    """What every event has, whatever it was spelled like; None where the dialect does not say."""

    ts: float | None
    run: str | None
    w: str
    step: int | None
    kind: str
    dialect: str


KIND_KEYS = ("kind", "event_type", "type", "step_type", "action")
TIME_KEYS = ("ts", "timestamp", "started_at", "captured_at", "recorded_at")
RUN_KEYS = ("run", "run_id")
ORDER_KEYS = ("step", "index", "line")
TOOL_KEYS = ("tool", "tool_name", "name")
ARGS_KEYS = ("args", "input", "tool_args")
RESULT_KEYS = ("result", "output", "tool_output", "content")
ERROR_KEYS = ("error", "err")

_CALLS = frozenset(
    "model.request model.response tool.called tool.result tool_called tool_returned tool_call tool_result"
    " llm_call llm_request llm_response model_request model_response".split()
)
"""Kinds of the articles' family that are evidence even under a key as common as ``type``."""

_WORDS = _CALLS | frozenset(
    ("errored", "error", "final", "note", "thinking", "response", "checkpoint", "custom")
)

_ALIASES = {
    "tool_called": "tool.called",
    "tool_returned": "tool.result",
    "llm_request": "model.request",
    "llm_response": "model.response",
    "model_request": "model.request",
    "model_response": "model.response",
    "errored": "error",
}

_FOREIGN_KEYS = {
    "uuid": "a Claude Code session",
    "parentUuid": "a Claude Code session",
    "sessionId": "a Claude Code session",
    "leafUuid": "a Claude Code session",
    "resourceSpans": "an OpenTelemetry export",
    "resourceLogs": "an OpenTelemetry export",
    "scopeSpans": "an OpenTelemetry export",
    "traceId": "an OpenTelemetry export",
    "spanId": "an OpenTelemetry export",
    "session_id": "another agent's session",
    "parentId": "another agent's session",
    "trace_id": "another tracer's export",
    "span_id": "another tracer's export",
    "schema_version": "an agent trajectory",
    "trajectory": "an agent trajectory",
    "messages": "a list of messages",
    "conversations": "a list of messages",
    "atof_version": "an agent trajectory",
    "request_body": "a wire capture",
    "interactions": "a wire capture",
}
_CODEX_TYPES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted"))


def event_type(kind: str) -> str:
    """Return our word for a family's kind."""
    return _ALIASES.get(kind, kind)


def recognise(fields: dict[str, Any]) -> Envelope | None:
    """Return the envelope of an event, or None if the object is not an event in any dialect we read."""
    kind, run, ts = fields.get("kind"), fields.get("run"), fields.get("ts")
    if type(kind) is str and type(run) is str and (type(ts) is float or type(ts) is int):
        w, step = fields.get("w"), fields.get("step")
        if type(w) is str and type(step) is int:
            time = ts if -LATEST < ts < LATEST else None  # of hundreds of digits, or NaN
            step = step if 0 <= step < LAST_STEP else 0
            return Envelope(time, run, w if is_writer_id(w) else _writer_id(w), step, kind, OURS)
        return Envelope(timestamp(ts), run, "", _step(step), kind, TRACE)
    run, kind = fields.get("run_id"), fields.get("type")
    if type(run) is str and kind in ("llm_call", "tool_call") and type(fields.get("step")) is int:
        return Envelope(timestamp(ts), run, "", _step(fields["step"]), kind, STEP_LOG)
    return _family(fields)


def _step(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < LAST_STEP else None


def _writer_id(text: str) -> str:
    """Return an id for a writer whose ``w`` is not one: addresses show it, and files are written with it."""
    from hashlib import sha256  # loads OpenSSL, for what no recorder writes

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _family(fields: dict[str, Any]) -> Envelope | None:
    if foreign(fields) is not None:
        return None
    key = next((key for key in KIND_KEYS if type(fields.get(key)) is str), None)
    if key is None:
        return None
    kind = fields[key]
    ts = next((time for key in TIME_KEYS if (time := timestamp(fields.get(key))) is not None), None)
    step = next((number for key in ORDER_KEYS if (number := _step(fields.get(key))) is not None), None)
    run = next((fields[key] for key in RUN_KEYS if type(fields.get(key)) is str), None)
    if kind in (_CALLS if key in ("type", "action") else _WORDS):
        known = ts is not None or step is not None or run is not None or "tool_name" in fields
    else:  # under a common key, or without a run or a ``ts``, any JSON log would pass
        known = key in ("kind", "event_type") and (run is not None or type(fields.get("ts")) in (int, float))
    if not known:
        return None
    return Envelope(ts, run, "", step, kind, FAMILY)


def foreign(fields: dict[str, Any]) -> str | None:
    """Return what a foreign object seems to come from, None if nothing gives it away.

    >>> foreign({"type": "user", "uuid": "…", "sessionId": "…"})
    'a Claude Code session'
    """
    for key, what in _FOREIGN_KEYS.items():
        if key in fields:
            return what
    kind = fields.get("type")
    if type(kind) is str and kind in _CODEX_TYPES and "payload" in fields:
        return "a Codex session"
    return None


def timestamp(value: object) -> float | None:
    """Return seconds since the epoch from a number (s, ms, µs or ns) or an ISO text."""
    if type(value) is str:
        return _iso(value)
    if type(value) is not int and type(value) is not float:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    for limit, unit in ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9)):
        if abs(number) < limit:
            return number / unit
    return None  # NaN too


def _iso(text: str) -> float | None:
    import datetime

    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    try:
        return when.timestamp()
    except (OverflowError, ValueError):
        return None


_STAMPED = re.compile(
    rb"\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\s+"  # docker logs -t, CRI, aws logs tail
    rb"(?:(?P<stream>stdout|stderr) (?P<tag>[FP])(?::\S*)? |[^\s{]\S{0,200}\s+)?(?=(?P<body>.))"
)


class Unwrapper:
    """Takes our lines out of container log records, putting together those a runtime split."""

    __slots__ = ("_parts",)

    _MAX = 64 << 20

    def __init__(self) -> None:
        self._parts: dict[str, tuple[int, int, list[bytes]]] = {}

    def record(self, fields: dict[str, Any], number: int, offset: int) -> tuple[int, int, bytes] | None:
        """Return (line, offset, inner line) of a JSON log record; None if it is not one or not complete."""
        text = fields.get("log")
        if type(text) is str and "stream" in fields:  # docker json-file: 16 KB pieces, the last ends in \n
            whole = text.endswith("\n")
            return self._join(str(fields["stream"]), text.encode("utf-8", "replace"), whole, number, offset)
        text = fields.get("message", fields.get("MESSAGE"))
        if type(text) is str and text.lstrip().startswith("{"):
            return number, offset, text.strip().encode("utf-8", "replace")
        return None

    def stamped(self, data: bytes, number: int, offset: int) -> tuple[int, int, bytes] | None:
        """The same for a text line that begins with a time; LookupError if it is none."""
        found = _STAMPED.match(data)
        if found is None:
            raise LookupError
        body = data[found.start("body") :]
        if found["stream"] is None:
            if not body.startswith(b"{"):
                raise LookupError
            return number, offset, body
        return self._join(found["stream"].decode(), body, found["tag"] == b"F", number, offset)

    def _join(
        self, stream: str, piece: bytes, whole: bool, number: int, offset: int
    ) -> tuple[int, int, bytes] | None:
        number, offset, parts = self._parts.pop(stream, (number, offset, []))
        parts.append(piece.rstrip(b"\r\n") if whole else piece)
        if not whole:
            if sum(map(len, parts)) < self._MAX and len(self._parts) < 16:
                self._parts[stream] = (number, offset, parts)
            return None
        return number, offset, b"".join(parts)


def is_wrapper(fields: dict[str, Any]) -> bool:
    """True for a container log record, whose inner line need not be ours."""
    return (type(fields.get("log")) is str and "stream" in fields) or (
        type(fields.get("message", fields.get("MESSAGE"))) is str and "kind" not in fields
    )
