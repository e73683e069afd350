"""What the prompt would print, caught as styled text for a pane of a given width."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.text import Text

from ..output import Output

_MOST = 200_000
"""Characters of one text in a pane; more of it is in the file."""


class CapturedOutput(Output):
    """An ``Output`` with colours and the width of a pane; what was written is taken away as text."""

    def __init__(self, width: int = 80) -> None:
        self._written = io.StringIO()
        super().__init__(self._written, self._written)
        self.is_terminal = self.color = self.message_color = True
        self.width = width

    def taken(self) -> Text:
        """Return what was written since the last time."""
        text = self._written.getvalue()
        self._written.seek(0)
        self._written.truncate()
        hidden = len(text) - _MOST
        shown = Text.from_ansi(text[:_MOST].rstrip("\n"), no_wrap=False)
        return shown.append(f"\n… {hidden:,} characters more", "dim") if hidden > 0 else shown


def drawn(width: int, draw: Callable[[Output], object]) -> Text:
    """Return what a function writes into a pane."""
    out = CapturedOutput(max(20, width))
    draw(out)
    return out.taken()
