"""Two runs side by side on a terminal: the three lines, the aligned steps, what changed word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...compare.comparison import cause_line, where
from ...compare.report import SAME, Change, Difference, Row, RunDiff, Step, Unknown
from ...compare.words import GONE, NEW, Words, word_changes
from ...tracefile.events.text import clean, count, cut, pad, plain, pretty_json, width_of
from ..output import Cell, Output
from .moments import MARKS, shortened

TWO_COLUMNS = 80
"""Columns of a terminal from which on the runs stand side by side."""

_ROWS = 24
"""Rows of aligned steps, unless all are wanted."""

_ROOTS = 5
_LINES = 12
"""Of one change, unless all is wanted."""

_MOST_CHANGES = 6
_COLORS = {GONE: "red", NEW: "green"}


def show_comparison(diff: RunDiff, out: Output, *, full: bool = False) -> None:
    """Print a comparison: three lines, the runs, the aligned steps, and what changed in each root."""
    show_headline(diff, out)
    out.line()
    _show_sides(diff, out)
    for note in diff.notes:
        out.paragraph([("note: ", "yellow"), (clean(note), "")])
    if diff.differences:
        out.line()
        _show_rows(diff, out, full)
        _show_differences(diff, out, full)
    if diff.unknown and (full or not diff.differences):
        out.line()
        _show_unknown(diff.unknown, out, full)
    _show_masks(diff, out)


def show_headline(diff: RunDiff, out: Output) -> None:
    """Print the first divergence, its cause and its consequence."""
    color = {SAME: "green"}.get(diff.verdict, "yellow")
    for name, text in zip(("first difference", "cause", "consequence"), diff.headline, strict=True):
        out.paragraph([(f"{name:18}", f"bold {color}"), (clean(text), "")])


def _show_sides(diff: RunDiff, out: Output) -> None:
    for name, side in (("left ", diff.left), ("right", diff.right)):
        facts = f"{plain(side.name, 40)}  {side.status}  {count(side.steps, 'step')}"
        path = cut(plain(side.path, 400), max(20, out.width - len(facts) - 9))
        out.line(out.cells([(f"{name}  ", "bold"), (f"{facts}  ", ""), (path, "dim")]))


# the aligned steps ----------------------------------------------------------------------------------


def _show_rows(diff: RunDiff, out: Output, full: bool) -> None:
    roots = {each.number: each for each in diff.differences}
    shown = diff.rows if full else diff.rows[:_ROWS]
    for row in shown:
        _show_row(row, roots, out)
    if len(shown) < len(diff.rows):
        more = count(len(diff.rows) - len(shown), "more row")
        out.line(out.paint(f"      … {more}; --all shows them", "yellow"))


def _show_row(row: Row, differences: dict[int, Difference], out: Output) -> None:
    if row.skipped:
        out.line(out.paint(f"      … {count(row.skipped, 'equal step')}", "dim"))
        return
    found = differences.get(row.difference or 0)
    mark = "" if found is None else str(found.number) if found.is_root else f"{found.number}←{found.follows}"
    style = "bold red" if found is not None and found.is_root else "yellow"
    one, other = row.left, row.right
    if found is None and one is not None and other is not None:
        number = "" if one.number == other.number else f"={other.number}"
        out.line(
            out.paint(cut(f"      {_step_text(one, out.width - 14)}  {number}", out.width).rstrip(), "dim")
        )
    elif out.width < TWO_COLUMNS:
        for step, sign, color in ((one, "-", "red"), (other, "+", "green")):
            if step is not None:
                out.line(out.cells([(f"{mark:>5} {sign} ", color), (_step_text(step, out.width - 8), "")]))
    else:
        sign = "-" if other is None else "+" if one is None else "≠"
        side = (out.width - 9) // 2
        left, right = (_step_text(step, side) if step is not None else "" for step in (one, other))
        out.line(
            out.cells(
                [(f"{mark:>5} ", style), (pad(left, side), ""), (f" {sign} ", style), (right, "")]
            ).rstrip()
        )


def _step_text(step: Step, width: int) -> str:
    outcome = f" → {step.outcome}" if step.outcome else ""
    room = max(width * 3 // 5, width - 5 - width_of(outcome))
    return cut(f"{step.number:>4} {cut(step.title, room)}{outcome}", width)


# what changed ---------------------------------------------------------------------------------------


def _show_differences(diff: RunDiff, out: Output, full: bool) -> None:
    chosen = diff.differences if full else diff.roots[:_ROOTS]
    for found in chosen:
        out.line()
        out.heading(f"{found.number}  {cut(where(found), max(30, out.width - 12))}")
        out.paragraph([("", ""), (cause_line(found), "bold" if found.is_root else "")])
        if found.hint is not None:
            out.paragraph([("hint: ", "yellow"), (found.hint, "")])
        show_changes(found, out, full)
    left = len(diff.differences) - len(chosen) + diff.left_out
    if left:
        out.line()
        what = "difference" if full else "other difference"
        hint = "" if full else "; --all shows them"
        out.line(out.paint(f"{count(left, what)} not shown{hint}", "yellow"))


def show_changes(found: Difference, out: Output, full: bool) -> None:
    """Print the places in which two steps differ; for steps of one run only, what they are."""
    if not found.changes:
        for side, steps in (("left", found.left), ("right", found.right)):
            for step in steps if full else steps[:_LINES]:
                place = f"{side} {step.address or ''}".strip()
                out.line(
                    out.cells([(f"  {place:10}", "dim"), (_step_text(step, out.width - 13).lstrip(), "")])
                )
            if not full and len(steps) > _LINES:
                out.line(out.paint(f"  … {count(len(steps) - _LINES, 'more step')}", "yellow"))
        return
    for change in found.changes if full else found.changes[:_MOST_CHANGES]:
        _show_change(change, out, full)
    if not full and len(found.changes) > _MOST_CHANGES:
        out.line(out.paint(f"  … {count(len(found.changes) - _MOST_CHANGES, 'more place')}; --all", "yellow"))


def _show_change(change: Change, out: Output, full: bool) -> None:
    path = f".{change.path}" if change.path and change.path[0] != "[" else change.path
    if change.path == "text":
        path = ""
    out.line(out.paint(f"  {plain(change.part + path, 300)}", "cyan"))
    left, right = _sides(change, out, full)
    if out.width < TWO_COLUMNS:
        width = out.width - 6
        for sign, color, cells, is_there in (
            ("-", "red", left, change.has_left),
            ("+", "green", right, change.has_right),
        ):
            for line in _limited(_wrapped(cells, width), full) if is_there else ():
                out.line(out.cells([(f"  {sign} ", color), *line]))
        return
    side = (out.width - 7) // 2
    ours = list(_limited(_wrapped(left, side), full))
    theirs = list(_limited(_wrapped(right, side), full))
    for number in range(max(len(ours), len(theirs), 1)):
        one = ours[number] if number < len(ours) else []
        other = theirs[number] if number < len(theirs) else []
        space = " " * (side - sum(width_of(text) for text, _ in one))
        out.line(out.cells([("  ", ""), *one, (space, ""), (" │ ", "dim"), *other]).rstrip())


def _sides(change: Change, out: Output, full: bool) -> tuple[list[Cell], list[Cell]]:
    """Return what each side shows: what changed is marked, of the rest what is near it."""
    nothing: list[Cell] = [("(absent)", "dim")]
    if not change.has_left or not change.has_right:
        left = [(_text(change.left), "red")] if change.has_left else nothing
        right = [(_text(change.right), "green")] if change.has_right else nothing
        return left, right
    one, other = _text(change.left), _text(change.right)
    if type(change.left) is not str or type(change.right) is not str:
        return [(one, "red")], [(other, "green")]
    words = word_changes(one, other)
    return _cells(words, GONE, out, full), _cells(words, NEW, out, full)


def _cells(words: Sequence[Words], shown: str, out: Output, full: bool) -> list[Cell]:
    hidden = NEW if shown == GONE else GONE
    cells: list[Cell] = []
    for at, (sort, text) in enumerate(words):
        if sort == hidden:
            continue
        if sort == shown:
            begin, end = ("", "") if out.color else MARKS[sort]
            cells.append((f"{begin}{text}{end}", _COLORS[sort]))
        else:
            is_last = at == len(words) - 1
            cells.append((text if full else shortened(text, is_first=at == 0, is_last=is_last), ""))
    return cells


def _text(value: object) -> str:
    return clean(value).expandtabs(4) if type(value) is str else pretty_json(value)


def _wrapped(cells: Sequence[Cell], width: int) -> Iterator[list[Cell]]:
    """Yield lines of at most that many columns; a word that is longer is cut into pieces."""
    line: list[Cell] = []
    used = 0
    for text, style in cells:
        for number, part in enumerate(text.split("\n")):
            if number:
                yield line
                line, used = [], 0
            for word in _words(part, width):
                size = width_of(word)
                if used + width_of(word.rstrip()) > width and used:
                    yield line
                    line, used = [], 0
                    word = word.lstrip() or ""
                    size = width_of(word)
                room = width - used
                line.append((word if size <= room else word.rstrip(), style))
                used += min(size, room)
    if line:
        yield line


def _words(text: str, width: int) -> Iterator[str]:
    """Yield words with the blanks after them; none is wider than a line."""
    word = ""
    for char in text:
        if word and (width_of(word) >= width - 1 or (word[-1].isspace() and not char.isspace())):
            yield word
            word = ""
        word += char
    if word:
        yield word


def _limited(lines: Iterator[list[Cell]], full: bool) -> Iterator[list[Cell]]:
    for number, line in enumerate(lines):
        if number == _LINES and not full:
            yield [("… --all shows the rest", "yellow")]
            return
        yield line


def _show_unknown(unknown: Sequence[Unknown], out: Output, full: bool) -> None:
    out.heading("cannot tell")
    for each in unknown if full else unknown[:_LINES]:
        out.line(
            cut(f"  step {each.left.number}: the {each.part} is {each.why}: {each.left.title}", out.width)
        )
    if not full and len(unknown) > _LINES:
        out.line(out.paint(f"  … {count(len(unknown) - _LINES, 'more place')}; --all", "yellow"))


def _show_masks(diff: RunDiff, out: Output) -> None:
    if not diff.masks:
        return
    paths = ", ".join(f'"{clean(path)}"' for path in diff.masks)
    out.line()
    out.paragraph(
        [("hint: ", "yellow"), ("these places differ every time. To ignore them, add to reenact.toml:", "")]
    )
    out.line("  [diff]")
    out.line(f"  ignore = [{paths}]")
