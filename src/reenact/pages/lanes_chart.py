"""The turns of each lane as bars: how long they took, their tokens, or what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..tracefile.events.text import milliseconds, plain
from .html import Html, join, line, tag

_MOST = 400
"""Bars of one lane; of more, the last."""
_WIDE, _GAP, _HIGH = 8, 2, 28


class Bar(NamedTuple):
    """One turn."""

    lane: str
    turn: int
    address: str
    values: dict[str, float]
    failed: bool = False


MEASURES: dict[str, Callable[[float], str]] = {
    "duration": milliseconds,
    "tokens": lambda value: f"{value:,.0f} tokens",
    "money": lambda value: f"${value:.4f}",
}


def lanes_chart(bars: Iterable[Bar], by: str) -> Html:
    """Return the lanes, one below the other, each bar a link to its turn."""
    lanes: dict[str, list[Bar]] = {}
    for bar in bars:
        lanes.setdefault(bar.lane, []).append(bar)
    most = max((bar.values.get(by, 0.0) for some in lanes.values() for bar in some), default=0.0)
    if not lanes or most <= 0:
        return tag("p", f"The {by} of turns is not known here.", class_="soft")
    return join(*(_lane(name, some, by, most) for name, some in lanes.items()))


def _lane(name: str, bars: list[Bar], by: str, most: float) -> Html:
    shown = bars[-_MOST:]
    width = len(shown) * (_WIDE + _GAP)
    drawn = [_bar(bar, at * (_WIDE + _GAP), by, most) for at, bar in enumerate(shown)]
    left = f", the last {_MOST}" if len(shown) < len(bars) else ""
    svg = tag(
        "svg",
        *drawn,
        viewBox=f"0 0 {width} {_HIGH}",
        width=str(width),
        height=str(_HIGH),
        role="group",
        aria_label=f"{by} of the turns of lane {plain(name, 60)}",
    )
    return tag(
        "div",
        tag("span", line(name), left, class_="soft"),
        tag("div", svg, class_="bars"),
        class_="lane-bars",
    )


def _bar(bar: Bar, x: int, by: str, most: float) -> Html:
    value = bar.values.get(by, 0.0)
    height = max(1.0, (_HIGH - 2) * value / most)
    words = f"turn {bar.turn}: {MEASURES[by](value)}"
    rect = tag(
        "rect",
        tag("title", words),
        x=str(x),
        y=f"{_HIGH - height:.1f}",
        width=str(_WIDE),
        height=f"{height:.1f}",
        rx="1",
    )
    back = tag("rect", x=str(x), y="0", width=str(_WIDE), height=str(_HIGH), class_="back")
    state = "bar failed" if bar.failed else "bar"
    return tag("a", back, rect, href=f"#/e/{bar.address}", class_=state, aria_label=words)
