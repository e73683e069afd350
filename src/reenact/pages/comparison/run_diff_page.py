"""The page of two runs: the verdict, the roots with their evidence, and the steps side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from ...compare.comparison import where
from ...compare.report import Change, Difference, Row, RunDiff, Side, Step
from ...tracefile.events.text import count
from ..document import document
from ..frame import foot, verdict_badge, way_back
from ..html import Html, join, line, tag
from .changed_text import LeftOut, both_sides, folded, value_text

MOST_ROWS = 2_000
MOST_CHANGES = 40
"""Places in which two steps differ, of one difference."""
MOST_DIFFERENCES = 400
_HEADLINE = ("First difference", "Cause", "Consequence")
LEFT, RIGHT = "left", "right"


def run_diff_page(diff: RunDiff, runs: tuple[str, str] | None = None) -> str:
    """Return the page; ``runs`` are the paths of the two runs in the viewer, if it is part of that."""
    left_out = LeftOut()
    if diff.left_out:
        left_out.note(f"{count(diff.left_out, 'more difference')}, which the comparison only counted")
    names = dict.fromkeys((diff.left.name, diff.right.name))
    title = " and ".join(names) if len(names) > 1 else f"{diff.left.name}: two runs"
    roots = _roots_of(diff.differences)
    body = [
        way_back(("all runs", "/"), ("left run", runs[0]), ("right run", runs[1])) if runs else None,
        _head(diff, title),
        _roots(diff, roots, runs, left_out),
        _side_by_side(diff, roots, left_out),
        _not_known(diff),
    ]
    return document(title, *body, foot(left_out, [diff.left.path, diff.right.path]))


def _roots_of(differences: Sequence[Difference]) -> dict[int, int]:
    """Return by its number the root that each difference follows from, itself for a root."""
    found: dict[int, int] = {}
    for each in differences:  # what follows comes after what it follows from
        found[each.number] = each.number if each.follows is None else found.get(each.follows, each.number)
    return found


def _head(diff: RunDiff, title: str) -> Html:
    lines = [(name, words) for name, words in zip(_HEADLINE, diff.headline, strict=True) if words]
    return tag(
        "header",
        tag("p", "Two runs compared", class_="eyebrow"),
        tag("h1", line(title), " ", verdict_badge(diff.verdict)),
        tag(
            "dl",
            *(join(tag("dt", name), tag("dd", line(words))) for name, words in lines),
            class_="lead card",
        )
        if lines
        else None,
        tag("div", _run(LEFT, diff.left), _run(RIGHT, diff.right), class_="pair"),
        *(tag("p", line(note), class_="soft") for note in diff.notes),
    )


def _run(which: str, side: Side) -> Html:
    facts = [side.status, count(side.steps, "step"), side.run[:12] if side.run else ""]
    return tag(
        "div",
        tag("div", tag("span", which, class_="soft"), tag("h2", line(side.name)), class_="facts run"),
        tag("div", *(tag("span", line(fact), class_="soft") for fact in facts if fact), class_="facts"),
        tag("p", line(side.error), class_="error") if side.error else None,
        class_="card",
    )


def _roots(diff: RunDiff, roots: dict[int, int], runs: tuple[str, str] | None, left_out: LeftOut) -> Html:
    shown = diff.differences[:MOST_DIFFERENCES]
    if len(shown) < len(diff.differences):
        left_out.note(f"the details of {count(len(diff.differences) - len(shown), 'more difference')}")
    following: dict[int, list[Difference]] = {}
    for each in shown:
        following.setdefault(roots[each.number], []).append(each)
    cards = [
        _root(each, following[each.number][1:], runs, left_out)
        for each in shown
        if roots[each.number] == each.number
    ]
    if not cards:
        return tag("section", id="differences")
    small = tag("small", f" {len(cards)}, each with its cause")
    return tag("section", tag("h2", "Where the runs part", small), *cards, id="differences")


def _root(
    difference: Difference, following: list[Difference], runs: tuple[str, str] | None, left_out: LeftOut
) -> Html:
    inherited = None
    if following:
        summary = tag("summary", f"{count(len(following), 'difference')} that follow from it")
        inherited = tag("details", summary, *(_inherited(each, runs, left_out) for each in following))
    return tag(
        "article",
        _title(difference, runs),
        *_evidence(difference, left_out),
        tag("p", line(difference.hint), class_="soft") if difference.hint else None,
        inherited,
        id=f"d{difference.number}",
        class_="card root",
    )


def _title(difference: Difference, runs: tuple[str, str] | None) -> Html:
    cause = f"{difference.cause} ({difference.detail})" if difference.detail else difference.cause
    number = tag("span", str(difference.number), class_="number")
    left, right = runs or (None, None)
    at = [_event(LEFT, difference.left, left), _event(RIGHT, difference.right, right)]
    return join(
        tag("div", number, tag("h3", line(where(difference))), class_="facts"),
        tag("p", tag("span", line(cause), class_="cause"), " ", line(difference.because)),
        tag("div", *at, class_="facts"),
    )


def _event(side: str, steps: Sequence[Step], run: str | None) -> Html | None:
    """Return how to name the step in ``show`` and ``debug``, as a link to it where its run has a page."""
    if not steps or not steps[0].address:
        return None
    words = line(f"{side}: event {steps[0].address}")
    return tag("span", tag("a", words, href=f"{run}#/e/{steps[0].address}") if run else words, class_="soft")


def _evidence(difference: Difference, left_out: LeftOut) -> Iterator[Html]:
    for change in difference.changes[:MOST_CHANGES]:
        yield _change(change, left_out)
    more = len(difference.changes) - MOST_CHANGES
    if more > 0:
        left_out.note(
            f"{count(more, 'more place')} in which the steps of difference {difference.number} differ"
        )
    if not difference.changes:
        sides = [_sole(which, steps) for which, steps in ((LEFT, difference.left), (RIGHT, difference.right))]
        yield tag("div", tag("div", *sides, class_="pair"), class_="change")


def _sole(which: str, steps: Sequence[Step]) -> Html:
    lines = [line(f"{step.title}  {step.outcome}") for step in steps[:20]]
    return _side(which, tag("pre", Html("\n".join(lines)) if lines else "–"))


def _change(change: Change, left_out: LeftOut) -> Html:
    if change.has_left and change.has_right:
        left, right = both_sides(value_text(change.left), value_text(change.right), left_out)
    else:
        there = folded(value_text(change.left if change.has_left else change.right), left_out)
        missing = tag("p", "not there", class_="soft")
        left, right = (there, missing) if change.has_left else (missing, there)
    joint = "." if change.path and not change.path.startswith("[") else ""
    pair = tag("div", _side(LEFT, left), _side(RIGHT, right), class_="pair")
    return tag(
        "div", tag("p", line(f"{change.part}{joint}{change.path}"), class_="path"), pair, class_="change"
    )


def _side(which: str, body: Html) -> Html:
    return tag("div", tag("span", which, class_="label"), body, class_="side")


def _inherited(difference: Difference, runs: tuple[str, str] | None, left_out: LeftOut) -> Html:
    return tag("div", _title(difference, runs), *_evidence(difference, left_out), class_="change")


def _side_by_side(diff: RunDiff, roots: dict[int, int], left_out: LeftOut) -> Html | None:
    rows = diff.rows[:MOST_ROWS]
    if not rows:
        return None
    if len(rows) < len(diff.rows):
        left_out.note(f"{count(len(diff.rows) - len(rows), 'more row')} of the steps side by side")
    by_number = {each.number: each for each in diff.differences}

    def inherited_from(row: Row) -> int | None:
        """Rows that follow from the same root are folded together; all others stand by themselves."""
        root = None if row.difference is None else roots.get(row.difference)
        return None if root == row.difference else root

    parts: list[Html] = []
    for root, group in groupby(rows, inherited_from):
        some = [_row(row, by_number, diff.same_again) for row in group]
        if root is None:
            parts += some
        else:
            words = f"{count(len(some), 'step')} that differ because of {root}"
            parts.append(tag("details", tag("summary", words), *some))
    return tag("section", tag("h2", "Side by side"), tag("div", *parts, class_="steps"))


def _row(row: Row, by_number: dict[int, Difference], same_again: tuple[int, int] | None) -> Html:
    if row.skipped:
        return tag("div", f"… {count(row.skipped, 'equal step')}", class_="between")
    again = None
    if same_again is not None and (_number(row.left), _number(row.right)) == same_again:
        again = tag("div", "↓ from here on both runs are the same again", class_="between again")
    difference = by_number.get(row.difference) if row.difference is not None else None
    is_root = difference is not None and difference.is_root
    sort = "is-same" if difference is None else "is-root" if is_root else "is-inherited"
    link = row.difference if is_root else None
    pair = tag("div", _step(row.left, link), _step(row.right, None), class_=f"pair {sort}")
    return join(again, pair)


def _number(step: Step | None) -> int | None:
    return None if step is None else step.number


def _step(step: Step | None, link: int | None) -> Html:
    if step is None:
        return tag("div", class_="step empty")
    return tag(
        "div",
        tag("span", str(step.number), class_="no"),
        tag(
            "div",
            tag("span", line(step.title), class_="what"),
            tag("span", line(step.outcome), class_="out") if step.outcome else None,
            tag("a", f"why: difference {link}", href=f"#d{link}") if link is not None else None,
        ),
        class_="step",
    )


def _not_known(diff: RunDiff) -> Html | None:
    parts = []
    if diff.unknown:
        items = (
            f"{each.part} of step {each.left.number} and {each.right.number}: {each.why}"
            for each in diff.unknown
        )
        parts.append(
            tag("section", tag("h2", "Cannot tell"), tag("ul", *(tag("li", line(item)) for item in items)))
        )
    if diff.masks:
        words = tag("p", "These differ every time. They can be ignored in the settings; they were not.")
        paths = tag("ul", *(tag("li", tag("code", line(mask))) for mask in diff.masks))
        parts.append(tag("section", tag("h2", "Proposed to ignore"), words, paths))
    return join(*parts) if parts else None
