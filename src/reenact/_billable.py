"""One ended model call as far as its cost is concerned, read from its line in any dialect.

Used by prices.py. Reads what the provider sent (``body``) first, what the recorder took from it
(``usage``) where the body was withheld, and the counts a StepLog writes beside each other.
"""

from __future__ import annotations

import time
from decimal import Decimal, InvalidOperation

from .wire import billing, shapes
from .wire.values import mapping, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MAX_NAME = 200
_MAX_URL = 2000


class Billable:
    """What a call was, who was asked, and what its provider says about its size and cost."""

    __slots__ = ("_asked", "_fields", "_raw", "body", "models", "provider", "url")

    def __init__(self, fields: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        self._fields = fields
        self._asked = request
        self.body = mapping(fields.get("body"))
        self._raw = billing.usage_object(self.body) if self.body else {}
        if not self._raw:
            self._raw = _usage(fields)
            if "$hash" in self.body or "$none" in self.body:
                self.body = {}
        self.url = (string(request.get("url")) or string(fields.get("url")) or "")[:_MAX_URL]
        provider = string(fields.get("provider")) or string(request.get("provider"))
        self.provider = provider[:_MAX_NAME] if provider else None
        self.models = self._named()
        """The model that answered, then the one that was asked for, as far as they are known."""

    def _named(self) -> list[str]:
        found: list[str] = []
        asked, url = self._asked, self.url
        body = asked.get("body")
        for name in (
            self.body.get("model") or (shapes.model_of(self.body) if self.body else None),
            self._fields.get("model"),
            asked.get("model"),
            shapes.model_of(body, url) if body or "/model" in url else None,
        ):
            if isinstance(name, str) and name and name not in found and "<redacted:" not in name:
                found.append(name[:_MAX_NAME])
        return found

    def model_is_withheld(self) -> bool:
        """True if a model is named, but not in words we may read."""
        return bool(self._fields.get("model") or self._asked.get("model") or self.body.get("model"))

    def told(self) -> Decimal | None:
        """Return the dollars the provider says it charged."""
        told = billing.told_cost(self._fields, self.body, self._raw)
        return None if told is None else dollars(told)

    def counts(self) -> billing.Counts | None:
        """Return what was used, by the names of price lists."""
        return billing.counts_of(self.body, self._raw, self.provider)

    def hidden(self) -> list[tuple[str | None, billing.Counts]]:
        """Return calls inside this one that its own counts leave out."""
        return billing.hidden_calls(self._raw, self.models[0]) if "iterations" in self._raw else []

    def terms(self) -> dict[str, str]:
        """Return what selects another price than the standard one; ``batch=True`` is the user's own word."""
        if self._fields.get("batch") is True:
            return {"processing": "batch"}
        return billing.terms_of(self.body, self._raw)

    def surcharge(self) -> str | None:
        """Return what no price list covers."""
        return billing.surcharge_of(self._raw)

    def is_refused(self) -> bool:
        """True if the provider answered with an error: nothing is charged for that."""
        return billing.is_refused(self._fields, self.provider)

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
            from datetime import UTC, datetime

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


def dollars(told: object) -> Decimal | None:
    """Return an amount, or the sum of several, as written; None for what is none."""
    if isinstance(told, tuple):
        amounts = [dollars(each) for each in told]
        return None if None in amounts else sum(filter(None, amounts), Decimal(0))
    if isinstance(told, bool) or not isinstance(told, (int, float, str)):
        return None
    try:
        amount = Decimal(repr(told) if isinstance(told, float) else str(told)[:40])
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < 10**9 else None
