"""Tools of every framework: recorded with no line changed, answered from the recording, never run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.pages import DOCS
from support.provider import Provider

from .table import TOOLS_HERE, Framework
from .tools import AGAIN, HEADER, measure

PAGE = (DOCS / "support.md").read_text(encoding="utf-8")
TABLE = PAGE.partition(HEADER)[2].partition("\n\n")[0].splitlines()


@pytest.mark.parametrize("framework", TOOLS_HERE, ids=str)
def test_tools_are_recorded_and_do_not_run_again(
    framework: Framework, provider: Provider, tmp_path: Path, environment: dict[str, str]
) -> None:
    measured = measure(framework, provider, tmp_path, environment)
    assert measured.called == measured.bare >= 4 and measured.raised == 1
    assert (measured.recorded, measured.ids) == (measured.called, measured.called), measured.output
    assert measured.raised_recorded == 1
    assert measured.again == dict.fromkeys(AGAIN, 0), measured.output
    assert all(measured.same.values()), measured.output
    assert measured.live == {"replay": 0, "fork": 1, "test": 0}
    (row,) = [line for line in TABLE if line.startswith(f"| {framework.package} | ")]
    assert without_version(row) == without_version(measured.row())


def without_version(row: str) -> list[str]:
    """Return the cells of a row but for the second."""
    cells = row.split(" | ")
    return [*cells[:1], *cells[2:]]
