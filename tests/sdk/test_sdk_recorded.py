"""Every cell with a recorder: the agent and the provider see no difference, and the trace is right."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.capture.http.watch import Watch
from reenact.capture.seams.libraries import Installed
from reenact.wire.routes import route_of
from support.examples import long
from support.provider import Provider, Received

from . import cases  # noqa: F401  (cases fill the table)
from .observe import PATIENCE, difference, is_to_be_repeated, play
from .recorded import check
from .table import CELLS, Cell, missing, untouched

CALLABLE = [cell for cell in CELLS if cell.play is not None]
WITHOUT_CLIENT = {"http.client", "urllib"}
LOCAL = ("127.0.0.1",)
NOISE = (
    "Task exception was never retrieved",
    "an error occurred during closing of asynchronous generator",
    "Direct use of automatic function calling",
)
"""What a loop says of the clients an earlier cell left behind, whenever they are collected; what is said once."""


@contextlib.contextmanager
def wrapped(tap: Tap) -> Iterator[Callable[[Any], Any]]:
    handed: list[Any] = []

    def hand(client: Any) -> Any:
        handed.append(client)
        assert tap.wrap(tap.wrap(client)) is client
        return client

    yield hand
    for client in handed:
        tap.unwrap(client)


@contextlib.contextmanager
def installed(tap: Tap) -> Iterator[Callable[[Any], Any]]:
    seams = Installed(Watch(tap.recorder, LOCAL))
    seams.install()
    assert not seams.failed
    try:
        yield untouched
    finally:
        seams.uninstall()


def is_recorded(hosts: tuple[str, ...]) -> Callable[[Received], bool]:
    return lambda received: (
        route_of(received.method, f"http://127.0.0.1{received.target}", None, hosts) is not None
    )


def seen(reported: dict[str, Any]) -> dict[str, Any]:
    """A play without noise."""
    printed = reported["printed"]
    assert "reenact: " not in printed, printed
    is_noise = any(each in printed for each in NOISE)
    return {**reported, "printed": "" if is_noise else printed}


WAYS = [
    (pytest.param if number % 12 == 6 * turn or cell.sdk in WITHOUT_CLIENT else long)(
        way, cell, id=f"{cell}-{way.__name__}"
    )
    for number, cell in enumerate(CALLABLE)
    for turn, way in enumerate((wrapped, installed))
    if way is installed or cell.sdk not in WITHOUT_CLIENT
]
"""Every cell, in both ways in the long run; every sixth cell in the short one, in the two ways in turn."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("way", "cell"), WAYS)
def test_a_recorded_cell_goes_as_without_and_its_trace_is_right(
    way: Any, cell: Cell, provider: Provider, tmp_path: Path
) -> None:
    assert not missing(cell.sdk), "the group sdk is not installed"
    for patience in PATIENCE:
        bare = play(cell, provider, patience=patience)
        path = tmp_path / f"{patience}.jsonl"
        with Tap(str(path)) as tap, way(tap) as hand:
            recorded = play(cell, provider, hand, patience)
            if cell.sdk == "urllib":
                gc.collect()  # an HTTPError has the answer, unread, as long as it lives
        if not is_to_be_repeated(cell, seen(bare), seen(recorded)):
            break
    assert seen(recorded) == seen(bare), difference(seen(bare), seen(recorded))
    check(cell, path, provider.settled(), is_recorded(LOCAL) if way is installed else lambda _: True)
