"""The price list of the genai-prices package, asked once per model and remembered on disk.

Used by prices.py. Importing the package takes longer than a whole report, so the cards taken from it
are kept in the user's cache folder; a new version of the package makes them void. Nothing here ever
asks the network.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from .rates import Card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FORMAT = 1
_MAX_CARDS = 256
"""Cards on disk, the newest; a trace may name any number of models."""
_MAX_WRITES = 64
_MAX_REMEMBERED = 4096

_EPOCH = 719163
"""1970-01-01 as ``date.toordinal()`` counts."""

_HOSTS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "openrouter.ai": "openrouter",
    "generativelanguage.googleapis.com": "google",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.x.ai": "x-ai",
}
_DOMAINS = (
    (".openai.azure.com", "azure"),
    (".services.ai.azure.com", "azure"),
    (".api.openai.com", "openai"),
    ("aiplatform.googleapis.com", "google"),
)


class PriceTable:
    """Cards by (provider, model), from memory, from disk or from the package, in this order."""

    def __init__(self) -> None:
        self._place = _installed()
        self._cards: dict[tuple[str | None, str], Card | None] = {}
        self._known: dict[str, Any] = {}
        self._snapshot: Any = None
        self._writes = 0
        self._hosts: dict[str, str | None] = {}
        self.broken: str | None = None
        """Why the package, though installed, cannot be used."""

    @property
    def is_installed(self) -> bool:
        return self._place is not None

    @property
    def version(self) -> str | None:
        return self._place[1] if self._place else None

    @property
    def dated(self) -> str | None:
        """The day of the newest price in the list, as YYYY-MM-DD."""
        return self._read().get("dated") if self._place else None

    def card(self, provider: str | None, model: str) -> Card | None:
        """Return the prices of a model; without a provider, of whoever is known for that name."""
        key = (provider, model)
        if key not in self._cards:
            if len(self._cards) > _MAX_REMEMBERED:
                self._cards.clear()
            self._cards[key] = self._find(provider, model)
        return self._cards[key]

    def lists(self, provider: str | None) -> bool:
        """True for a provider the list has under this very name."""
        return self._place is not None and any(name == provider for name, _ in self._read()["hosts"])

    def provider_of(self, url: str) -> str | None:
        """Return who is behind an address; None for hosts nobody is known for."""
        if url not in self._hosts:
            if len(self._hosts) > _MAX_REMEMBERED:
                self._hosts.clear()
            self._hosts[url] = self._host(url)
        return self._hosts[url]

    def _host(self, url: str) -> str | None:
        host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0].lower()
        if host in _HOSTS:
            return _HOSTS[host]
        for domain, provider in _DOMAINS:
            if host.endswith(domain):
                return provider
        if host.startswith("bedrock-runtime") and ".amazonaws." in host:
            return "aws"
        if "." not in host or host.replace(".", "").isdigit():
            return None  # localhost, an address
        import re

        for provider, pattern in self._read().get("hosts", ()) if self._place else ():
            if re.match(pattern, url):
                return str(provider)
        return None

    def _find(self, provider: str | None, model: str) -> Card | None:
        if self._place is None or self.broken:
            return None
        cards = self._read()["cards"]
        name = f"{provider or ''} {model}"
        if name not in cards:
            cards[name] = self._take(provider, model)
            while len(cards) > _MAX_CARDS:
                del cards[next(iter(cards))]
            if self._writes < _MAX_WRITES and not self.broken:
                self._writes += 1
                _write(self._known)
        try:
            return Card(cards[name]) if cards[name] is not None else None
        except (ArithmeticError, LookupError, TypeError, ValueError):  # not as we wrote it
            cards[name] = self._take(provider, model)
            return Card(cards[name]) if cards[name] is not None else None

    def _read(self) -> dict[str, Any]:
        """Return what is known on disk of this very package, else begin anew from the package."""
        if not self._known:
            stamp, _, installed = self._place or ("", None, 0.0)
            found = _load()
            if found.get("stamp") != stamp:
                found = {"stamp": stamp, "dated": None, "hosts": [], "cards": {}}
                package = self._package()
                if package is not None:
                    found["dated"] = _newest_price(package.providers, installed)
                    found["hosts"] = [[each.id, each.api_pattern] for each in package.providers]
                    _write(found)
            self._known = found
        return self._known

    def _package(self) -> Any:
        if self._snapshot is None and not self.broken:
            try:
                from genai_prices.data import providers
                from genai_prices.data_snapshot import DataSnapshot
                from genai_prices.units import _get_registry

                _get_registry()
                self._snapshot = DataSnapshot(providers=providers, from_auto_update=False)
            except Exception as exc:  # another version than we know, or damaged
                self.broken = f"genai-prices {self.version or ''} cannot be read: {exc}"
        return self._snapshot

    def _take(self, provider: str | None, model: str) -> dict[str, Any] | None:
        snapshot = self._package()
        if snapshot is None:
            return None
        try:
            owner, found = snapshot.find_provider_model(model, None, provider, None)
        except LookupError:
            return None
        try:
            return _plain(owner, found)
        except Exception as exc:
            self.broken = f"genai-prices {self.version or ''} cannot be read: {exc}"
            return None


def _plain(owner: Any, model: Any) -> dict[str, Any]:
    """Return a model of the package as a card."""
    from genai_prices.units import _get_registry

    registry = _get_registry()
    listed = model.prices if isinstance(model.prices, list) else [model.prices]
    prices: list[list[Any]] = [
        [_when(getattr(each, "constraint", None)), _rates(getattr(each, "prices", each), registry)]
        for each in listed
    ]
    variants: list[list[Any]] = [
        [dict(each.when), _when(each.constraint), _rates(each.prices, registry)]
        for each in model.price_variants or ()
        if any(model is own for own in owner.models)  # another provider's tiers are not this one's
    ]
    names = {name for each in [*prices, *variants] for name in each[-1]}
    units = {
        name: [registry.units[name].per, sorted(registry.ancestor_usage_keys(name))] for name in sorted(names)
    }
    return {"units": units, "prices": prices, "variants": variants}


def _rates(prices: Any, registry: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in vars(prices).items():
        if value is None or key.startswith("_"):
            continue
        name = registry.unit_for_price_key(key).usage_key
        if hasattr(value, "tiers"):
            found[name] = [str(value.base), [[tier.start, str(tier.price)] for tier in value.tiers]]
        else:
            found[name] = str(value)
    return found


def _when(constraint: Any) -> list[Any] | None:
    if constraint is None:
        return None
    if hasattr(constraint, "start_date"):
        return ["from", constraint.start_date.toordinal() - _EPOCH]
    return ["daily", _second(constraint.start_time), _second(constraint.end_time)]


def _second(time: Any) -> float:
    offset = time.utcoffset()
    second = time.hour * 3600 + time.minute * 60 + time.second - (offset.total_seconds() if offset else 0)
    return float(second % 86400)


def _newest_price(providers: Any, installed: float) -> str | None:
    """Return the newest day a price of the list began on, up to when the list was installed."""
    last = int(installed // 86400) + _EPOCH
    days = [
        each.constraint.start_date
        for provider in providers
        for model in provider.models
        for each in [*(model.prices if isinstance(model.prices, list) else ()), *(model.price_variants or ())]
        if hasattr(each.constraint, "start_date") and each.constraint.start_date.toordinal() <= last
    ]
    return max(days).isoformat() if days else None


def _installed() -> tuple[str, str | None, float] | None:
    """Return (stamp, version, time of installation) of the installed package without importing it."""
    from importlib.machinery import PathFinder

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


def _shelf() -> str:
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "reenact", "prices.json")


def _load() -> dict[str, Any]:
    """Return the cards on disk; empty for a file that is missing or not ours."""
    try:
        with open(_shelf(), "rb") as file:
            found = json.loads(file.read(1 << 22))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or not isinstance(found.get("cards"), dict):
        return {}
    hosts = found.get("hosts")
    pairs = isinstance(hosts, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in hosts)
    return found if pairs else {}


def _write(known: dict[str, Any]) -> None:
    """Keep the cards for the next process; a folder that cannot be written to is no failure."""
    path = _shelf()
    mine = f"{path}.{os.getpid()}.{id(known)}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(mine, "w", encoding="utf-8") as file:
            json.dump(known, file, separators=(",", ":"))
        os.replace(mine, path)
    except OSError:
        with suppress(OSError):
            os.unlink(mine)
