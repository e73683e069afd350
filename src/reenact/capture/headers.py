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


def told_headers(headers: Iterable[tuple[str, str]], *, request: bool = False) -> dict[str, str]:
    """Return the headers worth keeping, names in lower case."""
    found = {}
    for name, value in headers:
        name = name.lower()
        if name in (_REQUEST if request else _RESPONSE) or (
            not request and any(part in name for part in _RESPONSE_PARTS)
        ):
            found[name] = value
    return found


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
