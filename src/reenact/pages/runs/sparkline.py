"""Small pictures of many numbers: the turns of a run, and the runs of a folder over time."""

from __future__ import annotations

from collections.abc import Sequence

from ...tracefile.events.text import compact, count, moment
from ..html import Html, tag

_MOST_BARS = 18
_WIDE, _GAP, _HIGH = 3, 1, 16
_BINS, _TALL = 80, 32


def sparkline(values: Sequence[tuple[int, bool]]) -> Html | None:
    """Return the tokens of each turn as bars, failed turns in another colour; None for less than two."""
    bars = _bucketed(values)
    most = max((value for value, _ in bars), default=0)
    if len(values) < 2 or not most:
        return None
    drawn = []
    for at, (value, failed) in enumerate(bars):
        height = max(1.0, _HIGH * value / most)
        drawn.append(_rect(at * (_WIDE + _GAP), _HIGH - height, _WIDE, height, "bad" if failed else None))
    width = len(bars) * (_WIDE + _GAP)
    first, last = (compact(values[at][0]) for at in (0, -1))
    words = f"tokens of {count(len(values), 'turn')}: {first} in the first, {last} in the last"
    return tag(
        "svg",
        tag("title", words),
        *drawn,
        viewBox=f"0 0 {width} {_HIGH}",
        width=str(width),
        height=str(_HIGH),
        role="img",
        aria_label=words,
    )


def _bucketed(values: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """Return at most so many bars as there is room for; each is the largest of those it stands for."""
    size = -(-len(values) // _MOST_BARS) or 1
    parts = [values[at : at + size] for at in range(0, len(values), size)]
    return [(max(value for value, _ in part), any(failed for _, failed in part)) for part in parts]


def runs_over_time(runs: Sequence[tuple[float, bool]]) -> Html | None:
    """Return when runs began, with those that failed in another colour; None if all began at once.

    A column bears the time it stands for, so that the script can reduce the list to it.
    """
    times = [began for began, _ in runs]
    first, last = min(times, default=0.0), max(times, default=0.0)
    if last - first < 1:
        return None
    width = (last - first) / _BINS
    bins = [[0, 0] for _ in range(_BINS)]
    for began, failed in runs:
        found = bins[min(_BINS - 1, int((began - first) / width))]
        found[0] += 1
        found[1] += failed
    most = max(number for number, _ in bins)
    columns = [
        _column(at, first + at * width, width, number, failed, most)
        for at, (number, failed) in enumerate(bins)
        if number
    ]
    failures = sum(failed for _, failed in runs)
    words = f"{count(len(runs), 'run')} from {moment(first)} to {moment(last)}, {failures:,} failed"
    return tag(
        "svg",
        *columns,
        viewBox=f"0 0 {_BINS} {_TALL}",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
        class_="over-time",
    )


def _column(at: int, begin: float, width: float, number: int, failed: int, most: int) -> Html:
    high = max(1.5, (_TALL - 1) * number / most)
    low = max(1.5, high * failed / number) if failed else 0.0
    words = f"{moment(begin)}: {count(number, 'run')}" + (f", {failed:,} failed" if failed else "")
    return tag(
        "g",
        tag("title", words),
        _rect(at, 0, 1, _TALL, "back"),
        _rect(at + 0.1, _TALL - high, 0.8, high, None),
        _rect(at + 0.1, _TALL - low, 0.8, low, "bad") if failed else None,
        data_since=f"{begin:.3f}",
        data_until=f"{begin + width:.3f}",
    )


def _rect(x: float, y: float, width: float, height: float, sort: str | None) -> Html:
    sizes = {"x": x, "y": y, "width": width, "height": height}
    return tag("rect", **{name: f"{value:.4g}" for name, value in sizes.items()}, class_=sort)
