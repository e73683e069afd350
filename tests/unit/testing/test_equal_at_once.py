"""Equal requests made at once, as for sampling and voting: the answers of tasks are certain, those of threads not."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from reenact.testing import replaying

BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "the same"}]}
VOTERS = 3


class Server(http.server.BaseHTTPRequestHandler):
    """Answers as many requests at once as there are voters, each with a number of its own, or all alike."""

    protocol_version = "HTTP/1.1"
    barrier = threading.Barrier(VOTERS)
    numbers = count(1)

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        number = 0 if "alike" in self.path else next(self.numbers)
        if "row" not in self.path:
            self.barrier.wait(30)
        content = [{"type": "text", "text": f"answer {number}"}]
        data = json.dumps({"type": "message", "role": "assistant", "content": content}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def text_of(response: httpx.Response) -> str:
    return str(response.json()["content"][0]["text"])


def in_threads(url: str, *, at_once: bool = True) -> list[str]:
    with httpx.Client(trust_env=False) as client, ThreadPoolExecutor(VOTERS if at_once else 1) as pool:
        return list(pool.map(lambda _: text_of(client.post(f"{url}/v1/messages", json=BODY)), range(VOTERS)))


async def in_tasks(url: str) -> list[str]:
    async with httpx.AsyncClient(trust_env=False) as client:

        async def ask() -> str:
            return text_of(await client.post(f"{url}/v1/messages", json=BODY))

        return await asyncio.gather(*(ask() for _ in range(VOTERS)))


def test_different_answers_to_equal_requests_of_threads_are_a_divergence(url: str, tmp_path: Path) -> None:
    with replaying(tmp_path / "run.jsonl", mode="rerecord"):
        recorded = in_threads(url)
    with pytest.raises(AssertionError, match="ambiguous-duplicate: Threads made equal requests at once"):  # noqa: SIM117
        with replaying(tmp_path / "run.jsonl") as run:
            assert sorted(in_threads(url)) == sorted(recorded)  # the run goes on to its end
    assert [each.code for each in run.divergences] == ["ambiguous-duplicate"]


@pytest.mark.parametrize("how", ["equal answers", "one after the other", "tasks"])
def test_what_is_certain_is_no_divergence(how: str, url: str, tmp_path: Path) -> None:
    def agent() -> list[str]:
        if how == "tasks":
            return asyncio.run(in_tasks(url))
        at_once = how == "equal answers"
        return in_threads(f"{url}/{'alike' if at_once else 'row'}", at_once=at_once)

    with replaying(tmp_path / "run.jsonl", mode="rerecord"):
        recorded = agent()
    with replaying(tmp_path / "run.jsonl"):
        assert agent() == recorded
