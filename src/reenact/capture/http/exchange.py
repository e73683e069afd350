"""One HTTP call: its request is on disk before it is sent, its response once it has arrived.

Every seam reports here and to nothing else; nothing in here raises into the agent. Bytes that arrive are only
kept and counted; they are parsed when the response is complete.
"""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from weakref import ref

from ... import schema
from ...wire.inflate import inflater
from ...wire.json_values import mapping, string
from ...wire.pairing import brought_results
from ...wire.reading import error_of, kept_conversation, model_of, provider_of_request
from ...wire.routes import HTTP, MODEL, used
from ...wire.streams import assemble, stream_kind
from .. import guard, replay_hook
from ..calls.error_fields import caller_frames, failure
from ..calls.model_response import write_answer
from ..calls.open_calls import OpenCall, calls_of
from ..recorder.jsonable import text_if_utf8
from ..recorder.recorder import Recorder
from ..replay_hook import Live
from ..workspace import tree_now
from .headers import REQUEST_ID, attempt_of, recorded_headers
from .request_body import Sent, described_body
from .response_body import Arrived, Spill, as_json

Headers = Iterable[tuple[str, str]]

T = TypeVar("T")

COMPLETE, CLOSED, FAILED, CANCELLED, CUT = "complete", "closed", "error", "cancelled", "cut"
"""How a response ended: whole, closed early, by an exception, by a cancellation, cut in the middle."""


def how_raised(exc: BaseException) -> str:
    """Return how a call ended that raised this; the end of an iterator is a complete body."""
    if isinstance(exc, StopIteration | StopAsyncIteration):
        return COMPLETE
    return FAILED if isinstance(exc, Exception) else CANCELLED


def carry(library: str, exchange: Exchange | None, send: Callable[[T], Any], request: T, *more: Any) -> Any:
    """Have a library send a request; or answer it, where a recording stands in for the network.

    ``more`` is what the library's adapter needs to make a response. Where ``send`` is awaited, so is this.
    """
    adapter = replay_hook.adapter(library)
    return send(request) if adapter is None else adapter.carry(exchange, send, request, *more)


class Exchange:
    """A call that has begun; its seam reports the response here."""

    _opened: OpenCall

    def __init__(self, recorder: Recorder, sort: str, provider: str | None, method: str, url: str) -> None:
        self.recorder = recorder
        self.sort = sort
        self.provider = provider
        self.method = method
        self.url = url
        self.is_over = False
        self._call = ""
        self.fault: BaseException | None = None
        """An exception of the connection that nobody has seen yet, since nobody read on."""
        self._calls = calls_of(recorder)
        self.request: Any = None
        self.content_type: str | None = None
        self.body_hash = 0
        self.live: Live | None = None
        """Set if this request is sent although a recording answers the others."""
        self.replayed: str | None = None
        """The recorded call whose response this one gets."""
        self.edited_reply: Any = None
        """Another reply that it gets in place of that."""
        self._status: int | None = None
        self._headers: list[tuple[str, str]] = []
        self._by_name: dict[str, str] = {}
        """The first header of each name in lower case."""
        self.arrived = Arrived()
        self._stream: str | None = None
        self.sent: Sent | None = None
        """Where a seam reports a body that is made while it is sent."""
        self._w = recorder.w  # another one in a forked child, where the answer is still the parent's

    def leave(self, headers: list[tuple[str, str]], body: Any, fingerprint: int) -> None:
        """Write the request."""
        self.request = body
        by_name = {name.lower(): value for name, value in reversed(headers)}
        kind = by_name.get("content-type")
        self.content_type, self.sent = kind, Sent(kind) if body is None else None
        if self.sort != MODEL:
            self._call, self._opened = self._calls.begin(schema.HTTP_REQUEST, self.sort)
            about = {"call": self._call, "sort": self.sort, "method": self.method, "url": self.url}
            self.recorder.emit(schema.HTTP_REQUEST, _request_fields(about, body, kind))
            return
        parent, tree = self._calls.open_tool(), tree_now(self.recorder)
        self._call, self._opened = self._calls.begin(schema.MODEL_REQUEST, None)
        self.provider = self._opened.provider = self.provider or provider_of_request(body, self.url)
        call, tried = self._call, attempt_of(by_name)
        kept, results = kept_conversation(body), brought_results(body)
        fields: dict[str, Any] = {
            "provider": self.provider,
            "url": self.url,
            "parent": parent,
            "workspace": tree,
        }
        fields["headers"] = recorded_headers(headers, request=True) or None
        fields = {name: value for name, value in fields.items() if value is not None}
        body = text_if_utf8(body) if isinstance(body, bytes) else body
        with self.recorder.requesting():
            draft = self.recorder.draft(body)
            continues = draft.continues if draft is not None else None
            lane, attempt = self._calls.lanes.begin(call, continues, fingerprint, tried, kept, results)
            self._opened.lane = lane
            first = {"call": call, "lane": lane, "attempt": attempt if attempt > 1 or tried else None}
            named = {name: value for name, value in first.items() if value}
            self.recorder.emit_request({**named, **fields}, body, lane, draft, is_held=True)
        self.recorder.notify_listeners()

    def forget(self) -> None:
        """Record nothing further: the call keeps no lane busy."""
        self.is_over = True
        self._calls.open.pop(self._call, None)
        self._calls.lanes.end(self._call, failed=False)

    def answered(
        self, status: int, headers: Headers, *, decoded: bool = False, stream: str | None = None
    ) -> None:
        """Take in status and headers; the body follows in chunks.

        ``decoded`` if the library has taken the content encoding off; ``stream`` is the kind of stream where
        no header names it.
        """
        with guard.Swallowing("record the beginning of an answer"):
            self._status = status
            self._headers = list(headers)
            self._by_name = {name.lower(): value for name, value in reversed(self._headers)}
            encoding = self._header("content-encoding")
            self.arrived.decoded = bool(stream or (encoding and encoding != "identity"))
            if encoding and self.arrived.decoded and not decoded:
                self.arrived.inflate = inflater(encoding)
                self.arrived.is_sealed = self.arrived.inflate is None
            if status < 400 and self.sort != "http":  # an error is recorded in one piece
                kind = self._header("content-type")
                self._stream = stream or stream_kind(self.provider, self.url, kind, self.request)
            if not self._stream:
                return
            _note_stream(self)
            texts, is_read = self.recorder.texts, not self.arrived.is_sealed
            if is_read and texts.blob_folder and texts.content() == "full":
                self.arrived.spill = Spill(texts.blob_folder, self._call, texts.redactor)

    def chunk(self, data: bytes) -> None:
        """Take in bytes of the answer as they pass."""
        try:
            if self._w is self.recorder.w:
                self.arrived.add(data)
        except Exception as exc:
            guard.swallow("record a piece of an answer", exc)

    def raised(self, exc: BaseException) -> None:
        """Record that the library raised this. Never raises."""
        self.end(how_raised(exc), exc)

    def end(self, how: str = COMPLETE, exc: BaseException | None = None) -> None:
        """Record the answer; called once, later calls change nothing. Never raises."""
        if self.is_over:
            return
        self.is_over, self.fault = True, None  # whose frames may hold us
        if self._w is not self.recorder.w:
            self.arrived.close_spill()
            return
        try:
            if self.recorder.closed and how in (CLOSED, CANCELLED):
                self.recorder.lost += 1  # dropped by the collector or the loop: not the agent's mistake
            else:
                self._end(how, exc)
        except Exception as fault:
            self.recorder.lost += 1
            guard.swallow("record an answer", fault)
        with guard.Swallowing("let go of an answer"):
            self.forget()
            self.arrived.forget_spill()

    def _end(self, how: str, exc: BaseException | None) -> None:
        data = self.arrived.data()
        error: Any = exc if how in (FAILED, CANCELLED) else None
        body, first = self._body(data, how)
        first.update(self.arrived.loss(first.get("problems", ())))
        if isinstance(first.get("error"), tuple):
            kind, message = first.pop("error")
            error = error or {"type": kind, "message": message, "frames": caller_frames()}
        elif how == CUT and first["ended"] != COMPLETE:
            message = f"the connection ended after {len(data)} bytes of the answer"
            error = {"type": "cut", "message": message, "frames": caller_frames()}
        elif error is None and (named := self._header("x-amzn-errortype")):
            message = (error_of(body, self.provider) or (None, ""))[1]
            error = {"type": named.partition(":")[0], "message": message, "frames": caller_frames()}
        self._calls.open.pop(self._call, None)
        if self.sort != MODEL:
            about = {"call": self._call, "sort": self.sort, "status": self._status}
            fields = _answer_fields(about, self._opened, body, error, self.sent)
            fields["headers"] = recorded_headers(self._headers, method=self.method)
            fields.update(self.arrived.loss(first.get("problems", ())))
            self.recorder.emit(schema.HTTP_RESPONSE, fields)
            return
        first["request_id"] = self._header(*REQUEST_ID)

        last: dict[str, Any] = {
            "headers": recorded_headers(self._headers),
            "sent": self.sent and self.sent.described(),
        }
        last["replayed"] = self.replayed
        uses = write_answer(
            self.recorder, self._calls, body, self._call, self._opened,
            error=error, status=self._status, first=first,
            last={name: value for name, value in last.items() if value},
            names_caller=True, stream=self.arrived.stream(self._opened.began) if self._stream else None,
            abandoned=first["ended"] == CLOSED, is_fresh=True,
        )  # fmt: skip
        failed = error is not None or (self._status or 0) >= 400
        tool_use_ids = None if failed else frozenset(str(use[0]) for use in uses) or None
        name = string(mapping(body).get("id"))
        self._calls.lanes.end(self._call, failed=failed, wanted=tool_use_ids, answer=name)

    def _body(self, data: bytes, how: str) -> tuple[Any, dict[str, Any]]:
        """Return the answer, and how it ended."""
        if self._status is None and not data:
            return None, {"ended": how}
        if self.arrived.is_sealed:
            why = f"content encoding {self._header('content-encoding')} cannot be read here"
            return None, {"ended": how, "problems": [why]}
        if self._stream is None:
            return _whole_body(data, self.sort, self._header("content-type")), {"ended": how}
        assembled = assemble(data, self.provider, self._header("content-type"))
        is_short = how == COMPLETE and not self.arrived.missing
        ended = COMPLETE if assembled.complete else CUT if is_short else how
        ttft_ms = self.arrived.ms_until(assembled.first_content, self._opened.began)
        first: dict[str, Any] = {"ttft_ms": ttft_ms, "ended": ended}
        if assembled.error is not None:
            first["ended"], first["error"] = FAILED, assembled.error
        if assembled.problems:
            first["problems"] = assembled.problems[:8]
        return assembled.body, first

    def _header(self, *names: str) -> str | None:
        return next((self._by_name[name] for name in names if name in self._by_name), None)

    def __del__(self) -> None:
        if not self.is_over and self._call:  # the agent let go of the answer without reading or closing it
            self.end(CLOSED if self.fault is None or self.recorder.closed else FAILED, self.fault)


# Fields of API calls that are not completions: embeddings, files, any other traffic.


def _request_fields(about: dict[str, Any], body: Any, content_type: str | None) -> dict[str, Any]:
    """Return the fields of an ``http.request``; ``about`` holds call, sort, method and URL."""
    if isinstance(body, bytes):
        sent = described_body(body, content_type)
        return {**about, "sent": sent} if sent else about
    return about if body is None else {**about, "body": body}


def _whole_body(data: bytes, sort: str, content_type: str | None) -> Any:
    """Return a response body as it is recorded: JSON as its value, else text, else bytes; None if empty.

    Text is recorded verbatim, so text that happens to be JSON, or is quoted, is not parsed.
    """
    is_other = sort == HTTP and content_type is not None and "json" not in content_type.lower()
    found = None if is_other else as_json(data)
    if sort != MODEL and isinstance(found, str):
        found = None
    return text_if_utf8(data) if found is None and data else found


def _answer_fields(
    about: dict[str, Any], opened: OpenCall, body: Any, error: Any, sent: Sent | None
) -> dict[str, Any]:
    """Return the fields of an ``http.response``."""
    status = about["status"] or 0
    if error is None and status >= 400:
        error = {"type": f"http_{status}", "message": "", "frames": caller_frames()}
    fields = {
        **about,
        "duration_ms": opened.duration_ms(),
        **_spent(about["sort"], body),
        "error": failure(error),
    }
    if body is not None:
        fields["body"] = body
    described = sent.described() if sent is not None else None
    return fields if described is None else {**fields, "sent": described}


def _spent(sort: str, body: Any) -> dict[str, Any]:
    """Return the model and the tokens that a response of a model API reports."""
    if sort == HTTP or not isinstance(body, dict):
        return {}
    found = {"model": model_of(body), "usage": used(body)}
    return {name: value for name, value in found.items() if value is not None}


# Streams that are complete, although the agent has neither read them to their end nor closed them.
#
# Some clients stop at a stream's last event and let the collector close the response, long after the agent
# has gone on. Such an answer is recorded before the next request of its thread, so that both stand in their
# order.

LAST_EVENTS = (b"[DONE]", b'"message_stop"', b'"response.completed"')
_TAIL, _HEAD = 4_096, 100
_MOST_STREAMS = 16
"""What is noted; a server with a thousand streams at once must not look at each of them for each request."""

_here = _local()
"""``streams`` of a thread: another one may be reading its own at this moment."""


def _note_stream(exchange: Exchange) -> None:
    """The answer to this is a stream."""
    _here.streams = [*getattr(_here, "streams", ()), ref(exchange)][-_MOST_STREAMS:]


def record_whole_streams() -> None:
    """Record what has come to its last event in this thread. Never raises."""
    streams = getattr(_here, "streams", ())
    if not streams:
        return
    _here.streams = []
    with guard.Swallowing("record a stream that nobody closed"):
        for each in streams:
            exchange = each()
            if exchange is None or exchange.is_over:
                continue
            if is_whole(exchange.arrived.tail(_TAIL)):
                exchange.end()
            else:
                _note_stream(exchange)


def is_whole(tail: bytes) -> bool:
    """True if a stream of events ends with the one that is its last."""
    if not tail.endswith(b"\n\n"):
        return False
    event = tail.rstrip().rpartition(b"\n\n")[2].rpartition(b"data:")[2]
    return any(each in event[:_HEAD] for each in LAST_EVENTS)
