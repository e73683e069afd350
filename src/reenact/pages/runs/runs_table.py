"""The runs of a folder as a table: how each ended, its figures, and those made from it below it.

Rows have the same height, so that a script can show those in sight of a list of any length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...debugger.suspects.marks import Mark
from ...recording.listing import RunRow, input_text
from ...tracefile.events.text import age, compact, count, moment, plain, seconds, short_json
from ..html import Child, Html, join, line, tag
from ..run.run_header import status_badge
from .sparkline import sparkline

COLUMNS = (
    "status", "name", "input", "model", "turns", "tokens", "money", "per turn", "errors", "suspects",
    "duration", "age", "metadata",
)  # fmt: skip
_NUMBERS = frozenset(("turns", "tokens", "money", "errors", "suspects", "duration", "age"))
_UNSORTED = frozenset(("input", "per turn", "metadata"))
_MOST_META = 6
_HIDDEN_META = frozenset(("replay_of",))
"""Shown by the place of the row."""


class Line(NamedTuple):
    """One row: a run, and what else is known of it."""

    run: RunRow
    key: str
    above: RunRow | None = None
    """The run above it that it was made from, and its key."""
    above_key: str = ""
    lazy: LazyCells | None = None
    """None: not looked for yet."""


class LazyCells(NamedTuple):
    """What only the whole file shows."""

    money: str
    turns: tuple[tuple[int, bool], ...]
    suspects: Mark | None


def duration(row: RunRow) -> float | None:
    """Return how long a run took, or takes so far."""
    if row.started is None or row.ended is None or not 0 <= row.ended - row.started < 1e9:
        return None
    return row.ended - row.started


def runs_table(rows: list[Html], total: int, sort: str) -> Html:
    """Return the table with its first rows; ``sort`` is a column, with ``-`` for the other direction."""
    head = [
        tag("th", tag("span", "compare", class_="unseen"), scope="col", class_="col-pick"),
        *(_column(name, sort) for name in COLUMNS),
    ]
    return tag(
        "table",
        tag("thead", tag("tr", *head)),
        tag("tbody", *rows),
        class_="runs",
        aria_rowcount=str(total + 1),
        aria_label="runs",
    )


def _column(name: str, sort: str) -> Html:
    sort_class = f"col-{name.replace(' ', '-')}" + (" figure" if name in _NUMBERS else "")
    if name in _UNSORTED:
        return tag("th", name, scope="col", class_=sort_class)
    is_sorted = name == sort.removeprefix("-")
    is_reversed = sort.startswith("-")
    value = f"-{name}" if is_sorted and not is_reversed else name
    arrow = ("▴" if is_reversed else "▾") if is_sorted else ""
    button = tag(
        "button",
        name,
        tag("span", arrow, aria_hidden="true"),
        type="submit",
        name="sort",
        value=value,
        form="filter",
    )
    direction = ("ascending" if is_reversed else "descending") if is_sorted else None
    return tag("th", button, scope="col", class_=sort_class, aria_sort=direction)


def runs_row(shown: Line, number: int, now: float) -> Html:
    """Return one row; ``number`` counts from 0."""
    row, key = shown.run, shown.key
    at = {"aria_rowindex": str(number + 2), "data_key": key}
    if row.id is None and row.reason is not None:
        reason = tag("td", line(row.reason), colspan=str(len(COLUMNS) - 2), class_="soft")
        return tag(
            "tr", tag("td"), tag("td", status_badge(row.status)), tag("td", line(row.name)), reason, **at
        )
    took = duration(row)
    cells: list[Html] = [
        tag("td", _pick(row), class_="col-pick"),
        tag("td", status_badge(row.status), _damage(row)),
        tag("th", _name(shown), scope="row"),
        tag("td", _input(row), class_="input"),
        tag(
            "td",
            plain(row.model or "", 40),
            class_="soft col-model",
            title=plain(row.model or "", 200) or None,
        ),
        tag("td", compact(row.turns), class_="figure col-turns"),
        tag(
            "td",
            compact(row.tokens_in + row.tokens_out),
            class_="figure",
            title=f"{row.tokens_in:,} in, {row.tokens_out:,} out",
        ),
        *_lazy(shown.lazy, row),
        tag("td", seconds(took) if took is not None else "", class_="figure col-duration"),
        tag("td", age(row.started, now), class_="figure col-age", title=moment(row.started)),
        tag(
            "td",
            *_metadata(row),
            class_="col-metadata",
            title=short_json(row.meta, 400) if row.meta else None,
        ),
    ]
    return tag("tr", *cells, **at, class_="below" if shown.above is not None else None)


def _pick(row: RunRow) -> Html:
    return tag("input", type="checkbox", class_="pick", aria_label=f"compare {plain(row.name, 60) or row.id}")


def _damage(row: RunRow) -> Html | None:
    if not row.findings:
        return None
    return tag("span", " !", title="the file is damaged; `reenact doctor` shows where", class_="bad")


def _name(shown: Line) -> Html:
    """Return the link to the run; one below its origin bears its own name only if that is another."""
    row, above = shown.run, shown.above
    how = "fork" if row.is_fork else "replay" if row.made_from is not None else ""
    name, soft = plain(row.name, 80) or row.id or "-", how
    if above is not None:
        name, soft = (how, "└") if row.name == above.name else (name, f"└ {how}")
    link = tag("a", line(name), href=f"/run/{shown.key}", title=plain(f"{row.name} {row.id or ''}", 120))
    diff = None
    if above is not None:
        where = f"/diff?a={shown.above_key}&b={shown.key}"
        diff = tag("a", "diff", href=where, class_="diff", title="compare with the run above")
    return tag("div", tag("span", soft, class_="soft") if soft else None, link, diff)


def _input(row: RunRow) -> Html:
    words = plain(input_text(row), 160)
    error = tag("span", f"✗ {plain(row.error, 160)}", class_="bad") if row.error else None
    return tag(
        "div", error, " " if error and words else None, words, title=plain(input_text(row), 400) or None
    )


def _lazy(found: LazyCells | None, row: RunRow) -> Iterator[Html]:
    """Yield the cells from money to suspects; those that only the whole file shows may come later."""
    errors = tag("td", compact(row.errors), class_="figure bad" if row.errors else "figure soft")
    if found is None:
        yield tag("td", "·", class_="figure soft lazy", data_lazy="money")
        yield tag("td", class_="lazy col-per-turn", data_lazy="turns")
        yield errors
        yield tag("td", "·", class_="figure soft lazy col-suspects", data_lazy="suspects")
        return
    money, turns, suspects = lazy_cells(found)
    yield tag("td", money, class_="figure", data_lazy="money")
    yield tag("td", turns, class_="col-per-turn", data_lazy="turns")
    yield errors
    yield tag("td", suspects, class_="figure col-suspects", data_lazy="suspects")


def lazy_cells(found: LazyCells) -> tuple[Html, Html, Html]:
    """Return what stands in the cells of money, tokens per turn and suspects."""
    sum_known, _, unknown = found.money.partition(" + ")
    more = tag("span", "+?", class_="soft") if unknown else None
    money = tag("span", sum_known, more, title=found.money) if found.money else join("")
    return money, join(sparkline(found.turns)), _suspects(found.suspects)


def _suspects(mark: Mark | None) -> Html:
    if mark is None:
        return tag(
            "span", "–", class_="soft", title="looked for in runs that have ended and are smaller than 1 MB"
        )
    if not mark.number:
        return tag("span", "0", class_="soft")
    return tag(
        "span",
        str(mark.number),
        class_="suspect",
        title=f"{count(mark.number, 'suspect')}: {plain(mark.first, 200)}",
    )


def _metadata(row: RunRow) -> Iterator[Child]:
    """Yield facts of a run that a click adds to the search."""
    pairs = [(key, value) for key, value in row.meta.items() if key not in _HIDDEN_META]
    for key, value in pairs[:_MOST_META]:
        text = value if type(value) is str else short_json(value, 60)
        where = f'{key}="{text}"' if not text or set(text) & set(" \"'") else f"{key}={text}"
        yield tag(
            "button",
            f"{plain(key, 20)}={plain(text, 24)}",
            type="button",
            class_="fact",
            data_where=plain(where, 200),
            title=plain(where, 200),
        )
    if len(pairs) > _MOST_META:
        yield tag("span", f"+{len(pairs) - _MOST_META}", class_="soft")
