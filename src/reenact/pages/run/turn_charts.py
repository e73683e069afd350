"""The turns of a run as bars: a row for each lane, and plots of tokens, money and latency.

All share one axis, the turns from one to another; many turns become one bar, of their mean. A click on a bar
leads to its first turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...debugger.turn_table import Bin, TurnTable
from ...tracefile.events.text import compact, milliseconds, plain
from ..html import Html, join, line, tag

_MOST_BARS = 240
_MOST_LANES = 24
_WIDE, _GAP = 1_000, 0.12


class Measure(NamedTuple):
    """What bars show: their parts from below, and the words for a value."""

    parts: tuple[tuple[str, Callable[[Bin], float]], ...]
    words: Callable[[float], str]

    def value(self, found: Bin) -> float:
        return sum(part(found) for _, part in self.parts) / found.turns


_TOKENS = (
    ("cached", lambda found: float(found.cached)),
    ("fresh", lambda found: float(found.fresh)),
    ("out", lambda found: float(found.out)),
)
MEASURES = {
    "duration": Measure((("time", lambda found: found.ms),), milliseconds),
    "tokens": Measure(_TOKENS, lambda value: f"{compact(round(value))} tokens"),
    "money": Measure((("money", lambda found: found.usd),), lambda value: f"${value:.4f}"),
}
_NAMES = {"tokens": "Tokens", "money": "Cost", "duration": "Latency"}


class Span(NamedTuple):
    """The turns that are shown."""

    first: int
    last: int


def span_of(table: TurnTable, first: int, last: int) -> Span:
    """Return the turns between two numbers as far as there are any; 0 stands for the ends."""
    end = max(1, min(last or len(table), len(table)))
    return Span(max(1, min(first or 1, end)), end)


def lanes_chart(table: TurnTable, by: str, span: Span) -> Html:
    """Return the lanes, one below the other, with bars of one measure."""
    lanes = {lane: table.bins(*span, _MOST_BARS, lane) for lane in table.lanes[:_MOST_LANES]}
    top = max((MEASURES[by].value(each) for bins in lanes.values() for each in bins), default=0.0)
    if top <= 0:
        return _empty(by)
    rows = [
        tag(
            "div",
            tag("button", line(plain(name, 40)), type="button", data_lane=name, title="list this lane only"),
            _bars(bins, by, span, top, f"{by} of the turns of lane {plain(name, 60)}"),
            class_="lane-bars",
        )
        for name, bins in lanes.items()
        if bins
    ]
    more = len(table.lanes) - _MOST_LANES
    rest = tag("p", f"{more:,} more lanes are not drawn.", class_="soft") if more > 0 else None
    return join(*rows, rest, _axis(table, span))


def turn_plots(table: TurnTable, span: Span) -> Html:
    """Return plots of tokens, money and latency of each turn."""
    bins = table.bins(*span, _MOST_BARS)
    plots = []
    for by, name in _NAMES.items():
        measure = MEASURES[by]
        top = max((measure.value(each) for each in bins), default=0.0)
        most = tag("span", f"up to {measure.words(top)} a turn", class_="soft") if top else None
        head = tag(
            "div", tag("h3", name), most, _legend() if by == "tokens" and top else None, class_="facts"
        )
        body = _bars(bins, by, span, top, f"{by} of each turn") if top > 0 else _empty(by)
        plots.append(tag("section", head, body, class_="plot"))
    return join(tag("div", *plots, class_="plots"), _axis(table, span))


def _empty(by: str) -> Html:
    return tag("p", f"The {by} of turns is not known here.", class_="soft")


def _legend() -> Html:
    words = (("cached", "cached"), ("fresh", "in"), ("out", "out"))
    return tag(
        "span", *(tag("span", word, class_=f"key-{name}") for name, word in words), class_="legend soft"
    )


def _axis(table: TurnTable, span: Span) -> Html:
    turns = f"turns {span.first:,} to {span.last:,} of {len(table):,}"
    note = turns if table.is_done else f"{turns}, {table.share:.0%} of the run read"
    return tag("p", note, class_="soft axis", data_first=str(span.first), data_last=str(span.last))


def _bars(bins: Sequence[Bin], by: str, span: Span, top: float, label: str) -> Html:
    scale = _WIDE / (span.last - span.first + 1)
    bars = [_bar(each, by, (each.first - span.first) * scale, scale, top) for each in bins]
    svg = tag(
        "svg",
        *bars,
        viewBox=f"0 0 {_WIDE} 100",
        preserveAspectRatio="none",
        role="group",
        aria_label=label,
    )
    return tag("div", svg, class_="bars")


def _bar(found: Bin, by: str, x: float, scale: float, top: float) -> Html:
    measure = MEASURES[by]
    width = (found.last - found.first + 1) * scale
    box = {"x": f"{x + width * _GAP / 2:.2f}", "width": f"{max(width * (1 - _GAP), 0.5):.2f}"}
    drawn, y = [], 100.0
    for name, part in measure.parts:
        height = 97 * part(found) / found.turns / top
        if height > 0:
            height = max(height, 1.0)
            y -= height
            drawn.append(tag("rect", y=f"{max(y, 0):.1f}", height=f"{height:.1f}", class_=name, **box))
    who = f"turn {found.first:,}" if found.turns == 1 else f"turns {found.first:,} to {found.last:,}, each"
    words = f"{who}: {measure.words(measure.value(found))}{', failed' if found.failed else ''}"
    back = tag(
        "rect", tag("title", words), x=f"{x:.2f}", width=f"{width:.2f}", y="0", height="100", class_="back"
    )
    return tag(
        "a",
        *drawn,
        back,
        href=f"#/e/turn:{found.first}",
        class_="bar failed" if found.failed else "bar",
        aria_label=words,
        data_first=str(found.first),
        data_last=str(found.last),
    )
