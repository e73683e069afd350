"""Which runs are meant: ``environment=prod``, ``tokens>1000``, ``--since 2h``; one grammar everywhere.

For ``ls``, ``stats`` and ``runs()``. A key is a fact of the run or of its metadata; text is never evaluated.
"""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import UsageError
from ..wire.json_values import as_text

_FILTER = re.compile(r"([^=!~<>]+)(!=|>=|<=|==?|~|>|<)(.*)", re.DOTALL)
_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

TEXTS = ("name", "status", "id", "path")
NUMBERS = ("turns", "steps", "tokens", "tokens_in", "tokens_out", "errors")
"""Both are known from the two ends of a file."""

DEEP_NUMBERS = (
    "llm_calls", "tool_calls", "cache_read", "cache_write", "reasoning", "duration_ms", "usd", "retried",
)  # fmt: skip
LISTS = {"model": "models", "tool": "tools", "stop_reason": "stop_reasons", "error": "error_types"}
"""Of these a run has several; it matches if one of them does (with ``!=``: if none does)."""

ENDS = ("input", "model", "error")
"""What the two ends of a file show: the input, the last model, the error a run ended with."""

DEEP = frozenset((*DEEP_NUMBERS, *LISTS))
"""Known only to those who read whole files."""


class Filter(NamedTuple):
    """One comparison."""

    key: str
    operator: str
    value: str

    def holds(self, row: Any) -> bool:
        """True if a run is meant; it may be a row of ``ls`` or of ``runs()``."""
        found = facts(row, self.key)
        if self.operator == "=":
            return self.value in found
        if self.operator == "!=":
            return self.value not in found
        if self.operator == "~":
            return any(self.value in one for one in found)
        wanted, numbers = _number(self.value), [_number(one) for one in found]
        return wanted is not None and any(
            number is not None and _COMPARE[self.operator](number, wanted) for number in numbers
        )


def parse_filter(text: str) -> Filter:
    """Return the comparison of ``environment=prod``, ``status!=ok``, ``name~trip`` or ``tokens>1000``."""
    found = _FILTER.fullmatch(text)
    if found is None or not found[1].strip():
        raise UsageError(
            f"the filter {text!r} does not compare anything",
            hint="write KEY=VALUE, KEY!=VALUE, KEY~PART or KEY>NUMBER, for instance environment=prod",
        )
    key, operator, value = found[1].strip(), found[2].replace("==", "="), found[3].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    if operator in _COMPARE and _number(value) is None:
        raise UsageError(
            f"the filter {text!r} compares with {value!r}, which is not a number",
            hint=f"for instance {key}{operator}1000",
        )
    return Filter(key, operator, value)


def facts(row: Any, key: str) -> list[str]:
    """Return what a run says under a key, as text; metadata goes before our own word for a figure."""
    if key in TEXTS:
        own = getattr(row, key)
        return [] if own is None else [str(own)]
    meta = row.meta.get(key.removeprefix("meta."))
    if meta is not None:
        return [as_text(meta)]
    if key in LISTS and hasattr(row, LISTS[key]):
        return [str(one) for one in getattr(row, LISTS[key])]
    if key in ENDS:
        own = getattr(row, key, None)
        return [] if own is None else [as_text(own)]
    if key == "usd":
        cost = getattr(row, "cost", None)
        return [str(cost.usd)] if cost is not None and cost.priced else []
    if key == "tokens":
        return [str(row.tokens_in + row.tokens_out)]
    value = getattr(row, key, None) if key in NUMBERS or key in DEEP_NUMBERS else None
    return [] if value is None else [str(value)]


def _number(text: str) -> float | None:
    try:
        return float(text.replace("_", "").replace(",", ""))
    except ValueError:
        return None


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}


def moment(since: Any, now: float | None = None) -> float:
    """Return seconds since the epoch of ``2h``, ``7d``, ``2026-11-01``, an ISO time, a number or datetime.

    A time without a zone is local.
    """
    if isinstance(since, int | float) and not isinstance(since, bool):
        return float(since)
    if isinstance(since, str):
        text = since.strip()
        ago = _AGO.fullmatch(text)
        if ago is not None:
            return (time.time() if now is None else now) - float(ago[1]) * _UNITS[ago[2]]
        since = _from_iso(text)
    timestamp = getattr(since, "timestamp", None)
    if timestamp is None and hasattr(since, "isoformat"):  # a date
        since = _from_iso(since.isoformat())
        timestamp = getattr(since, "timestamp", None)
    if timestamp is None:
        raise UsageError(f"{since!r} is not a time", hint="write 30m, 2h, 7d, 2026-11-01 or 2026-11-01T08:30")
    try:
        return float(timestamp())
    except (OverflowError, ValueError, OSError):
        raise UsageError(f"{since} is too far away", hint="name a year from 1970 on") from None


def _from_iso(text: str) -> Any:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
