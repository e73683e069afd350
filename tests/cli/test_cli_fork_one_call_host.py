"""``fork --one-call`` sends a recorded request, and the trace says where to: no host that only a trace names gets
one without a question. Counted at a real server."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import reenact
from reenact.errors import UsageError
from reenact.testing import write_trace
from support.typed import Typed, on_a_terminal, typed

REQUEST = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
ANSWER = {"type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "hi"}]}
ELSEWHERE = "2130706433"
"""127.0.0.1 as a number: reachable, and not one of the names of this machine."""
FLAGS = ("--one-call", "--set", "max_tokens=5")


class Server(http.server.ThreadingHTTPServer):
    """Answers each request, or redirects it; ``came`` are the requests."""

    redirect = ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.came: list[tuple[str, dict[str, str], bytes]] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.came.append((self.path, dict(self.headers), body))
        answer = json.dumps(ANSWER).encode()
        self.send_response(302 if self.server.redirect else 200)
        if self.server.redirect:
            self.send_header("location", self.server.redirect)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def folder(tmp_path: Path, server: Server) -> Path:
    """Holds a trace that names the server by an unusual name."""
    url = f"http://{ELSEWHERE}:{server.server_port}/v1/messages"
    write(tmp_path, url)
    return tmp_path


def write(folder: Path, url: object, **more: object) -> None:
    request = {"call": "a", "method": "POST", "url": url, "headers": {"x-own": "1"}, "body": REQUEST, **more}
    rows = [("model.request", request), ("model.response", {"call": "a", "status": 200, "body": ANSWER})]
    write_trace(folder / "RUN.jsonl", rows)


def send(folder: Path, *words: str, **env: str) -> Typed:
    return typed("fork", "RUN.jsonl", *FLAGS, *words, cwd=folder, XDG_STATE_HOME=str(folder / "state"), **env)


def test_a_host_that_only_the_trace_names_gets_nothing_without_yes(folder: Path, server: Server) -> None:
    for words in ([], ["--samples", "2"], ["--json"]):
        done = send(folder, *words)
        assert done.code == 2 and f"not sent: a request of 75 bytes to http://{ELSEWHERE}:" in done.err, done
        assert "only the recording names that host" in done.err and "--yes sends it" in done.err
    with pytest.raises(UsageError, match="not sent"):
        reenact.experiment([str(folder / "RUN.jsonl")], one_call=True)
    assert not server.came and not (folder / ".reenact").exists()


def test_yes_sends_it_without_a_key_and_holds_for_the_next_time(folder: Path, server: Server) -> None:
    done = send(folder, "--yes", ANTHROPIC_API_KEY="mine", OPENAI_API_KEY="mine")
    assert done.code == 0 and "hi" in done.out, done
    assert "sending a request of 75 bytes to http://" in done.err
    again = send(folder)
    assert again.code == 0 and "sending a request" in again.err  # what is sent is printed each time
    assert len(server.came) == 2
    path, headers, body = server.came[0]
    assert path == "/v1/messages" and json.loads(body) == {**REQUEST, "max_tokens": 5}
    assert "mine" not in str(headers) and "x-own" not in str(headers).lower()


def test_the_users_environment_and_this_machine_need_no_question(folder: Path, server: Server) -> None:
    done = send(folder, SOME_BASE_URL=f"http://{ELSEWHERE}:{server.server_port}")
    assert done.code == 0, done
    write(folder, f"http://127.0.0.1:{server.server_port}/v1/messages")
    assert send(folder).code == 0
    assert len(server.came) == 2


@pytest.mark.parametrize(("typed_in", "sends"), [("y\n", 1), ("n\n", 0), ("\n", 0)])
def test_on_a_terminal_it_asks(folder: Path, server: Server, typed_in: str, sends: int) -> None:
    screen, code = on_a_terminal(["fork", "RUN.jsonl", *FLAGS], typed_in, folder)
    assert "send a request of 75 bytes to" in screen and "[y/N]" in screen
    assert len(server.came) == sends and code == (0 if sends else 2), screen


def test_a_trace_of_another_machine_asks_each_time(folder: Path, server: Server) -> None:
    path = folder / "RUN.jsonl"
    path.write_text(path.read_text().replace('"name": "test"', '"name": "test", "host": "somewhere-else"'))
    assert send(folder, "--yes").code == 0
    done = send(folder)
    assert done.code == 2 and "somewhere-else" in done.err
    assert len(server.came) == 1


def test_a_redirection_is_not_followed(folder: Path, server: Server) -> None:
    write(folder, f"http://127.0.0.1:{server.server_port}/v1/messages", provider="anthropic")
    server.redirect = f"http://{ELSEWHERE}:{server.server_port}/elsewhere"
    done = send(folder, ANTHROPIC_API_KEY="mine")
    assert done.code == 2 and "redirects to" in done.err, done
    assert [path for path, _, _ in server.came] == ["/v1/messages"]


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "http:///etc/passwd", "http://[", "x", "", 5, None, ["x"], {"a": 1},
     "http://api.anthropic.com@127.0.0.1/", "data:text/plain,hi", "http://127.0.0.1:port/", "HTTP://127.0.0.1:1/\r\nx: y"],
)  # fmt: skip
def test_an_address_that_is_none_is_a_sentence(tmp_path: Path, url: object) -> None:
    write(tmp_path, url, headers=[{"a": {}}], method={"a": 5})
    done = send(tmp_path, "--yes", ANTHROPIC_API_KEY="mine")
    assert done.code == 2 and "root:" not in done.out and not os.path.exists("/x"), done
