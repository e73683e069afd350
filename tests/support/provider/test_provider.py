"""The scripted provider itself, by hand-written HTTP."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from . import Provider

ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}


def post(provider: Provider, scenario: str, path: str = "/v1/messages", ask: Any = ASK) -> Any:
    body = json.dumps(ask).encode()
    return urllib.request.urlopen(urllib.request.Request(provider.url(scenario, path), body), timeout=10)


@pytest.fixture(autouse=True)
def begun_anew(provider: Provider) -> None:
    provider.reset()


def test_it_logs_what_it_received_and_what_it_sent(provider: Provider) -> None:
    answer = post(provider, "text").read()
    (received,) = provider.settled()
    assert (received.method, received.target) == ("POST", "/s/text/v1/messages")
    assert received.body == json.dumps(ASK).encode()
    assert received.answer == answer
    assert not received.left


def test_other_processes_read_the_log_over_http(provider: Provider) -> None:
    post(provider, "text").read()
    base = f"http://127.0.0.1:{provider.port}"
    (line,) = json.load(urllib.request.urlopen(f"{base}/_log"))
    assert json.loads(line["body"]) == ASK
    urllib.request.urlopen(f"{base}/_reset").read()
    assert provider.log == []


@pytest.mark.parametrize("scenario", ["reset-0", "reset-2"])
def test_a_reset_is_a_reset(provider: Provider, scenario: str) -> None:
    with pytest.raises(ConnectionResetError):
        post(provider, scenario).read()


def test_a_status_for_the_first_attempts_only(provider: Provider) -> None:
    for _ in range(2):
        with pytest.raises(urllib.error.HTTPError) as raised:
            post(provider, "status-529,times-2,after-1500")
        with raised.value as answer:
            assert (answer.code, answer.headers["retry-after"]) == (529, "2")
            assert json.load(answer)["error"]["type"] == "overloaded_error"
    assert post(provider, "status-529,times-2,after-1500").status == 200


def test_an_endless_stream_ends_when_its_client_leaves(provider: Provider) -> None:
    with post(provider, "endless") as answer:
        assert len(answer.read(1_000_000)) == 1_000_000
    (received,) = provider.settled()
    assert received.left


def test_it_notices_a_client_that_leaves_before_the_answer(provider: Provider) -> None:
    with socket.create_connection(("127.0.0.1", provider.port)) as client:
        client.sendall(b"GET /s/silent/echo HTTP/1.1\r\nhost: x\r\n\r\n")
        while not provider.log:
            time.sleep(0.001)
    (received,) = provider.settled()
    assert received.left
    assert received.status is None


def test_a_late_head_and_slow_pieces_take_their_time(provider: Provider) -> None:
    begun = time.perf_counter()
    post(provider, "late-50,drip-5").read()
    (received,) = provider.settled()
    times = [at for at, _ in received.sent]
    assert times[0] - begun >= 0.05
    assert all(after - before >= 0.004 for before, after in zip(times, times[1:], strict=False))


def test_a_word_it_does_not_know_is_a_blunder(provider: Provider) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        post(provider, "txet")
    with raised.value as answer:
        assert answer.code == 599
        assert b"txet" in answer.read()


def test_pages_and_echoes(provider: Provider) -> None:
    assert b"<title>" in urllib.request.urlopen(provider.url(path="/page")).read()
    assert json.load(post(provider, "text", "/echo?q=1", {"a": 1})) == {
        "method": "POST",
        "query": "q=1",
        "body": '{"a": 1}',
    }
