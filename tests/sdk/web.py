"""A web server that is no model's, and tools that ask it with five libraries: what a tool made of HTTP sees."""

from __future__ import annotations

import asyncio
import gzip
import io
import threading
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import aiohttp
import httpx
import requests
import urllib3

BIG = bytes(range(256)) * 4_096
PNG = b"\x89PNG\r\n\x1a\n\x00\xff\xfe"
XML = '<?xml version="1.0"?><hills><hill>Graça</hill></hills>'.encode()


class Handler(BaseHTTPRequestHandler):
    """Answers by path; counts how often it was asked."""

    protocol_version = "HTTP/1.1"
    paths: list[str]
    """Set by ``web()``."""

    def log_message(self, *args: object) -> None:
        pass

    def answer(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.body()
        self.paths.append(path)
        if path == "/busy":
            status = 200 if self.paths.count(path) % 2 == 0 else 429
            self.give(status, b"busy" if status == 429 else b"done", "text/plain", {"Retry-After": "0"})
        elif path == "/moved":
            self.give(302, b"", "text/plain", {"Location": "/text?from=moved"})
        elif path in ("/none", "/same"):
            self.give({"/none": 204, "/same": 304}[path], b"", None, {"ETag": '"7"'})
        elif path == "/gzip":
            self.give(200, gzip.compress(XML), "application/xml", {"Content-Encoding": "gzip"})
        elif path == "/hills/seven":
            self.give(200, b"", None, {"ETag": '"7"'})
        elif path == "/echo":
            reported = (
                f"{self.command} {query} {self.headers.get('content-type')} {zlib.crc32(body)}".encode()
            )
            self.give(200, reported, "text/plain; charset=utf-8")
        else:
            found = {
                "/png": (PNG, "image/png"),
                "/big": (BIG, "application/octet-stream"),
                "/xml": (XML, "text/xml"),
            }
            data, kind = found.get(path, (f"1.50 {query}".encode(), "text/plain"))
            self.give(
                404 if path == "/absent" else 200, data, kind, {"Link": '</next>; rel="next"', "ETag": '"7"'}
            )

    do_GET = do_POST = do_PUT = do_HEAD = answer  # noqa: N815

    def body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def give(self, status: int, data: bytes, kind: str | None, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**({"Content-Type": kind} if kind else {}), **(more or {})}.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


@contextmanager
def web() -> Iterator[tuple[str, list[str]]]:
    """A server's URL, and the paths it was asked for."""
    paths: list[str] = []
    handler = type("Handler", (Handler,), {"paths": paths})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", paths
    finally:
        server.shutdown()
        server.server_close()


class Shape(NamedTuple):
    """One request; ``times`` where it is made again."""

    method: str
    path: str
    body: Callable[[], Any] = lambda: None
    headers: dict[str, str] = {}  # noqa: RUF012
    times: int = 1


def pieces() -> Iterator[bytes]:
    yield b"one,"
    yield b"two"


FORM = {"content-type": "application/x-www-form-urlencoded"}
SHAPES = {
    "text": Shape("GET", "/text"),
    "query": Shape("GET", "/echo?b=2&a=1&a=%C3%A9"),
    "form": Shape("POST", "/echo", lambda: b"q=seven+hills&n=1", FORM),
    "bytes": Shape("PUT", "/echo", lambda: PNG, {"content-type": "image/png"}),
    "xml": Shape("POST", "/xml", lambda: XML, {"content-type": "application/xml"}),
    "json text": Shape("POST", "/echo", lambda: b'"quoted"', {"content-type": "application/json"}),
    "binary": Shape("GET", "/png"),
    "big": Shape("GET", "/big"),
    "gzip": Shape("GET", "/gzip"),
    "redirect": Shape("GET", "/moved"),
    "no content": Shape("GET", "/none"),
    "not modified": Shape("GET", "/same"),
    "head": Shape("HEAD", "/png"),
    "absent": Shape("GET", "/absent"),
    "retried": Shape("GET", "/busy", times=2),
    "file": Shape("POST", "/echo", lambda: io.BytesIO(b"a file"), {"content-type": "text/csv"}),
    "generator": Shape("POST", "/echo", pieces, {"content-type": "text/csv"}),
}
KEPT = ("content-type", "etag", "link", "location", "retry-after")


def visible(status: int, headers: Any, data: bytes, size: str | None = None) -> dict[str, Any]:
    """What a tool sees of an answer."""
    low = {name.lower(): value for name, value in headers.items()}
    return {"status": status, "data": data, "size": size, **{name: low.get(name) for name in KEPT}}


def by_requests(url: str, shape: Shape) -> dict[str, Any]:
    answer = requests.request(shape.method, url, data=shape.body(), headers=shape.headers, timeout=5)
    more = {"history": [each.status_code for each in answer.history], "url": answer.url}
    size = answer.headers.get("content-length") if shape.method == "HEAD" else None
    return visible(answer.status_code, answer.headers, answer.content, size) | more


def by_httpx(url: str, shape: Shape) -> dict[str, Any]:
    body = shape.body()
    with httpx.Client(follow_redirects=True) as client:
        answer = client.request(shape.method, url, content=body, headers=shape.headers)
    more = {"history": [each.status_code for each in answer.history], "url": str(answer.url)}
    size = answer.headers.get("content-length") if shape.method == "HEAD" else None
    return visible(answer.status_code, answer.headers, answer.content, size) | more


def by_urllib3(url: str, shape: Shape) -> dict[str, Any]:
    with urllib3.PoolManager(retries=urllib3.Retry(3, redirect=3)) as pool:
        answer = pool.request(shape.method, url, body=shape.body(), headers=shape.headers)
    return visible(answer.status, answer.headers, answer.data) | {"url": answer.geturl()}


def by_urllib(url: str, shape: Shape) -> dict[str, Any]:
    request = urllib.request.Request(url, shape.body(), shape.headers, method=shape.method)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            data, encoding = answer.read(), answer.headers.get("content-encoding")
            data = gzip.decompress(data) if encoding == "gzip" else data
            return visible(answer.status, answer.headers, data) | {"url": answer.url}
    except urllib.error.HTTPError as error:
        with error:
            return visible(error.code, error.headers, error.read())


def by_aiohttp(url: str, shape: Shape) -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        body: Any = shape.body()
        if shape.body is pieces:
            body = _later(body)
        async with aiohttp.ClientSession() as session:
            async with session.request(shape.method, url, data=body, headers=shape.headers) as answer:
                return visible(answer.status, answer.headers, await answer.read())

    return asyncio.run(ask())


async def _later(each: Iterator[bytes]) -> Any:
    for piece in each:
        yield piece


LIBRARIES = {
    "requests": by_requests,
    "httpx": by_httpx,
    "urllib3": by_urllib3,
    "urllib": by_urllib,
    "aiohttp": by_aiohttp,
}
