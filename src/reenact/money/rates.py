"""List prices: the rates of the genai-prices package, and the arithmetic on them.

The package answers two questions through its public functions: who is behind an address, and what a
model charges at one time on one set of terms. Importing it takes longer than a whole report, so its
answers are kept in a file of the user's cache folder; another version of the package makes that file
void. Nothing here uses the network.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.machinery import PathFinder
from typing import Any

from ..tracefile import cache

_ENTRY = "prices.json"
_FORMAT = 2
_MAX_CARDS = 256
"""Models in the file, the newest; a trace may name any number of them."""
_MAX_RATES = 64
"""Sets of rates of one model; a trace may name any number of terms."""
_MAX_WRITES = 64
_MAX_REMEMBERED = 4096
_DAY = 86400
_EPOCH = date(1970, 1, 1)

_HOSTS = (
    ("api.openai.com", "openai"),
    ("api.anthropic.com", "anthropic"),
    ("openrouter.ai", "openrouter"),
    ("googleapis.com", "google"),
    ("api.deepseek.com", "deepseek"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral"),
    ("api.x.ai", "x-ai"),
    ("openai.azure.com", "azure"),
    ("services.ai.azure.com", "azure"),
)
"""Known also where the package is not installed: the user's own prices may name a provider."""


class Rates:
    """What one model charges at one time on one set of terms."""

    __slots__ = ("_lines", "names")

    def __init__(self, lines: Iterable[Any]) -> None:
        self._lines = [
            (str(name), str(name).removesuffix("_tokens"), list(inside), *_per_unit(price, tiers, per))
            for name, inside, per, price, tiers in lines
        ]
        self.names = frozenset(line[0] for line in self._lines)
        if any(not 0 <= at < own for own, line in enumerate(self._lines) for at in line[2]):
            raise ValueError("a part stands after what it is a part of")

    def charge(self, counts: Mapping[str, int]) -> dict[str, Decimal] | None:
        """Return the dollars of each part; None if the counts contradict each other."""
        total_input = counts.get("input_tokens", 0)
        own: list[int] = []
        parts: dict[str, Decimal] = {}
        for name, part, inside, price, tiers in self._lines:
            amount = 1 if name == "requests" else counts.get(name, 0)
            for at in inside:
                amount -= own[at]
            if amount < 0:
                return None
            own.append(amount)
            if amount:
                for start, dearer in tiers:
                    if total_input > start:
                        price = dearer
                        break
                parts[part] = price * amount
        return parts


def _per_unit(price: str, tiers: list[Any], per: int) -> tuple[Decimal, list[tuple[int, Decimal]]]:
    """Return the price of one unit and, longest first, of one unit of a long input."""
    steps = [(int(start), Decimal(dearer) / per) for start, dearer in tiers]
    return Decimal(price) / per, sorted(steps, reverse=True)


def rate_lines(prices: Mapping[str, Any], units: Mapping[str, Any]) -> list[list[Any]]:
    """Return prices by unit as ``Rates`` takes them: [unit, the lines inside it, per, price, tiers].

    Most specific first: what a special price covers is taken out of the general one.
    """
    sizes = {name: frozenset(units[name]["dimensions"].items()) for name in prices}
    names = sorted(prices, key=lambda name: (-len(sizes[name]), name))
    return [
        [
            name,
            [at for at, other in enumerate(names) if sizes[name] < sizes[other]],
            units[name]["per"],
            *_plain(prices[name]),
        ]
        for name in names
    ]


def _plain(price: Any) -> tuple[str, list[list[Any]]]:
    if hasattr(price, "tiers"):
        return str(price.base), [[tier.start, str(tier.price)] for tier in price.tiers]
    return str(price), []


class Card:
    """The rates of one listed model through time."""

    def __init__(self, prices: PriceList, name: tuple[str | None, str], data: dict[str, Any]) -> None:
        self._prices = prices
        self._name = name
        self._data = data
        self._starts: list[int] = [int(day) for day in data["starts"]]
        self._is_daily = bool(data["daily"])
        self._known: dict[object, Rates | None] = {}
        for lines in data["rates"].values():  # raises for what is damaged here, not in the middle of a report
            Rates(lines or ())

    def rates(self, seconds: float, terms: Mapping[str, str]) -> Rates | None:
        """Return what applied at a time; None if no price is listed for terms that are not standard."""
        period = bisect(self._starts, seconds // _DAY)
        key = period, seconds if self._is_daily else None, *terms.items()
        if key not in self._known:
            if len(self._known) > _MAX_REMEMBERED:
                self._known.clear()
            self._known[key] = self._look_up(period, seconds, terms)
        return self._known[key]

    def _look_up(self, period: int, seconds: float, terms: Mapping[str, str]) -> Rates | None:
        saved = self._data["rates"]
        key = " ".join([str(period), *(f"{name}={terms[name]}" for name in sorted(terms))])
        if key in saved and not self._is_daily:
            lines = saved[key]
        else:
            lines = self._prices.ask_rates(self._name, seconds, terms)
            if not self._is_daily and len(saved) < _MAX_RATES:
                saved[key] = lines
                self._prices.save()
        return None if lines is None else Rates(lines)


class PriceList:
    """The cards of models, from memory, from the cache file or from the package, in this order."""

    def __init__(self) -> None:
        self._installed = _installed()
        self._saved: dict[str, Any] = {}
        self._snapshot: Any = None
        self._writes = 0
        self.broken: str | None = None
        """Why the package, though installed, cannot be used."""

    @property
    def is_installed(self) -> bool:
        return self._installed is not None

    @property
    def version(self) -> str | None:
        return self._installed[1] if self._installed else None

    @property
    def dated(self) -> str | None:
        """The day of the newest price in the list, as YYYY-MM-DD."""
        return self._read().get("dated") if self._installed else None

    def card(self, provider: str | None, model: str) -> Card | None:
        """Return the rates of a model; without a provider, of the one known for that name."""
        if self._installed is None or self.broken:
            return None
        cards = self._read()["cards"]
        name = f"{provider or ''} {model}"
        for _ in range(2):
            if name not in cards:
                cards[name] = self._ask_model(provider, model)
                while len(cards) > _MAX_CARDS:
                    del cards[next(iter(cards))]
                self.save()
            try:
                return Card(self, (provider, model), cards[name]) if cards[name] is not None else None
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                del cards[name]  # not as we wrote it
        return None

    def lists(self, provider: str | None) -> bool:
        """True for a provider the list has under this very name."""
        return self._installed is not None and any(name == provider for name, _ in self._read()["hosts"])

    def provider_of(self, url: str) -> str | None:
        """Return who is behind an address; None for hosts nobody is known for."""
        host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
        for domain, provider in _HOSTS:
            if host == domain or host.endswith(f".{domain}"):
                return provider
        if host.startswith("bedrock-runtime") and ".amazonaws." in host:
            return "aws"
        if "." not in host or host.replace(".", "").isdigit():
            return None  # localhost, an address

        for provider, pattern in self._read().get("hosts", ()) if self._installed else ():
            if re.match(pattern, url):
                return str(provider)
        return None

    def save(self) -> None:
        """Keep what is known for the next process; a folder that cannot be written to does no harm."""
        if self._writes < _MAX_WRITES and not self.broken:
            self._writes += 1
            _write(self._saved)

    def ask_rates(
        self, name: tuple[str | None, str], seconds: float, terms: Mapping[str, str]
    ) -> list[list[Any]] | None:
        """Ask the package what a model charges at a time; None if it lists no price for these terms."""
        snapshot = self._package()
        if snapshot is None:
            return None
        from genai_prices.data_units import unit_data
        from genai_prices.types import Usage

        provider, model = name
        when = datetime.fromtimestamp(seconds, UTC)
        try:
            found = snapshot.calc(Usage(), model, provider, None, when, dict(terms) or None)
            if terms and not _covers(found, when, terms):
                return None
            listed = {unit: getattr(found.model_price, each["price_key"]) for unit, each in unit_data.items()}
            return rate_lines({unit: price for unit, price in listed.items() if price is not None}, unit_data)
        except Exception as exc:
            self._give_up(exc)
            return None

    def _ask_model(self, provider: str | None, model: str) -> dict[str, Any] | None:
        snapshot = self._package()
        if snapshot is None:
            return None
        try:
            _, found = snapshot.find_provider_model(model, None, provider, None)
        except LookupError:
            return None
        limits = [each.constraint for each in _dated_prices(found) if each.constraint is not None]
        days = {each.start_date for each in limits if hasattr(each, "start_date")}
        return {
            "starts": sorted((day - _EPOCH).days for day in days),
            "daily": any(not hasattr(each, "start_date") for each in limits),
            "rates": {},
        }

    def _read(self) -> dict[str, Any]:
        """Return what is saved of this very package, else begin anew from the package."""
        if not self._saved:
            stamp, _, installed = self._installed or ("", None, 0.0)
            saved = _load()
            if saved.get("stamp") != stamp:
                saved = {"stamp": stamp, "dated": None, "hosts": [], "cards": {}}
                snapshot = self._package()
                if snapshot is not None:
                    saved["dated"] = _newest_price(snapshot.providers, installed)
                    saved["hosts"] = [[each.id, each.api_pattern] for each in snapshot.providers]
                    _write(saved)
            self._saved = saved
        return self._saved

    def _package(self) -> Any:
        if self._snapshot is None and not self.broken:
            try:
                from genai_prices.data import providers
                from genai_prices.data_snapshot import DataSnapshot

                self._snapshot = DataSnapshot(providers=providers, from_auto_update=False)
            except Exception as exc:
                self._give_up(exc)
        return self._snapshot

    def _give_up(self, exc: Exception) -> None:
        """Do without a package that is damaged or of a version we do not know."""
        self._snapshot = None
        self.broken = f"genai-prices {self.version or ''} cannot be read: {exc}"


def _dated_prices(model: Any) -> list[Any]:
    return [*(model.prices if isinstance(model.prices, list) else ()), *(model.price_variants or ())]


def _covers(found: Any, when: datetime, terms: Mapping[str, str]) -> bool:
    """True if the list has prices for these terms; the package itself falls back on the standard ones."""
    if not any(found.model is own for own in found.provider.models):
        return False  # another provider's tiers are not this one's
    return any(
        (each.constraint is None or each.constraint.active(when))
        and all(terms.get(key) == value for key, value in each.when.items())
        for each in found.model.price_variants or ()
    )


def _newest_price(providers: Any, installed: float) -> str | None:
    """Return the newest day a price of the list began on, up to when the list was installed."""
    last = datetime.fromtimestamp(installed, UTC).date()
    days = [
        each.constraint.start_date
        for provider in providers
        for model in provider.models
        for each in _dated_prices(model)
        if hasattr(each.constraint, "start_date") and each.constraint.start_date <= last
    ]
    return max(days).isoformat() if days else None


def _installed() -> tuple[str, str | None, float] | None:
    """Return (stamp, version, time of installation) of the installed package without importing it."""
    spec = PathFinder.find_spec("genai_prices")
    if spec is None or not spec.origin:
        return None
    folder = os.path.dirname(spec.origin)
    data = os.path.join(folder, "data.py")
    try:
        state = os.stat(data)
        names = os.listdir(os.path.dirname(folder))
    except OSError:
        return None
    beside = [
        name[13:-10] for name in names if name.startswith("genai_prices-") and name.endswith(".dist-info")
    ]
    version = beside[0] if len(beside) == 1 else None
    return f"{_FORMAT} {version} {state.st_mtime_ns} {state.st_size}", version, state.st_mtime


def _load() -> dict[str, Any]:
    """Return what is saved; empty for a file that is missing or not ours."""
    try:
        saved = json.loads(cache.load(_ENTRY, 1 << 22) or b"")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(saved, dict) or not isinstance(saved.get("cards"), dict):
        return {}
    hosts = saved.get("hosts")
    pairs = isinstance(hosts, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in hosts)
    return saved if pairs else {}


def _write(saved: dict[str, Any]) -> None:
    cache.store(_ENTRY, json.dumps(saved, separators=(",", ":")).encode())
