"""urllib3 over TLS, which connects before it asks: a call that gets no connection is a call, too."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3

import reenact
from reenact import Tap, read_events
from reenact.tracefile.events.event import Event

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": "m"}
CIPHERS = "AECDH-AES256-SHA:@SECLEVEL=0"
"""They need no certificate."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        data = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _context(protocol: Any) -> ssl.SSLContext:
    made = ssl.SSLContext(protocol)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(CIPHERS)
    return made


@pytest.fixture(scope="module")
def served() -> Iterator[int]:
    """The port of a server that speaks TLS."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = _context(ssl.PROTOCOL_TLS_SERVER).wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@contextmanager
def recorded(how: str, tmp_path: Path) -> Iterator[urllib3.PoolManager]:
    """A client whose calls are recorded in this way."""
    with urllib3.PoolManager(ssl_context=_context(ssl.PROTOCOL_TLS_CLIENT)) as client:
        if how == "wrap":
            with Tap(tmp_path / "run.jsonl") as tap:
                yield tap.wrap(client)
                tap.unwrap(client)
        else:
            reenact.install()
            try:
                with reenact.run("tls", path=tmp_path / "run.jsonl"):
                    yield client
            finally:
                reenact.uninstall()


def events_of(tmp_path: Path, kind: str) -> list[Event]:
    return [event for event in read_events(tmp_path / "run.jsonl") if event.kind == kind]


@pytest.mark.parametrize("how", ["wrap", "install"])
def test_each_attempt_to_connect_is_on_record(how: str, tmp_path: Path, served: int) -> None:
    retries = urllib3.Retry(connect=1, backoff_factor=0)
    with recorded(how, tmp_path) as client, pytest.raises(urllib3.exceptions.MaxRetryError):
        client.request("POST", "https://127.0.0.1:1/v1/messages", json=BODY, retries=retries)
    requests, answers = events_of(tmp_path, "model.request"), events_of(tmp_path, "model.response")
    assert [event.url for event in requests] == ["https://127.0.0.1:1/v1/messages"] * 2
    assert [event.error.type for event in answers if event.error] == ["NewConnectionError"] * 2
    assert [event.attempt for event in requests] == [None, 2]


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
@pytest.mark.parametrize("how", ["wrap", "install"])
def test_a_call_that_connects_is_recorded_once(how: str, tmp_path: Path, served: int) -> None:
    url = f"https://127.0.0.1:{served}/v1/messages"
    with recorded(how, tmp_path) as client:
        for _ in range(2):  # the second on the same connection
            assert client.request("POST", url, json=BODY).json() == ANSWER
    assert len(events_of(tmp_path, "model.request")) == 2
    assert [event.ended for event in events_of(tmp_path, "model.response")] == ["complete"] * 2


@pytest.mark.filterwarnings("error::urllib3.exceptions.InsecureRequestWarning")
def test_what_comes_between_connecting_and_asking_is_on_record(tmp_path: Path, served: int) -> None:
    with recorded("install", tmp_path) as client, pytest.raises(urllib3.exceptions.InsecureRequestWarning):
        client.request("POST", f"https://127.0.0.1:{served}/v1/messages", json=BODY)
    (answer,) = events_of(tmp_path, "model.response")
    assert answer.error is not None and answer.error.type == "InsecureRequestWarning"
