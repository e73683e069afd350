"""Runs of any number of events, out of a few hundred recorded ones: as long as one that was recorded, made in seconds."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .ours import feed_tap
from .workload import Conversation, Text

_WRITER = re.compile(rb'"w": "([0-9a-f]+)"')
_ENVELOPE = re.compile(rb'"step": (\d+)')
_SUMS = re.compile(rb'"tot": (\{[^}]*\})')
_TURNS = 50


def large_run(path: Path, events: int, kilobytes: int = 0) -> None:
    """Write a run that failed in its last tool; ``kilobytes`` are added to every tool result."""
    seed = path.with_suffix(".seed")
    text = Text()
    conversation = Conversation(text, 0, big_results=False, markers=True)
    feed_tap(seed, (step for _ in range(_TURNS) for step in conversation.turn(last=False)), redact=False)
    head, *body, end = seed.read_bytes().splitlines()
    seed.unlink()
    pieces = [_Line(line, text.piece(kilobytes << 10) if kilobytes else "") for line in body]
    sums = [json.loads(found[1]) for line in body if (found := _SUMS.search(line))][-1]
    with open(path, "wb") as file:
        file.write(head + b"\n")
        for copy in range(-(-events // len(body))):
            left = events - copy * len(body)
            begin = copy * len(body)
            file.write(b"".join([piece.again(begin, copy, sums) for piece in pieces[:left]]))
        envelope = _ENVELOPE.sub(b'"step": %d' % (events + 2), end[: end.index(b'"kind"')])
        failure = {"type": "ValueError", "message": "no seat is left"}
        last = (
            envelope + b'"kind": "run.end", "status": "error", "error": %s}\n' % json.dumps(failure).encode()
        )
        file.write(last)


class _Line:
    """One recorded line, to be written again with another step, other call ids and later sums."""

    def __init__(self, line: bytes, more: str) -> None:
        self._step = int(_ENVELOPE.search(line)[1])  # type: ignore[index]
        if more and b'"kind": "tool.result"' in line:
            line = line.replace(b'"result": "', b'"result": "' + json.dumps(more)[1:-1].encode(), 1)
        line = _ENVELOPE.sub(b'"step": \0', line, count=1)
        found = _SUMS.search(line)
        self._sums = json.loads(found[1]) if found else {}
        line = _SUMS.sub(b'"tot": \1', line) if found else line
        writer = _WRITER.search(line)[1]  # type: ignore[index]
        self._parts = re.split(b'(?<="%s)([0-9a-f]{8})(?=")' % writer, line)  # ids of calls

    def again(self, begin: int, copy: int, sums: dict[str, int]) -> bytes:
        parts = self._parts
        if copy:
            parts = [
                b"%08x" % (int(part, 16) + copy * 4 * _TURNS) if at % 2 else part
                for at, part in enumerate(parts)
            ]
        line = b"".join(parts).replace(b"\0", b"%d" % (self._step + begin), 1)
        if self._sums:
            now = {name: value + copy * sums[name] for name, value in self._sums.items()}
            line = line.replace(b"\1", json.dumps(now, separators=(",", ":")).encode(), 1)
        return line + b"\n"
