"""A recorder that fails in every way there is: calls and streams go as without it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.capture import guard
from reenact.capture.calls.lanes import Lanes
from reenact.capture.http.exchange import Exchange
from reenact.capture.http.response_body import Arrived, Spill
from reenact.capture.http.watch import Watch
from reenact.capture.recorder.recorder import Recorder
from reenact.wire import routes, streams
from support.examples import LONG, one_in
from support.provider import Provider

from .observe import play
from .table import Cell, missing
from .test_sdk_recorded import CALLABLE, WITHOUT_CLIENT, installed, seen, wrapped

PARTS: list[tuple[Any, str]] = [
    (Recorder, "emit"),
    (Recorder, "emit_request"),
    (Recorder, "emit_answer"),
    (Lanes, "begin"),
    (Lanes, "end"),
    (Arrived, "add"),
    (Arrived, "data"),
    (Spill, "__init__"),
    (Spill, "add"),
    (Spill, "remove"),
    (Exchange, "leave"),
    (Exchange, "_end"),
    (Watch, "recorder"),
    (routes, "route_of"),
    (streams, "stream_kind"),
    (streams, "assemble"),
]
METHODS = {
    ("anthropic", "messages.create"),
    ("anthropic", "messages.create(stream=True)"),
    ("google-genai", "generate_content_stream"),
    ("boto3", "converse"),
    ("boto3", "converse_stream"),
    ("requests", "post"),
    ("requests", "post(stream=True)"),
    ("urllib", "urlopen"),
    ("http.client", "request, read by line"),
    ("aiohttp", "post"),
    ("aiohttp", "post, read by line"),
}
CELLS = [
    cell
    for cell in CALLABLE
    if (cell.sdk, cell.method) in METHODS and cell.outcome in ("ok", "cut", "abandoned", "cancelled", "error")
]
"""Every seam, its plain calls and its streams."""


def unheard(printed: dict[str, Any]) -> dict[str, Any]:
    """Without the one line in which the recorder says what it could not do."""
    return seen({**printed, "printed": re.sub(r"(?m)^reenact: .*\n", "", printed["printed"])})


def play_with(cell: Cell, provider: Provider, path: str) -> None:
    assert not missing(cell.sdk), "the group sdk is not installed"
    bare = unheard(play(cell, provider))
    for way in (installed,) if cell.sdk in WITHOUT_CLIENT else (wrapped, installed):
        with Tap(path) as tap, way(tap) as hand:
            assert unheard(play(cell, provider, hand)) == bare


def fail(*args: Any, **options: Any) -> Any:
    raise RuntimeError("sabotage")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("number", "cell"), one_in(3, enumerate(CELLS)), ids=str)
def test_every_part_of_the_recorder_fails(
    number: int, cell: Cell, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parts at each cell in the long run, some of them in turn in the short one."""
    for owner, name in PARTS if LONG else PARTS[number % 8 :: 8]:
        with monkeypatch.context() as sabotage:
            if owner is not Watch:
                sabotage.setattr(owner, name, fail)
            else:
                sabotage.setattr(Tap, "recorder", fail)
            play_with(cell, provider, str(tmp_path / f"{owner.__name__}.{name}.jsonl"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", one_in(3, CELLS), ids=str)
@pytest.mark.parametrize(
    "path",
    [lambda folder: "/dev/full", lambda folder: str(folder / "a file" / "run.jsonl")],
    ids=["full disk", "unwritable"],
)
def test_nothing_can_be_written(
    cell: Cell, provider: Provider, tmp_path: Path, path: Callable[[Path], str]
) -> None:
    (tmp_path / "a file").write_text("in the way")
    guard.forget()
    play_with(cell, provider, path(tmp_path))
