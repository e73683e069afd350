"""What a call of a real SDK and an event of its stream pay for being recorded, where the answer is there at once.

Bare and recorded client take turns call by call in one thread, so that nothing but the recording differs; the
rows ``sdk-call`` and ``chunk`` have the same calls over a real network, beside the rivals.
"""

from __future__ import annotations

import gc
import json
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

from .. import floors
from ..harness import Table, timed, us
from ..wire.caller import SDKS, conversation
from ..wire.provider import provider
from ..wire.recording import WAYS, bare

BUDGETS_MS = {1: 0.4, 200: 1.2}
BUDGETS_US = {"anthropic": 6, "openai": 12}
OURS = ("wrap", "wrap, redact=False")
LONG, SHORT = 300, 30
"""Words of the two streams: what the longer one costs more is the cost of its further events."""
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    rounds, calls = (3, 8) if quick else (5, 16)
    folders: Iterator[Path] = (folder / f"round{number}" for number in range(10_000))
    for sdk in SDKS:
        with provider() as url:
            plain = _answer(f"{url}/s/text", sdk, stream=False)
            streams = {words: _answer(f"{url}/s/long-{words}", sdk, stream=True) for words in (LONG, SHORT)}
        for kb, budget in BUDGETS_MS.items():
            added, alone = _added(sdk, plain, kb, False, rounds, calls, folders)
            for way in OURS:
                table.add(
                    f"{sdk}, {kb} KB: {way}",
                    added[way] / 1e6,
                    unit="ms",
                    budget=budget if way == "wrap" else None,
                    floor=added["floor"] / 1e6 if way == "wrap" else None,
                    ours=us(alone + added[way]),
                    against="bare",
                    theirs=us(alone),
                )
        _streams(table, sdk, streams, rounds, calls, folders)
    table.notes.append(
        f"CPU time of the thread, a transport that answers at once; median of {calls} pairs, then of {rounds} rounds; "
        f"a streamed event: a stream of {LONG} words less one of {SHORT}"
    )
    return table


def _streams(
    table: Table, sdk: str, streams: dict[int, list[bytes]], rounds: int, calls: int, folders: Iterator[Path]
) -> None:
    found = {words: _added(sdk, events, 1, True, rounds, calls, folders) for words, events in streams.items()}
    more = len(streams[LONG]) - len(streams[SHORT])
    each = {way: (found[LONG][0][way] - cost) / more / 1e3 for way, cost in found[SHORT][0].items()}
    for way in OURS:
        table.add(
            f"{sdk}, one streamed event: {way}",
            each[way],
            unit="µs",
            budget=BUDGETS_US[sdk] if way == "wrap" else None,
            floor=each["floor"] if way == "wrap" else None,
            against="bare",
            theirs=us((found[LONG][1] - found[SHORT][1]) / more),
        )


def _added(
    sdk: str,
    answer: list[bytes],
    kb: int,
    stream: bool,
    rounds: int,
    calls: int,
    folders: Iterator[Path],
) -> tuple[dict[str, float], float]:
    """Return the nanoseconds that each way of recording adds to a call, and those of the bare call."""
    found: list[tuple[dict[str, float], float]] = []
    for _ in range(rounds):
        spent = _round(sdk, answer, conversation(kb), stream, calls, folders)
        added = {
            way: median(mine - alone for mine, alone in zip(spent[way], spent["bare"], strict=True))
            for way in spent
        }
        found.append((added, median(spent["bare"])))
    added = {way: median(each[way] for each, _ in found) for way in found[0][0]}
    return added, median(alone for _, alone in found)


def _round(
    sdk: str,
    answer: list[bytes],
    messages: list[dict[str, Any]],
    stream: bool,
    calls: int,
    folders: Iterator[Path],
) -> dict[str, list[int]]:
    ways: dict[str, Callable[..., int]] = {}
    recordings = []
    for way in ("bare", *OURS, "floor"):
        home = next(folders)
        home.mkdir()
        transport = Floor(answer, home / "floor.jsonl") if way == "floor" else Instant(answer)
        client, ways[way] = SDKS[sdk]("http://127.0.0.1:1", http_client=httpx2.Client(transport=transport))
        recording = WAYS.get(way, bare)(client, home)
        recording.__enter__()
        recordings.append(recording)
    spent: dict[str, list[int]] = {way: [] for way in ways}
    gc.collect()
    for number in range(-2, calls):
        for way, call in ways.items():
            (cost,) = timed([lambda call=call: call(messages, stream)])
            if number >= 0:
                spent[way].append(cost)
        messages += [
            {"role": "assistant", "content": "Lisbon has seven hills."},
            {"role": "user", "content": f"And number {number}, what is it called?"},
        ]
    for recording in recordings:
        recording.__exit__(None, None, None)
    return spent


class Instant(httpx2.BaseTransport):
    """Answers every request with the same pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        kind = "application/json" if len(pieces) == 1 else "text/event-stream"
        self.headers = {"content-type": kind}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        return httpx2.Response(200, headers=self.headers, stream=Pieces(self.pieces))


class Floor(Instant):
    """Parses, compares and writes a request before it leaves; so with its response, or each event of a stream."""

    def __init__(self, pieces: list[bytes], path: Path) -> None:
        super().__init__(pieces)
        self.path, self.look = path, floors.search()
        self.conversation = floors.Conversation(floors.Writer(path, look=self.look))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.conversation.request(json.loads(request.read()))
        if len(self.pieces) > 1:
            pieces = Pieces(floors.stream(self.path.with_suffix(".part"), self.pieces, self.look))
            return httpx2.Response(200, headers=self.headers, stream=pieces)
        response = super().handle_request(request)
        body = json.loads(b"".join(self.pieces))
        self.conversation.writer.record(
            "response", {"model": body["model"], "usage": body["usage"], "body": body}
        )
        return response


class Pieces(httpx2.SyncByteStream):
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)


def _answer(url: str, sdk: str, *, stream: bool) -> list[bytes]:
    """Return what the scripted provider answers: a body, or each event of a stream."""
    body = {"model": "claude-sonnet-4-6" if sdk == "anthropic" else "gpt-5-mini", "max_tokens": 1024}
    body |= {"messages": conversation(1), "stream": stream}
    headers = {"content-type": "application/json", "x-api-key": "none", "authorization": "Bearer none"}
    headers |= {"anthropic-version": "2023-06-01"} if sdk == "anthropic" else {}
    request = urllib.request.Request(url + PATHS[sdk], json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        data: bytes = response.read()
    return [event + b"\n\n" for event in data.split(b"\n\n") if event] if stream else [data]
