"""Rows, contenders and the table: how a figure is taken and shown.

Contenders take turns within a round (interleaved), so a slow moment of the machine hits all of them;
a contender's figure is the lowest of its rounds' medians. Only ratios of one run mean anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any


@dataclass
class Figure:
    """One line of the table: a ratio (or count) with its budget, and the absolutes it came from."""

    what: str
    value: float | None
    budget: float | None = None
    floor: float | None = None
    """What the least program takes that keeps the guarantees (``floors``)."""
    better: str = "low"
    unit: str = "x"
    against: str = ""
    ours: str = ""
    theirs: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        if self.budget is None:
            return ""
        good = self.value <= self.budget if self.better == "low" else self.value >= self.budget
        return "ok" if good else "MISSED"


@dataclass
class Table:
    """What one row module found: its figures and remarks."""

    title: str
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, what: str, value: float | None, **more: Any) -> None:
        self.figures.append(Figure(what, value, **more))

    def as_json(self) -> dict[str, Any]:
        figures = [{**asdict(f), "verdict": f.verdict} for f in self.figures]
        return {"title": self.title, "figures": figures, "notes": self.notes}


def timed(calls: Iterable[Callable[[], object]]) -> list[int]:
    """Return the CPU nanoseconds of this thread that each call took, the clock's own reading included."""
    clock = time.thread_time_ns
    spent = []
    for call in calls:
        begin = clock()
        call()
        spent.append(clock() - begin)
    return spent


def interleave(contenders: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[Any]]:
    """Run every contender once a round, starting with another one each round; return what each gave."""
    names = list(contenders)
    results: dict[str, list[Any]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            results[name].append(contenders[name]())
    return results


def best_p50(rounds: list[list[int]]) -> float:
    """Return the lowest of the rounds' medians, in nanoseconds."""
    return min(median(spent) for spent in rounds)


def percentile(values: list[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def us(ns: float) -> str:
    return f"{ns / 1e3:.1f} µs" if ns < 1e6 else f"{ns / 1e6:.1f} ms"


def size(count: float) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 1e6 else f"{count / 1e3:.1f} KB"


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def render(tables: list[dict[str, Any]]) -> str:
    """Return all tables as text a terminal and a Markdown page both show well."""
    lines: list[str] = []
    for table in tables:
        lines += ["", f"## {table['title']}", ""]
        head = ("what", "measured", "budget", "", "floor", "ours", "against", "theirs", "note")
        rows = [head] + [_cells(figure) for figure in table["figures"]]
        keep = [i for i in range(len(head)) if any(row[i] for row in rows[1:])]
        widths = [max(len(row[i]) for row in rows) for i in keep]
        for at, row in enumerate(rows if table["figures"] else []):
            cells = (row[i].ljust(width) for i, width in zip(keep, widths, strict=True))
            lines.append("| " + " | ".join(cells) + " |")
            if at == 0:
                lines.append("|" + "|".join("-" * (width + 2) for width in widths) + "|")
        lines += [f"- {note}" for note in table["notes"]]
    return "\n".join(lines).strip() + "\n"


def _cells(figure: dict[str, Any]) -> tuple[str, ...]:
    unit = " " + figure["unit"] if figure["unit"] else ""
    measured = number(figure["value"]) + (unit if figure["value"] is not None else "")
    sign = "≤ " if figure["better"] == "low" else "≥ "
    budget = "" if figure["budget"] is None else sign + number(figure["budget"])
    floor = "" if figure["floor"] is None else number(figure["floor"])
    more = (floor, figure["ours"], figure["against"], figure["theirs"], figure["note"])
    return (figure["what"], measured, budget, figure["verdict"], *more)
