"""Texts in lines of a width, indented, cut with a word on how much was left out."""

from __future__ import annotations

from typing import NamedTuple

from ...tracefile.text import clean, cut, width_of
from ..output import Cell, Output

_INDENT = 8
"""Leading blanks of a line that are kept: code stays readable, a hostile text does not wander off."""


class Entry(NamedTuple):
    """One thing of a turn: where it stands, what it is, its text, and a number at the right edge."""

    address: str
    sign: str
    text: str
    label: str = ""
    right: str = ""
    style: str = ""
    sign_style: str = "dim"
    lines: int | None = None
    """At most so many; None: as many as the page allows."""


class Page:
    """Writes entries in columns: address, sign, text, right edge."""

    def __init__(self, out: Output, *, lines: int, address_width: int) -> None:
        self.out = out
        self.lines = lines
        self.address_width = address_width

    @property
    def margin(self) -> int:
        return self.address_width + 3

    def entry(self, entry: Entry) -> None:
        """Write one entry, its text broken into a few lines; the number stands beside the last one."""
        out, room = self.out, self.out.width - self.margin
        label = entry.label + "  " if entry.label and entry.text else entry.label
        body, hidden = wrap(entry.text, room - width_of(label), room, entry.lines or self.lines)
        if hidden and entry.lines == 1:
            space = room - width_of(label + entry.right) - (2 if entry.right else 0)
            body, hidden = [cut(clean(entry.text[: 4 * room]), space)], 0
        more = f" … {size(hidden)} more" if hidden else ""
        if more:
            space = room - len(more) - (width_of(label) if len(body) == 1 else 0)
            body[-1] = _break(body[-1], max(space, 1))[0]
        left = f"{entry.address:>{self.address_width}} "
        lines: list[list[Cell]] = [[(left, "dim"), (entry.sign + " ", entry.sign_style)]]
        lines[0] += [(label, entry.style or "bold"), (body[0], entry.style)]
        lines += [[(" " * self.margin, ""), (text, entry.style)] for text in body[1:]]
        lines[-1].append((more, "dim"))
        if entry.right:
            used = sum(width_of(text) for text, _ in lines[-1])
            if used + 2 + width_of(entry.right) > out.width:
                lines.append([])
                used = 0
            lines[-1].append((" " * (out.width - used - width_of(entry.right)) + entry.right, "dim"))
        for cells in lines:
            out.line(out.cells(cells).rstrip())

    def note(self, text: str, style: str = "dim") -> None:
        """Write a line of our own between entries."""
        self.out.line(self.out.paint(cut(" " * self.margin + text, self.out.width), style))


def wrap(text: str, first: int, room: int, lines: int) -> tuple[list[str], int]:
    """Return at most so many lines that fit, and how many characters did not.

    >>> wrap("one two three four", 8, 8, 1)
    (['one two'], 10)
    """
    bound = 4 * room * lines + 200
    rest = clean(text[:bound]).expandtabs(4)
    beyond = max(0, len(text) - bound)
    found: list[str] = []
    paragraphs = [line.rstrip() for line in rest.split("\n") if line.strip()]
    while paragraphs and (len(found) < lines or _is_last(paragraphs, room, beyond)):
        line = paragraphs.pop(0)
        blanks = min(len(line) - len(line.lstrip()), _INDENT)
        piece, left = _break(" " * blanks + line.lstrip(), max(8, room if found else first))
        found.append(piece)
        if left:
            paragraphs.insert(0, left)
    return found or [""], sum(map(len, paragraphs)) + beyond


def _is_last(paragraphs: list[str], room: int, beyond: int) -> bool:
    """True if what is left takes no more space than saying that it was left out."""
    return not beyond and len(paragraphs) == 1 and width_of(paragraphs[0]) <= room


def _break(line: str, room: int) -> tuple[str, str]:
    """Return what of a line fits, broken between words where that does not waste half of it."""
    if width_of(line) <= room:
        return line, ""
    used, at = 0, room
    for at, char in enumerate("" if line.isascii() else line):  # noqa: B007
        used += width_of(char)
        if used > room:
            break
    blank = line.rfind(" ", at // 2, at + 1)
    at = blank if blank > 0 else max(at, 1)
    return line[:at].rstrip(), line[at:].lstrip()


def size(count: int) -> str:
    """Return an amount of text.

    >>> size(812), size(3174), size(5_200_000)
    ('812 B', '3.1 KB', '5.0 MB')
    """
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MB"
