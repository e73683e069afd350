"""Floors: the least that a program does which keeps the guarantees of a row, in as few steps as Python has.

Each is measured in the run of its row, beside ours. They leave out what a recorder has for its users: front ends,
listeners, files that move, names of calls, other dialects, damage. ``python -m benchmarks.floors ls|stats|grep``
are commands of that kind.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from _operator import ne
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import compress, count
from pathlib import Path
from threading import Lock
from typing import Any

from .baselines.common import Baseline


def search() -> Callable[[bytes], object]:
    """Return the exact search for secrets: False is certain."""
    from reenact.capture.redact.prefilter import scan

    return lambda data: scan(data, None)


def passes() -> Callable[[bytes], object]:
    """Return the search without a look at what it finds: one pass of RE2, else one for each word."""
    from reenact.capture.redact.prefilter import _KEY_WORDS
    from reenact.capture.redact.re2_prefilter import first_look
    from reenact.capture.redact.table import MASK, OAUTH_CODE, RUN_START, SIGNATURES

    look = first_look(None)
    if look is not None:
        return look
    words = [*(stem for stem, _ in _KEY_WORDS), b"@", b"&", *SIGNATURES, OAUTH_CODE, b"hook", b"-u", b"$"]

    def all_words(data: bytes) -> None:
        data.translate(MASK).rfind(RUN_START)
        low = data.lower()
        for word in words:
            low.rfind(word)

    return all_words


class Writer(Baseline):
    """An event: its values surveyed, encoded in C, searched for secrets, numbered under a lock, one write."""

    def __init__(self, path: Path, *, look: Callable[[bytes], object] | None) -> None:
        from reenact import lines

        super().__init__(path)
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.look = look
        self.dumps, self.lock, self.step = lines.dumps_if_plain, Lock(), 0

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self.write(kind, self.dumps(payload) or "")

    def write(self, kind: str, text: str) -> None:
        data = text.encode("ascii")
        if self.look is not None:
            self.look(data)
        with self.lock:
            self.step += 1
            head = f'{{"ts": {time.time():.6f}, "run": "0123456789abcdef", "step": {self.step}, "kind": "{kind}", '
            os.write(self.fd, head.encode("ascii") + data[1:] + b"\n")

    def close(self) -> None:
        os.close(self.fd)


class Conversation:
    """Requests: each message compared with a copy of our own, only what is new written, a hash over all of it."""

    def __init__(self, writer: Writer) -> None:
        from reenact.capture.recorder.deltas import small_change
        from reenact.capture.recorder.jsonable import frozen

        self.writer, self.frozen, self.small_change = writer, frozen, small_change
        self.copies: list[Any] = []
        self.texts: list[bytes] = []
        self.rest: object = None
        self.answer: object = None

    def request(self, body: dict[str, Any]) -> None:
        messages, old = body["messages"], self.copies
        kept, at = self._same(messages, 0, 0), 0
        if kept + 2 < len(old) and kept < len(messages):  # a window has moved on by a few places
            at = next((place for place in range(kept + 1, kept + 4) if messages[kept] == old[place]), 0)
        moved = self._same(messages, kept, at) if at else 0
        new = list(map(self.frozen, messages[kept + moved :]))
        texts = [self.writer.dumps(message) or "" for message in new]
        written = [f'{{"$same":["0123456789abcdef",{place}]}}' for place in range(at, at + moved)]
        written += [self._written(kept + moved + n, each, texts[n]) for n, each in enumerate(new)]
        self.texts = [
            *self.texts[:kept],
            *self.texts[at : at + moved],
            *(text.encode("ascii") for text in texts),
        ]
        self.copies = [*old[:kept], *old[at : at + moved], *new]
        chain = b""
        for text in self.texts[kept:]:
            chain = blake2b(chain + text, digest_size=8).digest()
        rest = {key: value for key, value in body.items() if key != "messages"}
        others = "" if rest == self.rest else f', "rest": {self.writer.dumps(rest)}'
        self.rest = self.frozen(rest) if others else self.rest
        new_text = ",".join(written)
        self.writer.write(
            "request", f'{{"keep": {kept}, "chain": "{chain.hex()}", "new": [{new_text}]{others}}}'
        )

    def _written(self, place: int, message: Any, text: str) -> str:
        """Return a message as it stands in the line: the answer of before or a moved marker as a reference."""
        if message["content"] == self.answer:
            return '{"$answer":"0123456789abcdef"}'
        change = self.small_change(self.copies[place], message) if place < len(self.copies) else None
        return (
            text
            if change is None
            else self.writer.dumps({"same": place, "drop": change[0], "set": change[1]}) or ""
        )

    def _same(self, messages: list[Any], begin: int, place: int) -> int:
        """Return how many messages from here on are the same; one loop in C."""
        differ = map(
            ne, messages[begin:] if begin else messages, self.copies[place:] if place else self.copies
        )
        return next(compress(count(), differ), min(len(messages) - begin, len(self.copies) - place))

    def response(self, body: dict[str, Any]) -> None:
        self.answer = self.frozen(body["content"])
        sums = {"model": body["model"], "usage": body["usage"], "stop_reason": body["stop_reason"]}
        self.writer.record("response", {**sums, "body": body})


def agent_run(path: Path, steps: Iterator[Any], look: Callable[[bytes], object] | None) -> int:
    """Record a run; return the CPU nanoseconds inside the calls."""
    clock = time.thread_time_ns
    begin = clock()
    writer = Writer(path, look=look)
    spent = clock() - begin
    conversations: dict[object, Conversation] = {}
    for kind, conversation, fields in steps:
        begin = clock()
        if kind == "request":
            if conversation not in conversations:
                conversations[conversation] = Conversation(writer)
            conversations[conversation].request(fields["body"])
        elif kind == "response":
            conversations[conversation].response(fields["body"])
        else:
            writer.record(kind, fields)
        spent += clock() - begin
    writer.close()
    return spent


def stream(path: Path, pieces: list[bytes], look: Callable[[bytes], object]) -> Iterator[bytes]:
    """Each piece of a stream kept with its time, searched and written as it comes, parsed at the end."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    arrived = []
    for piece in pieces:
        arrived.append((piece, time.monotonic()))
        look(piece)
        os.write(fd, piece)
        yield piece
    for piece, _ in arrived:
        data = piece.partition(b"data: ")[2]
        if data[:1] == b"{":
            json.loads(data)
    os.close(fd)


# Commands.

_PLAIN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_SMALL = 8 << 10


def ls(folder: str) -> None:
    """Open each file as a plain one, parse its first and last line, print a row."""
    rows = []
    for entry in os.scandir(folder):
        fd = os.open(entry.path, _PLAIN)
        state = os.fstat(fd)
        if stat.S_ISREG(state.st_mode):
            data = os.read(fd, _SMALL)
            first = json.loads(data[: data.find(b"\n")])
            tail = data if state.st_size <= _SMALL else os.pread(fd, _SMALL, state.st_size - _SMALL)
            last = json.loads(tail[tail.rfind(b"\n", 0, -1) + 1 :])
            rows.append((first["ts"], entry.name, last["kind"], last["step"], last["tot"]))
        os.close(fd)
    rows.sort()
    for ts, name, kind, step, tot in rows:
        line = f"{kind:10}  {name:30.30}  {tot['turns']:5}  {step:5}  {tot['in']:6}  {tot['err']:4}  {ts:.0f}"
        print(line if line.isprintable() else ascii(line))


def stats(folder: str) -> None:
    """Parse every line, join calls by id, sum tokens, durations and money by model, calls by tool."""
    from decimal import Decimal

    prices = {"input": Decimal("3e-6"), "output": Decimal("15e-6")}
    prices |= {"cache_read": Decimal("3e-7"), "cache_write": Decimal("375e-8")}
    models: dict[str, dict[str, Any]] = {}
    tools: dict[str, list[float]] = {}
    for entry in os.scandir(folder):
        begun: dict[str, Any] = {}
        with open(entry.path, "rb") as file:
            for line in file:
                event = json.loads(line)
                kind = event["kind"]
                if kind in ("model.request", "tool.called"):
                    begun[event["call"]] = event
                elif kind == "model.response" and begun.pop(event["call"], None) is not None:
                    row = models.setdefault(event["model"], {"usd": Decimal(0), "ms": []})
                    row["ms"].append(event["duration_ms"])
                    for name, price in prices.items():
                        amount = event["usage"].get(name, 0)
                        row[name] = row.get(name, 0) + amount
                        row["usd"] += price * amount
                    for block in event["body"]["content"]:
                        if block["type"] == "tool_use":
                            begun[block["id"]] = block
                elif kind == "tool.result" and begun.pop(event["call"], None) is not None:
                    begun.pop(event["tool_id"], None)
                    tools.setdefault(event["tool"], []).append(event["duration_ms"])
    print(models.keys(), tools.keys())


def grep(word: str, folder: str) -> None:
    """Read blocks, look for the word and for references to other files, check both ends of every line."""
    needle = word.encode()
    for entry in os.scandir(folder):
        fd = os.open(entry.path, _PLAIN)
        head = os.pread(fd, 4096, 0).partition(b', "step": ')[0] + b', "step": '
        writer, rest = head[head.find(b', "run": ') :], b""
        ahead = len(head) - len(writer) + 1
        while block := os.read(fd, 96 << 10):
            data = rest + block
            stop = data.rfind(b"\n") + 1
            rest, data = data[stop:], data[:stop]
            if data.find(needle) >= 0 or data.find(b'{"$blob"') >= 0:
                for line in data.splitlines():
                    if needle in line:
                        print(line)
            at = data.find(b"\n")
            while 0 <= at < len(data) - 1:
                begin = at + ahead
                if data[begin : begin + len(writer)] != writer or data[at - 1 : at + 2] != b"}\n{":
                    print("another writer, or damage")
                at = data.find(b"\n", begin)
        os.close(fd)


if __name__ == "__main__":
    {"ls": ls, "stats": stats, "grep": grep}[sys.argv[1]](*sys.argv[2:])
