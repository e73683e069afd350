"""The answer of a recorded call, ready to be returned again; ``lossy`` lists what is missing of it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

from ...messages.whole import Whole, placeholders
from ...recording.calls import Call
from ...recording.recording import MAX_PART
from ...tracefile.events.event import ErrorText, Event
from ...tracefile.events.raw_streams import Piece, read_stream
from ...tracefile.events.stored_values import Blobs
from ...tracefile.plain_files import read_plain
from ...wire.json_values import mapping
from ...wire.streams import assemble, stream_of
from .request import MODEL, TOOL

_CALL = re.compile(r"[0-9a-f]{16}\Z")


def read_partial_stream(call: str | None, blobs: Blobs) -> list[Piece] | None:
    """Return the part of a stream that had arrived when the process died, None if there is none."""
    if call is None or _CALL.match(call) is None:  # a call id from a trace must not be used as a path
        return None
    for folder in blobs.folders:
        try:
            data = read_plain(os.path.join(folder, f"{call}.part"), MAX_PART)
        except OSError:
            continue
        return [(data, 0.0)] if data else None
    return None


OK, STATUS, EXCEPTION, CUT = "ok", "status", "exception", "cut"
CANCELLED, CLOSED, IN_FLIGHT = "cancelled", "closed", "in-flight"
SUSPENDED = "suspended"
"""How a call ended: with an answer, a server's error, an exception, a cut stream; or ended by the agent: it
cancelled the call, closed its stream, or died first; or a tool suspended the agent."""

REBUILT: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
"""Types of results that are rebuilt by their name."""

ENDED_BY_AGENT = frozenset({CANCELLED, CLOSED, IN_FLIGHT})
"""Ended by the agent or its death: a replay returns what had arrived by then, and nothing more."""

_NO_ERROR = ("CancelledError", "GeneratorExit", "KeyboardInterrupt")
_STREAMS = ("event-stream", "eventstream", "ndjson")
UNKNOWN = frozenset(
    {"cut", "withheld", "blob-missing", "blob-damaged", "no-stream", "stream-withheld", "not-recorded"}
)
"""Reasons why an answer cannot be returned, not even as a stand-in."""
_REQUEST_ID = {"anthropic": "request-id", "bedrock": "x-amzn-requestid", "gemini": "x-goog-request-id"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A recorded answer. It is complete and exact only if ``lossy`` is empty."""

    outcome: str
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """The recorded ones, names in lower case; always a content type, never a content encoding."""
    body: Any = None
    """The parsed body, assembled if it was a stream; or a tool's result."""
    pieces: list[Piece] | None = None
    """The bytes to send, as they arrived or as one piece; None if nothing arrived, or for a tool."""
    error: ErrorText | None = None
    """With ``type`` and ``frames``."""
    duration_ms: float | None = None
    lossy: tuple[str, ...] = ()
    """Why this is incomplete or inexact: ``redacted cut withheld blob-missing blob-damaged
    no-stream stream-withheld not-recorded``; ``rebuilt`` is a stream built again from its assembled body."""
    encoding: str | None = None
    """The recorded content encoding."""
    type: str | None = None
    """The type of a tool's result, if neither its JSON nor an annotation says what it is."""

    @property
    def is_known(self) -> bool:
        """False if the answer cannot be returned to a client, not even with placeholders in it."""
        return self.outcome not in (OK, STATUS) or not UNKNOWN.intersection(self.lossy)


def outcome_of(call: Call) -> str:
    """Return how a call ended."""
    end = call.end
    if end is None:
        return IN_FLIGHT
    if call.kind == TOOL:
        if type(end.stored_fields.get("suspended")) is dict:
            return SUSPENDED
        if end.error is None or end.stored_fields.get("result") is not None:
            return OK
        return CANCELLED if end.error.type == "CancelledError" else EXCEPTION
    ended, status = end.ended, end.status
    if ended in (CANCELLED, CLOSED, CUT):
        return str(ended)
    if ended is None and end.error is not None and (status or 0) < 400:
        # A call of another kind than model has no ``ended``; without a status its error is an exception.
        return CANCELLED if end.error.type in _NO_ERROR else EXCEPTION
    if ended == "error" or (end.error is not None and status is None):
        return EXCEPTION
    return STATUS if type(status) is int and status >= 400 else OK


def answer_of(call: Call, is_stream: bool) -> Answer:
    """Return the answer of a call."""
    outcome, end = outcome_of(call), call.end
    if end is None:
        return _unfinished(call) if is_stream else Answer(outcome)
    lossy: list[str] = ["cut"] if end.lossy is True else []
    if call.kind == TOOL:
        body = _value(end, "suspended" if outcome == SUSPENDED else "result", lossy)
        kind = end.stored_fields.get("result_type")
        return Answer(
            outcome,
            body=body,
            error=end.error,
            duration_ms=call.duration_ms,
            lossy=_unique(lossy),
            type=kind if type(kind) is str else None,
        )
    status = end.status if type(end.status) is int else None
    body = _value(end, "body", lossy)
    headers = {name: value for name, value in mapping(end.headers).items() if type(value) is str}
    encoding = headers.pop("content-encoding", None)
    if type(end.request_id) is str:
        headers.setdefault(_request_id(call), end.request_id)
    came_whole = end.raw is None and "json" in headers.get("content-type", "").replace("ndjson", "")
    if is_stream and not came_whole and (status is None or status < 400):
        pieces, why = _pieces(end, body, outcome, lossy)
        if pieces is not None and why is None:
            lossy = [each for each in lossy if each == "cut"]  # the bytes are all there
        elif pieces is None and outcome == OK:
            pieces = _rebuilt(call, body, lossy)
        if outcome == EXCEPTION and pieces and _has_error(pieces, headers.get("content-type")):
            outcome = OK  # the error came in the stream itself
        headers.setdefault("content-type", "text/event-stream")
    else:
        reason = _why_not_rebuilt(call, end, body, headers)
        lossy += [reason] if reason is not None and outcome == OK else []
        pieces = _one_piece(body, headers) if reason is None else None
    return Answer(
        outcome, status, headers, body, pieces, end.error, call.duration_ms, _unique(lossy), encoding
    )  # fmt: skip


def _request_id(call: Call) -> str:
    """Return the header for the provider's request id; the recording holds only the id."""
    is_bedrock = "/model/" in str(call.event.url)  # which serves the models of other providers
    return _REQUEST_ID.get("bedrock" if is_bedrock else str(call.event.provider), "x-request-id")


def _unfinished(call: Call) -> Answer:
    """Return the kept part of a stream during which the process died; its last bytes are lost."""
    pieces = read_partial_stream(call.id, call.event.stored_in.blobs)
    if pieces is None:
        return Answer(IN_FLIGHT)
    return Answer(IN_FLIGHT, 200, {"content-type": "text/event-stream"}, pieces=pieces, lossy=("cut",))


def _pieces(end: Event, body: Any, outcome: str, lossy: list[str]) -> tuple[list[Piece] | None, str | None]:
    if end.raw is None and body is None and outcome != OK:
        return None, None  # nothing arrived
    pieces, why = read_stream(end.raw, end.stored_in.blobs)
    if why is not None:
        lossy.append(why)
    return pieces, why


def _rebuilt(call: Call, body: Any, lossy: list[str]) -> list[Piece] | None:
    """Rebuild a stream from the assembled answer where its bytes are missing; None if that is impossible."""
    if not {"redacted", "stream-withheld", "no-stream"}.issuperset(lossy) or type(body) is not dict:
        return None
    try:
        pieces = stream_of(body, call.event.provider, call.event.url)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    lossy[:] = [each for each in lossy if each == "redacted"] + ["rebuilt"]
    return [(data, 0.0) for data in pieces]


def _why_not_rebuilt(call: Call, end: Event, body: Any, headers: dict[str, str]) -> str | None:
    """Return why the bytes of an answer cannot be rebuilt from its body, None if they can."""
    if body is None and call.kind != MODEL:
        is_recorded = end.stored_fields.get("headers") is not None and not end.problems
        return None if is_recorded or end.status in (None, 204, 304) else "not-recorded"
    is_stream = any(each in headers.get("content-type", "") for each in _STREAMS)
    return "no-stream" if is_stream and type(body) in (dict, list) else None


def _one_piece(body: Any, headers: dict[str, str]) -> list[Piece] | None:
    if body is None:
        return None
    if type(body) is bytes:
        return [(body, 0.0)]
    if type(body) is str:
        headers.setdefault("content-type", "text/plain; charset=utf-8")
        return [(body.encode("utf-8", "surrogatepass"), 0.0)]
    headers.setdefault("content-type", "application/json")
    return [
        (json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"), 0.0)
    ]


def _value(event: Event, name: str, lossy: list[str]) -> Any:
    """Return a field of an event with its marks resolved; add what is missing to ``lossy``."""
    stored = event.whole_fields.get(name)
    whole = Whole(event)
    value = whole(stored)
    if whole.missing is not None:
        lossy.append(_reason(whole.missing))
        value = event.restore_value(stored)
    if placeholders(value):
        lossy.append("redacted")
    return value


def _reason(missing: str) -> str:
    if "withheld" in missing:
        return "withheld"
    return "blob-missing" if "beside the file" in missing else "cut"


def _has_error(pieces: list[Piece], content_type: str | None) -> bool:
    return assemble(b"".join([data for data, _ in pieces]), None, content_type).error is not None


def _unique(reasons: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reasons))
