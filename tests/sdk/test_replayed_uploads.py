"""Uploads that were cancelled half sent: the same code asks the same again, however much had left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from reenact.playback.matching.frontier import CHANGED, EXTRA
from reenact.playback.matching.modes import KEEP_GOING
from support.provider import Provider

from .test_replayed_connections import recording

pytestmark = pytest.mark.filterwarnings("ignore")

FORM = [
    b'--limit\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch',
    b'\r\n--limit\r\nContent-Disposition: form-data; name="file"; filename="asks.jsonl"\r\n',
    b"Content-Type: application/octet-stream\r\n\r\n",
    b'{"custom_id": "first", "method": "POST"}\n' * 9,
    b'{"custom_id": "last", "method": "POST"}\n',
    b"\r\n--limit--\r\n",
]
PICTURE = [b"\x89PNG\0", b"\xff\0" * 40, b"\xfe\0" * 40]
JSON = [b'{"input": "one",', b' "model": "m"', b"}"]
BODIES = {
    "form": ("multipart/form-data; boundary=limit", FORM),
    "picture": ("image/png", PICTURE),
    "json": ("application/json", JSON),
}


async def upload(url: str, kind: str, pieces: list[bytes], stop: int | None) -> None:
    """Send a body piece by piece and give it up; ``stop`` is where it stands still before that."""
    is_there, type_ = asyncio.Event(), BODIES[kind][0]

    async def body() -> AsyncIterator[bytes]:
        for number, piece in enumerate(pieces):
            if number == stop:
                is_there.set()
                await asyncio.sleep(60)
            yield piece
        is_there.set()

    async with httpx.AsyncClient() as client:
        sent = client.post(f"{url}/v1/files", content=body(), headers={"content-type": type_})
        task = asyncio.create_task(sent)
        await is_there.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("kind", BODIES)
def test_how_much_of_a_cancelled_upload_was_sent_makes_no_difference(
    kind: str, provider: Provider, tmp_path: Path
) -> None:
    url, pieces = provider.url("silent"), BODIES[kind][1]
    for stop in (*range(len(pieces)), None):
        trace = tmp_path / f"{stop}.jsonl"
        with recording(trace):
            asyncio.run(upload(url, kind, pieces, stop))
        with recording(tmp_path / f"{stop}-again.jsonl", by=trace) as responder:
            asyncio.run(upload(url, kind, pieces, None))
        assert responder is not None
        assert [each.code for each in responder.player.report()] == [], stop


OTHERS = {
    "another-field": [FORM[0].replace(b"batch", b"assistants"), *FORM[1:]],
    "another-name": [FORM[0], FORM[1].replace(b"asks.jsonl", b"more.jsonl"), *FORM[2:]],
    "another-text": [*FORM[:3], FORM[3].replace(b"first", b"third"), *FORM[4:]],
    "less": [*FORM[:3], FORM[3][:20], FORM[5]],
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_upload_than_the_one_that_was_cancelled_is_not_taken_for_it(
    other: str, provider: Provider, tmp_path: Path
) -> None:
    url, trace = provider.url("silent"), tmp_path / "run.jsonl"
    with recording(trace):
        asyncio.run(upload(url, "form", FORM, 4))

    async def ask() -> int:
        body = b"".join(OTHERS[other])
        headers = {"content-type": BODIES["form"][0]}
        async with httpx.AsyncClient() as client:
            return (await client.post(f"{url}/v1/files", content=body, headers=headers)).status_code

    with recording(tmp_path / "again.jsonl", by=trace, mode=KEEP_GOING) as responder:
        assert asyncio.run(ask()) == 418
    assert responder is not None
    assert [each.code for each in responder.player.report()][0] in (CHANGED, EXTRA)
