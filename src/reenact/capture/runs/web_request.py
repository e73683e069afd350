"""A request that a web application handles, as a run: there once something is recorded in it.

Of a request that records nothing only a few references are kept while it is handled.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from ...lines import new_id
from .. import guard
from ..calls import callers
from ..calls.error_fields import failure
from ..front.options import Options
from ..http.request_body import Sent
from ..http.response_body import as_json
from ..recorder.recorder import Recorder
from . import crashes, location
from .allowed_programs import allow, entry_key
from .entry_point import entry_of_app
from .run import RunContext

MAX_BODY = 8 << 20
"""Bytes of a request's body that are kept."""
REDACTED = "<redacted:header>"
_LONGEST_PART = 24
"""Of a path in a run's name, which is its file's name, too: what is longer is an id or a token."""
_RECORDED = frozenset(
    "accept accept-language content-type host idempotency-key if-match if-modified-since if-none-match "
    "origin prefer range user-agent x-request-id".split()
)
_OF_THE_WAY = frozenset(
    "accept-encoding cache-control cdn-loop connection content-length dnt expect forwarded keep-alive pragma "
    "priority proxy-connection te traceparent tracestate trailer transfer-encoding upgrade "
    "upgrade-insecure-requests via x-real-ip".split()
)
_OF_THE_WAY_TOO = ("sec-", "x-forwarded-", "cf-", "x-amzn-", "x-envoy-")
"""Headers about how a request travelled, which say nothing to who handles it."""

_entries: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


class HandledRun(RunContext):
    """One request of one application."""

    def __init__(self, app: Any, scope: dict[str, Any]) -> None:
        self.run_id = new_id(16)
        self.name = self._path = None
        self._head = {}
        self._recorder = (
            None  # our own, not super()'s: this is done for every request, most of which need none
        )
        self.caller = callers.enter_run()
        self.http_status: int | None = None
        self.is_over = False
        self._ended: tuple[str, dict[str, Any]] | None = None
        self._app = app
        self._scope = scope
        self._way = (scope.get("raw_path"), scope.get("path", ""), scope.get("root_path"))
        """As the request came: an application that is mounted has another idea of it."""
        self._body: list[bytes] = []
        self._kept = 0
        self._is_read = False

    def received(self, message: dict[str, Any]) -> None:
        """Keep what the application has read of the body, for as long as the run may still begin."""
        if self._recorder is not None or message.get("type") != "http.request":
            return
        data = message.get("body") or b""
        if self._kept <= MAX_BODY:
            self._body.append(data)
        self._kept += len(data)
        self._is_read = not message.get("more_body")

    def id_for_inner_runs(self) -> str | None:
        """Return this run only if there is one."""
        return self.run_id if self._recorder is not None else None

    def finish(self, exc: BaseException | None) -> None:
        """The application is done with the request. What a task of it does later is still recorded here."""
        self.is_over = True
        end: dict[str, Any] = {} if self.http_status is None else {"http_status": self.http_status}
        status = "error" if (self.http_status or 0) >= 500 else "ok"
        if exc is not None:
            status = "error" if isinstance(exc, Exception) else "cancelled"
            end["error"] = failure(exc)
        self._ended = (status, end)
        if self._recorder is None:
            return
        if exc is not None:
            self._recorder.emit("error", {"where": "run", "error": end["error"]})
            crashes.seen(exc)
        self._recorder.conclude(status, end)

    def _new_recorder(self) -> Recorder:
        try:
            self.name = self._route()
            self._head |= {**self._entry(), "input": self._input()}
        except Exception as exc:
            guard.swallow("describe a request", exc)
        self._options = Options()
        recorder = super()._new_recorder()
        self._body = []
        if self._ended is not None:  # begun by a task that the request has left behind
            recorder.conclude(*self._ended)
        return recorder

    def _entry(self) -> dict[str, str]:
        if self._app not in _entries:
            found = _entries[self._app] = entry_of_app(self._app)
            if found and not location.replaying:
                allow(entry_key(found["entry"], found.get("entry_from")))
        return _entries[self._app]

    def _route(self) -> str:
        """Return method and path, with the names of parameters in place of their values."""
        names = {str(value): f"{{{name}}}" for name, value in self._scope.get("path_params", {}).items()}
        parts = (names.get(part, part) if part else part for part in self._way[1].split("/"))
        path = "/".join(part if len(part) <= _LONGEST_PART else "{…}" for part in parts)
        return f"{self._scope.get('method', 'GET')} {path}"

    def _input(self) -> dict[str, Any]:
        raw, path, root = self._way
        if raw:
            url = raw.decode("ascii", "replace")
        else:
            url = quote(path)
        query = (self._scope.get("query_string") or b"").decode("ascii", "replace")
        headers = request_headers(self._scope.get("headers") or ())
        fields = {
            "method": self._scope.get("method", "GET"),
            "url": f"{url}?{query}" if query else url,
            "root_path": root or None,
            "headers": headers,
            **self._body_fields(headers.get("content-type", "")),
        }
        return {name: value for name, value in fields.items() if value is not None}

    def _body_fields(self, kind: str) -> dict[str, Any]:
        data = b"".join(self._body)
        if self._is_read and self._kept == len(data) and (not kind or "json" in kind.lower()):
            body = as_json(data)
            if body is not None:
                return {"body": body}
        sent = Sent(kind or None)
        sent.add(data)
        if self._is_read and self._kept == len(data):
            sent.all()
        return {"sent": sent.described()}


def request_headers(headers: Any) -> dict[str, str]:
    """Return the headers of a request: the harmless ones, and that there were others."""
    recorded = {}
    for name, value in headers:
        low = name.decode("latin-1").lower()
        if low in _RECORDED:
            recorded[low] = value.decode("latin-1")
        elif low not in _OF_THE_WAY and not low.startswith(_OF_THE_WAY_TOO):
            recorded[low] = REDACTED
    return recorded
