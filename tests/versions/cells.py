"""Which cells an environment plays."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from sdk import cases  # noqa: F401  (cases fill the table)
from sdk.table import CELLS, Cell

from . import older  # noqa: F401

OUTCOMES = ("ok", "gzip", "retried", "error", "cut", "abandoned", "cancelled")


def environments() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "environments.toml").read_text(encoding="utf-8"))


def cells_of(environment: dict[str, Any]) -> list[Cell]:
    """Return an environment's cells; a call in flight cannot be cancelled by a program of its own."""
    wanted = {(sdk, method) for sdk, methods in environment.get("play", {}).items() for method in methods}
    missing = wanted - {(cell.sdk, cell.method) for cell in CELLS}
    assert not missing, missing
    return [
        cell
        for cell in CELLS
        if (cell.sdk, cell.method) in wanted
        and cell.play is not None
        and cell.outcome in OUTCOMES
        and cell.outcome not in environment.get("skip", ())
        and (cell.outcome, cell.shape) != ("cancelled", "plain")
    ]
