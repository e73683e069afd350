"""What two requests may differ in and still be the same request: one table, with a version.

Applied to parsed JSON, never to text. What is said in prose is not touched: a wrong date can be the bug.
"""

from __future__ import annotations

import re

VERSION = 3
"""Goes into every fingerprint: other rules, other fingerprints."""

IDS = frozenset({"id", "tool_use_id", "tool_call_id", "toolUseId", "call_id", "item_id"})
"""Keys of ids that a provider or a framework makes up: what counts is how they pair."""

DROPPED = frozenset({"cache_control", "cachePoint", "cache_point"})
"""Keys that change what a call costs, not what it asks; anywhere outside of what tools are given."""

DROPPED_AT_TOP = frozenset({
    "stream", "stream_options", "streamOptions", "user", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "idempotency_key", "request_id", "client_request_id", "client_metadata",
})  # fmt: skip
"""Keys of a request for its transport, billing or telemetry; whether a stream is asked for is told apart."""

DROPPED_WITHIN = {"metadata": frozenset({"user_id"}), "_meta": frozenset({"progressToken"})}

CREDENTIALS = frozenset({"api_key"})
DROPPED_FROM_QUERY = CREDENTIALS | {"key", "alt", "$alt"}
"""Of a model's URL; elsewhere ``key`` may be what is asked for."""

THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
"""Names of one host."""

DEFAULTS: dict[str, tuple[object, ...]] = {
    "temperature": (1,), "top_p": (1,), "n": (1,), "presence_penalty": (0,), "frequency_penalty": (0,),
    "logprobs": (False,), "parallel_tool_calls": (True,), "service_tier": ("auto",), "background": (False,),
    "truncation": ("disabled",), "is_error": (False,), "echo": (False,),
}  # fmt: skip
"""Said or left unsaid, it is the same; so is null for any key."""

OPAQUE = frozenset({
    "args", "arguments", "parameters", "input_schema", "inputSchema", "json_schema", "schema", "response",
    "json", "parametersJsonSchema", "responseSchema", "response_schema", "responseJsonSchema", "logit_bias",
    "prompt", "documents",
})  # fmt: skip
"""What belongs to tools and schemas, stored prompts and documents: an ``id`` in there is content, and null is
a value."""

JSON_TEXTS = frozenset({"arguments"})
"""Keys whose text is JSON: spaces and the order of keys in it are nobody's intention."""

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
"""A list of one such part says what the text alone would say."""

PLACEHOLDER = re.compile(r"<redacted:([^:<>]+):(\d+)>")
"""Of a secret: which one it is counts only within a request; another process numbers them anew."""


def is_default(key: str, value: object) -> bool:
    """True if a key may as well be absent."""
    if value is None:
        return True
    return any(
        value == each and (type(value) is bool) == (type(each) is bool) for each in DEFAULTS.get(key, ())
    )


# What follows a miss.

STRICT, KEEP_GOING, REBASE, RECORD_MISSING = "strict", "keep-going", "rebase", "record-missing"
"""After a miss: the run is over; others keep their answers; a changed request gets what stood there; it goes
out, in a test that may do so."""
