"""The user's own prices: ``[prices."MODEL"]`` in the settings."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from ..errors import UsageError
from ..settings import nearest_settings
from .rates import Rates, rate_lines

_PRICES = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "cache_write_1h": "cache_write_1h_tokens",
    "reasoning": "output_reasoning_tokens",
}
_UNITS = {
    "input_tokens": {"per": 10**6, "dimensions": {"direction": "input"}},
    "output_tokens": {"per": 10**6, "dimensions": {"direction": "output"}},
    "cache_read_tokens": {"per": 10**6, "dimensions": {"direction": "input", "cache": "read"}},
    "cache_write_tokens": {"per": 10**6, "dimensions": {"direction": "input", "cache": "write"}},
    "cache_write_1h_tokens": {
        "per": 10**6,
        "dimensions": {"direction": "input", "cache": "write", "lifetime": "1h"},
    },
    "output_reasoning_tokens": {"per": 10**6, "dimensions": {"direction": "output", "kind": "reasoning"}},
}
"""What a price is for; a unit with more dimensions is a part of one with fewer."""
_EXAMPLE = 'write for instance [prices."my-model*"] input = 0.5, output = 1.5 (US dollars per million tokens)'


class OwnPrice:
    """One ``[prices."pattern"]`` table."""

    __slots__ = ("pattern", "provider", "rates")

    def __init__(self, pattern: str, provider: str | None, rates: dict[str, str]) -> None:
        self.pattern = pattern.lower()
        self.provider = provider.lower() if provider else None
        self.rates = Rates(rate_lines(rates, _UNITS))

    def fits(self, model: str, providers: tuple[str | None, ...]) -> bool:
        """True for a model of this name, at this provider if one is named."""
        return fnmatchcase(model.lower(), self.pattern) and self.provider in (None, *providers)


def own_prices(folder: str | None = None) -> list[OwnPrice]:
    """Return the prices the user wrote down, exact names first, then in the order of the file."""
    path, settings = nearest_settings(folder)
    tables = settings.get("prices", {})
    if not isinstance(tables, dict):
        raise UsageError(f"{path}: prices is not a table", hint=_EXAMPLE)
    found = [_own_price(path, pattern, table) for pattern, table in tables.items()]
    return sorted(found, key=lambda own: any(sign in own.pattern for sign in "*?["))


def _own_price(path: str, pattern: str, table: Any) -> OwnPrice:
    where = f'{path}: prices."{pattern}"'
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table", hint=_EXAMPLE)
    provider, rates = None, {}
    for key, value in table.items():
        if key == "provider":
            if not isinstance(value, str) or not value:
                raise UsageError(f"{where}.provider is {value!r}, not a name", hint=_EXAMPLE)
            provider = value
        elif key == "currency" and value == "USD":
            continue
        elif key == "currency":
            raise UsageError(f"{where}.currency is {value!r}; only USD is known", hint=_EXAMPLE)
        elif key in _PRICES:
            rates[_PRICES[key]] = _rate(f"{where}.{key}", value)
        else:
            known = ", ".join([*_PRICES, "provider", "currency"])
            raise UsageError(f"{where}.{key} is not a setting", hint=f"known are {known}")
    for key in ("input", "output"):
        if _PRICES[key] not in rates:
            raise UsageError(f"{where} has no {key} price", hint=_EXAMPLE)
    if "cache_write_1h_tokens" in rates:
        rates.setdefault("cache_write_tokens", rates["input_tokens"])
    return OwnPrice(pattern, provider, rates)


def _rate(where: str, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < 1e9:  # also no nan
        raise UsageError(f"{where} is {value!r}, not a price", hint=_EXAMPLE)
    return repr(value)
