"""One HTTP call: its request is on disk before it is sent, its response once it has arrived.

Every seam reports here and to nothing else; nothing in here raises into the agent. Bytes that arrive are only
kept and counted; they are parsed when the response is complete.
"""

from __future__ import annotations

import sys
from _weakref import ref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ... import schema
from ...wire.inflate import inflater
from ...wire.json_values import mapping, string
from ...wire.pairing import brought_results
from ...wire.reading import error_of, kept_conversation, provider_of_request
from ...wire.routes import MODEL
from ...wire.streams import assemble, stream_kind
from .. import guard, replay_hook
from ..calls.error_fields import caller_frames
from ..calls.model_response import write_answer
from ..calls.open_calls import OpenCall, calls_of
from ..recorder.jsonable import text_if_utf8
from ..recorder.recorder import Recorder
from ..replay_hook import Live
from ..runs import exit_and_fork
from ..workspace import tree_now
from .finished_streams import is_last, note_stream
from .headers import REQUEST_ID, attempt_of, recorded_headers
from .other_api_calls import request_fields, response_fields, whole_body
from .request_body import Sent
from .response_body import Arrived, Spill

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


_refused: dict[int, ref[Exchange]] = {}
"""Calls whose response has an error status and a body that nobody has read yet."""


def _end_refused() -> None:
    """At the end of a program: record these. An uncaught exception holds its response, so that the collector
    does not end it in time."""
    for each in list(_refused.values()):
        exchange = each()
        if exchange is not None:
            exchange.end(CLOSED)


exit_and_fork.end_unread = _end_refused


class Exchange:
    """A call that has begun; its seam reports the response here."""

    _opened: OpenCall
    is_over = True  # until __init__ has set the rest: an interrupt may end it, and __del__ runs all the same

    def __init__(self, recorder: Recorder, sort: str, provider: str | None, method: str, url: str) -> None:
        self.recorder = recorder
        self.sort = sort
        self.provider = provider
        self.method = method
        self.url = url
        self.is_whole = False
        """True once the last byte has come, if the library has yet to hand the response to the agent."""
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
        self._to_end = [True]
        self._w = recorder.w  # another one in a forked child, where the answer is still the parent's
        self.is_over = False

    def leave(self, headers: list[tuple[str, str]], body: Any, fingerprint: int) -> None:
        """Write the request."""
        self.request = body
        by_name = {name.lower(): value for name, value in reversed(headers)}
        self.content_type = by_name.get("content-type")
        self.sent = Sent(self.content_type) if body is None else None
        if self.sort != MODEL:
            self._leave_other(body)
            return
        parent, tree = self._calls.open_tool(), tree_now(self.recorder)
        self._call, self._opened = self._calls.begin(schema.MODEL_REQUEST, None)
        self.provider = self._opened.provider = self.provider or provider_of_request(body, self.url)
        fields: dict[str, Any] = {
            "provider": self.provider,
            "url": self.url,
            "parent": parent,
            "workspace": tree,
            "headers": recorded_headers(headers, request=True) or None,
        }
        tried, kept, results = attempt_of(by_name), kept_conversation(body), brought_results(body)
        body = text_if_utf8(body) if isinstance(body, bytes) else body
        with self.recorder.requesting():
            draft = self.recorder.draft(body)
            continues = draft.continues if draft is not None else None
            lane, attempt = self._calls.lanes.begin(self._call, continues, fingerprint, tried, kept, results)
            self._opened.lane = lane
            self._calls.request_leaves(lane)
            first = {
                "call": self._call,
                "lane": lane or None,
                **self._opened.caller,
                "attempt": attempt if attempt > 1 or tried else None,
            }
            fields = {name: value for name, value in {**first, **fields}.items() if value is not None}
            self.recorder.emit_request(fields, body, lane, draft, is_held=True)
        self.recorder.notify_listeners()

    def _leave_other(self, body: Any) -> None:
        """Write a request that is not for a completion."""
        self._call, self._opened = self._calls.begin(schema.HTTP_REQUEST, self.sort)
        about = {"call": self._call, "sort": self.sort, "method": self.method, "url": self.url}
        about |= self._opened.caller
        self.recorder.emit(schema.HTTP_REQUEST, request_fields(about, body, self.content_type))

    @property
    def who(self) -> str | None:
        """The thread, task or work item that made the request, None if that is not known."""
        return self._opened.who

    def forget(self) -> None:
        """Record nothing further: the call keeps no lane busy."""
        self.is_over = True
        _refused.pop(id(self), None)
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
            if status >= 400:
                _refused[id(self)] = ref(self)
            if not self._stream:
                return
            note_stream(self)
            texts, is_read = self.recorder.texts, not self.arrived.is_sealed
            if is_read and texts.blob_folder and texts.content() == "full":
                self.arrived.spill = Spill(texts.blob_folder, self._call, texts.redactor)

    def chunk(self, data: bytes) -> None:
        """Take in bytes of the answer as they pass."""
        try:
            if self._w is self.recorder.w and not self.is_over:
                self.arrived.add(data)
                if self._stream and is_last(data):
                    self.end()
        except Exception as exc:
            guard.swallow("record a piece of an answer", exc)

    def raised(self, exc: BaseException) -> None:
        """Record that the library raised this. Never raises."""
        self.end(how_raised(exc), exc)

    def end(self, how: str = COMPLETE, exc: BaseException | None = None) -> None:
        """Record the answer; called once, later calls change nothing. Never raises."""
        if self.is_over:
            return
        if how == CLOSED and self.is_whole:
            how = COMPLETE
        try:
            self._to_end.pop()
        except IndexError as again:  # a signal handler has come between, called a model and ended this
            guard.pass_on(again)
            return
        self.is_over, self.fault = True, None  # whose frames may hold us
        if self._w is not self.recorder.w:
            self.arrived.close_spill()
            return
        let_go_of_spill = self.arrived.close_spill  # what arrived stays on disk if nothing else has it
        try:
            if (self.recorder.closed or sys.is_finalizing()) and how in (CLOSED, CANCELLED):
                self.recorder.lost += 1  # dropped by the collector or the loop: not the agent's mistake
            else:
                self._end(how, exc)
                let_go_of_spill = self.arrived.forget_spill
        except Exception as fault:
            self.recorder.lost += 1
            guard.swallow("record an answer", fault)
        with guard.Swallowing("let go of an answer"):
            self.forget()
            let_go_of_spill()

    def _end(self, how: str, exc: BaseException | None) -> None:
        data = self.arrived.data()
        body, first = self._body(data, how)
        first.update(self.arrived.loss(first.get("problems", ())))
        error = self._error(how, exc, body, first, len(data))
        self._calls.open.pop(self._call, None)
        if self.sort != MODEL:
            self._end_other(body, error, first)
            return
        first["request_id"] = self._header(*REQUEST_ID)
        last = {
            "headers": recorded_headers(self._headers),
            "sent": self.sent and self.sent.described(),
            "replayed": self.replayed,
        }
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

    def _error(self, how: str, exc: BaseException | None, body: Any, first: dict[str, Any], size: int) -> Any:
        """Return the exception of a call, or the fields of an error that its response reports."""
        error = exc if how in (FAILED, CANCELLED) else None
        reported = first.pop("error", None)
        if error is not None:
            return error
        if reported is not None:
            kind, message = reported
        elif how == CUT and first["ended"] != COMPLETE:
            kind, message = "cut", f"the connection ended after {size} bytes of the answer"
        elif named := self._header("x-amzn-errortype"):
            kind, message = named.partition(":")[0], (error_of(body, self.provider) or (None, ""))[1]
        elif self.sort != MODEL and (self._status or 0) >= 400:
            kind, message = f"http_{self._status}", ""
        else:
            return None
        return {"type": kind, "message": message, "frames": caller_frames()}

    def _end_other(self, body: Any, error: Any, first: dict[str, Any]) -> None:
        """Write the response to a request that was not for a completion."""
        took = self._opened.duration_ms()
        about = {"call": self._call, "sort": self.sort, "status": self._status, "duration_ms": took}
        sent = self.sent.described() if self.sent is not None else None
        more = {"body": body, "sent": sent, "headers": recorded_headers(self._headers, method=self.method)}
        more |= {name: first.get(name) for name in ("problems", "lossy")}
        self.recorder.emit(schema.HTTP_RESPONSE, response_fields(about, error, more))

    def _body(self, data: bytes, how: str) -> tuple[Any, dict[str, Any]]:
        """Return the answer, and how it ended."""
        if self._status is None and not data:
            return None, {"ended": how}
        if self.arrived.is_sealed:
            why = f"content encoding {self._header('content-encoding')} cannot be read here"
            return None, {"ended": how, "problems": [why]}
        if self._stream is None:
            return whole_body(data, self.sort, self._header("content-type")), {"ended": how}
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
        for name in names:
            if name in self._by_name:
                return self._by_name[name]
        return None

    def __del__(self) -> None:
        if not self.is_over and self._call:  # the agent let go of the answer without reading or closing it
            self.end(CLOSED if self.fault is None or self.recorder.closed else FAILED, self.fault)
