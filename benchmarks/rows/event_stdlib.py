"""One event with the stdlib alone, against the first article's Trace."""

from __future__ import annotations

from pathlib import Path

from ..harness import Table
from . import event

OFF, ON = (0.9, 0.9, 1.2), (2.3, 3.0, 4)


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    event.against_article(table, quick, folder, "mixed text", OFF, ON)
    table.notes.append("CPU time; mixed text: a few characters beyond ASCII in every string")
    return table
