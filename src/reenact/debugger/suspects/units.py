"""Numbers with their units, in texts and in JSON: 882 lb, $12, {"weight_kg": 5}.

Only what is certain: a number is compared with the same number elsewhere, and only within one dimension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...wire.json_values import mapping, string

_UNITS = {
    "mass": "kg:kgs,kilo,kilos,kilogram,kilograms g:gram,grams mg lb:lbs,pound,pounds oz:ounce,ounces "
    "t:ton,tons,tonne,tonnes",
    "length": "km:kms,kilometer,kilometers,kilometre,kilometres m:meter,meters,metre,metres cm mm "
    "mi:mile,miles ft:foot,feet in:inch,inches yd:yard,yards",
    "temperature": "c:celsius,°c f:fahrenheit,°f kelvin",
    "money": "usd:dollar,dollars,$,us$ eur:euro,euros,€ gbp:£,sterling cents:cent jpy:yen,¥ chf cad aud "
    "inr:rupees,₹",
    "time": "ms:milliseconds,millisecond,millis s:sec,secs,second,seconds min:mins,minute,minutes "
    "h:hr,hrs,hour,hours days:day us:microseconds",
    "volume": "l:liter,liters,litre,litres ml gal:gallon,gallons",
    "speed": "mph km/h:kmh,kph knots:kn m/s",
    "size": "bytes:byte kb mb gb tb",
}
UNITS: dict[str, tuple[str, str]] = {
    word: (dimension, unit)
    for dimension, listed in _UNITS.items()
    for entry in listed.split()
    for unit, _, others in [entry.partition(":")]
    for word in (unit, *filter(None, others.split(",")))
}
"""By a word for it: dimension and unit."""

_LETTERS = frozenset("c f m s h l t g in us min mi day days second mb k".split())
"""Words that mean too much else to be read as a unit in a text, unless a number stands right before."""
_WORDS = sorted((re.escape(word) for word in UNITS if word not in "$€£¥₹"), key=len, reverse=True)
_AFTER = re.compile(
    r"(?<![\w.])(-?\d[\d,]{0,20}(?:\.\d{1,20})?)(\s?)(°?[cf]|" + "|".join(_WORDS) + r")(?![\w/])",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"(?:us)?([$€£¥₹])\s?(\d[\d,]{0,20}(?:\.\d{1,20})?)", re.IGNORECASE)
_IN = re.compile(
    rf"\b(?:in|as|unit:?)\s+(?:whole\s+|metric\s+|us\s+)?({'|'.join(_WORDS)})(?![\w/])", re.IGNORECASE
)


class Measure(NamedTuple):
    number: float
    dimension: str
    unit: str


def measures_in_text(text: str) -> Iterator[Measure]:
    """Yield the numbers with a unit in a text.

    >>> [(each.number, each.unit) for each in measures_in_text("882 lb, $1,200.50 and 3 in a row")]
    [(882.0, 'lb'), (1200.5, 'usd')]
    """
    for found in _AFTER.finditer(text):
        word = found[3].lower()
        if word in UNITS and (word not in _LETTERS or not found[2] or word in ("c", "f", "m", "g", "h")):
            yield Measure(_number(found[1]), *UNITS[word])
    for found in _BEFORE.finditer(text):
        yield Measure(_number(found[2]), *UNITS[found[1]])


def measures_in(value: Any, depth: int = 8) -> Iterator[Measure]:
    """Yield the numbers with a unit in JSON: by the end of a key, or by a field ``unit`` beside."""
    if isinstance(value, str):
        yield from measures_in_text(value[:100_000])
    elif isinstance(value, list) and depth:
        for each in value[:200]:
            yield from measures_in(each, depth - 1)
    elif isinstance(value, dict) and depth:
        item = mapping(value)
        beside = next((string(item.get(key)) for key in ("unit", "units", "currency") if item.get(key)), None)
        for key, each in list(item.items())[:200]:
            if isinstance(each, int | float) and not isinstance(each, bool):
                unit = unit_of_key(str(key)) or UNITS.get((beside or "").lower())
                if unit is not None:
                    yield Measure(float(each), *unit)
            else:
                yield from measures_in(each, depth - 1)


def unit_of_key(key: str) -> tuple[str, str] | None:
    """Return the unit that ends a key.

    >>> unit_of_key("weight_kg"), unit_of_key("amountCents"), unit_of_key("format")
    (('mass', 'kg'), ('money', 'cents'), None)
    """
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", key)
    return UNITS.get(words[-1].lower()) if len(words) > 1 and words[-1].lower() not in ("in", "us") else None


def unit_of_description(text: str) -> tuple[str, str] | None:
    """Return the one unit that a description says that a value is in: "The weight in kg."."""
    found = {
        UNITS[word.lower()] for word in _IN.findall(text[:2000]) if word.lower() not in ("us", "in", "s", "h")
    }
    return found.pop() if len(found) == 1 else None


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0
