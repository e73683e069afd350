"""Every cell, twice without a recorder: the table itself is the same from run to run."""

from __future__ import annotations

import pytest

from provider import Provider

from . import cases  # noqa: F401  (fills the table)
from .observe import play_both
from .table import CELLS, Cell, missing

CALLABLE = [cell for cell in CELLS if cell.play is not None]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", CALLABLE, ids=str)
def test_a_cell_goes_as_it_says_and_the_same_again(cell: Cell, provider: Provider) -> None:
    if absent := missing(cell.sdk):
        pytest.skip(f"not installed: {', '.join(absent)}")
    first, again = play_both(cell, provider)
    assert first["requests"], first
    assert all(request["status"] != 599 for request in first["requests"]), first
    if cell.fails is not None:
        assert ("raised" in first) == cell.fails, first
    if cell.outcome == "cancelled":
        assert first["raised"]["type"] == "asyncio.exceptions.CancelledError"
    if cell.outcome in ("abandoned", "cancelled", "timeout"):
        assert first["requests"][-1]["left"], "the provider should have seen the client leave"
    assert again == first


def test_every_call_is_there_sync_and_async_or_said_to_be_missing() -> None:
    modes: dict[tuple[str, str], set[str]] = {}
    for cell in CELLS:
        modes.setdefault((cell.sdk, cell.method), set()).add(cell.mode)
    assert {call for call, found in modes.items() if found != {"sync", "async"}} == set()


def test_no_cell_stands_twice() -> None:
    names = [str(cell) for cell in CELLS]
    assert len(names) == len(set(names))
