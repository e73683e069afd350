"""Tap: the second article's capture of model and tool calls, reported by hand or by decorator."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar, overload

from ... import schema
from ...errors import UsageError
from ...wire import reading
from .. import guard
from ..calls.model_response import write_answer
from ..calls.open_calls import calls_of
from ..calls.tool_events import begin_tool, end_tool
from ..http.finished_streams import record_whole_streams
from ..import_lock import import_lock
from ..recorder.jsonable import snapshot, text_if_utf8
from ..workspace import tree_now
from .base import FrontEnd
from .step_log import rounded

F = TypeVar("F", bound=Callable[..., Any])

T = TypeVar("T")


class Tap(FrontEnd):
    """Record requests before they leave, answers when they come, tools around their work.

    ``Tap(output_path="runs/run.jsonl")`` writes a file, ``Tap(writer=function)`` hands every event to a
    function as a plain dict, ``Tap()`` joins the current run.
    """

    def __init__(self, output_path: Any = None, writer: Any = None, **options: Any) -> None:
        if writer is not None and not callable(writer):
            raise UsageError(
                f"writer={writer!r} is not callable", hint="writer takes a function of one event"
            )
        super().__init__(output_path, options, writer=writer)

    def record_model_request(
        self,
        body: Any,
        provider: str | None = None,
        *,
        lane: str = "main",
        url: str | None = None,
        attempt: int | None = None,
    ) -> str:
        """Record a request before it is sent; returns the call id that its response takes. Never raises."""
        try:
            recorder = self.recorder()
            body = decoded(body)
            if provider is None:
                try:
                    provider = reading.provider_of_request(body, url)
                except Exception as exc:  # an object in the conversation that cannot be looked at
                    guard.pass_on(exc)
            calls = calls_of(recorder)
            tree = tree_now(recorder)
            call, opened = calls.begin(schema.MODEL_REQUEST, None)
            opened.provider, opened.lane = provider, lane
            calls.request_leaves(lane)
            fields = {"call": call, "lane": lane, "provider": provider, "url": url, "attempt": attempt}
            fields |= {**opened.caller, "workspace": tree}
            recorder.emit_request(
                {name: value for name, value in fields.items() if value is not None}, body, lane
            )
            return call
        except Exception as exc:
            self._swallow("record a model request", exc)
            return ""

    def record_model_response(
        self,
        body: Any = None,
        *,
        call: str | None = None,
        error: Any = None,
        status: int | None = None,
        ttft_ms: float | None = None,
    ) -> None:
        """Record an answer, or ``error`` in its place; without ``call`` it ends the latest open request."""
        try:
            recorder = self.recorder()
            calls = calls_of(recorder)
            body = decoded(body)
            call, opened = calls.end(call or None, schema.MODEL_REQUEST, None)
            first = None if ttft_ms is None else {"ttft_ms": rounded(ttft_ms)}
            write_answer(recorder, calls, body, call, opened, error=error, status=status, first=first)
        except Exception as exc:
            self._swallow("record a model response", exc)

    def record_tool_call(
        self,
        tool_name: str,
        args: Any = None,
        *,
        tool_id: str | None = None,
        effect: str | None = None,
        source: str | None = None,
    ) -> str:
        """Record that a tool is about to run; returns the call id that its result takes. Never raises."""
        try:
            record_whole_streams()  # the answer that asks for this tool, if its client has not closed it yet
            recorder = self.recorder()
            calls = calls_of(recorder)
            parent, tool_id = calls.claim(tool_name, args, tool_id or None)
            return begin_tool(recorder, calls, tool_name, args, parent, tool_id, effect=effect, source=source)
        except Exception as exc:
            self._swallow("record a tool call", exc)
            return ""

    def record_tool_result(
        self, tool_name: str, result: Any = None, error: Any = None, *, call: str | None = None
    ) -> None:
        """Record how a tool ended; without ``call`` it ends the open one of that name. Never raises."""
        try:
            end_tool(self.recorder(), tool_name, result, error, call or None)
        except Exception as exc:
            self._swallow("record a tool result", exc)

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(
        self, function: None = None, *, name: str | None = None, effect: str | None = None
    ) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, *, name: str | None = None, effect: str | None = None) -> Any:
        """Decorate a tool: every call is recorded around its work, whatever it returns or raises."""
        if function is None:
            return lambda each: self.tool(each, name=name, effect=effect)
        with import_lock:
            from .decorators import watch_tool  # it needs inspect, which costs more than all else here

        return watch_tool(self, function, name, effect)

    def wrap(self, client: T) -> T:
        """Record every call an SDK's client makes from now on; returns the same client."""
        with import_lock:
            from ..seams.wrap import wrap  # the seams: nothing for a Tap whose calls are reported by hand

        wrap(self, client)
        return client

    def unwrap(self, client: T) -> T:
        """Give a client back as it was."""
        with import_lock:
            from ..seams.wrap import unwrap

        unwrap(client)
        return client


def decoded(body: Any) -> Any:
    """Return a body as JSON values: wire bytes and text are decoded, SDK objects made plain."""
    if isinstance(body, (bytes, bytearray, str)):
        try:
            return json.loads(body)
        except (ValueError, RecursionError, TypeError) as exc:
            guard.pass_on(exc)
            return body if isinstance(body, str) else text_if_utf8(body)
    return body if body is None or isinstance(body, (dict, list)) else snapshot(body)
