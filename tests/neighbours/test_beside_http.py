"""Tools that stand in for the network, and nobody, for comparison: the same bytes, cassettes and records."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.provider import Provider

from .stage import INSIDE, Stage

LIBRARIES = ("httpx", "httpx async", "httpx2", "requests", "urllib3", "http.client", "urllib", "aiohttp")
HTTPX = ("httpx", "httpx async")


@pytest.mark.long
def test_alone(provider: Provider, tmp_path: Path) -> None:
    Stage("nobody", LIBRARIES, provider, tmp_path).play().check()


@pytest.mark.long
def test_vcrpy_records_its_cassette_and_we_our_run(provider: Provider, tmp_path: Path) -> None:
    stage = Stage("vcr recording", LIBRARIES, provider, tmp_path).play()
    # vcrpy has taken hold of aiohttp when it was imported, and goes past what came later.
    stage.check({"install after": ["12 requests recorded of 14"]})


@pytest.mark.long
def test_vcrpy_plays_its_cassette(provider: Provider, tmp_path: Path) -> None:
    """Nothing goes over the wire; what passes us on its way to the cassette is recorded."""
    stations = tuple(name for name in LIBRARIES if name != "http.client")  # made before there is a cassette
    recording = Stage("vcr recording", stations, provider, tmp_path)
    recording.go("bare", sys.executable)
    cassette = (tmp_path / "bare" / "cassette.yaml").read_text()
    (tmp_path / "played.yaml").write_text(cassette.replace("@bare", ""))
    stage = Stage("vcr playing", stations, provider, tmp_path).play()
    alike = {way: stage.unlike_bare(way) for way in (*INSIDE, "run")}
    assert not any(alike.values()), alike
    assert not provider.settled() and stage.report("run")["neighbour"] == 26
    httpx, aiohttp = 6, 2
    assert stage.counts() == {
        "bare": 0, "clients first": 0, "run": 2 * httpx, "install before": httpx, "install after": httpx,
        "wrap before": httpx + aiohttp, "wrap after": httpx + aiohttp,
    }  # fmt: skip


@pytest.mark.long
def test_respx_answers_httpx(provider: Provider, tmp_path: Path) -> None:
    """Half of the answers are made up by respx, half come from the provider."""
    stage = Stage("respx", HTTPX, provider, tmp_path).play()
    alike = {way: stage.unlike_bare(way) for way in (*INSIDE, "run")}
    assert not any(alike.values()), alike
    assert len(stage.received("run")) == 4 and stage.report("run")["neighbour"]
    ours = dict.fromkeys(("install before", "install after", "wrap before", "wrap after"), 4)
    assert stage.counts() == {"bare": 0, "clients first": 0, "run": 8, **ours}
