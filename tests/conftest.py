"""What every test begins with."""

from __future__ import annotations

import pytest

from reenact.capture import announce


@pytest.fixture(autouse=True)
def a_young_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of the suite begins more runs than a process may announce to its children."""
    monkeypatch.setattr(announce, "_count_of_runs", 0)
