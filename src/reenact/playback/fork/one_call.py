"""``reenact fork --one-call``: one recorded request, changed and sent again without the agent.

Credentials come from the environment; the call is a run of its own. The trace names the host: one that the
user does not know is asked about first (``permission``), and no redirection is followed.
"""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ...capture.http.headers import recorded_headers
from ...capture.runs.run import RunContext
from ...capture.seams.install import Seams, swap
from ...errors import UsageError
from ...recording.recording import Recording
from ...wire.equality_rules import PLACEHOLDER
from ...wire.routes import host_of, plain_path
from ..edits.cut_request import CutRequest
from ..edits.edits import Edits
from ..launch import TRY_ELSEWHERE
from ..matching.request import Request
from ..matching.tape import RecordedCall, Tape
from ..permission import NO_PERMISSION, Permission
from .api_keys import credentials
from .cut import call_at
from .tool_policy import Spent

TIMEOUT_S = 600
_HOST = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?", re.ASCII)
"""Without a user: what stands before an @ may look like a host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCallReport:
    """What one request, changed and sent by itself, came to."""

    run_id: str
    path: str
    """The trace file of the new run, which holds that call."""
    fork: dict[str, Any]
    status: int
    """Of HTTP."""
    notes: tuple[str, ...]
    provider: str | None
    recorded: Any
    """The recorded response."""
    answer: Any
    """The response now."""
    live: Spent

    @property
    def is_failed(self) -> bool:
        """True if the provider answered with an error."""
        return self.status >= 400

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "run": self.run_id, "path": self.path, "fork": self.fork, "status": self.status,
            "notes": list(self.notes), "recorded": self.recorded, "answer": self.answer,
            "live": self.live.as_dict(),
        }  # fmt: skip


def fork_one_call(
    recording: Recording,
    edits: Edits,
    at: str | None = None,
    name: str | None = None,
    permission: Permission = NO_PERMISSION,
) -> OneCallReport:
    """Send the request at a cut with changes; no agent runs. UsageError if it cannot be sent."""
    tape = Tape(recording)
    call = call_at(tape, at, recording)
    if edits.replaces_answer:
        raise UsageError(
            "--one-call asks the model, and --response says what it answered: nothing is left to send",
            hint="leave --one-call out to see what the agent makes of that answer",
        )
    edits.check(call, tape)
    request = plain_request(call)
    changed = edits.request(request.body, request.url or "", CutRequest(request.body, request.url))
    point = {"of": recording.run_id, "at": call.event.step, "call": call.id, "edits": edits.as_json()}
    live = Request(request.kind, request.name, changed.body, url=changed.url)
    headers = _headers(live, call)
    permission.require_host(recording, _described(live), host_of(live.url or ""))
    run_name = name or f"{recording.name}-fork"
    run, answer = copy_context().run(_send_recorded, live, headers, run_name, point)
    return OneCallReport(
        run_id=run.run_id,
        path=run.path or "",
        fork=point,
        status=answer.status,
        notes=tuple(changed.notes),
        provider=call.provider,
        recorded=call.answer.body,
        answer=answer.body,
        live=Spent(Recording.load(run.path or "", run.run_id)),
    )


def require_host(recording: Recording, at: str | None, permission: Permission) -> None:
    """Raise UsageError if the request at a cut must not be sent to its host."""
    request = plain_request(call_at(Tape(recording), at, recording))
    permission.require_host(recording, _described(request), host_of(request.url or ""))


def _described(request: Request) -> str:
    """Return what is sent where."""
    address = (request.url or "").partition("?")[0]
    return f"a request of {len(_encoded(request)):,} bytes to {address}"


def _send_recorded(
    request: Request, headers: dict[str, str], name: str, point: dict[str, Any]
) -> tuple[RunContext, Response]:
    """Send a request as a run of its own; in a context of its own, so that no other run is affected."""
    run = RunContext.start(name, fork=point, parent_run=point["of"])
    run.recorder().start()
    if not os.path.exists(run.path or ""):
        raise UsageError("the run cannot be written, so nothing was sent", hint=TRY_ELSEWHERE)
    seams = swap(Seams((host_of(request.url or ""),), everything=False, is_supervised=False))
    try:
        answer = send(request, headers)
    except BaseException:
        run.close("error")
        raise
    finally:
        swap(seams)
    run.close("error" if answer.status >= 400 else "ok")
    return run, answer


class Response(NamedTuple):
    """The provider's response."""

    status: int
    body: Any


def plain_request(call: RecordedCall) -> Request:
    """Return a recorded request to send on its own, without streaming.

    Raises UsageError if the recording does not hold all of it.
    """
    request = call.request
    if call.kind != "model" or type(request.body) is not dict:
        raise UsageError(f"{call.label()} is not a model call", hint="cut at a model call: --at turn:3")
    if "/model/" in (request.url or ""):
        raise UsageError(
            "requests to Bedrock are signed by its SDK", hint="fork with the agent: no --one-call"
        )
    found = PLACEHOLDER.search(json.dumps(request.body, ensure_ascii=False))
    if call.request_lossy or found is not None:
        reason = f"it contains {found[0]}" if found is not None else "the recording holds only a part of it"
        raise UsageError(
            f"{call.label()} cannot be sent as it was: {reason}",
            hint="fork with the agent, which makes the request itself: no --one-call",
        )
    body = {key: value for key, value in request.body.items() if key not in ("stream", "stream_options")}
    if "/api/" in (request.url or "") and request.body.get("stream") is not False:
        body["stream"] = False  # Ollama streams by default
    return Request(request.kind, request.name, body, url=_plain_url(request.url or ""))


def _headers(request: Request, call: RecordedCall) -> dict[str, str]:
    stored = call.event.headers
    items = stored.items() if type(stored) is dict else ()
    recorded = recorded_headers(((name, value) for name, value in items if type(value) is str), request=True)
    recorded.pop("user-agent", None)
    headers = {
        "content-type": "application/json",
        **recorded,
        **credentials(request.url or "", call.event.provider),
    }
    if "x-api-key" in headers:
        headers.setdefault("anthropic-version", "2023-06-01")
    return headers


def _encoded(request: Request) -> bytes:
    text = json.dumps(request.body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


class _StayThere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: urllib would send the key with it."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        raise UsageError(
            f"{host_of(req.full_url)} redirects to {newurl}, and nothing is sent there",
            hint="record the agent with that address",
        )


def send(request: Request, headers: dict[str, str]) -> Response:
    """Send a request and return the response, also an error; UsageError if the server cannot be reached."""
    try:
        outgoing = urllib.request.Request(  # noqa: S310
            request.url or "", _encoded(request), headers, method="POST"
        )
        opener = urllib.request.build_opener(_StayThere)
        with opener.open(outgoing, timeout=TIMEOUT_S) as answer:
            return Response(answer.status, _read(answer.read()))
    except urllib.error.HTTPError as exc:
        return Response(exc.code, _read(exc.read()))
    except (OSError, ValueError) as exc:
        why = getattr(exc, "reason", exc)  # urllib wraps it
        raise UsageError(
            f"{host_of(request.url or '')} does not answer: {why}",
            hint="check that it runs and is reachable from here",
        ) from exc


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _plain_url(url: str) -> str:
    """Return a URL without placeholders of secrets, and without requesting a stream."""
    try:
        parts = urlsplit(url)
        pairs = [(name, value) for name, value in parse_qsl(parts.query) if not PLACEHOLDER.search(value)]
    except ValueError:
        parts, pairs = urlsplit(""), []
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.netloc):
        raise UsageError(
            f"the recorded request has no address to send it to: {url[:200]!r}",
            hint="fork with the agent, which makes the request itself: no --one-call",
        )
    return urlunsplit(parts._replace(path=plain_path(parts.path), query=urlencode(pairs), fragment=""))
