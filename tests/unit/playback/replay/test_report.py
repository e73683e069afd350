"""A report that is read while processes write to it: each note once, and no line before it is whole."""

from __future__ import annotations

from pathlib import Path

from reenact.playback.replay.report import Began, Growing, Live, Unknown, encode, read


def test_each_look_returns_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    growing = Growing(str(path))
    assert growing.new() == [] == read(str(path))
    path.write_bytes(encode(Began(1)) + encode(Live("http://x", "model"))[:9])
    assert growing.new() == [Began(1)]
    assert growing.new() == []
    with path.open("ab") as file:
        file.write(encode(Live("http://x", "model"))[9:] + encode(Began(2)))
    assert growing.new() == [Live("http://x", "model"), Began(2)]
    assert read(str(path)) == [Began(1), Live("http://x", "model"), Began(2)]


def test_a_line_that_stays_unfinished_is_reported_in_the_end(tmp_path: Path) -> None:
    path = tmp_path / "report.jsonl"
    path.write_bytes(encode(Began(1)) + b'{"kind": "liv')
    assert Growing(str(path)).new() == [Began(1)]
    began, unknown = read(str(path))
    assert began == Began(1) and isinstance(unknown, Unknown)
