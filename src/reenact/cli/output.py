"""Where commands write: data to stdout, messages to stderr, in the colours and the width of the terminal.

One ``Output`` per invocation. Colour only on a terminal and without NO_COLOR; rich, where installed,
colours JSON there. Texts that it writes must be printable already (see ``tracefile.events.text``).
"""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from ..extras import have
from ..tracefile.events.text import clean, cut, dump, pad, pretty_json, width_of

PIPE_WIDTH = 120
"""Columns of a pipe: wide enough for people reading a log, short enough for a line."""

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_ASCII = {
    "→": ">", "←": "<", "▸": "+", "◂": "-", "✗": "x", "✓": "v", "·": ".", "●": "o", "…": "~", "─": "-",
    "µ": "u",
}  # fmt: skip
_LEAST = 12
"""Columns of a table's flexible column before others are left out."""

Cell = tuple[str, str]
"""A text and its style, "" for none."""


class Output:
    """The two streams of a command."""

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self.stdout = stdout or sys.stdout or _nowhere()
        self.stderr = stderr or sys.stderr or _nowhere()
        for stream in (self.stdout, self.stderr):
            # A lone surrogate or a terminal without UTF-8 must not end in an exception.
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="backslashreplace")
        self.is_terminal = _is_terminal(self.stdout)
        self.color = _wants_color(self.stdout)
        self.message_color = _wants_color(self.stderr)
        self.width = _width(self.is_terminal)
        self._to_ascii = _replacements(self.stdout)

    def line(self, text: str = "") -> None:
        """Write one line of data."""
        if self._to_ascii is not None:
            text = text.translate(self._to_ascii)
        self.stdout.write(text + "\n")

    def paragraph(self, cells: Sequence[Cell]) -> None:
        """Write a text of any length; a terminal gets it broken between words, a pipe as one line."""
        width = self.width if self.is_terminal else sys.maxsize
        if sum(width_of(text) for text, _ in cells) <= width:
            self.line(self.cells(cells))
            return
        (first, style), rest = cells[0], "".join(text for text, _ in cells[1:])
        broken = textwrap.wrap(rest, width - 4, initial_indent=" " * max(0, width_of(first) - 4))
        for number, text in enumerate(broken):
            self.line(self.paint(first, style) + text.lstrip() if number == 0 else "    " + text)

    def json_line(self, value: Any) -> None:
        """Write a value as one line of ASCII JSON."""
        self.stdout.write(dump(value) + "\n")

    def raw(self) -> Callable[[bytes], object]:
        """Return a function that writes bytes as they are; made clean only if a terminal reads them."""
        self.stdout.flush()
        binary = getattr(self.stdout, "buffer", None)
        if binary is not None and not self.is_terminal:
            write: Callable[[bytes], object] = binary.write
            return write
        return lambda data: self.stdout.write(_for_terminal(data))

    def say(self, text: str = "", style: str = "") -> None:
        """Write a message to stderr, past the data, which may be piped."""
        self.stdout.flush()
        try:
            self.stderr.write(_styled(text, style if self.message_color else "") + "\n")
            self.stderr.flush()
        except OSError:  # nobody reads it; there is still the exit code
            pass

    def paint(self, text: str, style: str) -> str:
        """Return the text in a style, e.g. ``"bold red"``, where there is colour."""
        return _styled(text, style) if self.color and text else text

    def cells(self, cells: Sequence[Cell]) -> str:
        """Return pieces of text painted and put side by side."""
        return "".join(self.paint(text, style) for text, style in cells)

    def pretty(self, value: Any) -> None:
        """Write a value as indented JSON, coloured by rich where there is both."""
        text = pretty_json(value)
        rich = self.color and self.is_terminal and len(text) < 200_000 and have("rich.highlighter")
        if not rich:
            self.line(text)
            return
        from rich.console import Console
        from rich.text import Text

        shown = Text(text)
        rich.JSONHighlighter().highlight(shown)
        Console(file=self.stdout, width=self.width, highlight=False).print(shown, soft_wrap=True)

    def heading(self, text: str) -> None:
        """Write a line that begins a part."""
        bar = "─" * max(3, self.width - width_of(text) - 4) if self.is_terminal else "──"
        self.line(self.paint(f"── {text} {bar}", "bold cyan"))

    def table(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        flexible: int,
        less: Sequence[str] = (),
        least: int = _LEAST,
    ) -> None:
        """Write rows in columns; where there is no room, those of ``less`` are left out in turn, then
        the flexible one gives way, to ``least`` at most.

        Columns whose name begins with ``>`` stand right. A row shorter than the head has a last cell
        that runs on to the end of the line.
        """
        right = [name.startswith(">") for name in head]
        names = [name.lstrip(">") for name in head]
        whole = [row for row in rows if len(row) == len(head)]
        columns = [_Column(cells) for cells in zip([(name, "dim") for name in names], *whole, strict=True)]
        widths = [column.width for column in columns]
        for row in rows if len(whole) < len(rows) else ():
            for column, (text, _) in enumerate(row[:-1] if len(row) < len(head) else ()):
                widths[column] = max(widths[column], width_of(text))
        kept = self._kept(names, widths, flexible, less, least)
        rest = sum(widths[n] + 2 for n in kept if n != flexible)
        widths[flexible] = max(min(_LEAST, widths[flexible]), min(widths[flexible], self.width - rest))
        parts = [columns[n].filled(widths[n], right[n], n == kept[-1], self.color) for n in kept]
        line = "  ".join([part for part, _ in parts])
        filled = map(line.__mod__, zip(*[texts for _, texts in parts], strict=True))
        self.line(next(filled).rstrip())
        for row in rows:
            text = next(filled) if len(row) == len(head) else self._short_row(row, kept, widths, right)
            self.line(text.rstrip())

    def _kept(
        self, names: list[str], widths: list[int], flexible: int, less: Sequence[str], least: int
    ) -> list[int]:
        """Return which columns have room."""
        kept = list(range(len(names)))
        missing = min(least, widths[flexible]) - widths[flexible]
        for name in less:
            if sum(widths[n] + 2 for n in kept) - 2 + missing <= self.width:
                break
            kept = [n for n in kept if names[n] != name]
        return kept

    def _short_row(self, row: Sequence[Cell], kept: list[int], widths: list[int], right: list[bool]) -> str:
        """Return a row whose last cell runs on to the end of the line."""
        columns = [n for n in kept if n < len(row) - 1]
        cells = [(_fill(row[n][0], widths[n], right[n], is_last=False), row[n][1]) for n in columns]
        text, style = row[-1]
        room = self.width - sum(widths[n] + 2 for n in columns)
        return "  ".join(self.paint(text, style) for text, style in [*cells, (cut(text, room), style)])


class _Column:
    """The cells of a column, laid out together: a table may have tens of thousands of rows."""

    __slots__ = ("_cells", "_is_ascii", "_texts", "width")

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells = cells
        self._texts = [text for text, _ in cells]
        self._is_ascii = "".join(self._texts).isascii()
        self.width = max(map(len if self._is_ascii else width_of, self._texts))

    def filled(self, space: int, right: bool, is_last: bool, color: bool) -> tuple[str, list[str]]:
        """Return the part of a format string that stands for the column, and the texts for it."""
        if self._is_ascii and self.width <= space and not color:
            return "%s" if is_last and not right else f"%{space if right else -space}s", self._texts
        texts = [_fill(text, space, right, is_last) for text in self._texts]
        if color:
            texts = [
                _styled(text, style) if text else text
                for text, (_, style) in zip(texts, self._cells, strict=True)
            ]
        return "%s", texts


def _fill(text: str, space: int, right: bool, is_last: bool) -> str:
    """Return a text filled up to its column, or cut; in the last column it ends where it ends."""
    if text.isascii() and len(text) <= space:
        return text.rjust(space) if right else text if is_last else text.ljust(space)
    text = pad(text, space)
    return text if not right else text.rstrip().rjust(space - width_of(text) + len(text))


def _nowhere() -> TextIO:
    """Return a stream in place of one that was closed before we began (``>&-``)."""
    return open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (ValueError, AttributeError):
        return False


def _wants_color(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or _is_terminal(stream)


def _width(terminal: bool) -> int:
    return max(40, min(terminal_size()[0] if terminal else _stated("COLUMNS") or PIPE_WIDTH, 400))


def terminal_size() -> tuple[int, int]:
    """Return columns and lines; ``shutil``, is as costly to load as all of this file."""
    try:
        columns, rows = os.get_terminal_size(sys.__stdout__.fileno())  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        columns = rows = 0
    return _stated("COLUMNS") or columns or 80, _stated("LINES") or rows or 24


def _stated(name: str) -> int:
    """Return a size from the environment; 0 if it has none."""
    text = os.environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _replacements(stream: TextIO) -> dict[int, str] | None:
    """Return what to write instead of our own signs where the encoding lacks them."""
    try:
        "→✗…─▸µ".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return {ord(sign): plain for sign, plain in _ASCII.items()}
    return None


def _styled(text: str, style: str) -> str:
    codes = ";".join(_STYLES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


def _for_terminal(data: bytes) -> str:
    return clean(data.decode("utf-8", "replace"))


class Progress:
    """How far a long command has come: one line on stderr, only on a terminal, rewritten in place."""

    def __init__(self, out: Output, *, after: float = 1.0, every: float = 0.2) -> None:
        self._stream = out.stderr
        self._is_terminal = _is_terminal(out.stderr)
        self._after, self._every = after, every
        self._shown = False
        self.restart()

    def restart(self) -> None:
        """Begin to wait for the first line."""
        self._due = time.monotonic() + self._after

    def show(self, text: str) -> None:
        """Show where we are, if it is time to."""
        now = time.monotonic()
        if self._is_terminal and now >= self._due:
            self._due = now + self._every
            self._shown = True
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()

    def close(self) -> None:
        """Remove the line."""
        if self._shown:
            self._shown = False
            self._stream.write("\r\x1b[K")
            self._stream.flush()
