"""Two moments of one run on a terminal: what the model cannot see any more, what was edited, what is new."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ...compare.moments import EDITED, MomentsDiff, PromptChange, SeenPart
from ...compare.words import GONE, NEW, SAME, Words
from ...recording.kept_conversations import NOT_SENT
from ...tracefile.events.text import clean, compact, count, plain
from ..output import Cell, Output

_LINES = 8
"""Of one text, unless all is wanted."""
_AROUND = 60
"""Characters that are shown on each side of changed words."""

_MOST_CHANGED = 400
MARKS = {GONE: ("[-", "-]"), NEW: ("{+", "+}")}
"""Around changed words where there is no colour."""
_SIGNS = {GONE: ("-", "red"), NEW: ("+", "green"), EDITED: ("~", "yellow")}


def show_moments(
    diff: MomentsDiff, out: Output, *, full: bool = False, hint: str = "--all shows all"
) -> None:
    """Print a comparison: a head line, then what is gone, edited and new. ``hint``: how to see long texts."""
    show_moments_headline(diff, out)
    then, now = f"turn {diff.then.turn}", f"turn {diff.now.turn}"
    headings = {
        GONE: f"seen in {then}, not in {now}",
        EDITED: f"edited since {then}",
        NEW: f"new in {now}",
    }
    for sort, heading in headings.items():
        changes = diff.of(sort)
        if changes:
            out.line()
            out.heading(f"{heading}: {len(changes)}")
            for change in changes:
                _show_change(change, now, out, "" if full else hint)


def show_moments_headline(diff: MomentsDiff, out: Output) -> None:
    """Print which turns are compared and how many messages differ."""
    out.line(out.paint(f"turn {diff.then.turn} → turn {diff.now.turn}", "bold") + f"  {diff.headline}")
    for note in diff.notes:
        out.paragraph([("  ", ""), (clean(note), "dim")])


def _show_change(change: PromptChange, now: str, out: Output, hint: str) -> None:
    sign, color = _SIGNS[change.sort]
    part = change.now or change.then
    assert part is not None
    out.line(out.cells([(f"{sign} {name_of(part)}", f"bold {color}"), (f"  {facts_of(part)}", "dim")]))
    if change.quoted_in is not None:
        out.line(out.paint(f"    its text still stands in message {change.quoted_in} of {now}", "dim"))
    if change.words:
        _show_lines(changed_words(change.words, out, full=not hint).split("\n"), out, hint)
    elif change.fields:
        names = ", ".join(plain(name, 40) for name in change.fields)
        out.line(f"    the text is the same; other fields differ: {names}")
    else:
        _show_lines(_wrapped(clean(part.text), out.width - 4), out, hint)


def name_of(part: SeenPart) -> str:
    """Return the number and role of a message."""
    role = plain(part.role, 40)
    return role if part.number is None else f"{part.number} {role}"


def facts_of(part: SeenPart) -> str:
    """Return where a message came from and how much of the prompt it is."""
    size = f"{part.share:.0%}" if part.tokens is None else f"~{compact(part.tokens)} tokens, {part.share:.0%}"
    few = part.origin if len(part.origin) < 4 else (*part.origin[:2], "…", part.origin[-1])
    origin = f"from {' '.join(few)}" if few else ""
    return "  ".join(filter(None, [origin, size, "" if part.is_sent else NOT_SENT]))


def changed_words(words: Sequence[Words], out: Output, *, full: bool = False) -> str:
    """Return a text with what is gone and what is new marked; long stretches that stayed are left out."""
    last = len(words) - 1
    cells: list[Cell] = []
    for at, (sort, text) in enumerate(words):
        text = clean(text)
        if sort == SAME:
            cells.append((text if full else shortened(text, is_first=at == 0, is_last=at == last), ""))
            continue
        text = text if full or len(text) <= _MOST_CHANGED else f"{text[:_MOST_CHANGED]}…"
        begin, end = ("", "") if out.color else MARKS[sort]
        cells.append((f"{begin}{text}{end}", _SIGNS[sort][1]))
    return out.cells(cells)


def shortened(text: str, *, is_first: bool, is_last: bool) -> str:
    """Leave out the middle of a stretch that stayed; of the first its beginning, of the last its end."""
    head, tail = ("" if is_first else text[:_AROUND]), ("" if is_last else text[-_AROUND:])
    return text if len(text) <= 2 * _AROUND + 10 else f"{head} … {tail}"


def _show_lines(lines: list[str], out: Output, hint: str) -> None:
    for line in lines[:_LINES] if hint else lines:
        out.line(f"    {line}".rstrip())
    if hint and len(lines) > _LINES:
        out.line(out.paint(f"    … {count(len(lines) - _LINES, 'more line')}; {hint}", "yellow"))


def _wrapped(text: str, width: int) -> list[str]:
    return [part for line in text.split("\n") for part in textwrap.wrap(line, width) or [""]]
