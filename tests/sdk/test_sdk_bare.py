"""Every cell, twice without a recorder: the table itself is the same from run to run."""

from __future__ import annotations

import socket

import pytest

from support.examples import one_in
from support.provider import Provider

from . import cases, offline  # noqa: F401  (cases fill the table)
from .observe import play_both
from .table import CELLS, Cell, missing

CALLABLE = [cell for cell in CELLS if cell.play is not None]
TWICE = one_in(16, CALLABLE)
"""Played bare a second time: all in the long run; the recorded ones are compared with a bare play anyway."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", TWICE, ids=str)
def test_a_cell_goes_as_it_says_and_the_same_again(cell: Cell, provider: Provider) -> None:
    assert not missing(cell.sdk), "the group sdk is not installed"
    first, again = play_both(cell, provider)
    assert first["requests"], first
    assert all(request["status"] != 599 for request in first["requests"]), first
    assert ("raised" in first) == cell.fails, first
    if cell.outcome == "cancelled":
        assert first["raised"]["type"] == "asyncio.exceptions.CancelledError"
    if cell.outcome in ("abandoned", "cancelled", "timeout"):
        assert first["requests"][-1]["left"], "the provider should have seen the client leave"
    assert again == first


def test_every_call_is_there_sync_and_async_or_listed_as_missing() -> None:
    modes: dict[tuple[str, str], set[str]] = {}
    for cell in CELLS:
        modes.setdefault((cell.sdk, cell.method), set()).add(cell.mode)
    assert {call for call, found in modes.items() if found != {"sync", "async"}} == set()


def test_no_cell_stands_twice() -> None:
    names = [str(cell) for cell in CELLS]
    assert len(names) == len(set(names))


def test_a_cell_that_reaches_beyond_this_machine_is_stopped() -> None:
    with socket.socket() as one, offline.guarded(), pytest.raises(PermissionError):
        one.connect(("192.0.2.1", 9))
    with offline.guarded(), pytest.raises(PermissionError):
        socket.getaddrinfo("provider.invalid", 443)
