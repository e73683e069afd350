"""The seam under http.client, urllib3 and requests: framing, connections used again, patches taken back."""

from __future__ import annotations

import http.client
import io
import json
import subprocess
import sys
import urllib.error
import urllib.request
from array import array
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import Tap
from reenact.capture.http.watch import Watch
from reenact.capture.seams.http_client_bodies import ReadAlong, Transfer
from reenact.capture.seams.libraries import Installed
from support.provider import Provider

ASK = json.dumps(
    {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hills?"}]}
).encode()
JSON = {"content-type": "application/json"}
PATH = "/v1/messages"


def lines(path: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in found if line["kind"] == kind]


@pytest.fixture
def tap(tmp_path: Path) -> Any:
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        yield tap


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@pytest.fixture
def connection(provider: Provider) -> Any:
    made = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10)
    yield made
    made.close()


def ask(connection: http.client.HTTPConnection, scenario: str = "text") -> http.client.HTTPResponse:
    connection.request("POST", f"/s/{scenario}{PATH}", ASK, JSON)
    return connection.getresponse()


def test_a_connection_is_used_again_and_left_as_it_was(connection: Any, tap: Tap, path: Path) -> None:
    before = dict(vars(connection))
    tap.wrap(connection)
    for _ in range(3):
        assert json.loads(ask(connection).read())["type"] == "message"
        assert vars(connection).get("response_class") is None
    tap.unwrap(connection)
    assert vars(connection).keys() == before.keys()
    ask(connection).read()
    assert [line["status"] for line in lines(path, "model.response")] == [200] * 3


def test_wrapped_by_a_second_tap_the_last_one_records(connection: Any, tap: Tap, path: Path) -> None:
    with Tap(str(path.with_name("first.jsonl"))) as first:
        first.wrap(connection)
        tap.wrap(connection)
        ask(connection).read()
    assert len(lines(path, "model.response")) == 1
    assert not lines(path.with_name("first.jsonl"), "model.response")


def test_a_connection_closed_before_its_answer_says_so(connection: Any, tap: Tap, path: Path) -> None:
    tap.wrap(connection)
    connection.request("POST", f"/s/silent{PATH}", ASK, JSON)
    connection.close()
    ask(connection).read()
    assert [line["ended"] for line in lines(path, "model.response")] == ["closed", "complete"]


def test_a_connection_the_server_has_closed_fails_as_it_would(connection: Any, tap: Tap, path: Path) -> None:
    tap.wrap(connection)
    with pytest.raises(http.client.IncompleteRead):
        ask(connection, "text,close-1").read()
    with pytest.raises((BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected)) as raised:
        ask(connection)
    reported = lines(path, "model.response")
    assert [line["ended"] for line in reported] == ["cut", "error"]
    assert [line["error"]["type"] for line in reported] == ["cut", type(raised.value).__name__]


def test_a_body_that_is_made_while_it_is_sent_arrives_whole(
    connection: Any, provider: Provider, tap: Tap, path: Path
) -> None:
    provider.reset()
    tap.wrap(connection)
    connection.request("POST", f"/s/text{PATH}", io.BytesIO(ASK), {**JSON, "content-length": str(len(ASK))})
    connection.getresponse().read()
    connection.request("POST", f"/s/text{PATH}", iter([ASK[:9], ASK[9:]]), JSON, encode_chunked=True)
    assert connection.getresponse().read()
    assert [received.body for received in provider.settled()] == [ASK, ASK]
    assert len(lines(path, "model.response")) == 2


@pytest.mark.parametrize("holder", [bytes, bytearray, memoryview, lambda data: array("B", data)])
def test_a_body_is_sent_and_recorded_whatever_holds_it(
    connection: Any, tap: Tap, path: Path, holder: Any
) -> None:
    tap.wrap(connection)
    connection.request("POST", f"/s/text{PATH}", holder(ASK), JSON)
    assert connection.getresponse().read()
    connection.putrequest("POST", f"/s/text{PATH}")
    connection.putheader("Content-Length", str(len(ASK)))
    connection.endheaders()
    connection.send(holder(ASK))
    assert connection.getresponse().read()
    assert [line["status"] for line in lines(path, "model.response")] == [200, 200]
    assert not any("sent" in line for line in lines(path, "model.response"))


def test_what_is_left_unread_in_an_error_is_reported_when_it_goes(
    provider: Provider, tap: Tap, path: Path
) -> None:
    seams = Installed(Watch(tap.recorder))
    seams.install()
    try:
        with pytest.raises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(
                urllib.request.Request(provider.url("status-529", PATH), ASK, JSON), timeout=10
            )
        raised.value.close()
    finally:
        seams.uninstall()
    (reported,) = lines(path, "model.response")
    assert (
        reported["status"] == 529
        and reported["ended"] == "closed"
        and reported["error"]["type"] == "http_529"
    )


def test_all_is_restored(tap: Tap) -> None:
    urllib3 = import_module("urllib3.connection")
    before = http.client.HTTPConnection.request, urllib3.HTTPConnection.request
    seams = Installed(Watch(tap.recorder))
    seams.install()
    assert http.client.HTTPConnection.request is not before[0]
    assert urllib3.HTTPConnection.request is not before[1]
    seams.uninstall()
    assert before == (http.client.HTTPConnection.request, urllib3.HTTPConnection.request)


def test_a_library_that_has_changed_is_reported_and_left_alone(
    tap: Tap, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(http.client.HTTPConnection, "response_class")
    before = http.client.HTTPConnection.request
    seams = Installed(Watch(tap.recorder))
    seams.patch("http.client", http.client)
    assert seams.failed and http.client.HTTPConnection.request is before
    assert "calls made with http.client" in capsys.readouterr().err


def test_leaving_a_seam_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from reenact.capture.seams.libraries import wanted_modules

    monkeypatch.setenv("REENACT_SEAMS", "-urllib3, -websockets,-httpx")
    found = wanted_modules()
    assert "urllib3.connection" not in found and not [name for name in found if "websockets" in name]
    assert "httpx" not in found and "httpx2" in found and "http.client" in found


def test_requests_through_a_session_with_adapters_made_later(
    provider: Provider, tap: Tap, path: Path
) -> None:
    requests = import_module("requests")
    with tap.wrap(requests.Session()) as session:
        session.post(provider.url("text", PATH), data=ASK, headers=JSON, timeout=10).json()
        session.mount("http://127.0.0.1", requests.adapters.HTTPAdapter(max_retries=1))
        session.post(provider.url("text", PATH), data=ASK, headers=JSON, timeout=10).json()
        tap.unwrap(session)
        assert "get_adapter" not in vars(session)
        session.post(provider.url("text", PATH), data=ASK, headers=JSON, timeout=10).json()
    assert len(lines(path, "model.response")) == 2


LATER = """
import json, sys
from reenact import Tap
from reenact.capture.http.watch import Watch
from reenact.capture.seams.libraries import Installed

path, url = sys.argv[1:]
with Tap(path) as tap:
    seams = Installed(Watch(tap.recorder))
    seams.install()
    assert not {"requests", "urllib3", "aiohttp", "httpx"} & set(sys.modules)
    from importlib.util import find_spec
    assert find_spec("httpx") and find_spec("aiohttp")  # as programs do that can live without them
    import asyncio, aiohttp, httpx, requests, urllib.request

    ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hills?"}]}
    requests.post(url, json=ask).json()
    httpx.post(url, json=ask).json()

    async def post():
        async with aiohttp.ClientSession() as session, session.post(url, json=ask) as answer:
            await answer.json()

    asyncio.run(post())
    assert not seams.failed, seams.failed
    from importlib import reload
    reload(sys.modules["http.client"]), reload(sys.modules["urllib3.connection"])
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(ask).encode())).read()
"""


def test_libraries_imported_after_the_seams_are_installed(provider: Provider, path: Path) -> None:
    command = [sys.executable, "-c", LATER, str(path), provider.url("text", PATH)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line["status"] for line in lines(path, "model.response")] == [200] * 4


chunks = st.lists(st.binary(min_size=1, max_size=40), max_size=8)


@given(chunks, st.lists(st.integers(1, 30), min_size=1, max_size=9), st.booleans())
def test_framing_is_taken_off_however_it_is_read(
    parts: list[bytes], sizes: list[int], extended: bool
) -> None:
    extension = b';name="value"' if extended else b""
    framed = b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts) + b"0\r\n\r\n"
    body, found, at, turn = Transfer(True, None), b"", 0, 0
    while at < len(framed):
        assert not body.is_over
        size = sizes[turn % len(sizes)]
        found += body.add(framed[at : at + size])
        at, turn = at + size, turn + 1
    assert body.is_over and found == b"".join(parts)


class Received:
    """What an exchange is told."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ended: str | None = None

    def chunk(self, data: bytes) -> None:
        self.pieces.append(data)

    def end(self, how: str, exc: BaseException | None = None) -> None:
        self.ended = self.ended or how


@pytest.mark.parametrize(
    "length, read, ended",
    [(6, 6, "complete"), (6, 3, "closed"), (9, -1, "cut"), (None, -1, "complete"), (None, 3, "closed")],
)
def test_how_a_body_ended(length: int | None, read: int, ended: str) -> None:
    received = Received()
    file: Any = ReadAlong(io.BytesIO(b"abcdef"), received, Transfer(False, length))  # type: ignore[arg-type]
    file.read(read)
    file.close()
    assert received.ended == ended and b"".join(received.pieces) == b"abcdef"[: read if read > 0 else None]


def test_a_body_read_by_the_byte_is_recorded_by_the_line() -> None:
    received = Received()
    file: Any = ReadAlong(io.BytesIO(b"data: 1\n\nend"), received, Transfer(False, 12))  # type: ignore[arg-type]
    assert b"".join(file.read(1) for _ in range(12)) == b"data: 1\n\nend"
    file.close()
    assert received.pieces == [b"data: 1\n", b"\n", b"end"]
