"""Rate cards: the list prices of one model as plain numbers, and the arithmetic on them.

Used by prices.py. A card holds every price a model ever had, so that a call is charged by its own day.
A card is JSON as the shelf keeps it:

    {"units": {name: [per, [ancestors]]},
     "prices": [[when, {name: rate}]], "variants": [[terms, when, {name: rate}]]}

``rate`` is a decimal text, or [base, [[start, rate], …]] if long inputs cost more; ``when`` is null,
["from", day] or ["daily", second, second], days counted from 1970.
"""

from __future__ import annotations

from decimal import Decimal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DAY = 86400


class Rates:
    """What one model charges at one time on one set of terms."""

    __slots__ = ("lines", "names")

    def __init__(self, rates: Mapping[str, Any], units: Mapping[str, Any]) -> None:
        # Most specific first: what a special price covers is taken out of the general one.
        names = sorted(rates, key=lambda name: (-len(units[name][1]), name))
        self.names = frozenset(names)
        self.lines = [
            (
                name,
                name.removesuffix("_tokens"),
                [at for at, other in enumerate(names) if name in units[other][1]],
                *_per_unit(rates[name], int(units[name][0])),
            )
            for name in names
        ]

    def charge(self, counts: Mapping[str, int]) -> dict[str, Decimal] | None:
        """Return the dollars of each part; None if the counts contradict each other."""
        total_input = counts.get("input_tokens", 0)
        own: list[int] = []
        parts: dict[str, Decimal] = {}
        for name, part, inner, price, tiers in self.lines:
            amount = 1 if name == "requests" else counts.get(name, 0)
            for at in inner:
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


def _per_unit(rate: Any, per: int) -> tuple[Decimal, list[tuple[int, Decimal]]]:
    """Return the price of one unit and, longest first, of one unit of a long input."""
    base, tiers = rate if isinstance(rate, list) else (rate, [])
    steps = [(int(start), Decimal(price) / per) for start, price in tiers]
    return Decimal(base) / per, sorted(steps, reverse=True)


class Card:
    """The prices of one model through time."""

    __slots__ = ("_rates", "_units", "prices", "variants")

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._units = data["units"]
        self.prices: list[tuple[Any, dict[str, Any]]] = [
            (when, dict(rates)) for when, rates in data["prices"]
        ]
        self.variants: list[tuple[dict[str, str], Any, dict[str, Any]]] = [
            (dict(terms), when, dict(rates)) for terms, when, rates in data["variants"]
        ]
        self._rates: dict[object, Rates] = {}
        self._check()

    def _check(self) -> None:
        """Raise for what is no card here and not in the middle of a report."""
        standard = self.prices[0][1]
        for when, rates in [*self.prices, *((when, rates) for _, when, rates in self.variants)]:
            _applies(when, 0.0)
            Rates({**standard, **rates}, self._units)

    def rates(self, ts: float, terms: Mapping[str, str]) -> Rates | None:
        """Return what applied at a time; None if the terms are not standard and no list price is known."""
        chosen = 0
        for at in range(len(self.prices) - 1, -1, -1):
            if _applies(self.prices[at][0], ts):
                chosen = at
                break
        if not terms:
            return self._made((chosen,), self.prices[chosen][1], {})
        fitting = [
            at
            for at, (wanted, when, _) in enumerate(self.variants)
            if _applies(when, ts) and all(terms.get(key) == value for key, value in wanted.items())
        ]
        if not fitting:
            return None
        special: dict[str, Any] = {}
        for at in reversed(fitting):  # the first that names a price wins
            special.update(self.variants[at][2])
        return self._made((chosen, *fitting), self.prices[chosen][1], special)

    def _made(self, key: tuple[int, ...], standard: dict[str, Any], special: dict[str, Any]) -> Rates:
        made = self._rates.get(key)
        if made is None:
            made = self._rates[key] = Rates({**standard, **special}, self._units)
        return made


def _applies(when: Any, ts: float) -> bool:
    if when is None:
        return True
    if when[0] == "from":
        return bool(ts >= when[1] * DAY)
    second, begin, end = ts % DAY, when[1], when[2]
    return bool(second >= begin or second < end) if end < begin else bool(begin <= second < end)


def plain_card(rates: Mapping[str, str]) -> Card:
    """Return a card of prices per million tokens that always applied, as a user writes them."""
    return Card({"units": _OWN_UNITS, "prices": [[None, dict(rates)]], "variants": []})


_OWN_UNITS: dict[str, tuple[int, list[str]]] = {
    "input_tokens": (10**6, []),
    "output_tokens": (10**6, []),
    "cache_read_tokens": (10**6, ["input_tokens"]),
    "cache_write_tokens": (10**6, ["input_tokens"]),
    "cache_write_1h_tokens": (10**6, ["input_tokens", "cache_write_tokens"]),
    "output_reasoning_tokens": (10**6, ["output_tokens"]),
}
