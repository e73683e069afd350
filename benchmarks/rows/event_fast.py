"""One event with orjson and RE2 loaded, against the first article's Trace and a bare os.write of its bytes."""

from __future__ import annotations

from pathlib import Path

from ..harness import Table
from . import event

ON = (1.2, 1.2, 1.5)


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    event.against_article(table, quick, folder, "ASCII text", None, ON)
    event.against_article(table, quick, folder, "mixed text", None, ON)
    table.notes.append("CPU time; mixed text: a few characters beyond ASCII in every string")
    return table
