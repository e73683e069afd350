"""Searching whole parts of a file finds what reading every line finds, and reports the same damage."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from reenact import lines
from reenact.debugger import search as searching
from reenact.debugger.search import FileSearch, TextSearch
from reenact.tracefile.findings import Findings

WORD = "needle"
LONG = "sha256:" + "a" * 64


def of_ours(step: int, text: str, w: str = "0a1b2c3d") -> bytes:
    return lines.whole(1_700_000_000.5 + step, "run-1", w, step, "note", {"text": text}).encode()


def odd_line(pick: random.Random, step: int, text: str) -> bytes:
    """Return a line that is not simply one of the writer's."""
    plain = of_ours(step, text)
    return pick.choice(
        [
            of_ours(step, text, w="ffff0000"),
            json.dumps({"ts": 1.0, "run": "old", "kind": "note", "text": text}).encode() + b"\n",
            json.dumps({"log": plain.decode().replace("n", "\\u006e"), "stream": "stdout"}).encode() + b"\n",
            b"2026-01-01T00:00:00Z stdout F " + plain,
            plain[: len(plain) // 2] + b"\n",
            plain[:-1] + plain,
            plain[:-1] + b"\r\n",
            b"no JSON " + text.encode() + b"\n",
            b"\n",
            b"\0\0\0" + plain,
            lines.whole(1.5, "run-1", "0a1b2c3d", step, "note", {"text": text}).encode(),
            of_ours(step, text).replace(b'"text": ', b'"text": {"$blob":"%b"}, "more": ' % LONG.encode()),
            of_ours(step, "x" * 200_000 + text),
        ]
    )


def trace(pick: random.Random) -> bytes:
    odds = pick.choice([0.0, 0.01, 0.3])
    parts = [lines.whole(1_700_000_000.0, "run-1", "0a1b2c3d", 1, "run.start", {"v": "1.0"}).encode()]
    for step in range(2, pick.choice([3, 40, 400])):
        text = pick.choice(["", "words $x ", "y" * 900]) + (
            pick.choice([WORD, "Needle"]) * (pick.random() < 0.1)
        )
        parts.append(odd_line(pick, step, text) if pick.random() < odds else of_ours(step, text))
    if pick.random() < 0.2:
        parts[-1] = parts[-1][:-5]
    return b"".join(parts)


def found(pattern: str, path: Path, **flags: int) -> tuple[list[object], list[object]]:
    findings = Findings()
    hits = FileSearch(TextSearch(pattern, **flags), [], None).hits(str(path), None, findings)
    rows = [(hit.event.stored_at, hit.event.step, hit.text[hit.begin : hit.end]) for hit in hits]
    # Damage inside a line that begins and ends as it should is seen by whoever parses it.
    return rows, [finding for finding in findings if finding.code != "fused"]


@pytest.mark.parametrize("seed", range(60))
def test_parts_of_a_file_are_searched_as_every_line_would_be(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(trace(random.Random(seed)))
    flags = {"flags": re.IGNORECASE} if seed % 3 == 0 else {}
    quick, every = found(WORD, path, **flags), found(f"(?:{WORD})", path, **flags)
    assert quick == every


def test_lines_that_cannot_match_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(of_ours(step, "hay") for step in range(1, 500)))
    read: list[int] = []
    whole = searching.LineReader.feed

    def feed(self, line):  # type: ignore[no-untyped-def]
        read.append(line[0])
        return whole(self, line)

    monkeypatch.setattr(searching.LineReader, "feed", feed)
    assert found(WORD, path)[0] == []
    assert read == [1]
