"""A fork's live requests, through every HTTP library and SDK: what leaves is what it would send without us, but
for what was changed, and the fork's own file holds exactly that."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from reenact.recording.recording import Recording
from reenact.wire.reading import model_of
from support.examples import LONG
from support.forked import type_in
from support.provider import Provider, Received

TESTS = str(Path(__file__).resolve().parent.parent)
AGENT = f"""
import asyncio, os, sys
sys.path.insert(0, {TESTS!r})
from sdk import cases
from sdk.table import CELLS, Site

async def used(result):
    if hasattr(result, "__aiter__"):
        return [each async for each in result]
    return await result

for cell in CELLS:
    if cell.outcome != "ok" or cell.play is None or cell.sdk not in sys.argv[1:] or cell.method == "many at once":
        continue
    result = cell.play(Site(os.environ["PROVIDER"] + "/s/" + cell.scenario))
    if cell.mode == "async":
        asyncio.run(used(result))
    elif cell.shape == "stream":
        list(result)
"""
LIBRARIES = ("requests", "urllib3", "http.client", "urllib", "aiohttp")
SDKS: tuple[tuple[str, ...], ...] = (LIBRARIES,)
if LONG:
    SDKS += (("anthropic",), ("openai",), ("google-genai",), ("mistralai",), ("cohere",), ("ollama",))
VOLATILE = {"content-length", "authorization", "x-amz-date", "amz-sdk-invocation-id", "x-cohere-request-id"}
LENGTHS = ("content-length", "transfer-encoding")


class Desk:
    def __init__(self, folder: Path, provider: Provider, sdk: tuple[str, ...]) -> None:
        self.folder, self.provider, self.sdk = folder, provider, sdk
        (folder / "agent.py").write_text(AGENT)
        env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        root = provider.url().partition("/s/")[0]
        self.env = {**env, "PROVIDER": root, "AWS_EC2_METADATA_DISABLED": "true"}

    def __call__(self, *words: str) -> tuple[subprocess.CompletedProcess[str], list[Received]]:
        before = len(self.provider.settled())
        done = type_in([*words, "--", "agent.py", *self.sdk], self.folder, self.env, session=True)
        return done, self.provider.settled()[before:]

    def forked(self) -> list[Any]:
        """The model requests in the file of the last fork."""
        path = max((self.folder / ".reenact").glob("*-fork-*.jsonl"), key=os.path.getmtime)
        return [event for event in Recording.load(str(path)).events if event.kind == "model.request"]


def about(received: Received) -> list[tuple[str, str]]:
    """Return the headers as they came, without what is another each time."""
    return [
        (name, "" if name.lower() in VOLATILE or value.startswith("multipart/") else value)
        for name, value in received.headers
    ]


@pytest.mark.parametrize("sdk", SDKS, ids=lambda names: names[0])
def test_what_leaves_is_what_was_sent_then_but_for_the_change(sdk, tmp_path: Path, provider) -> None:
    desk = Desk(tmp_path, provider, sdk)
    done, then = desk("run", "--name", "first")
    assert done.returncode == 0, done.stderr
    for flags, model in (((), None), (("--set", "model=other"), "other")):
        done, now = desk(
            "fork", "first", *flags, "--stale-world", "--live-tools", "all", "--max-calls", "999"
        )
        assert done.returncode == 0, done.stderr
        changed = [each for each in now if _is_changed(each, model)]
        assert len(now) == len(then) and bool(changed) == bool(flags), done.stderr
        for old, new in zip(then, now, strict=True):
            assert (new.method, about(new)) == (old.method, about(old))
            lengths = [pair for pair in new.headers if pair[0].lower() in LENGTHS]
            assert len(lengths) <= 1
            assert all(value in (str(len(new.body)), "chunked") for _, value in lengths)
            if new not in changed and "multipart/" not in repr(new.headers):
                assert (new.target, new.body) == (old.target, old.body)
        _is_in_its_file(desk.forked(), now)


def _is_changed(received: Received, model: str | None) -> bool:
    if model is None or not received.body.startswith(b"{"):
        return False
    return bool(model_of(json.loads(received.body), received.target) == model)


def _is_in_its_file(events: list[Any], now: list[Received]) -> None:
    """Every model request is recorded as it was received, in that order."""
    coming = iter(now)
    for event in events:
        where = urlsplit(event.url)
        target = unquote(where.path + (f"?{where.query}" if where.query else ""))
        found = next((each for each in coming if unquote(each.target).startswith(target[:60])), None)
        assert found is not None, event.url
        assert json.loads(found.body) == event.body, event.url


@pytest.mark.long
def test_a_signed_request_is_live_as_it_is_and_never_changed(tmp_path: Path, provider) -> None:
    desk = Desk(tmp_path, provider, ("boto3",))
    done, then = desk("run", "--name", "first")
    assert done.returncode == 0, done.stderr
    done, now = desk("fork", "first", "--stale-world", "--live-tools", "all")
    assert done.returncode == 0, done.stderr
    assert [(each.target, each.body) for each in now] == [(each.target, each.body) for each in then]
    done, now = desk("fork", "first", "--set", "temperature=0", "--stale-world", "--live-tools", "all")
    assert (done.returncode, now) == (1, []) and "is signed" in done.stderr
