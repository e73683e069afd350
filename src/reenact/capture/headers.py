"""Which HTTP headers are told in a trace: those that say something of the call, none that name anybody."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

REQUEST_ID = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "x-goog-request-id")

_REQUEST = ("anthropic-version", "anthropic-beta", "openai-beta", "user-agent")
_RESPONSE = ("content-type", "x-should-retry", "x-amzn-errortype", "openai-processing-ms", "server-timing")
_RESPONSE_PARTS = (
    "ratelimit",
    "retry-after",
    "x-amzn-bedrock-",
    "x-litellm-response-cost",
    "x-litellm-model",
)


_known: dict[tuple[str, bool], str] = {}
"""Header names met, and what they are told as: not at all if that is empty."""


def told_headers(headers: Iterable[tuple[str, str]], *, request: bool = False) -> dict[str, str]:
    """Return the headers worth keeping, names in lower case."""
    found = {}
    for name, value in headers:
        told = _known.get((name, request))
        if told is None:
            told = _told_as(name, request)
        if told:
            found[told] = value
    return found


def _told_as(name: str, request: bool) -> str:
    low = name.lower()
    if request:
        told = low if low in _REQUEST else ""
    else:
        told = low if low in _RESPONSE or any(part in low for part in _RESPONSE_PARTS) else ""
    if len(_known) < 1_000:
        _known[name, request] = told
    return told


def attempt_of(headers: Iterable[tuple[str, str]]) -> int | None:
    """Return which attempt an SDK says this is, from 1; None if it does not say."""
    for name, value in headers:
        name = name.lower()
        try:
            if name == "x-stainless-retry-count":
                return int(value) + 1
            if name == "amz-sdk-request":  # attempt=1; max=3
                told = dict(part.strip().split("=", 1) for part in value.split(";") if "=" in part)
                return int(told["attempt"])
        except (ValueError, KeyError):
            return None
    return None
