"""The row ``run`` with orjson and RE2 loaded."""

from __future__ import annotations

from pathlib import Path

from ..harness import Table
from . import run


def measure(quick: bool, folder: Path) -> Table:
    return run.measure(quick, folder, "extra fast", run.BUDGET_FAST)
