"""A recorded request as a command or a program that sends it again. Credentials are never in it."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from ..tracefile.events.event import Event
from ..wire.json_values import mapping, string

_HEADERS = {
    "anthropic": {"x-api-key": "$API_KEY", "anthropic-version": "2023-06-01"},
    "gemini": {"x-goog-api-key": "$API_KEY"},
}
_MOST_ARGUMENT = 100_000
"""Linux takes at most 128 KB as one argument."""
_WEB = re.compile(r"https?://[^\s\x00-\x20\x7f]+", re.ASCII)
_BEARER = {"authorization": "Bearer $API_KEY"}


def as_curl(request: Event) -> str:
    """Return a command for a shell: everything quoted, only ``$API_KEY`` is filled in by the shell."""
    headers = " ".join(f'-H "{name}: {value}"' for name, value in _headers(request).items())
    start = f"curl --globoff --url {shlex.quote(_url(request))} {headers}"
    body = json.dumps(_body(request))
    if len(body) <= _MOST_ARGUMENT:
        return f"{start} --data-raw {shlex.quote(body)}\n"
    return f"{start} --data-binary @- <<'JSON'\n{body}\nJSON\n"  # a body is one line, and never that word


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
    """Return where the request went, without what may hold a key; a trace may name a file, or an option."""
    url = (string(request.stored_fields.get("url")) or "").partition("?")[0]
    return url if _WEB.fullmatch(url) else "https://api.example.com/v1/messages"


def _body(request: Event) -> dict[str, Any]:
    return mapping(request.body)
