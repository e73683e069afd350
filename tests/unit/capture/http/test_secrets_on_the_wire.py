"""Seventeen secrets planted wherever a call can hold one: not one of them is in a byte that is kept."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import os
import random
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap
from reenact.capture.http.response_body import Spill
from reenact.capture.http.watch import Watch
from reenact.capture.seams import httpx as httpx_like
from reenact.capture.seams.libraries import Installed
from reenact.wire.streams import assemble
from support.examples import one_in

pytestmark = pytest.mark.filterwarnings("ignore")

# Put together at run time, so that no scanner takes this file for a leak.
SECRETS = {
    "sdk key": "sk-" + "ant-api03-" + "Zq7Xw2Lm9Bv4Kc8Rt1Yp" * 2,
    "custom header": "Hd5Kq9Wz2Xn7Lb4Vt8Cm3Rp6",
    "cookie": "Ck8Jw3Nz6Qv1Tm9Xb4Lf7Hs2",
    "query": "Qy4Rn8Vb2Mz7Kt5Wc9Xp3Lj6",
    "prompt key": "sk-" + "proj-" + "Pk3Wn8Zc5Lq1Vx7Rt9Bm" * 2,
    "second prompt key": "AI" + "za" + "Sy7Kd2Vn9Xq4Bw6Lm8Rt1Zc5Jp3Hf0Gu",
    "password in text": "Pw6Ltr9Qzk2Vmx",
    "environment": "Ev7Xk2Nq9-Wz4Lb8/Tm1Rc5",
    "body field": "Bf2Zt7Lw4Xq9Kn6Vc1Rm8",
    "second body field": "Sb9Vc3Kx8Wq5Zn1Lt7Rm4",
    "tool argument": "Ta4Mq8Lz2Vw7Xc5Kn9Rb1",
    "url password": "Up5Xn9Kw3Lq7Zv",
    "url token": "Ut8Lw4Zq1Xk6Vn9Rc3Mb7",
    "dsn": "Ds3Vq7Zn9Lx5Kw",
    "github": "gh" + "p_" + "Gh4Kx9Wn2Zq7Lv5Rt8Bm1Yc6Jp3Hf0Sd4Xg2",
    "aws": "AK" + "IA" + "QZ7XWN4LVK2RTB9M",
    "json password": "Jp7Rk2Xw9Lq4Zn6Vt",
}
LINES = [
    f"the key is {SECRETS['prompt key']} and another {SECRETS['second prompt key']} here",
    f"login with password={SECRETS['password in text']} now",
    f"use {SECRETS['environment']} from the environment",
    f"clone https://bob:{SECRETS['url password']}@git.example/x.git first",
    f"fetch https://h.example/f?access_token={SECRETS['url token']}&x=1 then",
    f"connect to postgres://app:{SECRETS['dsn']}@db.example:5432/main today",
    f"push with {SECRETS['github']} and sign with {SECRETS['aws']} please",
    "settings are " + json.dumps({"user": "bob", "password": SECRETS["json password"]}) + " so far",
    f"header x-api-key: {SECRETS['sdk key']} was sent",
    "config "
    + json.dumps({"client_secret": SECRETS["body field"], "api_key": SECRETS["second body field"]})
    + " end",
    "and done.",
]
BEFORE = "Lisbon has seven hills, as everybody knows who was there. " * 20
TEXT = BEFORE + "\n".join(LINES)


@pytest.fixture(autouse=True)
def secret_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", SECRETS["environment"])


def spoken(text: str, size: int) -> list[bytes]:
    """An answer of Anthropic's that says a text so many letters at a time."""
    reported: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {"type": "message", "role": "assistant", "content": [], "model": "m"},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    for at in range(0, len(text), size):
        delta = {"type": "text_delta", "text": text[at : at + size]}
        reported.append({"type": "content_block_delta", "index": 0, "delta": delta})
    reported += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in reported]


class Leaky(http.server.BaseHTTPRequestHandler):
    """Says every secret there is, in the way that the path asks for: /<way>-<letters>/v1/messages."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        way, _, letters = self.path.split("/")[1].partition("-")
        if way == "error":
            self._whole(
                500, json.dumps({"type": "error", "error": {"type": "api_error", "message": TEXT}}).encode()
            )
        elif way == "plain":
            printed = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": TEXT}]}
            self._whole(200, json.dumps({**printed, "model": "m", "stop_reason": "end_turn"}).encode())
        else:
            self._stream(way, spoken(TEXT, int(letters)))

    def _whole(self, status: int, body: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("set-cookie", f"session={SECRETS['cookie']}"),
            ("x-ratelimit-token", SECRETS["custom header"]),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, way: str, events: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        packer = zlib.compressobj(wbits=31) if way == "gzip" else None
        if packer:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        for event in events[:-2] if way in ("cut", "hang") else events:
            data = packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) if packer else event
            for piece in (data[:50], data[50:]):
                if piece:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if way == "hang":
            self.wfile.flush()
            threading.Event().wait(60)
        if way == "cut":
            self.close_connection = True
            return
        if packer and (rest := packer.flush()):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(rest), rest))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def leaky() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Leaky)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


BODY = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": TEXT}],
    "metadata": {"client_secret": SECRETS["body field"], "api_key": SECRETS["second body field"]},
}
HEADERS = {
    "x-api-key": SECRETS["sdk key"],
    "x-internal-token": SECRETS["custom header"],
    "cookie": f"session={SECRETS['cookie']}",
    "user-agent": f"agent token={SECRETS['custom header']}",
}


def leaks(folder: Path) -> list[str]:
    """Which secrets are in any file of a folder: in its bytes, packed or not, or in what its streams say."""
    found = []
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        forms = [path.name.encode(), data := path.read_bytes()]
        for unpack in (zlib.decompress, gzip.decompress):
            try:
                forms.append(unpack(data))
            except (OSError, zlib.error):
                continue
        forms += [
            json.dumps(assemble(form.partition(b"\n")[2] or form, "anthropic").body).encode()
            for form in forms[1:]
        ]
        forms += [json.dumps(assemble(form, "anthropic").body).encode() for form in forms[1:]]
        for name, secret in SECRETS.items():
            spelled = secret.encode(), json.dumps(secret)[1:-1].encode(), secret.replace("/", "%2F").encode()
            if any(each in form for each in spelled for form in forms):
                found.append(f"{name} in {path.name}")
    return found


@contextmanager
def wrapped(tap: Tap) -> Iterator[Any]:
    def hand(client: Any) -> Any:
        httpx_like.tap(client, Watch(tap.recorder, everything=True))
        return client

    yield hand


@contextmanager
def installed(tap: Tap) -> Iterator[Any]:
    seams = Installed(Watch(tap.recorder, everything=True))
    seams.install()
    try:
        yield lambda client: client
    finally:
        seams.uninstall()


def talk(client: Any, url: str) -> None:
    httpx = import_module("httpx")
    query = f"?api_key={SECRETS['query']}&access_token={SECRETS['url token']}"
    bob = url.replace("://", f"://bob:{SECRETS['url password']}@")
    for way in (
        "plain",
        "error",
        *(f"{way}-{size}" for way in ("sse", "gzip", "cut") for size in (3, 40, 4000)),
    ):
        for base in (url, bob):
            body = {**BODY, "stream": way not in ("plain", "error")}
            try:
                client.post(f"{base}/{way}/v1/messages{query}", json=body, headers=HEADERS).read()
            except httpx.HTTPError:
                assert way.startswith("cut")
    form = {"api_key": SECRETS["second body field"], "note": TEXT}
    for path in ("plain/upload", "error/upload"):
        client.post(
            f"{url}/{path}{query}", data=form, files={"file": ("n.txt", TEXT.encode())}, headers=HEADERS
        )
        client.post(f"{url}/{path}", content=iter([json.dumps(BODY).encode()[:99], json.dumps(BODY).encode()[99:]]),
                    headers={"content-length": str(len(json.dumps(BODY)))})  # fmt: skip


@pytest.mark.parametrize("way", [wrapped, installed])
def test_http(way: Any, leaky: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(str(path)) as tap, way(tap) as hand, hand(import_module("httpx").Client()) as client:
        talk(client, leaky)
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds.count("model.response") == 22 and kinds.count("http.response") == 4
    assert leaks(tmp_path) == []
    text = path.read_text()
    assert "clone https://" in text and "and done." in text  # the rest of it is there


@pytest.mark.parametrize("way", [wrapped, installed])
def test_exceptions_and_tools(way: Any, tmp_path: Path) -> None:
    httpx = import_module("httpx")
    with Tap(str(tmp_path / "run.jsonl")) as tap, way(tap) as hand:

        def refuse(request: Any) -> Any:
            raise httpx.ConnectError(f"no way to {request.url}: {TEXT}")

        client = hand(httpx.Client(transport=httpx.MockTransport(refuse)))
        with pytest.raises(httpx.ConnectError):
            client.post(f"http://llm.example/v1/messages?api_key={SECRETS['query']}", json=BODY)

        @tap.tool
        def deploy(password: str, config: dict[str, str]) -> str:
            raise RuntimeError(f"{TEXT} password={password}")

        with pytest.raises(RuntimeError):
            deploy(SECRETS["tool argument"], {"dsn": f"mysql://u:{SECRETS['dsn']}@h/x"})
    assert leaks(tmp_path) == []


def test_mcp_and_sockets(tmp_path: Path) -> None:
    from mcp.client import Client
    from mcp.server import MCPServer
    from websockets.sync.client import connect
    from websockets.sync.server import serve

    server = MCPServer("deploys")

    @server.tool()
    def deploy(password: str, note: str) -> str:
        return TEXT

    async def agent() -> None:
        async with Client(server) as client:
            await client.call_tool("deploy", {"password": SECRETS["tool argument"], "note": TEXT})

    def answer(socket: Any) -> None:
        for _ in socket:
            for at in range(0, len(TEXT), 5):
                delta = {"output_index": 0, "content_index": 0, "delta": TEXT[at : at + 5]}
                socket.send(json.dumps({"type": "response.output_text.delta", **delta}))
            printed = {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": TEXT}],
            }
            done = {"id": "r", "object": "response", "status": "completed", "output": [printed]}
            socket.send(json.dumps({"type": "response.completed", "response": done}))

    with Tap(str(tmp_path / "run.jsonl")) as tap, installed(tap), serve(answer, "127.0.0.1", 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        asyncio.run(agent())
        port = serving.socket.getsockname()[1]
        with connect(f"ws://127.0.0.1:{port}/v1/responses?api_key={SECRETS['query']}") as socket:
            socket.send(json.dumps({"type": "response.create", "model": "m", "input": TEXT}))
            while "response.completed" not in str(socket.recv()):
                pass
        serving.shutdown()
    text = (tmp_path / "run.jsonl").read_text()
    assert '"kind": "tool.result"' in text and '"kind": "model.response"' in text
    assert leaks(tmp_path) == []


KILLED = """
import os, signal, sys
import httpx
import reenact
from reenact import Tap
url, path, way, letters = sys.argv[1:]
if way == "wrapped":
    client = Tap(path).wrap(httpx.Client())
else:
    os.environ["REENACT_DIR"] = os.path.dirname(path)
    reenact.install()
    client = httpx.Client()
body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "go"}]}
with client.stream("POST", f"{url}/hang-{letters}/v1/messages", json=body) as answer:
    seen = b""
    for piece in answer.iter_bytes():
        seen += piece
        if len(seen) > SIZE:
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("letters", "way"),
    one_in(2, [(1, "wrapped"), (3, "installed"), (11, "wrapped"), (60, "installed"), (5000, "wrapped")]),
)
def test_a_kill_in_the_middle_of_a_stream(letters: int, way: str, leaky: str, tmp_path: Path) -> None:
    size = len(b"".join(spoken(TEXT, letters)[:-2]))
    agent = KILLED.replace("SIZE", str(size - 200))
    done = subprocess.run(
        [sys.executable, "-c", agent, leaky, str(tmp_path / "run.jsonl"), way, str(letters)],
        timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    (part,) = tmp_path.rglob("*.part")
    assert leaks(tmp_path) == []
    if letters < 5000:
        assert assemble(part.read_bytes(), "anthropic").body  # what came before the first of them


def test_cut_at_every_place(tmp_path: Path) -> None:
    """A line of a stream that arrives in two pieces, wherever it is cut, kept only as far as it came."""
    from reenact.capture.redact.redactor import Redactor

    redactor = Redactor({"SERVICE_TOKEN": SECRETS["environment"]})
    number = 0
    for line in LINES:
        event = (
            b'data: {"choices":[{"index":0,"delta":{"content":%b}}]}\n\n' % json.dumps(f"{line} ").encode()
        )
        for at in range(len(event)):
            number += 1
            spill = Spill(str(tmp_path), f"{number:016x}", redactor)
            for piece in (event[:at], event[at:], b'data: {"choices":[]}\n\n' * 40):
                spill.add(piece)
            spill.close()
    assert number > 900
    assert leaks(tmp_path) == []


def test_secrets_in_single_letters_are_removed_in_every_dialect(tmp_path: Path) -> None:
    from base64 import b64encode

    from reenact.capture.redact.redactor import Redactor

    def event(**reported: Any) -> bytes:
        return b"data: " + json.dumps(reported).encode() + b"\n\n"

    def packed(text: str) -> bytes:
        reported = json.dumps({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}})
        return b'\x00\x01{"bytes":"' + b64encode(reported.encode()) + b'","p":"abc"}\x07'

    dialects = {
        "openai": lambda text: event(choices=[{"index": 0, "delta": {"content": text}}]),
        "tools": lambda text: event(choices=[{"delta": {"tool_calls": [{"function": {"arguments": text}}]}}]),
        "thinking": lambda text: event(choices=[{"delta": {"reasoning_content": text}}]),
        "responses": lambda text: event(type="response.output_text.delta", delta=text),
        "anthropic": lambda text: event(type="content_block_delta", delta={"partial_json": text}),
        "gemini": lambda text: event(candidates=[{"content": {"parts": [{"text": text}]}}]),
        "ollama": lambda text: (
            json.dumps({"message": {"role": "assistant", "content": text}}).encode() + b"\n"
        ),
        "generate": lambda text: json.dumps({"response": text, "done": False}).encode() + b"\n",
        "cohere": lambda text: event(type="content-delta", delta={"message": {"content": {"text": text}}}),
        "bedrock": lambda text: b"\x00\x01" + json.dumps({"delta": {"text": text}}).encode() + b"\x07",
        "invoke": packed,
    }
    for name, say in dialects.items():
        for size in (1, 4, 9):
            redactor = Redactor({"SERVICE_TOKEN": SECRETS["environment"]})
            spill = Spill(str(tmp_path), f"{name}{size}", redactor)
            for at in range(0, len(TEXT), size):
                spill.add(say(TEXT[at : at + size]))
            spill.close()
            written = (tmp_path / f"{name}{size}.part").read_bytes()
            printed = b"".join(piece for piece in _texts(written))
            assert b"Lisbon has" in printed and not [
                each for each in SECRETS.values() if each[:9].encode() in printed
            ], name


@pytest.mark.parametrize("size", [1, 4, 7, 30, 64, 200])
def test_a_key_block_that_has_begun_is_not_on_disk(size: int, tmp_path: Path) -> None:
    from reenact.capture.redact.redactor import Redactor

    lines = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC{number:013}" for number in range(20)]
    for name in ("PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        text = "\n".join(
            [f"Lisbon has seven hills.\n-----BEGIN {name}-----", *lines, f"-----END {name}-----"]
        )
        spill = Spill(str(tmp_path), name, Redactor({}))
        for at in range(0, len(text), size):
            reported = {"choices": [{"delta": {"content": text[at : at + size]}}]}
            spill.add(b"data: " + json.dumps(reported).encode() + b"\n\n")
            written = b"".join(_texts((tmp_path / f"{name}.part").read_bytes()))
            assert b"MII" not in written and b"QIBADAN" not in written, name
        spill.close()


def test_all_but_the_last_word_is_on_disk_whatever_came(tmp_path: Path) -> None:
    """Each piece as it comes: whole events, events in two pieces, frames of a binary stream."""
    from reenact.capture.redact.redactor import Redactor

    def event(text: str) -> bytes:
        delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
        return b"event: content_block_delta\ndata: " + json.dumps(delta).encode() + b"\n\n"

    def halved(text: str) -> tuple[bytes, bytes]:
        whole = event(text)
        return whole[: len(whole) // 2], whole[len(whole) // 2 :]

    def frame(text: str) -> tuple[bytes]:
        return (
            b"\x00\x00\x00\x7f" + json.dumps({"delta": {"text": text}, "p": "ab"}).encode() + b"\x07\x99",
        )

    words = [f" word{number}" for number in range(60)]
    for name, pieces in {"events": lambda text: (event(text),), "halves": halved, "frames": frame}.items():
        spill = Spill(str(tmp_path), name, Redactor({}))
        for number, word in enumerate(words):
            for piece in pieces(word):
                spill.add(piece)
            written = b"".join(_texts((tmp_path / f"{name}.part").read_bytes())).decode()
            assert written in ("".join(words[:number]), "".join(words[: number + 1])), name
        spill.close()


def test_what_is_known_of_the_events_before_changes_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal events need a look at their text alone; the file is the same as with a look at all of each."""
    from reenact.capture.http import response_body
    from reenact.capture.redact.redactor import Redactor

    heads = [
        b'data: {"index":0,"delta":{"text":"',
        b'event: d\ndata: {"delta":{"partial_json":"',
        b'data: {"password","text":"',
        b'data: {"text":"',
    ]
    tails = [b'"}}\n\n', b'"}\n\n', b'","text":""}\n\n', b'","token": "hunter2hunter2"}\n\n']
    pieces = ["", " ", "x", '"', "\\", "é ", "\n", "\t", "the ", "=", ": ", " -u ", "$", "@", "key", "://"]
    pieces += [part for line in LINES for part in (line, line[:7], line[7:], f"{line} ")]
    rng = random.Random(5)
    for number in range(300):
        known = rng.choices(heads, k=2), rng.choices(tails, k=2)
        events = []
        for _ in range(40):
            text = json.dumps(rng.choice(pieces), ensure_ascii=rng.random() < 0.5)[1:-1].encode()
            events.append(rng.choice(known[0]) + text + rng.choice(known[1])[rng.random() < 0.02 :])
        files = []
        for most in (8, 0):
            monkeypatch.setattr(response_body, "_NEW_FRAMES", most)
            spill = Spill(
                str(tmp_path), f"{number}-{most}", Redactor({"SERVICE_TOKEN": SECRETS["environment"]})
            )
            for event in events:
                spill.add(event)
            spill.close()
            files.append((tmp_path / f"{number}-{most}.part").read_bytes())
        assert files[0] == files[1], events
    assert leaks(tmp_path) == []


def test_a_descriptor_that_the_agent_has_closed_is_not_written_to(tmp_path: Path) -> None:
    spill = Spill(str(tmp_path), "call", None)
    spill.add(b"one\n")
    os.close(spill._fd)
    spill.add(b"two\n")
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    spill.add(b"three\n")
    spill.remove()
    os.write(other, b"the agent's")
    os.close(other)
    assert (tmp_path / "other").read_bytes() == b"the agent's"


def _texts(data: bytes) -> Iterator[bytes]:
    from reenact.capture.http.response_body import _PACKED, _TEXT, _unpacked

    for packed in _PACKED.findall(data):
        yield from _unpacked(packed)
    yield from _TEXT.findall(data)


def test_the_environment_is_as_planted() -> None:
    assert os.environ["SERVICE_TOKEN"] == SECRETS["environment"] and len(SECRETS) == 17
