"""Answers and requests without measure: the agent's bytes are as they were, memory has a bound, the trace says what is missing."""

from __future__ import annotations

import json
import socket
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reenact import Debugger
from support.examples import LONG, long, one_in
from support.harness import Lines, only_file, run_script

MB = 1 << 20
KEPT = 32 * MB if LONG else 2 * MB
"""What is kept of one answer; in the short suite less than usual, so that little more is a lot."""
SENT = 100 * MB if LONG else 12 * MB
PER_KEPT_BYTE = 12
"""Bytes of memory at the end of an answer for each one that is kept: read, cleaned of secrets, written."""
HEAD = {"id": "m", "type": "message", "role": "assistant", "model": "c", "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
TEXT = "the tide came in and the boats rose "


def event(**fields: Any) -> bytes:
    return f"event: {fields['type']}\ndata: {json.dumps(fields)}\n\n".encode()


def stream(size: int | None) -> Iterator[bytes]:
    yield event(type="message_start", message={**HEAD, "content": []})
    yield event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
    block = event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": TEXT}) * 30
    sent = 0
    while size is None or sent < size:
        yield block
        sent += len(block)
    yield event(type="content_block_stop", index=0)
    yield event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9})
    yield event(type="message_stop")


def whole(what: str, number: int) -> tuple[bytes, bytes]:
    """A JSON answer, and header lines of its own."""
    content: list[Any] = []
    if what == "json":
        content = [{"type": "text", "text": TEXT * (number // len(TEXT))}]
    elif what == "tools":
        content = [
            {"type": "tool_use", "id": f"t{n}", "name": "lookup", "input": {"q": n}} for n in range(number)
        ]
    head = b"request-id: " + b"r" * number + b"\r\n" if what == "header" else b""
    return json.dumps({**HEAD, "content": content, "stop_reason": "end_turn"}).encode(), head


def serve(connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as file, suppress(OSError):
        _, _, what, number = file.readline().split()[1].decode().split("/")[:4]
        length = 0
        while (line := file.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        while length > 0:
            length -= len(file.read(min(length, MB)))
        if what in ("stream", "endless", "dust"):
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            for piece in stream(int(number) if what != "endless" else None):
                size = 2 if what == "dust" else len(piece)
                cut = [piece[at : at + size] for at in range(0, len(piece), size)]
                connection.sendall(b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in cut))
            connection.sendall(b"0\r\n\r\n")
        else:
            body, head = whole(what, int(number))
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + head)
            connection.sendall(b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


AGENT = """
import asyncio, hashlib, json, resource, sys, time
URL, WAY, LIBRARY, WHAT, NUMBER, KEPT = sys.argv[1:7]
NUMBER = int(NUMBER)
from reenact.capture.http import response_body as arrived
arrived.MAX_HELD = int(KEPT)
if arrived.MAX_HELD < 32 << 20:
    arrived.MAX_PIECES = 5_000
import reenact
if WAY == "recorded":
    reenact.install()
text = "sand and salt " * (NUMBER // 14 if WHAT == "request" else 1)
data = json.dumps({"model": "c", "max_tokens": 9, "stream": WHAT in ("stream", "endless", "dust"),
                   "messages": [{"role": "user", "content": text}]}).encode()
url, got, size = f"{URL}/s/{WHAT}/{NUMBER}/v1/messages", hashlib.sha256(), 0
headers = {"content-type": "application/json", "x-own": "y" * (NUMBER if WHAT == "header" else 1)}

def take(piece):
    global size
    size += len(piece)
    got.update(piece)
    return WHAT == "endless" and size > NUMBER

def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

if LIBRARY == "httpx":
    import httpx
    with httpx.Client(timeout=100, verify=False) as client, client.stream("POST", url, content=data, headers=headers) as answer:
        before = most()
        for piece in answer.iter_raw():
            if take(piece):
                break
elif LIBRARY == "requests":
    import requests
    with requests.post(url, data=data, headers=headers, stream=True) as answer:
        before = most()
        for piece in answer.iter_content(8192):
            if take(piece):
                break
else:
    import aiohttp
    async def main():
        global before
        async with aiohttp.ClientSession(max_field_size=1 << 22, max_line_size=1 << 22) as session:
            async with session.post(url, data=data, headers=headers) as answer:
                before = most()
                async for piece in answer.content.iter_any():
                    if take(piece):
                        break
    asyncio.run(main())
print(got.hexdigest() if WHAT != "endless" else "", size if WHAT != "endless" else "")
print(most() - before, time.process_time(), size, file=open(f"{WAY}.costs", "w"))
"""


def play(folder: Path, server: str, library: str, what: str, number: int) -> tuple[Lines, int]:
    """Bare and recorded, same bytes; returns the trace, and how much more memory the recording took."""
    outs = []
    for way in ("bare", "recorded"):
        args = (server, way, library, what, number, KEPT)
        done = run_script(AGENT, *args, cwd=folder, timeout=200, REENACT_DIR=str(folder / "runs"))
        assert done.code == 0 and done.err == "", done.err
        outs.append(done.out)
    assert outs[0] == outs[1]
    costs = {way: int((folder / f"{way}.costs").read_text().split()[0]) for way in ("bare", "recorded")}
    path = only_file(folder / "runs")
    found = Debugger.load(path)
    assert [call.kind for call in found.calls() if call.kind != "tool"] == ["model"] and found.errors() == []
    lines = Lines(path)
    assert not lines.torn and not list(folder.glob("runs/*.blobs/*.part"))
    return lines, costs["recorded"] - costs["bare"]


@pytest.mark.parametrize(
    ("library", "what", "ended"),
    one_in(
        4,  # each library and each ending once
        [
            (library, what, ended)
            for library in ("httpx", "requests", "aiohttp")
            for what, ended in (("json", "complete"), ("stream", "complete"), ("endless", "closed"))
        ],
    ),
)
def test_an_answer_beyond_what_is_kept(
    library: str, what: str, ended: str, server: str, tmp_path: Path
) -> None:
    lines, memory = play(tmp_path, server, library, what, SENT)
    answer = lines.one("model.response")
    assert answer["ended"] == ended and answer["lossy"] is True and answer["error"] is None
    missing = int(answer["problems"][0].split()[0])
    received = int((tmp_path / "recorded.costs").read_text().split()[2])
    assert received - KEPT <= missing <= received - KEPT + (MB if library == "aiohttp" else 0)
    assert memory < PER_KEPT_BYTE * KEPT + 8 * MB, f"{memory / MB:.0f} MB"
    if what != "json":
        assert answer["raw"]["lossy"] is True and answer["body"]["content"][0]["text"]["head"].startswith(
            TEXT
        )


@pytest.mark.long
def test_an_answer_in_dust(server: str, tmp_path: Path) -> None:
    """Two bytes each: what is kept for a piece would count more than the piece."""
    size = 4 * MB if LONG else 40_000
    lines, memory = play(tmp_path, server, "httpx", "dust", size)
    answer = lines.one("model.response")
    assert answer["ended"] == "complete" and "lossy" not in answer and answer["stop_reason"] == "end_turn"
    assert memory < 40 * MB + 16 * size, f"{memory / MB:.0f} MB"
    (blob,) = [path for path in tmp_path.glob("runs/*.blobs/*") if path.name == answer["raw"]["$blob"][7:]]
    head, _, data = zlib.decompress(blob.read_bytes()).partition(b"\n")
    chunks = json.loads(head)["chunks"]
    assert sum(size for size, _ in chunks) == len(data) >= size
    assert len(chunks) == (100_000 if LONG else 5_000)


@pytest.mark.long
def test_a_large_request_is_recorded_whole(server: str, tmp_path: Path) -> None:
    lines, memory = play(tmp_path, server, "httpx", "request", SENT)
    content = lines.one("model.request")["body"]["messages"][0]["content"]
    assert content["bytes"] == SENT // 14 * 14
    assert lines.one("model.response")["ended"] == "complete"
    assert memory < 5 * SENT + 8 * MB, f"{memory / MB:.0f} MB"


@pytest.mark.parametrize(("what", "number"), [long("tools", 10_000), ("header", 60_000)])
def test_many_tools_and_long_headers(what: str, number: int, server: str, tmp_path: Path) -> None:
    lines, memory = play(tmp_path, server, "httpx", what, number)
    answer = lines.one("model.response")
    assert answer["ended"] == "complete" and memory < 32 * MB
    if what == "tools":
        assert len(answer["body"]["content"]) == number
    else:
        assert answer["request_id"] == "r" * number


def test_headers_of_a_megabyte(server: str, tmp_path: Path) -> None:
    lines, _ = play(tmp_path, server, "aiohttp", "header", MB)
    reported = lines.one("model.response")["request_id"]
    assert reported["bytes"] == MB and reported["head"].startswith("rrr"), "a long text like any other"
    assert len(json.dumps(lines.one("model.request"))) < 4096
