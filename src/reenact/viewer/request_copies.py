"""A recorded request as a command or a program that sends it again. Credentials are never in it."""

from __future__ import annotations

import json
import shlex
from typing import Any

from ..tracefile.events.event import Event
from ..wire.json_values import mapping, string

_HEADERS = {
    "anthropic": {"x-api-key": "$API_KEY", "anthropic-version": "2023-06-01"},
    "gemini": {"x-goog-api-key": "$API_KEY"},
}
_BEARER = {"authorization": "Bearer $API_KEY"}


def as_curl(request: Event) -> str:
    """Return a command for a shell: everything quoted, only ``$API_KEY`` is filled in by the shell."""
    headers = " ".join(f'-H "{name}: {value}"' for name, value in _headers(request).items())
    body = shlex.quote(json.dumps(_body(request)))
    return f"curl {shlex.quote(_url(request))} {headers} --data-raw {body}\n"


def as_python(request: Event) -> str:
    """Return a program of the standard library; texts of the trace stand in it as literals only."""
    headers = _headers(request)
    pairs = ", ".join(
        f'{name!r}: {value.replace("$API_KEY", "")!r} + os.environ["API_KEY"]'
        if "$API_KEY" in value
        else f"{name!r}: {value!r}"
        for name, value in headers.items()
    )
    return (
        "import json\nimport os\nimport urllib.request\n\n"
        f"body = json.loads({json.dumps(_body(request))!r})\n"
        "request = urllib.request.Request(\n"
        f"    {_url(request)!r},\n    data=json.dumps(body).encode(),\n    headers={{{pairs}}},\n)\n"
        "print(urllib.request.urlopen(request).read().decode())\n"
    )


def _headers(request: Event) -> dict[str, str]:
    provider = string(request.stored_fields.get("provider")) or ""
    return {"content-type": "application/json", **_HEADERS.get(provider, _BEARER)}


def _url(request: Event) -> str:
    """Return where the request went, without what may hold a key."""
    url = string(request.stored_fields.get("url")) or "https://api.example.com/v1/messages"
    return url.partition("?")[0]


def _body(request: Event) -> dict[str, Any]:
    return mapping(request.body)
