"""Answers that come in one moment: a replayed agent knows of as many as it knew of in the recording."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from reenact import Tap
from reenact.playback.matching.request import MODEL, Request
from reenact.playback.matching.tape import Tape
from reenact.testing import replaying
from support.examples import one_in
from support.simulated import URL, Ours, body, user


class Server(http.server.BaseHTTPRequestHandler):
    """Answers two jobs at the same moment."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    barrier = threading.Barrier(2)

    def log_message(self, *args: Any) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        request_body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = request_body["messages"][-1]["content"]
        if text.startswith("job"):
            self.barrier.wait(30)
        content = [{"type": "text", "text": text[::-1]}]
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
    yield f"http://127.0.0.1:{server.server_port}/v1/messages"
    server.shutdown()
    server.server_close()


async def two_jobs(url: str, turns: int) -> list[str]:
    """Two jobs at once; each then asks again, with the number of jobs that are done by then."""
    done: list[str] = []
    async with httpx.AsyncClient(trust_env=False) as client:

        async def ask(text: str) -> str:
            request_body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
            response = await client.post(url, json=request_body)
            return str(response.json()["content"][0]["text"])

        async def one(number: int) -> str:
            done.append(await ask(f"job {number}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            return await ask(f"next of {number} when {len(done)} are done")

        return await asyncio.gather(one(0), one(1))


@pytest.mark.parametrize("attempt", one_in(8, range(48)))
def test_who_was_done_when_the_next_request_was_made(attempt: int, url: str, tmp_path: Path) -> None:
    with replaying(tmp_path / "run.jsonl", mode="rerecord"):
        recorded = asyncio.run(two_jobs(url, attempt // 8 % 3))
    with replaying(tmp_path / "run.jsonl"):
        assert asyncio.run(two_jobs(url, attempt // 8 % 3)) == recorded


def recorded_with(gap: float, reaction: float, folder: Path) -> Tape:
    """Two calls at once, with so many seconds between their ends, and so many until the request after them."""
    path = folder / "run.jsonl"
    with Tap(path) as tap:
        first, second = (tap.record_model_request(body([user(n)]), lane=n, url=URL) for n in "ab")
        for call in (first, second):
            tap.record_model_response({"content": []}, call=call, status=200)
        tap.record_model_request(body([user("then")]), lane="a", url=URL)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    start, late = lines[0]["ts"], 0.0
    for line in lines:
        late += {"b": gap, "then": reaction}.get(_ended(line, second), 0.0)
        line["ts"] = start + late
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Tape.load(str(path))


def _ended(line: dict[str, Any], second: str) -> str:
    if line["kind"] == "model.response":
        return "b" if line["call"] == second else "a"
    return "then" if line["kind"] == "model.request" and line["lane"] == "a" and line["step"] > 4 else ""


@pytest.mark.parametrize(
    ("gap", "reaction", "together"), [(0.02, 0.02, True), (2.0, 0.02, False), (0.02, 2.0, False)]
)
def test_answers_of_a_moment_come_together_and_others_one_after_the_other(
    gap: float, reaction: float, together: bool, tmp_path: Path
) -> None:
    rule = Ours(recorded_with(gap, reaction, tmp_path))
    seen: list[int] = []
    done: list[str] = []

    async def one(text: str) -> None:
        await rule.answer(Request(MODEL, "POST", body([user(text)]), url=URL))
        done.append(text)
        await asyncio.sleep(0)
        seen.append(len(done))

    async def both() -> None:
        await asyncio.gather(one("a"), one("b"))

    asyncio.run(both())
    assert done == ["a", "b"]
    assert seen == ([2, 2] if together else [1, 2])
