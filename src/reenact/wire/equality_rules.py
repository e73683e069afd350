"""Differences that do not make another request: one table, with a version, and the normal form by its rules.

Applied to parsed JSON, never to text. Prose is not touched: a wrong date can be the bug. The normal form is
a skeleton without generated ids, and the ids in order: two bodies are the same request if their skeletons are
equal and their ids pair alike.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .providers import PROVIDERS

VERSION = 3
"""Part of every fingerprint: new rules make new fingerprints."""

IDS = frozenset(key for provider in PROVIDERS for key in provider.ID_KEYS)
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

TEXT_PARTS = ("text", "input_text", "output_text")
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


# The normal form of a request's body.

ID = "<id>"
_MAX_DEPTH = 200
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def without_addresses(args: Any, depth: int = 0) -> Any:
    """Return arguments without the memory addresses in the ``repr`` of objects."""
    if type(args) not in (list, dict) or depth > _MAX_DEPTH:
        return args
    if type(args) is list:
        return [without_addresses(item, depth + 1) for item in args]
    text = args.get("$repr")
    if type(text) is str:
        return {**args, "$repr": _ADDRESS.sub("", text)}
    return {key: without_addresses(item, depth + 1) for key, item in args.items()}


def pairing(names: list[str]) -> str:
    """Return ids as numbers, in the order of their first appearance."""
    known: dict[str, int] = {}
    return ",".join([str(known.setdefault(name, len(known))) for name in names])


def skeleton(
    value: Any, names: list[str], *, key: str | None = None, top: bool = False, depth: int = 0
) -> Any:
    """Return the normal form of the value at ``key`` of a request; its ids are added to ``names``."""
    kind = type(value)
    if kind is str:
        return _text(value, names)
    if kind is dict:
        return _object(value, names, top, depth + 1) if depth < _MAX_DEPTH else {}
    if kind is list:
        items = [
            skeleton(item, names, depth=depth + 1)
            for item in value
            if depth < _MAX_DEPTH and not _dropped(item)
        ]
        if len(items) == 1 and key in ("content", "system") and _is_text_part(items[0]):
            return items[0]["text"]
        return items
    return int(value) if kind is float and value.is_integer() else value


def _object(value: dict[str, Any], names: list[str], top: bool, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # In the order of their names: where an id first appears must not depend on the order of keys.
    for key in sorted(value, key=str):
        item = value[key]
        if key in DROPPED or (top and key in DROPPED_AT_TOP) or is_default(key, item):
            continue
        if key in IDS and type(item) is str:
            names.append(item)
            found[key] = ID
        elif key in OPAQUE or (key == "input" and type(item) is dict and not top):
            found[key] = exact(_decoded(item) if key in JSON_TEXTS else item, names, depth)
        elif key in DROPPED_WITHIN and type(item) is dict:
            kept = {name: each for name, each in item.items() if name not in DROPPED_WITHIN[key]}
            if kept:
                found[key] = exact(kept, names, depth)
        else:
            found[key] = skeleton(item, names, key=key, depth=depth)
    return found


def exact(value: Any, names: list[str], depth: int = 0) -> Any:
    """Return the normal form of tool arguments: everything counts except the numbers of secrets."""
    kind = type(value)
    if kind is str:
        return _text(value, names)
    if kind is dict and depth < _MAX_DEPTH:
        return {key: exact(value[key], names, depth + 1) for key in sorted(value, key=str)}
    if kind in (list, tuple) and depth < _MAX_DEPTH:
        return [exact(item, names, depth + 1) for item in value]
    return value


def _text(value: str, names: list[str]) -> str:
    if "<redacted:" not in value:
        return value
    names += [found[0] for found in PLACEHOLDER.finditer(value)]
    return PLACEHOLDER.sub(r"<redacted:\1>", value)


def _decoded(value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _dropped(item: Any) -> bool:
    """True for an element that only marks a position in the provider's cache."""
    return type(item) is dict and len(item) > 0 and DROPPED.issuperset(item)


def _is_text_part(item: Any) -> bool:
    return (
        type(item) is dict
        and item.keys() <= {"type", "text"}
        and type(item.get("text")) is str
        and item.get("type", "text") in TEXT_PARTS
    )
