"""Differences that do not make another request: one table, with a version.

Applied to parsed JSON, never to text. Prose is not touched: a wrong date can be the bug.
"""

from __future__ import annotations

import re

VERSION = 3
"""Part of every fingerprint: new rules make new fingerprints."""

IDS = frozenset({"id", "tool_use_id", "tool_call_id", "toolUseId", "call_id", "item_id"})
"""Keys of ids that a provider or framework generates: only their pairing counts."""

DROPPED = frozenset({"cache_control", "cachePoint", "cache_point"})
"""Keys that change the cost of a call, not its content; anywhere outside tool arguments."""

DROPPED_AT_TOP = frozenset({
    "stream", "stream_options", "streamOptions", "user", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "idempotency_key", "request_id", "client_request_id", "client_metadata",
})  # fmt: skip
"""Keys for transport, billing or telemetry; whether a stream is requested is kept separately."""

DROPPED_WITHIN = {"metadata": frozenset({"user_id"}), "_meta": frozenset({"progressToken"})}

CREDENTIALS = frozenset({"api_key"})
DROPPED_FROM_QUERY = CREDENTIALS | {"key", "alt", "$alt"}
"""For a model's URL; elsewhere ``key`` may be content."""

THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
"""Names of one host."""

DEFAULTS: dict[str, tuple[object, ...]] = {
    "temperature": (1,), "top_p": (1,), "n": (1,), "presence_penalty": (0,), "frequency_penalty": (0,),
    "logprobs": (False,), "parallel_tool_calls": (True,), "service_tier": ("auto",), "background": (False,),
    "truncation": ("disabled",), "is_error": (False,), "echo": (False,),
}  # fmt: skip
"""Values equal to an absent key; so is null for any key."""

OPAQUE = frozenset({
    "args", "arguments", "parameters", "input_schema", "inputSchema", "json_schema", "schema", "response",
    "json", "parametersJsonSchema", "responseSchema", "response_schema", "responseJsonSchema", "logit_bias",
    "prompt", "documents",
})  # fmt: skip
"""Keys of tools and schemas, stored prompts and documents: an ``id`` inside is content, and null is a
value."""

JSON_TEXTS = frozenset({"arguments"})
"""Keys with JSON as text: its spaces and the order of its keys do not count."""

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
"""A list of one such part equals its text."""

PLACEHOLDER = re.compile(r"<redacted:([^:<>]+):(\d+)>")
"""Placeholder of a secret. Its number counts only within a request; each process numbers its own."""


def is_default(key: str, value: object) -> bool:
    """True if a key may as well be absent."""
    if value is None:
        return True
    return any(
        value == each and (type(value) is bool) == (type(each) is bool) for each in DEFAULTS.get(key, ())
    )


# What follows a miss.

STRICT, KEEP_GOING, REBASE, RECORD_MISSING = "strict", "keep-going", "rebase", "record-missing"
"""After a miss: the run ends; other requests are still answered; a changed request gets the recorded answer
of its place; it is sent to the provider, in a test that allows it."""
