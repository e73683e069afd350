"""What model calls cost: as the provider reports it, by the user's own prices, or by a dated price list.

Used by the debugger and the reports, never while recording. A cost that cannot be known is None with a
reason, never 0. What counts as what is in usage.py, list prices in rates.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..errors import UsageError
from .own_prices import OwnPrice, own_prices
from .rates import Card, PriceList, Rates
from .usage import Billable

Found = tuple[Card | Rates | None, str, str]
"""(rates, source, model), or (None, why not, model)."""

REPORTED, OWN, LISTED, REFUSED, REPLAYED = "told", "own", "genai-prices", "not billed", "replayed"

_VENDORS = {"bedrock": "aws", "gemini": "google"}
_SPOKEN_BY_OTHERS = {"openai": "openai", "openai-responses": "openai", "anthropic": "anthropic"}
"""Formats many servers speak, and the provider they come from."""

_MAX_REMEMBERED = 4096


class Price:
    """What one model call cost."""

    __slots__ = ("model", "parts", "source", "usd", "why")

    def __init__(
        self,
        usd: Decimal | None,
        source: str = "",
        why: str | None = None,
        model: str | None = None,
        parts: Mapping[str, Decimal] | None = None,
    ) -> None:
        self.usd = usd
        """None: unknown."""
        self.source = source
        """``told`` (the provider reports it), ``own``, ``genai-prices``, ``not billed`` (the provider refused
        the call), ``replayed`` (a recording gave the answer), or empty."""
        self.why = why
        """Why it is unknown."""
        self.model = model
        self.parts = parts or {}
        """Dollars by input, output, cache_read, cache_write …; empty for a cost that the provider reports."""

    def text(self) -> str:
        """Return the amount to be read by people."""
        return "unknown" if self.usd is None else money(self.usd)

    def __repr__(self) -> str:
        return f"Price({self.why or self.text()}, source={self.source!r}, model={self.model!r})"


class Bill:
    """The sum over many calls."""

    __slots__ = ("dated", "estimated", "priced", "reported", "source", "unknown")

    def __init__(self, source: str = "", dated: str | None = None) -> None:
        self.reported = Decimal(0)
        self.estimated = Decimal(0)
        self.priced = 0
        self.unknown: dict[str, int] = {}
        self.source = source
        self.dated = dated

    @property
    def usd(self) -> Decimal:
        """The dollars of all calls whose cost is known."""
        return self.reported + self.estimated

    @property
    def told(self) -> Decimal:
        """The older name of ``reported``."""
        return self.reported

    @property
    def unknown_calls(self) -> int:
        """How many calls have no known cost."""
        return sum(self.unknown.values())

    def add(self, price: Price) -> None:
        """Count one call."""
        if price.usd is None:
            why = price.why or "unknown"
            self.unknown[why] = self.unknown.get(why, 0) + 1
            return
        self.priced += 1
        if price.source == REPORTED:
            self.reported += price.usd
        else:
            self.estimated += price.usd

    def __iadd__(self, other: Bill) -> Bill:
        self.reported += other.reported
        self.estimated += other.estimated
        self.priced += other.priced
        for why, calls in other.unknown.items():
            self.unknown[why] = self.unknown.get(why, 0) + calls
        self.source = self.source or other.source
        self.dated = self.dated or other.dated
        return self

    def text(self) -> str:
        """Return the sum to be read by people; ``-`` if there was no call at all."""
        missing = self.unknown_calls
        if not self.priced:
            return "unknown" if missing else "-"
        if not missing:
            return money(self.usd)
        return f"{money(self.usd)} + {missing} {'call' if missing == 1 else 'calls'} unknown"

    def as_dict(self) -> dict[str, Any]:
        """Return the sum for JSON; ``usd`` is null if no call's cost is known."""
        return {
            "usd": float(self.usd) if self.priced else None,
            "told_usd": float(self.reported),
            "estimated_usd": float(self.estimated),
            "priced": self.priced,
            "unknown": dict(self.unknown),
            "source": self.source or None,
            "dated": self.dated,
        }

    def __repr__(self) -> str:
        return f"Bill({self.text()})"


class Book:
    """Where prices come from: the user's own, then the list of the genai-prices package."""

    def __init__(self, own: list[OwnPrice], listed: PriceList, wrong: str | None = None) -> None:
        self.wrong = wrong
        """What is wrong with the settings; only calls whose provider reports a cost are priced then."""
        self._own = own
        self._list = listed
        self._found: dict[tuple[object, ...], Found] = {}

    @classmethod
    def open(cls, folder: str | None = None) -> Book:
        """Open the book with the settings nearest to a folder; wrong ones leave prices unknown."""
        try:
            return cls(own_prices(folder), PriceList())
        except UsageError as why:  # a post-mortem must not fail for it, nor count with other prices
            return cls([], PriceList(), str(why))

    @property
    def has_own(self) -> bool:
        """True if the user has prices of their own."""
        return bool(self._own)

    @property
    def source(self) -> str:
        """Which price list is in use, and of when."""
        listed = self._list
        if self.wrong is not None:
            return f"none ({self.wrong})"
        if not listed.is_installed:
            return "none (pip install 'reenact[debug]')"
        dated = listed.dated
        return listed.broken or f"genai-prices {listed.version or ''}".strip() + (
            f", prices of {dated}" if dated else ""
        )

    @property
    def dated(self) -> str | None:
        """The day of the newest price of the list, as YYYY-MM-DD."""
        return self._list.dated

    def bill(self) -> Bill:
        """Return an empty bill that says where its prices come from."""
        return Bill(self.source, self.dated)

    def price(self, fields: Mapping[str, Any], request: Mapping[str, Any] | None = None) -> Price:
        """Return what an ended model call cost, from the fields of its line and of its request's."""
        call = Billable(fields, request or {})
        model = call.models[0] if call.models else None
        if fields.get("replayed") is not None:  # a recording gave the answer
            return Price(Decimal(0), REPLAYED, None, model)
        charged = call.charged()
        if charged is not None:
            return Price(charged, REPORTED, None, model)
        counts = call.counts()
        if counts is None:
            if call.is_refused():
                return Price(Decimal(0), REFUSED, None, model)
            return Price(None, why=call.why_no_counts(), model=model)
        if self.wrong is not None:
            return Price(None, why="the settings are wrong", model=model)
        if model is None:
            return Price(None, why="model name withheld" if call.model_is_withheld() else "no model name")
        found = self._look_up(call.models, call.url, call.provider)
        price = _charge(found, counts, call)
        for other, hidden in call.hidden():
            found = self._look_up([other or model], call.url, call.provider)
            price = _plus(price, _charge(found, hidden, call))
        return price

    def _look_up(self, names: list[str], url: str, provider: str | None) -> Found:
        key = (url, provider, *names)
        found = self._found.get(key)
        if found is None:
            if len(self._found) > _MAX_REMEMBERED:
                self._found.clear()
            found = self._found[key] = self._searched(names, url, provider)
        return found

    def _searched(self, names: list[str], url: str, provider: str | None) -> Found:
        host = self._list.provider_of(url) if url else None
        for model in names:
            for own in self._own:
                if own.fits(model, (provider, host)):
                    return own.rates, OWN, model
        for maker, model in self._candidates(names, host, provider):
            card = self._list.card(maker, model)
            if card is not None:
                return card, LISTED, model
        return None, self._why_not(names[0], host, provider), names[0]

    def _candidates(
        self, names: list[str], host: str | None, provider: str | None
    ) -> list[tuple[str | None, str]]:
        """Return (provider, model) in the order to try; a known address or provider is believed."""
        named = _VENDORS.get(provider, provider) if provider else None
        if host is None and named == "ollama":
            return []
        names = [name.removeprefix("models/") for name in names]
        if host or named not in (None, *_SPOKEN_BY_OTHERS):
            sure = host or named
            if sure == "aws":
                names.sort(key=lambda name: "." not in name)  # the long id says the region, too
            found: list[tuple[str | None, str]] = [(sure, name) for name in names]
            if host or self._list.lists(sure):
                return found
        else:
            found = []
        found += [candidate for name in names for candidate in _by_name(name)]
        return found + [(_SPOKEN_BY_OTHERS[named], name) for name in names if named in _SPOKEN_BY_OTHERS]

    def _why_not(self, model: str, host: str | None, provider: str | None) -> str:
        if provider == "ollama" and host is None:
            return "local model"
        if not self._list.is_installed:
            return "no price table installed"
        return "price table not readable" if self._list.broken else f"no price for {model}"


def _charge(found: Found, counts: Mapping[str, int], call: Billable) -> Price:
    card, source, model = found
    if card is None:
        return Price(None, why=source, model=model)
    wanted = None
    if isinstance(card, Rates):  # the user's price is the price, on whatever terms
        rates: Rates | None = card
    else:
        terms, surcharge = call.terms(), call.surcharge()
        wanted = surcharge or " ".join(terms.values())
        rates = None if surcharge else card.rates(call.seconds(), terms)
    if rates is None:
        return Price(None, why=f"no {wanted} price for {model}", model=model)
    for name, part in (("input_tokens", "input"), ("output_tokens", "output")):
        if counts[name] and name not in rates.names:
            return Price(None, why=f"no {part} price for {model}", model=model)
    parts = rates.charge(counts)
    if parts is None:
        return Price(None, why="usage does not add up", model=model)
    return Price(sum(parts.values(), Decimal(0)), source, None, model, parts)


def money(usd: Decimal) -> str:
    """Return dollars to be read by people: cents from a dollar on, four digits below."""
    if 0 < usd < Decimal("0.0001"):
        return "<$0.0001"
    if usd >= Decimal("0.99995"):
        return f"${usd:,.2f}"
    digits = f"{usd:.4f}"
    return "$" + (digits[:-2] if digits.endswith("00") else digits.rstrip("0"))


def _by_name(model: str) -> list[tuple[str | None, str]]:
    """Return (provider, model) to try for a name alone; some clouds have spellings of their own."""
    if model.startswith("arn:aws:bedrock:") or ("." in model and model[-2:] in (":0", ":1")):
        return [("aws", model)]
    if "@" in model:
        return [("google", model), (None, model)]
    if "/" in model:
        return [(None, model), ("litellm", model)]  # provider/model, as gateways write it
    return [(None, model)]


def _plus(one: Price, other: Price) -> Price:
    """Add a hidden call to the call it belongs to; unknown if either is."""
    if one.usd is None or other.usd is None:
        return one if one.usd is None else other
    parts = dict(one.parts)
    for name, usd in other.parts.items():
        parts[name] = parts.get(name, Decimal(0)) + usd
    return Price(one.usd + other.usd, one.source, None, one.model, parts)
