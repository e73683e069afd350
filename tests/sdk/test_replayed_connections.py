"""Connections that a recording answers: no socket, no handshake, no look-up; what is not recorded stays real."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import requests
import urllib3

from reenact import Tap
from reenact.capture import replay_hook
from reenact.capture.http.watch import Watch
from reenact.capture.seams.libraries import Installed
from reenact.errors import Diverged
from reenact.playback.matching.modes import STRICT
from reenact.playback.matching.player import Player
from reenact.playback.matching.tape import Tape
from reenact.playback.replay.responder import TapeResponder
from support.provider import Provider

from . import cases  # noqa: F401  (cases fill the table)
from .observe import Plain, play, play_at
from .table import CELLS
from .test_sdk_replayed import kept

pytestmark = pytest.mark.filterwarnings("ignore")
ABSENT = "model.invalid"
ASK: Any = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Seven hills?"}]}
_events: list[str] | None = None


@pytest.fixture
def sockets() -> Iterator[list[str]]:
    """Names of what this process asked of the network."""
    global _events
    if not hasattr(sys, "_reenact_test_hook"):
        sys._reenact_test_hook = True  # type: ignore[attr-defined]
        sys.addaudithook(
            lambda event, args: _events.append(event) if _events is not None and event in NET else None
        )
    _events = []
    yield _events
    _events = None


NET = ("socket.connect", "socket.getaddrinfo")


@contextlib.contextmanager
def recording(
    path: Path, *, by: Path | None = None, everything: bool = False, mode: str = STRICT
) -> Iterator[TapeResponder | None]:
    """Calls of this process are recorded; answered by another recording, if there is one."""
    player = Player(Tape.load(str(by)), mode=mode) if by is not None else None
    responder = TapeResponder(player) if player is not None else None
    replay_hook.responder = responder
    try:
        with Tap(str(path)) as tap:
            seams = Installed(Watch(tap.recorder, ("127.0.0.1", ABSENT), everything=everything))
            seams.install()
            assert not seams.failed
            try:
                yield responder
            finally:
                seams.uninstall()
    finally:
        replay_hook.responder = None


TLS = {
    "requests-post-sync-plain-ok",
    "requests-post(stream=True)-sync-stream-cut",
    "urllib3-request-sync-plain-ok",
    "urllib-urlopen-sync-plain-ok",
    "aiohttp-post,_read_by_line-async-stream-ok",
    "boto3-converse-sync-plain-retried",
    "boto3-converse_stream-sync-stream-ok",
    "google-genai-generate_content_stream-async-stream-ok",
    "httpx-post-sync-plain-ok",
}
OVER_TLS = [cell for cell in CELLS if str(cell) in TLS]


@pytest.mark.parametrize("cell", OVER_TLS, ids=str)
def test_https_is_answered_without_a_socket(
    cell: Any, provider: Provider, tmp_path: Path, sockets: list[str]
) -> None:
    assert len(OVER_TLS) == len(TLS)
    with recording(tmp_path / "run.jsonl"):
        first = play(cell, provider)
    del first["requests"], sockets[:]
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl") as responder:
        site = cell.site(f"https://{ABSENT}/s/{cell.scenario}", lambda client: client)
        again = play_at(cell, site, Plain(provider.port), lambda: True)
    assert responder is not None and responder.player.report() == []
    where = f"https://{ABSENT}", "http://127.0.0.1:<port>"
    assert json.loads(json.dumps(kept(again, cell)).replace(*where)) == kept(first, cell)
    assert sockets == []


def by_requests(url: str, ask: Any) -> Any:
    return requests.post(url, json=ask, timeout=5).json()


def by_urllib3(url: str, ask: Any) -> Any:
    with urllib3.PoolManager(retries=False) as pool:
        return pool.request("POST", url, json=ask).json()


def by_urllib(url: str, ask: Any) -> Any:
    from urllib.request import Request, urlopen

    with urlopen(Request(url, json.dumps(ask).encode(), {"content-type": "application/json"})) as answer:
        return json.load(answer)


def by_hand(url: str, ask: Any) -> Any:
    where, body = urllib3.util.parse_url(url), json.dumps(ask).encode()
    connection = http.client.HTTPConnection(str(where.host), where.port)
    with contextlib.closing(connection):
        connection.putrequest("POST", where.path or "/")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        connection.send(body)
        return json.load(connection.getresponse())


def by_aiohttp(url: str, ask: Any) -> Any:
    async def post() -> Any:
        async with aiohttp.ClientSession() as session, session.post(url, json=ask) as answer:
            return await answer.json()

    return asyncio.run(post())


WAYS = [by_requests, by_urllib3, by_urllib, by_hand, by_aiohttp]
Post = Callable[[str, Any], Any]


@pytest.mark.parametrize("post", WAYS)
def test_a_changed_request_ends_there_and_reaches_nobody(
    post: Post, provider: Provider, tmp_path: Path
) -> None:
    url = provider.url("text", "/v1/messages")
    with recording(tmp_path / "run.jsonl"):
        first = post(url, ASK)
    before = len(provider.settled())
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl"):
        assert post(url, ASK) == first
    changed = {**ASK, "messages": [{"role": "user", "content": "Eight hills?"}]}
    with recording(tmp_path / "other.jsonl", by=tmp_path / "run.jsonl"), pytest.raises(Diverged):
        post(url, changed)
    assert len(provider.settled()) == before


@pytest.mark.parametrize("post", [way for way in WAYS if way is not by_hand])  # its body was not made then
def test_a_connection_that_was_refused_is_refused_again(post: Post, tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1/messages"
        with recording(tmp_path / "run.jsonl"), pytest.raises(Exception) as first:
            post(url, ASK)
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl"), pytest.raises(Exception) as again:
        post(url, ASK)
    assert type(again.value) is type(first.value)
    assert Plain().text(str(again.value)) == Plain().text(str(first.value))


@pytest.mark.parametrize("post", [by_requests, by_urllib3, by_urllib, by_aiohttp])
def test_what_is_not_recorded_goes_where_it_went(post: Post, provider: Provider, tmp_path: Path) -> None:
    with recording(tmp_path / "run.jsonl"):
        post(provider.url("text", "/v1/messages"), ASK)
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl"):
        before = len(provider.settled())
        assert post(f"http://localhost:{provider.port}/_reset", {}) == {}
        assert len(provider.settled()) < before


def test_one_connection_for_what_is_answered_and_what_is_real(provider: Provider, tmp_path: Path) -> None:
    def both() -> list[Any]:
        with requests.Session() as session:
            return [
                session.get(f"http://localhost:{provider.port}/_log").status_code,
                session.post(url, json=ASK).json(),
                session.get(f"http://localhost:{provider.port}/_log").status_code,
                session.post(url, json=ASK).json(),
            ]

    url = f"http://localhost:{provider.port}/s/text/v1/messages"
    with recording(tmp_path / "run.jsonl"):
        first = both()
    before = len(provider.settled())
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl"):
        assert both() == first
    assert len(provider.settled()) == before
