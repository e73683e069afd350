"""What had come of a streamed answer when its process was killed is read back, and shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reenact import Debugger
from reenact.wire.streams import assemble
from support.examples import long
from support.provider import Provider

AGENT = """
import os, signal, sys
import httpx
from reenact import Tap
client = Tap(sys.argv[2]).wrap(httpx.Client())
body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "stream": True, "messages": [{"role": "user", "content": "go"}]}
with client.stream("POST", sys.argv[1] + "/v1/messages", json=body) as answer:
    for number, _ in enumerate(answer.iter_bytes()):
        if number == 90:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_stream_is_there_as_far_as_it_came(provider: Provider, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", AGENT, provider.url("long-200,drip-1"), str(path)], check=False
    )
    assert done.returncode == -9
    dbg = Debugger.load(path)
    (call,) = dbg.calls("model")
    assert call.is_open and dbg.count() == 1
    found = dbg.recording.partial_answer(call.id)
    assert found is not None
    assembled, size = found
    assert size > 500 and not assembled.complete and assembled.body is not None
    assert len(assembled.body["content"][0]["text"]) > 20
    shown = subprocess.run(
        [sys.executable, "-m", "reenact", "show", str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert "the answer had not ended" in shown and "bytes had come" in shown


ENDS = """
import asyncio, os, signal, sys
import httpx
from reenact import Tap

async def main():
    client = Tap(sys.argv[2]).wrap(httpx.AsyncClient())
    body = {"model": "m", "max_tokens": 99, "stream": True, "messages": [{"role": "user", "content": "go"}]}
    async with client.stream("POST", sys.argv[1] + "/v1/messages", json=body) as answer:
        seen = b""
        async for piece in answer.aiter_bytes():
            seen += piece
            if seen.count(b"text_delta") >= 12:
                open(sys.argv[3], "wb").write(seen)
                if sys.argv[4] == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                asyncio.current_task().cancel()

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["killed", long("cancelled")])
def test_show_prints_what_the_agent_had_of_a_stream_but_for_the_last_word(
    how: str, provider: Provider, tmp_path: Path
) -> None:
    path, seen = tmp_path / "run.jsonl", tmp_path / "seen"
    url = provider.url("long-200,drip-1")
    subprocess.run(
        [sys.executable, "-c", ENDS, url, str(path), str(seen), how], check=False, capture_output=True
    )
    received = assemble(seen.read_bytes(), "anthropic").body["content"][0]["text"]
    assert len(received) > 50
    show = [sys.executable, "-m", "reenact", "show", str(path)]
    shown = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in shown.splitlines() if "had come" in line]
    due = received[: received.rindex(" ") - 6]  # the event with the last word's beginning has six letters
    assert " ".join(due.split()) in " ".join(shown[shown.index(line) :].split())


def test_an_id_that_is_a_path_is_none(tmp_path: Path) -> None:
    (tmp_path / "run.blobs").mkdir()
    (tmp_path / "secret.part").write_text("x")
    line = '{"ts": 1.0, "run": "r", "w": "00000000", "step": 1, "kind": "model.request", "call": "../secret", "body": {}}\n'
    (tmp_path / "run.jsonl").write_text(line)
    dbg = Debugger.load(tmp_path / "run.jsonl")
    assert dbg.calls()[0].id == "../secret"
    assert dbg.recording.partial_answer(dbg.calls()[0].id) is None
    assert os.path.exists(tmp_path / "secret.part")
