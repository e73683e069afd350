"""Real clients and a recording: one call more, streams and plain calls, retries, failures, secrets."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
import requests

from reenact.errors import Diverged
from reenact.playback.matching.frontier import WRONG_KIND
from reenact.playback.matching.modes import KEEP_GOING
from support.provider import Provider

from .test_replayed_connections import recording

pytestmark = pytest.mark.filterwarnings("ignore")
MESSAGES: Any = [{"role": "user", "content": "Seven hills?"}]


def six(url: str, *, inserted: bool = False) -> tuple[list[Any], list[Any]]:
    """What six calls of two SDKs gave, plain and streamed, and what became of one between them."""
    claude = anthropic.Anthropic(base_url=url, api_key="none")
    gpt = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    found: list[Any] = []
    refused: list[Any] = []
    for number in range(3):
        printed: Any = [{"role": "user", "content": f"Hill {number}"}]
        found.append(claude.messages.create(model="m", max_tokens=9, messages=printed).to_dict())
        if inserted and number == 1:
            other: Any = [{"role": "user", "content": "Which river is there?"}]
            for ask in (
                lambda: claude.messages.create(model="m", max_tokens=9, messages=other),
                lambda: gpt.chat.completions.create(model="m", messages=other),
            ):
                try:
                    ask()
                except (anthropic.APIStatusError, openai.APIStatusError) as error:
                    refused.append(error.status_code)
        stream = gpt.chat.completions.create(model="m", messages=printed, stream=True)
        found.append([chunk.to_dict() for chunk in stream])
    return found, refused


def test_calls_put_in_between_are_named_and_all_others_keep_their_answers(
    provider: Provider, tmp_path: Path
) -> None:
    url = provider.url("text")
    with recording(tmp_path / "run.jsonl"):
        first, _ = six(url)
    before = len(provider.settled())
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl", mode=KEEP_GOING) as responder:
        again, refused = six(url, inserted=True)
    assert again == first and len(again) == 6
    assert refused == [418, 418], "each asked once: no SDK tries again"
    assert responder is not None
    reported = responder.player.report()
    assert [each.code for each in reported] == [WRONG_KIND] * 2, "a streamed call stood there"
    assert [str(each.now).rpartition("/")[2] for each in reported] == ["messages", "completions"]
    assert len(provider.settled()) == before


CHAT: dict[str, Any] = {"model": "m", "messages": MESSAGES}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Seven hills?"}]}]}
CONVERSE = {"messages": [{"role": "user", "content": [{"text": "Seven hills?"}]}]}
INVOKE = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": MESSAGES}
DIALECTS: dict[str, list[tuple[str, Any]]] = {
    "anthropic": [("/v1/messages", {**CHAT, "max_tokens": 9, "stream": on}) for on in (False, True)],
    "openai": [("/v1/chat/completions", {**CHAT, "stream": on}) for on in (False, True)],
    "responses": [("/v1/responses", {"model": "m", "input": "Hills?", "stream": on}) for on in (False, True)],
    "gemini": [(f"/v1beta/models/m:{verb}", GEMINI) for verb in ("generateContent", "streamGenerateContent")],
    "converse": [(f"/model/m/{verb}", CONVERSE) for verb in ("converse", "converse-stream")],
    "invoke": [(f"/model/m/{verb}", INVOKE) for verb in ("invoke", "invoke-with-response-stream")],
    "ollama": [("/api/chat", {**CHAT, "stream": on}) for on in (False, None)],
    "cohere": [("/v2/chat", {**CHAT, "stream": on}) for on in (False, True)],
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_never_answers_a_plain_call_nor_the_other_way(
    dialect: str, provider: Provider, tmp_path: Path
) -> None:
    url, asks = provider.url("text"), DIALECTS[dialect]
    for number, (path, body) in enumerate(asks):
        trace, (other_path, other) = tmp_path / f"{number}.jsonl", asks[1 - number]
        body, other = ({k: v for k, v in each.items() if v is not None} for each in (body, other))
        with recording(trace):
            first = httpx.post(url + path, json=body).content
        with recording(tmp_path / f"{number}-same.jsonl", by=trace):
            assert len(httpx.post(url + path, json=body).content) > 0 and first
        with recording(tmp_path / f"{number}-other.jsonl", by=trace), pytest.raises(Diverged):
            httpx.post(url + other_path, json=other)


def test_attempts_are_made_again_without_waiting(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice refused, each time told to wait; then as many attempts again, and hardly a pause."""

    def ask() -> list[Any]:
        provider.reset()
        where = provider.url("text,status-429,times-2,after-40")
        claude = anthropic.Anthropic(base_url=where, api_key="none", max_retries=3)
        one = claude.messages.create(model="m", max_tokens=9, messages=MESSAGES).to_dict()
        provider.reset()
        gpt = openai.AsyncOpenAI(base_url=f"{where}/v1", api_key="none", max_retries=3)
        two = asyncio.run(_awaited(gpt.chat.completions.create(model="m", messages=MESSAGES)))
        return [one, two.to_dict()]

    with recording(tmp_path / "run.jsonl"):
        first = ask()
    slept: list[float] = []
    really, later = time.sleep, asyncio.sleep

    async def sleep_later(seconds: float, *result: Any) -> Any:
        slept.append(seconds)
        return await later(seconds, *result)

    monkeypatch.setattr(time, "sleep", lambda seconds: (slept.append(seconds), really(seconds))[1])
    monkeypatch.setattr(asyncio, "sleep", sleep_later)
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl") as responder:
        assert ask() == first
    assert responder is not None and responder.player.report() == [] and responder.answered == 6
    assert max(slept) < 0.01


async def _awaited(call: Any) -> Any:
    return await call


def test_what_could_not_be_reached_raises_what_it_raised(tmp_path: Path) -> None:
    def ask(url: str) -> list[Any]:
        found: list[Any] = []
        for client in (
            anthropic.Anthropic(base_url=url, api_key="none", max_retries=1),
            openai.OpenAI(base_url=url, api_key="none", max_retries=1),
        ):
            call: Any = (
                client.messages if isinstance(client, anthropic.Anthropic) else client.chat.completions
            )
            with pytest.raises((anthropic.APIConnectionError, openai.APIConnectionError)) as caught:
                call.create(model="m", max_tokens=9, messages=MESSAGES)
            found.append([type(caught.value), str(caught.value), type(caught.value.__cause__).__name__])
        return found

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        with recording(tmp_path / "run.jsonl"):
            first = ask(url)
    with recording(tmp_path / "again.jsonl", by=tmp_path / "run.jsonl") as responder:
        assert ask(url) == first
    assert responder is not None and responder.player.report() == []


KEYS = {"one": "sk-ant-api03-" + "Ab3dEf6hIj9l" * 7, "two": "ghp_" + "aB3dE6gH9jK2" * 3}


def test_secrets_are_compared_by_kind_however_they_are_numbered(provider: Provider, tmp_path: Path) -> None:
    """In a body, a query, a form and a header; sent back as a placeholder by who was given one."""
    notes: list[Any] = []

    def ask(keys: dict[str, str]) -> None:
        echo = provider.url("text", "/echo")
        headers = {"Authorization": f"Bearer {keys['two']}"}
        seen = requests.post(f"{echo}?token={keys['one']}&page=2", data={"key": keys["two"]}, headers=headers)
        printed = f"{seen.text} and {keys['one']} and {keys['two']}"
        client = anthropic.Anthropic(base_url=provider.url("text"), api_key="none")
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": printed}])
        client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": f"again {printed}"}]
        )

    with recording(tmp_path / "run.jsonl", everything=True):
        ask(KEYS)
    stored = (tmp_path / "run.jsonl").read_text()
    assert "<redacted:" in stored and not any(key in stored for key in KEYS.values())
    rotated = {"one": KEYS["one"].replace("Ab3", "Zy8"), "two": KEYS["two"].replace("aB3", "zY8")}
    for number, keys in enumerate((KEYS, rotated)):
        with recording(tmp_path / f"{number}.jsonl", by=tmp_path / "run.jsonl", everything=True) as responder:
            assert responder is not None
            responder._note = notes.append
            ask(keys)
        assert responder.player.report() == []
    assert [(note.kind, note.plain()["why"]) for note in notes] == [("inexact", ["redacted"])] * 2
