"""Every cell recorded once and played again by the recording, its provider gone: the agent sees the same."""

from __future__ import annotations

import gc
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.capture import replay_hook
from reenact.playback.matching.player import Player
from reenact.playback.matching.tape import Tape
from reenact.playback.replay.responder import TapeResponder
from support.examples import one_in
from support.provider import Provider

from . import cases  # noqa: F401  (cases fill the table)
from .observe import PATIENCE, Plain, play, play_at, was_too_short
from .table import CELLS, Cell, missing
from .test_sdk_recorded import installed, seen

CALLABLE = [cell for cell in CELLS if cell.play is not None]
CHOSEN = one_in(12, CALLABLE)
TRAVEL = {"content-length", "transfer-encoding", "content-encoding", "connection"}
"""Headers about how bytes travelled: they do not travel now."""
BELOW = ("httpx.", "httpx2.", "aiohttp.", "builtins.TimeoutError")
"""What the layers below one of these had raised, h11's or the socket's or a timer's, is not recorded."""
NOT_KEPT = re.compile(
    r"(?<=bytes, expected )\d+|(?<=\d of )\d+(?= bytes)|\d+(?= more expected)"
    r"|(?<='\d{3} )[\w ]*(?=' for url)|, 'content-length': '\d+'|\n+\Z"
)
"""In texts: how long an answer would have been that was cut, the words beside a status, space after JSON."""


@pytest.fixture(scope="module")
def dead() -> Iterator[int]:
    """A port that nobody listens at."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def answered(
    cell: Cell, path: Path, port: int, plain: Plain, patience: float = 1.0
) -> tuple[dict[str, Any], list[str]]:
    """Play a cell from its recording; returns what was seen, and how it went another way."""
    responder = TapeResponder(Player(Tape.load(str(path))))
    replay_hook.responder = responder
    try:
        with Tap(str(path.with_name("again.jsonl"))) as tap, installed(tap) as hand:
            site = cell.site(f"http://127.0.0.1:{port}/s/{cell.scenario}", hand, patience)
            reported = play_at(cell, site, plain, lambda: bool(responder.player.frontier.log))
    finally:
        replay_hook.responder = None
    return reported, [each.code for each in responder.player.report()]


def kept(value: Any, cell: Cell) -> Any:
    """What was seen, without what no recording keeps."""
    if isinstance(value, str):
        return NOT_KEPT.sub("", value)
    if isinstance(value, list):
        items = [kept(each, cell) for each in value if not _is_travel(each)]
        return sorted(items) if items and all(_is_header(each) for each in items) else items
    if not isinstance(value, dict):
        return value
    dropped: set[str] = set()
    if "text" in value and str(value.get("type")).startswith(BELOW):
        dropped |= {"cause", "context"}
    return {
        name: kept(each, cell)
        for name, each in value.items()
        if name not in dropped and name.lower() not in TRAVEL
    }


def _is_header(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)


def _is_travel(value: Any) -> bool:
    return _is_header(value) and value[0].lower() in TRAVEL


def both(
    cell: Cell, provider: Provider, folder: Path, dead: int
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """A cell as it was recorded, as its recording answers it, and how that went another way."""
    for patience in PATIENCE:
        path = folder / f"{patience}.jsonl"
        with Tap(str(path)) as tap, installed(tap) as hand:
            reported = play(cell, provider, hand, patience)
            if cell.sdk == "urllib":
                gc.collect()  # an HTTPError has the answer, unread, as long as it lives
        too_short = was_too_short(cell, reported)
        del reported["requests"]
        first, before = kept(seen(reported), cell), len(provider.settled())
        reported, report = answered(cell, path, dead, Plain(provider.port, dead), patience)
        again = kept(seen(reported), cell)
        assert len(provider.settled()) == before, "somebody was called"
        if again == first and not report and not too_short or cell.outcome != "timeout":
            break
    return first, again, report


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", CHOSEN, ids=str)
def test_a_recorded_cell_goes_the_same_without_its_provider(
    cell: Cell, provider: Provider, tmp_path: Path, dead: int
) -> None:
    assert not missing(cell.sdk), "the group sdk is not installed"
    first, again, report = both(cell, provider, tmp_path, dead)
    assert again == first
    assert report == []
