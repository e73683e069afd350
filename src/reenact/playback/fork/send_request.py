"""Send a recorded request again without the agent, with credentials from the environment."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ...errors import UsageError
from ...wire.routes import host_of
from ..matching.equality_rules import PLACEHOLDER
from ..matching.request import Request
from ..matching.tape import RecordedCall
from ..replay.side_effect_guard import is_here

TIMEOUT_S = 600


class _Key(NamedTuple):
    """Where a provider expects its API key."""

    hosts: tuple[str, ...]
    header: str
    variables: tuple[str, ...]
    prefix: str = ""


_KEYS = (
    _Key(("anthropic.com",), "x-api-key", ("ANTHROPIC_API_KEY",)),
    _Key(("openai.azure.com",), "api-key", ("AZURE_OPENAI_API_KEY",)),
    _Key(("openai.com",), "authorization", ("OPENAI_API_KEY",), "Bearer "),
    _Key(("googleapis.com",), "x-goog-api-key", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    _Key(("mistral.ai",), "authorization", ("MISTRAL_API_KEY",), "Bearer "),
    _Key(("cohere.com", "cohere.ai"), "authorization", ("CO_API_KEY",), "Bearer "),
)
_BY_PROVIDER = {"anthropic": 0, "openai": 2, "openai-responses": 2, "gemini": 3, "mistral": 4, "cohere": 5}
_STREAMED_PATHS = ((":streamGenerateContent", ":generateContent"), (":streamRawPredict", ":rawPredict"))


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
    url = request.url or ""
    for streamed, plain in _STREAMED_PATHS:
        url = url.replace(streamed, plain)
    return Request(request.kind, request.name, body, url=_without_placeholders(url))


def send(request: Request, call: RecordedCall) -> Response:
    """Send a request and return the response, also an error; UsageError if the server cannot be reached."""
    recorded = {name: value for name, value in (call.event.headers or {}).items() if name != "user-agent"}
    headers = {"content-type": "application/json", **recorded, **_credentials(request.url or "", call)}
    if "x-api-key" in headers:
        headers.setdefault("anthropic-version", "2023-06-01")
    data = json.dumps(request.body, ensure_ascii=False, separators=(",", ":")).encode()
    outgoing = urllib.request.Request(request.url or "", data, headers, method=request.name)  # noqa: S310
    try:
        with urllib.request.urlopen(outgoing, timeout=TIMEOUT_S) as answer:  # noqa: S310
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


def key_variables(provider: object) -> tuple[str, ...]:
    """Return the environment variables for a provider's key, none for an unknown provider."""
    at = _BY_PROVIDER.get(provider) if type(provider) is str else None
    return _KEYS[at].variables if at is not None else ()


def _credentials(url: str, call: RecordedCall) -> dict[str, str]:
    host = host_of(url)
    key = next((each for each in _KEYS if host.endswith(each.hosts)), None)
    if key is None and call.event.provider in _BY_PROVIDER:
        key = _KEYS[_BY_PROVIDER[call.event.provider]]
    if key is None:
        return {}
    value = next((os.environ[name] for name in key.variables if os.environ.get(name)), None)
    if value is not None:
        return {key.header: key.prefix + value}
    if is_here(host):
        return {}
    raise UsageError(f"no API key for {host}", hint=f"set {' or '.join(key.variables)}")


def _without_placeholders(url: str) -> str:
    parts = urlsplit(url)
    pairs = [(name, value) for name, value in parse_qsl(parts.query) if not PLACEHOLDER.search(value)]
    return urlunsplit(parts._replace(query=urlencode(pairs)))
