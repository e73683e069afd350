"""HTTP headers worth recording: those about the call, never credentials or identities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

REQUEST_ID = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "x-goog-request-id")

_REQUEST = ("anthropic-version", "anthropic-beta", "openai-beta", "user-agent")
_RESPONSE = (
    "content-type", "content-encoding", "x-should-retry", "x-amzn-errortype", "openai-processing-ms",
    "server-timing",
)  # fmt: skip
_RESPONSE_PARTS = (
    "ratelimit",
    "retry-after",
    "x-amzn-bedrock-",
    "x-litellm-response-cost",
    "x-litellm-model",
)


_OTHER = frozenset((
    "accept-ranges", "age", "allow", "cache-control", "content-disposition", "content-language",
    "content-location", "content-range", "date", "etag", "expires", "last-modified", "link", "location",
    "mcp-protocol-version", "vary", "www-authenticate", *REQUEST_ID,
))  # fmt: skip
"""Of responses to other calls: what a program reads to cache or to page."""
_OTHER_PARTS = ("x-total", "x-page", "x-per-page", "x-next", "x-prev", "x-pagination", "x-count")
_MODEL, _SENT, _ANY, _HEAD = "model", "sent", "any", "HEAD"

_known: dict[str, dict[str, str]] = {_SENT: {}, _MODEL: {}, _HEAD: {}, _ANY: {}}
"""Header names seen so far, and the name each is recorded under; empty if it is not recorded."""


def recorded_headers(
    headers: Iterable[tuple[str, str]], *, request: bool = False, method: str | None = None
) -> dict[str, str]:
    """Return the headers worth recording, names in lower case: of a model's response, of a ``request``, or of
    the response to another call, made by ``method``."""
    sort = _SENT if request else _MODEL if method is None else _HEAD if method == _HEAD else _ANY
    found: dict[str, str] = {}
    known = _known[sort]
    for name, value in headers:
        kept = known.get(name)
        if kept is None:
            kept = _kept_name(name, sort)
        if kept:
            is_list = kept in found and sort in (_ANY, _HEAD)
            found[kept] = f"{found[kept]}, {value}" if is_list else value
    return found


def _kept_name(name: str, sort: str) -> str:
    low = name.lower()
    if sort == _SENT:
        is_kept = low in _REQUEST
    else:
        is_kept = low in _RESPONSE or any(part in low for part in _RESPONSE_PARTS)
        if sort != _MODEL:
            is_kept = is_kept or low in _OTHER or low.startswith(_OTHER_PARTS)
            is_kept = is_kept or (sort == _HEAD and low == "content-length")
    kept = low if is_kept else ""
    if len(_known[sort]) < 1_000:
        _known[sort][name] = kept
    return kept


def attempt_of(headers: Mapping[str, str]) -> int | None:
    """Return the number of the attempt that the SDK reports, from 1; None if none. Names in lower case."""
    try:
        if "x-stainless-retry-count" in headers:
            return int(headers["x-stainless-retry-count"]) + 1
        if "amz-sdk-request" in headers:  # attempt=1; max=3
            parts = headers["amz-sdk-request"].split(";")
            return int(dict(part.strip().split("=", 1) for part in parts if "=" in part)["attempt"])
    except (ValueError, KeyError):
        return None
    return None
