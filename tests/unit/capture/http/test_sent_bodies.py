"""Bodies that are made while they are sent: the server gets the same, and the trace says what it was."""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import Tap
from reenact.capture.http.watch import Watch
from reenact.capture.seams import aiohttp as aiohttp_client
from reenact.capture.seams import httpx, urllib3
from reenact.capture.seams.libraries import Installed
from reenact.wire.multipart import Parts, boundary_of
from support.examples import long
from support.provider import Provider, Received

TEXT = "Sete colinas, Graça é a mais alta.\n" * 40
IMAGE = bytes(range(256)) * 300
PARTS = [
    {"name": "purpose", "bytes": 5, "value": "batch"},
    {
        "name": "text",
        "filename": "hills.txt",
        "type": "text/plain",
        "bytes": len(TEXT.encode()),
        "value": TEXT,
    },
    {
        "name": "image",
        "filename": 'a "view".png',
        "type": "image/png",
        "bytes": len(IMAGE),
        "sha256": sha256(IMAGE).hexdigest(),
    },
]
JSON = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hills?"}]}
PIECES = [json.dumps(JSON).encode()[:9], json.dumps(JSON).encode()[9:]]
NAMES = ("text", "hills.txt", "text/plain"), ("image", 'a "view".png', "image/png")


def generated() -> Iterator[bytes]:
    yield from PIECES


async def generated_async() -> AsyncIterator[bytes]:
    for piece in PIECES:
        yield piece


def failing() -> Iterator[bytes]:
    yield PIECES[0]
    raise LookupError("no more")


async def failing_async() -> AsyncIterator[bytes]:
    yield PIECES[0]
    raise LookupError("no more")


def files() -> dict[str, Any]:
    (text, text_name, text_type), (image, image_name, image_type) = NAMES
    return {
        text: (text_name, io.BytesIO(TEXT.encode()), text_type),
        image: (image_name, io.BytesIO(IMAGE), image_type),
    }


Hand = Callable[[Any], Any]
KINDS = ("form", "generator", "file", "failing")


def by_httpx(module: str) -> Callable[[str, str, Hand], Any]:
    def send(url: str, kind: str, hand: Hand) -> Any:
        with hand(import_module(module).Client()) as client:
            body = {"generator": generated, "failing": failing, "file": lambda: io.BytesIO(b"".join(PIECES))}
            if kind == "form":
                return client.post(url, data={"purpose": "batch"}, files=files()).status_code
            return client.post(url, content=body[kind]()).status_code

    return send


def by_async_httpx(module: str) -> Callable[[str, str, Hand], Any]:
    async def send(url: str, kind: str, hand: Hand) -> Any:
        async with hand(import_module(module).AsyncClient()) as client:
            if kind == "form":
                return (await client.post(url, data={"purpose": "batch"}, files=files())).status_code
            body = failing_async() if kind == "failing" else generated_async()
            return (await client.post(url, content=body)).status_code

    return lambda url, kind, hand: asyncio.run(send(url, kind, hand))


def by_requests(url: str, kind: str, hand: Hand) -> Any:
    with hand(import_module("requests").Session()) as session:
        if kind == "form":
            return session.post(url, data={"purpose": "batch"}, files=files(), timeout=10).status_code
        body = {"generator": generated, "failing": failing, "file": lambda: io.BytesIO(b"".join(PIECES))}
        return session.post(url, data=body[kind](), timeout=10).status_code


def by_urllib3(url: str, kind: str, hand: Hand) -> Any:
    pool = hand(import_module("urllib3").PoolManager())
    if kind == "form":
        fields = {"purpose": "batch"} | {
            name: (file, data.read(), mime) for name, (file, data, mime) in files().items()
        }
        return pool.request("POST", url, fields=fields, retries=False).status
    body = {"generator": generated, "failing": failing, "file": lambda: io.BytesIO(b"".join(PIECES))}
    return pool.request("POST", url, body=body[kind](), retries=False).status


def by_http_client(url: str, kind: str, hand: Hand) -> Any:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = hand(http.client.HTTPConnection(host, timeout=10))
    try:
        if kind == "form":
            from urllib3 import encode_multipart_formdata

            fields = {"purpose": "batch"} | {
                name: (file, data.read(), mime) for name, (file, data, mime) in files().items()
            }
            data, mime = encode_multipart_formdata(fields)
            connection.request("POST", "/" + path, io.BytesIO(data), {"content-type": mime})
        else:
            body = {"generator": generated, "failing": failing, "file": lambda: io.BytesIO(b"".join(PIECES))}
            connection.request("POST", "/" + path, body[kind]())
        return connection.getresponse().read() and 200
    finally:
        connection.close()


def by_hand(url: str, kind: str, hand: Hand) -> Any:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = hand(http.client.HTTPConnection(host, timeout=10))
    try:
        connection.putrequest("POST", "/" + path)
        if kind == "form":
            from urllib3 import encode_multipart_formdata

            fields = {"purpose": "batch"} | {
                name: (file, data.read(), mime) for name, (file, data, mime) in files().items()
            }
            data, mime = encode_multipart_formdata(fields)
            connection.putheader("Content-Type", mime)
            connection.putheader("Content-Length", str(len(data)))
            connection.endheaders()
            connection.send(io.BytesIO(data))
        elif kind == "file":
            connection.putheader("Content-Length", str(len(b"".join(PIECES))))
            connection.endheaders()
            connection.send(io.StringIO(b"".join(PIECES).decode()))
        else:
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders()
            for piece in generated() if kind == "generator" else failing():
                connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            connection.send(b"0\r\n\r\n")
        return connection.getresponse().read() and 200
    finally:
        connection.close()


def by_aiohttp(url: str, kind: str, hand: Hand) -> Any:
    async def send() -> Any:
        aiohttp = import_module("aiohttp")
        async with hand(aiohttp.ClientSession()) as session:
            if kind == "form":
                data = aiohttp.FormData({"purpose": "batch"})
                for name, (file, content, mime) in files().items():
                    data.add_field(name, content, filename=file, content_type=mime)
            else:
                made = {
                    "generator": generated_async,
                    "failing": failing_async,
                    "file": lambda: io.BytesIO(b"".join(PIECES)),
                }
                data = made[kind]()
            async with session.post(url, data=data) as answer:
                await answer.read()
                return answer.status

    return asyncio.run(send())


SENDERS: dict[str, Callable[[str, str, Hand], Any]] = {
    "httpx": by_httpx("httpx"),
    "httpx2": by_httpx("httpx2"),
    "async httpx": by_async_httpx("httpx"),
    "async httpx2": by_async_httpx("httpx2"),
    "requests": by_requests,
    "urllib3": by_urllib3,
    "http.client": by_http_client,
    "by hand": by_hand,
    "aiohttp": by_aiohttp,
}


@contextmanager
def wrapped(tap: Tap) -> Iterator[Hand]:
    watch = Watch(tap.recorder, everything=True)

    def hand(client: Any) -> Any:
        for seam in (httpx, aiohttp_client, urllib3):
            if isinstance(client, seam.kinds()):
                seam.tap(client, watch)
        return client

    yield hand


@contextmanager
def installed(tap: Tap) -> Iterator[Hand]:
    seams = Installed(Watch(tap.recorder, everything=True))
    seams.install()
    assert not seams.failed
    try:
        yield lambda client: client
    finally:
        seams.uninstall()


def seen(sender: str, kind: str, provider: Provider, hand: Hand) -> tuple[Any, list[Received]]:
    provider.reset()
    try:
        result = SENDERS[sender](provider.url("text", "/echo"), kind, hand)
    except Exception as exc:
        result = re.sub("0x[0-9a-f]+", "", f"{type(exc).__name__}: {exc}")
    return result, provider.settled()


def plain(log: list[Received]) -> list[Any]:
    def text(data: str) -> str:
        return re.sub(r"[0-9a-f]{32}|-{8,}[0-9]{20,}", "<boundary>", data)

    return [
        (
            each.method,
            [(name, text(value)) for name, value in each.headers if name.lower() != "host"],
            text(each.body.decode("latin-1")),
        )
        for each in log
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", [long(wrapped), installed])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sender", SENDERS)
def test_what_is_sent_is_the_same_and_recorded(
    sender: str, kind: str, way: Any, provider: Provider, tmp_path: Path
) -> None:
    bare, bare_log = seen(sender, kind, provider, lambda client: client)
    path = tmp_path / "run.jsonl"
    with Tap(str(path)) as tap, way(tap) as hand:
        recorded, log = seen(sender, kind, provider, hand)
    assert (recorded, plain(log)) == (bare, plain(bare_log))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (request,) = [line for line in lines if line["kind"] == "http.request"]
    (response,) = [line for line in lines if line["kind"] == "http.response"]
    reported = request.get("sent") or response.get("sent")
    if kind == "form":
        assert (reported["type"], reported["bytes"]) == ("multipart/form-data", len(log[0].body))
        assert [tidy(part) for part in reported["parts"]] == PARTS
        assert "cut" not in reported
    elif kind == "failing":
        assert reported["cut"] and reported["bytes"] == len(PIECES[0])
        assert response["error"] or sender == "by hand"  # then it was not the library that failed
    else:
        assert (
            reported["body"] == JSON and reported["bytes"] == len(b"".join(PIECES)) and "cut" not in reported
        )


def tidy(part: dict[str, Any]) -> dict[str, Any]:
    """A part without what only one library says of it."""
    if part["name"] == "purpose":
        part.pop("type", None)
    if "filename" in part:
        part["filename"] = unquote(part["filename"])
    return part


def test_a_body_in_one_piece_by_hand_is_a_request_with_its_body(provider: Provider, tmp_path: Path) -> None:
    path, data = tmp_path / "run.jsonl", b"".join(PIECES)
    with Tap(str(path)) as tap:
        for way in ("with the head", "after it"):
            connection = tap.wrap(http.client.HTTPConnection("127.0.0.1", provider.port, timeout=10))
            connection.putrequest("POST", "/s/text/v1/messages")
            connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(*[data][: way == "with the head"])
            if way == "after it":
                connection.send(data)
            assert json.loads(connection.getresponse().read())["type"] == "message"
            tap.unwrap(connection)
            assert not [name for name in vars(connection) if name in ("request", "endheaders", "send")]
            connection.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines[1:-1]] == ["model.request", "model.response"] * 2
    assert lines[1]["body"] == JSON and lines[3]["keep"]["messages"] == 1
    assert [line["status"] for line in lines if line["kind"] == "model.response"] == [200, 200]


def test_a_request_by_hand_that_reaches_nobody_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(str(path)) as tap:
        connection = tap.wrap(http.client.HTTPConnection("127.0.0.1", 9, timeout=10))
        connection.putrequest("POST", "/v1/messages")
        connection.putheader("Content-Length", "5")
        with pytest.raises(ConnectionRefusedError):
            connection.endheaders()
    (reported,) = [
        line for line in map(json.loads, path.read_text().splitlines()) if line["kind"] == "model.response"
    ]
    assert reported["error"]["type"] == "ConnectionRefusedError"


def test_a_model_called_while_a_body_is_made_is_recorded(provider: Provider, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for library in ("httpx", "requests"):
        module = import_module(library)

        def asking(module: Any = module) -> Iterator[bytes]:
            yield module.post(provider.url("text", "/v1/messages"), json=JSON).content

        with Tap(str(path)) as tap, installed(tap):
            options = {"content" if library == "httpx" else "data": asking()}
            module.post(provider.url("text", "/echo"), timeout=10, **options)
        kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
        assert kinds.count("model.response") == 1, library
        path.unlink()


def test_a_hidden_field_of_a_form_is_not_recorded(provider: Provider, tmp_path: Path) -> None:
    path, secret = tmp_path / "run.jsonl", "Kd83nfQ02lPx" + "77Zr41mW9aT6"
    with Tap(str(path)) as tap, wrapped(tap) as hand, hand(import_module("httpx").Client()) as client:
        client.post(provider.url("text", "/page"), data={"api_key": secret}, files={"file": b"x"})
    assert "<redacted:api-key:1>" in path.read_text() and secret not in path.read_text()


@given(
    st.lists(st.tuples(st.text("abc", min_size=1), st.binary(max_size=60)), max_size=5),
    st.lists(st.integers(1, 40), min_size=1, max_size=9),
)
def test_parts_are_the_same_however_they_pass(parts: list[tuple[str, bytes]], sizes: list[int]) -> None:
    boundary = "x" * 30
    made = b"".join(
        b'--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        % (boundary.encode(), name.encode(), data)
        for name, data in parts
    )
    body, at, turn = made + b"--%s--\r\n" % boundary.encode(), 0, 0
    found = Parts(boundary)
    while at < len(body):
        size = sizes[turn % len(sizes)]
        found.add(body[at : at + size])
        at, turn = at + size, turn + 1
    assert found.is_over
    assert [(each["name"], each["bytes"]) for each in found.described()] == [
        (name, len(data)) for name, data in parts
    ]


def test_boundaries() -> None:
    assert boundary_of('multipart/form-data; charset=utf-8; boundary="a;b"') == "a;b"
    assert boundary_of("Multipart/Mixed;BOUNDARY=ab") == "ab"
    assert boundary_of("text/plain; boundary=x") is None and boundary_of(None) is None
