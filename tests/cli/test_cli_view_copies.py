"""A request copied from the viewer, as cURL and as Python, sent to a real server: it receives what was recorded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording, Tap
from support.harness import environment
from support.hostile_texts import HOSTILE
from support.served import served

FOR_SHELLS = [
    "'; touch pwned; '", '"; touch pwned; "', "$(touch pwned)", "`touch pwned`", "$API_KEY", "!!", "\\", "a\nJSON\nb",
    "'''", '"""', "\\N{BULLET}", "{a,b}[1-9]", "@file", "\x00\x7f", "é\u2028ü",
]  # fmt: skip
LARGE = "y" * 200_000


class Received(BaseHTTPRequestHandler):
    found: list[tuple[str, dict[str, str], bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.found.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Received.found.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Received) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def recorded(path: Path, url: str, texts: list[str]) -> Any:
    """Record a request whose every text and key is hostile; return its body as it is read back."""
    messages = [{"role": "user", "content": text, text[:80]: [text[:80]]} for text in texts]
    with Tap(path, redact=False) as tap:
        body = {"model": "m", "system": texts[0], "messages": messages}
        call = tap.record_model_request(body, "anthropic", url=url)
        tap.record_model_response({"type": "message", "content": []}, call=call)
    return Recording.load(path).events[0].body


@pytest.mark.parametrize(
    "texts", [FOR_SHELLS, HOSTILE[:-1], [LARGE, *FOR_SHELLS]], ids=["shells", "pages", "large"]
)
def test_both_copies_send_what_was_recorded(
    texts: list[str], server: ThreadingHTTPServer, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{server.server_address[1]}/v1/messages/{{a,b}}[1-3]"
    body = recorded(tmp_path / "run.jsonl", f"{url}?key=secret", texts)
    with served(tmp_path / "run.jsonl") as viewer:
        command, program = (viewer.get(f"{viewer.path}/copy/2?as={form}").text for form in ("curl", "python"))
    assert "secret" not in command + program
    work = tmp_path / "work"
    work.mkdir()
    (work / "copied.py").write_text(program)
    sent = [[sys.executable, "copied.py"]]
    if shutil.which("curl"):
        (tmp_path / "copied.sh").write_text(command)
        sent.append(["sh", str(tmp_path / "copied.sh")])
    for each in sent:
        env = environment(API_KEY="k$(touch pwned)")
        subprocess.run(each, cwd=work, env=env, check=True, capture_output=True, timeout=60)
    assert len(Received.found) == len(sent)
    for path, headers, received in Received.found:
        assert json.loads(received) == body and path == "/v1/messages/{a,b}[1-3]"
        assert headers["x-api-key"] == "k$(touch pwned)" and headers["content-type"] == "application/json"
    assert [each.name for each in work.iterdir()] == ["copied.py"]


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "-o/tmp/x", "--config=/tmp/x", "http://a b", "ftp://a/b", "http://a\nb"]
)
def test_an_address_that_is_no_web_address_is_not_copied(url: str, tmp_path: Path) -> None:
    recorded(tmp_path / "run.jsonl", url, ["x"])
    with served(tmp_path / "run.jsonl") as viewer:
        for form in ("curl", "python"):
            copied = viewer.get(f"{viewer.path}/copy/2?as={form}").text
            assert "https://api.example.com/v1/messages" in copied and url not in copied


KEY = "sk-ant-api03-" + "aB3dE6gH9k" * 9


def test_what_is_redacted_or_truncated_is_marked(tmp_path: Path) -> None:
    with Tap(tmp_path / "run.jsonl") as tap:
        messages = [{"role": "user", "content": text} for text in ("plain", f"the key is {KEY}", LARGE)]
        call = tap.record_model_request({"model": "m", "messages": messages}, "anthropic")
        tap.record_model_response({"type": "message", "content": []}, call=call)
    with served(tmp_path / "run.jsonl") as viewer:

        def cards() -> list[str]:
            text = viewer.get(f"{viewer.path}/context/2").text
            return [card.partition("</article>")[0] for card in text.split('<article class="message')[1:]]

        plain, secret, large = cards()
        assert "mark redacted" not in plain and "mark redacted" in secret and KEY not in secret
        assert "mark truncated" not in plain + secret + large and "y" * 10_000 in large
    for blob in tmp_path.rglob("*"):
        if blob.is_file() and blob.suffix != ".jsonl":
            blob.unlink()
    with served(tmp_path / "run.jsonl") as viewer:
        assert ["mark truncated" in card for card in cards()] == [False, False, True]
