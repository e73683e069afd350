"""What an ended model call used and what its provider charged, read from its line in any dialect.

Reads the provider's own usage object (``body``) first, what the recorder took from it (``usage``) where
the body was withheld, and the counts a StepLog writes beside each other. The names of the counts are those
of price lists: ``input_tokens`` and ``output_tokens`` are totals, all other token counts are parts of one
of them. Takes any decoded JSON value and never raises.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from ..wire import reading
from ..wire.json_values import mapping, mappings, string
from ..wire.neutral import count
from ..wire.providers.gemini import field

Counts = dict[str, int]

_MAX_COUNT = 1 << 62
"""No usage is larger."""

_STANDARD_TIERS = frozenset({"", "default", "standard", "auto", "on_demand", "unspecified"})
_HIDDEN = frozenset({"compaction", "advisor_message"})
_DETAILS = (
    ("input", "prompt_tokens_details"),
    ("input", "input_tokens_details"),
    ("input", "input_token_details"),
    ("output", "completion_tokens_details"),
    ("output", "output_tokens_details"),
    ("output", "output_token_details"),
)
_GEMINI_DETAILS = (
    ("promptTokensDetails", "input_{}_tokens"),
    ("toolUsePromptTokensDetails", "input_{}_tokens"),
    ("candidatesTokensDetails", "output_{}_tokens"),
    ("cacheTokensDetails", "cache_{}_read_tokens"),
)
_MEDIA = {"AUDIO": "audio", "IMAGE": "image", "DOCUMENT": "image", "VIDEO": "video"}
_MAX_NAME = 200
_MAX_URL = 2000


class Billable:
    """One ended call: its provider and model, what it used, and what its provider charged."""

    __slots__ = ("_fields", "_raw", "_request", "body", "models", "provider", "url")

    def __init__(self, fields: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        self._fields = fields
        self._request = request
        self.body = mapping(fields.get("body"))
        self._raw = usage_object(self.body) if self.body else {}
        if not self._raw:
            self._raw = _usage(fields)
            if "$hash" in self.body or "$none" in self.body:
                self.body = {}
        self.url = (string(request.get("url")) or string(fields.get("url")) or "")[:_MAX_URL]
        provider = string(fields.get("provider")) or string(request.get("provider"))
        self.provider = provider[:_MAX_NAME] if provider else None
        self.models = self._named()
        """The model that answered, then the one that was requested, as far as they are known."""

    def _named(self) -> list[str]:
        found: list[str] = []
        request, url = self._request, self.url
        body = request.get("body")
        for name in (
            self.body.get("model") or (reading.model_of(self.body) if self.body else None),
            self._fields.get("model"),
            request.get("model"),
            reading.model_of(body, url) if body or "/model" in url else None,
        ):
            if isinstance(name, str) and name and name not in found and "<redacted:" not in name:
                found.append(name[:_MAX_NAME])
        return found

    def model_is_withheld(self) -> bool:
        """True if a model is named, but not in words we may read."""
        return bool(self._fields.get("model") or self._request.get("model") or self.body.get("model"))

    def charged(self) -> Decimal | None:
        """Return the dollars the provider reports for the call."""
        cost = reported_cost(self._fields, self.body, self._raw)
        return None if cost is None else dollars(cost)

    def counts(self) -> Counts | None:
        """Return what was used, by the names of price lists."""
        found = counts_of(self.body, self._raw, self.provider)
        if found is None and not usage_object(self.body):  # the body is there, its usage stands beside it
            found = counts_of({}, self._raw, self.provider)
        return found

    def hidden(self) -> list[tuple[str | None, Counts]]:
        """Return calls inside this one that its own counts leave out."""
        return hidden_calls(self._raw, self.models[0]) if "iterations" in self._raw else []

    def terms(self) -> dict[str, str]:
        """Return what selects another price than the standard one; ``batch=True`` is the user's own word."""
        if self._fields.get("batch") is True:
            return {"processing": "batch"}
        return terms_of(self.body, self._raw)

    def surcharge(self) -> str | None:
        """Return what no price list covers."""
        return surcharge_of(self._raw)

    def is_refused(self) -> bool:
        """True if the provider answered with an error: nothing is charged for that."""
        return is_refused(self._fields, self.provider)

    def why_no_counts(self) -> str:
        """Return the reason to show for a call of unknown size."""
        if self._fields.get("error") is not None:
            return "failed without usage"
        return "usage not understood" if self._raw else "no usage"

    def seconds(self) -> float:
        """Return when it ended, in seconds since 1970; now if the line does not say."""
        ts = self._fields.get("ts")
        if isinstance(ts, (int, float)) and 0 <= ts < 1e11:
            return float(ts)
        if isinstance(ts, str):
            try:
                when = datetime.fromisoformat(ts)
                return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
            except (ValueError, OverflowError):
                pass
        return time.time()


def _usage(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the usage object of a line without a body."""
    if fields.get("input_tokens") is None and fields.get("output_tokens") is None:
        return mapping(fields.get("usage"))
    return {
        "input": fields.get("input_tokens"),
        "output": fields.get("output_tokens"),
        "cache_read": fields.get("cache_read_tokens"),
        "cache_write": fields.get("cache_write_tokens"),
        "reasoning": fields.get("reasoning_tokens"),
    }


def dollars(cost: object) -> Decimal | None:
    """Return an amount, or the sum of several, as written; None for what is none."""
    if isinstance(cost, tuple):
        amounts = [dollars(each) for each in cost]
        return None if None in amounts else sum(filter(None, amounts), Decimal(0))
    if isinstance(cost, bool) or not isinstance(cost, (int, float, str)):
        return None
    try:
        amount = Decimal(repr(cost) if isinstance(cost, float) else str(cost)[:40])
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < 10**9 else None


def counts_of(body: dict[str, Any], raw: dict[str, Any], provider: str | None = None) -> Counts | None:
    """Return the counts of an answer with its usage object ``raw``; an empty body is one that is withheld."""
    neutral = reading.usage(body, provider) if body else reading.usage_from_raw(raw)
    if neutral is None or not ("input" in neutral or "output" in neutral):
        return None
    counts = totals(neutral)
    _add_cache_writes(counts, raw)
    _add_media(counts, raw)
    _add_searches(counts, raw, body)
    return counts if max(counts.values()) < _MAX_COUNT else None


def totals(neutral: Mapping[str, int]) -> Counts:
    """Return neutral usage, whose input leaves the cached part out, as totals and their parts."""
    read, write = neutral.get("cache_read", 0), neutral.get("cache_write", 0)
    return {
        "input_tokens": neutral.get("input", 0) + read + write,
        "output_tokens": neutral.get("output", 0),
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "output_reasoning_tokens": neutral.get("reasoning", 0),
    }


def usage_object(body: dict[str, Any]) -> dict[str, Any]:
    """Return the usage object of an answer, wherever its provider keeps it."""
    for name in ("usage", "usageMetadata", "usage_metadata"):
        found = body.get(name)
        if isinstance(found, dict):
            return found
    return mapping(mapping(body.get("x_groq")).get("usage"))


def _add_cache_writes(counts: Counts, raw: dict[str, Any]) -> None:
    """Say how long what was written to the cache lives: the hour costs more than the five minutes."""
    if not counts["cache_write_tokens"]:
        return
    details = mapping(raw.get("prompt_tokens_details"))
    by_ttl = mapping(raw.get("cache_creation")) or mapping(details.get("cache_creation_token_details"))
    for ttl in ("5m", "1h"):
        written = count(by_ttl.get(f"ephemeral_{ttl}_input_tokens"))
        if written:
            counts[f"cache_write_{ttl}_tokens"] = written
    for entry in mappings(raw.get("cacheDetails")):
        written, lifetime = count(entry.get("inputTokens")), entry.get("ttl")
        if written and lifetime in ("5m", "1h"):
            name = f"cache_write_{lifetime}_tokens"
            counts[name] = counts.get(name, 0) + written


def _add_media(counts: Counts, raw: dict[str, Any]) -> None:
    for direction, name in _DETAILS:
        details = raw.get(name)
        if isinstance(details, dict):
            _add_named(counts, direction, details)
    if not ("promptTokenCount" in raw or "prompt_token_count" in raw):
        return
    for name, template in _GEMINI_DETAILS:
        for entry in mappings(field(raw, name)):
            medium = _MEDIA.get(str(entry.get("modality")))
            tokens = count(field(entry, "tokenCount"))
            if medium and tokens:
                key = template.format(medium)
                counts[key] = counts.get(key, 0) + tokens


def _add_named(counts: Counts, direction: str, details: dict[str, Any]) -> None:
    cached = mapping(details.get("cached_tokens_details"))
    for medium in ("audio", "image"):
        tokens = count(details.get(f"{medium}_tokens"))
        if tokens:
            counts[f"{direction}_{medium}_tokens"] = tokens
            read = count(cached.get(f"{medium}_tokens"))
            if read and direction == "input":
                counts[f"cache_{medium}_read_tokens"] = read


def _add_searches(counts: Counts, raw: dict[str, Any], body: dict[str, Any]) -> None:
    """Count searches the provider ran itself and charges apiece."""
    requests = count(mapping(raw.get("server_tool_use")).get("web_search_requests"))
    searches = requests or count(raw.get("num_search_queries"))  # the second is Perplexity's
    if searches:
        counts["web_searches"] = searches
    if body.get("object") != "response":
        return
    kinds = [_hosted(item) for item in mappings(body.get("output"))]
    for name in ("web_searches", "storage_searches"):
        if name in kinds:
            counts[name] = kinds.count(name)


def _hosted(item: dict[str, Any]) -> str:
    if item.get("type") == "file_search_call":
        return "storage_searches"
    action = mapping(item.get("action")).get("type", "search")  # opening a page found is not charged
    return "web_searches" if item.get("type") == "web_search_call" and action == "search" else ""


def hidden_calls(raw: dict[str, Any], model: str | None) -> list[tuple[str | None, Counts]]:
    """Return (model, counts) of calls inside an Anthropic answer that its top-level usage leaves out.

    Those are compactions, advisors (both documented so), and an attempt of another model that began to
    answer before it declined; one that declined at once is not charged.
    """
    found = []
    for entry in mappings(raw.get("iterations")):
        kind, other = entry.get("type"), string(entry.get("model")) or model
        declined = kind == "message" and other != model and count(entry.get("output_tokens"))
        if kind in _HIDDEN or declined:
            counts = counts_of({}, entry)
            if counts is not None:
                found.append((other, counts))
    return found


def terms_of(body: dict[str, Any], raw: dict[str, Any]) -> dict[str, str]:
    """Return what selects another price than the standard one: ``service_tier``, ``processing``."""
    named = body.get("service_tier") or raw.get("service_tier") or raw.get("serviceTier")
    named = named or raw.get("trafficType") or raw.get("traffic_type")
    tier = (string(named or mapping(body.get("serviceTier")).get("type")) or "").lower()
    tier = tier.removeprefix("traffic_type_").removeprefix("on_demand_")
    if tier == "batch":
        return {"processing": "batch"}
    return {} if tier in _STANDARD_TIERS else {"service_tier": tier[:40]}


def surcharge_of(raw: dict[str, Any]) -> str | None:
    """Return what makes an Anthropic answer dearer or cheaper than any list price; None if nothing does."""
    if raw.get("speed") == "fast":
        return "fast mode"
    if raw.get("inference_geo") == "us":
        return "US-only inference"
    if "fallback_credit" not in raw:
        return None
    status = mapping(mapping(raw["fallback_credit"]).get("status"))
    return "fallback credit" if status.get("type") == "redeemed" else None


def reported_cost(fields: Mapping[str, Any], body: dict[str, Any], raw: dict[str, Any]) -> object:
    """Return the dollars the provider or gateway reports, as written; None if it reports none."""
    cost = raw.get("cost")
    if isinstance(cost, dict):  # Perplexity
        cost = cost.get("total_cost")
    if cost is not None and raw.get("is_byok") is True:
        return _own_key(cost, mapping(raw.get("cost_details")).get("upstream_inference_cost"))
    if cost is not None:
        return cost
    if "cost_in_usd_ticks" in raw:  # xAI
        ticks = count(raw["cost_in_usd_ticks"])
        return None if ticks is None else f"{ticks}e-10"
    for place in (body, fields):  # LiteLLM, or what the user wrote beside the counts
        if place.get("response_cost") is not None:
            return place["response_cost"]
    if fields.get("cost_usd") is not None:
        return fields["cost_usd"]
    if body.get("type") == "result":  # the last word of Claude's agent loop
        return body.get("total_cost_usd")
    if "_hidden_params" in body:  # LiteLLM
        return mapping(body["_hidden_params"]).get("response_cost")
    if "headers" in fields:
        return mapping(fields["headers"]).get("x-litellm-response-cost")
    return None


def _own_key(fee: object, upstream: object) -> object:
    """OpenRouter with the user's own key: its fee, and what the key's provider charges on top."""
    if upstream is None:
        return None  # the fee alone is not what the call cost
    return (fee, upstream)


def is_refused(fields: Mapping[str, Any], provider: str | None = None) -> bool:
    """True if the provider answered with an error and no usage: nothing is charged for that."""
    status = fields.get("status")
    if isinstance(status, int) and status >= 400:
        return True
    body = fields.get("body")
    return isinstance(body, dict) and reading.error_of(body, provider) is not None
