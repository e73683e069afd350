"""Equal requests made at once, as for sampling and voting: each thread and task keeps its own answer.

Where a recording does not name who asked, different answers are a divergence.
"""

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


def agent(how: str, url: str) -> list[str]:
    if how == "tasks":
        return asyncio.run(in_tasks(url))
    path = {"equal answers": "/alike", "one after the other": "/row"}.get(how, "")
    return in_threads(url + path, at_once=how != "one after the other")


def forget_callers(path: Path) -> None:
    """Make a recording one of format 1.0."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    old = [
        {name: "1.0" if name == "v" else value for name, value in event.items() if name != "who"}
        for event in events
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in old))


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_each_keeps_its_own_answer(how: str, url: str, tmp_path: Path) -> None:
    with replaying(tmp_path / "run.jsonl", mode="rerecord"):
        recorded = agent(how, url)
    assert len(set(recorded)) == VOTERS
    with replaying(tmp_path / "run.jsonl"):
        assert agent(how, url) == recorded


@pytest.mark.parametrize("mode", ["replay", "record-missing"])
@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_without_callers_different_answers_are_a_divergence(
    how: str, mode: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with replaying(tmp_path / "run.jsonl", mode="rerecord"):
        recorded = agent(how, url)
    forget_callers(tmp_path / "run.jsonl")
    with pytest.raises(AssertionError, match="ambiguous-duplicate: Equal requests made at once") as raised:  # noqa: SIM117
        with replaying(tmp_path / "run.jsonl", mode=mode):
            assert sorted(agent(how, url)) == sorted(recorded)  # the run goes on to its end
    assert str(raised.value).count("ambiguous-duplicate") == 1
    assert "before format 1.1: rerecord it" in str(raised.value)


@pytest.mark.parametrize("how", ["equal answers", "one after the other"])
def test_what_is_certain_is_no_divergence_even_then(how: str, url: str, tmp_path: Path) -> None:
    with replaying(tmp_path / "run.jsonl", mode="rerecord"):
        recorded = agent(how, url)
    forget_callers(tmp_path / "run.jsonl")
    with replaying(tmp_path / "run.jsonl"):
        assert agent(how, url) == recorded


def test_votes_that_came_one_after_the_other_may_come_in_another_order(url: str, tmp_path: Path) -> None:
    """Which thread is first is chance, also if each had its answer before the next one asked."""

    def votes(*order: int) -> list[str]:
        may_ask = [threading.Event() for _ in range(VOTERS)]

        def vote(number: int) -> str:
            may_ask[number].wait()
            with httpx.Client(trust_env=False) as client:
                return text_of(client.post(f"{url}/row/v1/messages", json=BODY))

        with ThreadPoolExecutor(VOTERS) as pool:
            found = [pool.submit(vote, number) for number in range(VOTERS)]
            try:
                for number in order:
                    may_ask[number].set()
                    found[number].result()
            finally:  # else nobody could leave the pool
                for each in may_ask:
                    each.set()
        return [each.result() for each in found]

    with replaying(tmp_path / "run.jsonl", mode="rerecord"):
        recorded = votes(0, 1, 2)
    with replaying(tmp_path / "run.jsonl"):
        assert votes(2, 0, 1) == recorded
