"""What a recorded call came back with, in the form it can be given again; what of it is not there is said."""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

from ...messages.whole_values import Whole, placeholders
from ...recording.calls import Call
from ...tracefile.blobs import Blobs
from ...tracefile.event import ErrorText, Event
from ...wire.streams import assemble, stream_of
from .request import MODEL, TOOL

# A recorded stream, piece by piece as it came: the blob that ``raw`` of a ``model.response`` refers to.

MAX_STREAM = 256 << 20
"""Bytes of one stream that are put back; a blob from elsewhere may be a bomb."""

_CALL = re.compile(r"[0-9a-f]{16}\Z")

Piece = tuple[bytes, float]
"""Bytes, and when they came: milliseconds after the call began."""


def read_stream(raw: Any, blobs: Blobs) -> tuple[list[Piece] | None, str | None]:
    """Return the pieces of a stream, or why they cannot be had."""
    if type(raw) is not dict:
        return None, "no-stream"
    if "withheld" in raw:
        return None, "stream-withheld"
    path = blobs.path(raw.get("$blob"))
    if path is None:
        return None, "blob-missing"
    try:
        with open(path, "rb") as file:
            packed = file.read(MAX_STREAM + 1)
        if len(packed) > MAX_STREAM or hashlib.sha256(packed).hexdigest() != os.path.basename(path):
            return None, "blob-damaged"
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(packed, MAX_STREAM)
        if not unpacking.eof:
            return None, "blob-damaged"
        head, _, rest = data.partition(b"\n")
        pieces = _cut(rest, json.loads(head)["chunks"])
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return None, "blob-damaged"
    if raw.get("form") == "rebuilt":
        return pieces, "redacted"
    return pieces, "cut" if raw.get("lossy") else None


def read_part(call: str | None, blobs: Blobs) -> list[Piece] | None:
    """Return what had come of a stream when the process died, None if nothing is there."""
    if call is None or _CALL.match(call) is None:  # a call id from a trace is no path
        return None
    for folder in blobs.folders:
        try:
            with open(os.path.join(folder, f"{call}.part"), "rb") as file:
                data = file.read(MAX_STREAM)
        except OSError:
            continue
        return [(data, 0.0)] if data else None
    return None


def _cut(data: bytes, chunks: list[list[float]]) -> list[Piece]:
    if not chunks:
        return [(data, 0.0)] if data else []
    pieces, at = [], 0
    for size, when in chunks:
        pieces.append((data[at : at + int(size)], float(when)))
        at += int(size)
    if at != len(data):
        raise ValueError("the pieces are not the stream")
    return pieces


OK, STATUS, EXCEPTION, CUT = "ok", "status", "exception", "cut"
CANCELLED, CLOSED, IN_FLIGHT = "cancelled", "closed", "in-flight"
"""How a call ended: with an answer, with a server's error, with an exception, in the middle; or not by
itself: the agent cancelled it or closed its stream, or the process died first."""

HOSTS_OWN = frozenset({CANCELLED, CLOSED, IN_FLIGHT})
"""Ends that the agent or its death made: given again as what had come until then, and then nothing more."""

_NO_ERROR = ("CancelledError", "GeneratorExit", "KeyboardInterrupt")
_STREAMS = ("event-stream", "eventstream", "ndjson")
UNKNOWN = frozenset(
    {"cut", "withheld", "blob-missing", "blob-damaged", "no-stream", "stream-withheld", "not-recorded"}
)
"""Why an answer is not known well enough to be given: not even as a stand-in."""
_REQUEST_ID = {"anthropic": "request-id", "bedrock": "x-amzn-requestid", "google": "x-goog-request-id"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What may be given to who asks again. ``lossy`` must be empty for it to be the very thing."""

    outcome: str
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """The few that are recorded, names in lower case; a content type always, no content encoding."""
    body: Any = None
    """As parsed; of a stream what it came to. A tool's result."""
    pieces: list[Piece] | None = None
    """The bytes to be sent, as they came or as one; None if nothing came, or for a tool."""
    error: ErrorText | None = None
    """With ``type`` and ``frames``."""
    duration_ms: float | None = None
    lossy: tuple[str, ...] = ()
    """Why this is not all, or not exactly, what came: ``redacted cut withheld blob-missing blob-damaged
    no-stream stream-withheld not-recorded``; ``rebuilt`` is a stream made anew of what it had come to."""
    encoding: str | None = None
    """The content encoding that it came in."""

    @property
    def is_known(self) -> bool:
        """False if what came cannot be given to a client, not even with placeholders in it."""
        return self.outcome not in (OK, STATUS) or not UNKNOWN.intersection(self.lossy)


def outcome_of(call: Call) -> str:
    """Return how a call ended."""
    end = call.end
    if end is None:
        return IN_FLIGHT
    if call.kind == TOOL:
        if end.error is None or end.stored_fields.get("result") is not None:
            return OK
        return CANCELLED if end.error.type == "CancelledError" else EXCEPTION
    ended, status = end.ended, end.status
    if ended in (CANCELLED, CLOSED, CUT):
        return str(ended)
    if ended is None and end.error is not None and (status or 0) < 400:
        # A call to no model, of which it is not said how it ended: an answer in its place is no error of one.
        return CANCELLED if end.error.type in _NO_ERROR else EXCEPTION
    if ended == "error" or (end.error is not None and status is None):
        return EXCEPTION
    return STATUS if type(status) is int and status >= 400 else OK


def answer_of(call: Call, is_stream: bool) -> Answer:
    """Return what a call came back with."""
    outcome, end = outcome_of(call), call.end
    if end is None:
        return _unfinished(call) if is_stream else Answer(outcome)
    lossy: list[str] = ["cut"] if end.lossy is True else []
    if call.kind == TOOL:
        body = _value(end, "result", lossy)
        return Answer(outcome, body=body, error=end.error, duration_ms=call.duration_ms, lossy=_unique(lossy))
    status = end.status if type(end.status) is int else None
    body = _value(end, "body", lossy)
    told = end.headers if type(end.headers) is dict else {}
    headers = {k: v for k, v in told.items() if type(v) is str}
    encoding = headers.pop("content-encoding", None)
    if type(end.request_id) is str:
        headers.setdefault(_request_id(call), end.request_id)
    came_whole = end.raw is None and "json" in headers.get("content-type", "").replace("ndjson", "")
    if is_stream and not came_whole and (status is None or status < 400):
        pieces, why = _pieces(end, body, outcome, lossy)
        if pieces is not None and why is None:
            lossy = [reason for reason in lossy if reason == "cut"]  # the bytes are all there
        elif pieces is None and outcome == OK:
            pieces = _rebuilt(call, body, lossy)
        if outcome == EXCEPTION and pieces and _says_error(pieces, headers.get("content-type")):
            outcome = OK  # the error came in the stream itself
        headers.setdefault("content-type", "text/event-stream")
    else:
        why_not = _why_not(call, end, body, headers)
        lossy += [why_not] if why_not is not None and outcome == OK else []
        pieces = _one_piece(body, headers) if why_not is None else None
    return Answer(
        outcome, status, headers, body, pieces, end.error, call.duration_ms, _unique(lossy), encoding
    )  # fmt: skip


def _request_id(call: Call) -> str:
    """Return the header in which a call's provider names it; the recording has the name alone."""
    asked = call.begin
    if asked is not None and "/model/" in str(asked.url):  # whoever's model it is, Bedrock serves it
        return _REQUEST_ID["bedrock"]
    return _REQUEST_ID.get(str(asked.provider), "x-request-id") if asked is not None else "x-request-id"


def _unfinished(call: Call) -> Answer:
    """Return what was kept of a stream the process died in; its last bytes were not."""
    pieces = read_part(call.id, call.event.stored_in.blobs)
    if pieces is None:
        return Answer(IN_FLIGHT)
    return Answer(IN_FLIGHT, 200, {"content-type": "text/event-stream"}, pieces=pieces, lossy=("cut",))


def _pieces(end: Event, body: Any, outcome: str, lossy: list[str]) -> tuple[list[Piece] | None, str | None]:
    if end.raw is None and body is None and outcome != OK:
        return None, None  # nothing had come
    pieces, why = read_stream(end.raw, end.stored_in.blobs)
    if why is not None:
        lossy.append(why)
    return pieces, why


def _rebuilt(call: Call, body: Any, lossy: list[str]) -> list[Piece] | None:
    """Return a stream that comes to an answer whose own was not kept; None if that cannot be told."""
    if not {"redacted", "stream-withheld", "no-stream"}.issuperset(lossy) or type(body) is not dict:
        return None
    asked = call.begin
    provider, url = (asked.provider, asked.url) if asked is not None else (None, None)
    try:
        pieces = stream_of(body, provider, url)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    lossy[:] = [each for each in lossy if each == "redacted"] + ["rebuilt"]
    return [(data, 0.0) for data in pieces]


def _why_not(call: Call, end: Event, body: Any, headers: dict[str, str]) -> str | None:
    """Return why the bytes of an answer cannot be told from its body, None if they can."""
    if body is None and call.kind != MODEL:
        is_told = end.stored_fields.get("headers") is not None and not end.problems
        return None if is_told or end.status in (None, 204, 304) else "not-recorded"
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
    """Return a field of an event, its marks resolved, and say what is missing of it."""
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


def _says_error(pieces: list[Piece], content_type: str | None) -> bool:
    return assemble(b"".join([data for data, _ in pieces]), None, content_type).error is not None


def _unique(reasons: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reasons))
