"""Answers no provider should give, and clients that are none: the agent gets what it gets without us, the trace tells it."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from reenact import Debugger, Tap
from reenact.capture import guard
from reenact.capture.http import response_body
from reenact.capture.http.watch import Watch
from reenact.capture.seams.libraries import Installed
from support.examples import one_in

pytestmark = pytest.mark.filterwarnings("ignore")
BODY = {"model": "c", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
GOOD = json.dumps(
    {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn",
     "content": [{"type": "text", "text": "na\u00efve \u65e5\u672c \U0001f989"}], "usage": {"input_tokens": 1, "output_tokens": 2}},
    ensure_ascii=False,
).encode()  # fmt: skip
EVENTS = [
    {"type": "message_start", "message": {**json.loads(GOOD), "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "na\u00efve \u65e5"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "\u672c \U0001f989"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


def sse(end: str = "\n", events: list[Any] = EVENTS) -> bytes:
    lines = [
        f"event: {each['type']}{end}data: {json.dumps(each, ensure_ascii=False)}{end}{end}" for each in events
    ]
    return "".join(lines).encode()


def mixed() -> bytes:
    ends = ["\r\n", "\n", "\r"]
    return b"".join(sse(ends[at % 3], [each]) for at, each in enumerate(EVENTS))


JSON, STREAM = "application/json", "text/event-stream"
ODD: dict[str, tuple[bytes, str, list[str], str]] = {
    # body, content type, further header lines, what the trace must hold
    "good": (GOOD, JSON, [], "na\u00efve"),
    "no JSON": (b"<html>gateway</html>", JSON, [], "<html>gateway"),
    "half of JSON": (GOOD[:40], JSON, [], '"id'),
    "NaN": (b'{"type": "message", "content": [], "score": NaN, "max": Infinity}', JSON, [], "score"),
    "no UTF-8": (b'{"type": "message", "content": "\xff\xfe caf\xe9"}', JSON, [], "content"),
    "UTF-16": (GOOD.decode().encode("utf-16"), JSON, [], ""),
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, JSON, [], "na\u00efve"),
    "a number": (b"42", JSON, [], "42"),
    "null": (b"null", JSON, [], ""),
    "a list": (b'[{"a": 1}]', JSON, [], '"a"'),
    "empty": (b"", JSON, [], ""),
    "deep": (b"[" * 100_000, JSON, [], ""),
    "twice the same key": (b'{"type": "message", "id": "a", "id": "b", "content": []}', JSON, [], '"b"'),
    "wrong content type": (GOOD, "text/plain", [], "na\u00efve"),
    "no content type": (GOOD, "", [], "na\u00efve"),
    "a content type that lies": (GOOD, STREAM, [], ""),
    "a stream called JSON": (sse(), JSON, [], "message_start"),
    "gzip that is none": (GOOD, JSON, ["content-encoding: gzip"], ""),
    "gzip that is true": (gzip.compress(GOOD), JSON, ["content-encoding: gzip"], "na\u00efve"),
    "half of gzip": (gzip.compress(GOOD)[:60], JSON, ["content-encoding: gzip"], ""),
    "an unknown encoding": (GOOD, JSON, ["content-encoding: rot13"], ""),
    "headers twice": (GOOD, JSON, ["request-id: one", "request-id: two", "x-a: 1", "x-a: 2"], "na\u00efve"),
    "odd headers": (GOOD, JSON, ["x-latin: caf\u00e9", "x-empty:", "anthropic-ratelimit-requests-limit: many"], "na\u00efve"),
    "a stream": (sse(), STREAM, [], "na\u00efve \u65e5\u672c"),
    "CRLF": (sse("\r\n"), STREAM, [], "na\u00efve \u65e5\u672c"),
    "CR": (sse("\r"), STREAM, [], "na\u00efve \u65e5\u672c"),
    "mixed line ends": (mixed(), STREAM, [], "na\u00efve \u65e5\u672c"),
    "a stream with a mark": (b"\xef\xbb\xbf" + sse(), STREAM, [], "na\u00efve \u65e5\u672c"),
    "a stream without end": (sse(events=EVENTS[:4]), STREAM, [], "na\u00efve \u65e5\u672c"),
    "a stream without last line end": (sse().rstrip(b"\n"), STREAM, [], "na\u00efve \u65e5\u672c"),
    "a stream of garbage": (b"\x00\xff" * 500, STREAM, [], ""),
    "a stream with garbage": (sse().replace(b"content_block_stop", b"\xff\xfe{"), STREAM, [], "na\u00efve \u65e5\u672c"),
    "an event that is no object": (b"data: 7\n\ndata: null\n\ndata: []\n\n" + sse(), STREAM, [], "na\u00efve \u65e5\u672c"),
}  # fmt: skip
TELLS_OF_A_PROBLEM = {
    "a stream of garbage",
    "a stream with garbage",
    "an unknown encoding",
    "gzip that is none",
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Says the named answer, its body in pieces of five bytes: through letters, lines and events."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def answer(connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as file, suppress(OSError):
        name = file.readline().split()[1].decode().split("/")[1].replace("_", " ")
        length = 0
        while (line := file.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        file.read(length)
        body, kind, more, _ = ODD[name]
        head = ["HTTP/1.1 200 OK", "connection: close", "transfer-encoding: chunked", *more]
        head += [f"content-type: {kind}"] if kind else []
        connection.sendall("\r\n".join(head).encode("latin-1") + b"\r\n\r\n")
        size = 5 if len(body) < 10_000 else 5_000
        for at in range(0, len(body), size):
            piece = body[at : at + size]
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        connection.sendall(b"0\r\n\r\n")


def by_httpx(url: str, body: dict[str, Any]) -> Any:
    httpx = import_module("httpx")
    with httpx.Client(verify=False) as client, client.stream("POST", url, json=body) as got:
        return got.status_code, got.headers.multi_items()[4:], got.read()


def by_requests(url: str, body: dict[str, Any]) -> Any:
    got = import_module("requests").post(url, json=body)
    return got.status_code, got.content


def by_urllib(url: str, body: dict[str, Any]) -> Any:
    request = import_module("urllib.request")
    http_request = request.Request(url, json.dumps(body).encode(), {"content-type": JSON})
    with request.urlopen(http_request) as got:
        return got.status, got.getheaders(), got.read()


def by_aiohttp(url: str, body: dict[str, Any]) -> Any:
    aiohttp = import_module("aiohttp")

    async def ask() -> Any:
        async with aiohttp.ClientSession() as session, session.post(url, json=body) as got:
            return got.status, list(got.headers.items()), await got.read()

    return import_module("asyncio").run(ask())


LIBRARIES: list[Callable[[str, dict[str, Any]], Any]] = [by_httpx, by_requests, by_urllib, by_aiohttp]


def outcome(ask: Callable[..., Any], *args: Any) -> Any:
    try:
        return ask(*args)
    except Exception as exc:
        return type(exc), str(exc)


@pytest.mark.parametrize("library", one_in(2, LIBRARIES), ids=lambda ask: ask.__name__[3:])
def test_odd_responses_reach_the_agent_and_are_recorded_as_they_are(
    library: Callable[..., Any], server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guard.forget()
    for number, (name, (_, kind, _, held)) in enumerate(ODD.items()):
        url = f"{server}/{name.replace(' ', '_')}/v1/messages"
        body = {**BODY, "stream": True} if kind == STREAM else BODY
        bare = outcome(library, url, body)
        path = tmp_path / f"{number}.jsonl"
        with Tap(str(path), redact=False) as tap:
            seams = Installed(Watch(tap.recorder))
            seams.install()
            try:
                assert outcome(library, url, body) == bare, name
            finally:
                seams.uninstall()
        found = Debugger.load(path)
        assert not found.findings, (name, found.findings)
        (call,) = found.calls()
        assert call.end is not None, name
        reported = json.loads(path.read_text().splitlines()[-2])
        text = json.dumps(reported, ensure_ascii=False)
        if not (held == "na\u00efve" and isinstance(bare[0], type)):
            assert held in text, (name, text)
        if name in TELLS_OF_A_PROBLEM and not (library is by_aiohttp and name == "an unknown encoding"):
            assert reported.get("problems") or reported["error"], (name, text)
        if name == "a stream without end":
            assert reported["ended"] == "cut"
    assert capsys.readouterr().err == "", "nothing of this is a fault of ours"


@pytest.mark.parametrize(
    "client", [None, 7, "client", b"x", object(), dict, [], {}, lambda: None, mock.Mock(), mock.MagicMock(), Exception]
)  # fmt: skip
def test_what_is_no_client_is_returned_with_one_line(
    client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guard.forget()
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        assert tap.wrap(client) is client
        assert tap.wrap(client) is client
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1 and printed.startswith("reenact: found nothing to listen to in a "), (
            printed
        )
        assert tap.unwrap(client) is client
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["Client", "AsyncClient"])
def test_a_closed_client_and_a_class_stay_what_they_are(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    httpx = import_module("httpx")
    kind = getattr(httpx, name)
    before = dict(vars(kind))
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        assert tap.wrap(kind) is kind and dict(vars(kind)) == before
        client = httpx.Client(verify=False)
        client.close()
        with pytest.raises(RuntimeError) as bare:
            client.get("http://127.0.0.1:1/")
        with pytest.raises(RuntimeError) as recorded:
            tap.wrap(client).get("http://127.0.0.1:1/")
        assert str(bare.value) == str(recorded.value)
    assert "model.request" not in (tmp_path / "run.jsonl").read_text()


@pytest.mark.parametrize("module", ["httpx", "httpx2"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_a_transport_of_the_agents_own_has_made_is_recorded_whole(
    module: str, packed: bool, tmp_path: Path
) -> None:
    library: Any = import_module(module)
    head = {"content-type": JSON} | ({"content-encoding": "gzip"} if packed else {})

    def answer(_: Any) -> Any:
        return library.Response(200, headers=head, content=gzip.compress(GOOD) if packed else GOOD)

    path = tmp_path / "run.jsonl"
    with Tap(str(path)) as tap, tap.wrap(library.Client(transport=library.MockTransport(answer))) as client:
        assert client.post("https://api.anthropic.com/v1/messages", json=BODY).json() == json.loads(GOOD)
        (call,) = Debugger.load(path).calls("model")  # before anybody lets go of the answer
        assert call.end is not None
        assert (call.end.ended, call.end.body) == ("complete", json.loads(GOOD))


def test_what_is_missing_of_another_response_is_reported_once(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(response_body, "MAX_HELD", 10)
    with Tap(tmp_path / "run.jsonl") as tap:
        for encoding in ("identity", "x-unheard-of"):
            exchange = Watch(tap.recorder, everything=True).begin("GET", "http://elsewhere/page", [], None)
            assert exchange is not None
            exchange.answered(200, [("content-encoding", encoding)])
            exchange.chunk(b"twelve bytes")
            exchange.end()
    cut, sealed = Debugger.load(tmp_path / "run.jsonl").where(event_type="http.response")
    assert cut.problems == ["2 bytes more arrived than are kept of one response"] and cut.lossy
    assert sealed.problems == ["content encoding x-unheard-of cannot be read here"] and sealed.body is None
