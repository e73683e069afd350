from __future__ import annotations

import json
import os
import struct

import pytest

from reenact.tracefile import cache as kept_files
from reenact.tracefile.columns import line_offsets
from support.written import Pen


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "reenact"


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a", b"a\n", b"a\nb", b"\n\n\nb\n", b"x" * 600_000 + b"\n" + b"y\n" * 200_000]
)
def test_offsets_are_where_lines_begin(tmp_path, data):
    path = tmp_path / "f"
    path.write_bytes(data)
    starts, size, ended, _ = line_offsets(str(path))
    lines = data.split(b"\n")
    expected, at = [], 0
    for line in lines[:-1] if data.endswith(b"\n") or not data else lines:
        expected.append(at)
        at += len(line) + 1
    assert list(starts) == expected
    assert size == len(data)
    assert ended == (not data or data.endswith(b"\n"))


def kept(path):
    return line_offsets(str(path), keep_from=1)


def test_a_kept_index_is_used_and_extended_as_the_file_grows(tmp_path, cache):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    assert list(kept(path).starts) == [0, 4]
    (entry,) = cache.iterdir()
    assert list(kept(path).starts) == [0, 4]
    with path.open("ab") as file:
        file.write(b"three\nfo")
    assert list(kept(path).starts) == [0, 4, 8, 14]
    assert not kept(path).ended
    with path.open("ab") as file:
        file.write(b"ur\n")
    assert kept(path)[:3] == line_offsets(str(path), keep_from=1 << 60)[:3]
    assert list(cache.iterdir()) == [entry]
    assert [file.name for file in tmp_path.iterdir()] == ["f.jsonl"]  # nothing is written beside a trace


def test_a_kept_index_of_another_file_of_that_name_is_not_used(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    kept(path)
    path.write_bytes(b"1\n2\n3\nfour\n")
    assert list(kept(path).starts) == [0, 2, 4, 6]
    path.write_bytes(b"a\n")
    assert list(kept(path).starts) == [0]


def index(size, starts, book, **header):
    """The bytes of an entry for a file of 8 bytes whose digest and time are copied from a true one."""
    numbers = struct.pack(f"<{len(starts) + len(book)}Q", *starts, *book)
    return (
        b"reenact offsets 3\n"
        + json.dumps({"size": size, "lines": len(starts)} | header).encode()
        + b"\n"
        + numbers
    )


FALSE = {
    "a line too many": (8, [0, 2, 4], [9]),
    "not in order": (8, [0, 6, 4], []),
    "twice the same": (8, [0, 4, 4], []),
    "beyond the end": (8, [0, 8], []),
    "of 2**63": (8, [0, 1 << 63], []),
    "a first line that is not the first": (8, [4], []),
    "no line": (8, [], []),
    "book beyond the lines": (8, [0, 4], [(1 << 64) - 1]),
    "book out of order": (8, [0, 4], [1, 0]),
    "more than the file has": (9, [0, 4], []),
    "of no bytes": (0, [0], []),
    "size that is not a number": ("8", [0, 4], []),
    "a negative count": (8, [0, 4], [], -1),
    "a count that is not a number": (8, [0, 4], [], 2.0),
}


@pytest.mark.parametrize("case", FALSE)
def test_an_index_is_checked_before_it_is_believed(tmp_path, cache, case):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    kept(path)
    (entry,) = cache.iterdir()
    true = json.loads(entry.read_bytes().split(b"\n")[1])
    header = {"mtime": true["mtime"], "digest": true["digest"]}
    size, starts, book, *count = FALSE[case]
    entry.write_bytes(index(size, starts, book, **header, **({"lines": count[0]} if count else {})))
    assert list(kept(path).starts) == [0, 4] and list(kept(path).book) == []


@pytest.mark.parametrize(
    "damage", [b"", b"nonsense", b"reenact offsets 3\n{}\n", b"reenact offsets 3\n[]\n\0", b"\n" * 9]
)
def test_a_damaged_index_is_made_again(tmp_path, cache, damage):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    kept(path)
    (entry,) = cache.iterdir()
    entry.write_bytes(damage)
    assert list(kept(path).starts) == [0, 4]
    assert entry.read_bytes().startswith(b"reenact offsets 3\n{")


def test_an_index_is_private_and_written_through_no_link(tmp_path, cache):
    path, precious = tmp_path / "f.jsonl", tmp_path / "precious"
    path.write_bytes(b"one\ntwo\n")
    precious.write_text("mine")
    kept(path)
    (entry,) = cache.iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600 and cache.stat().st_mode & 0o777 == 0o700
    entry.unlink()
    entry.symlink_to(precious)
    for name in (f"f.jsonl.offsets.{os.getpid()}", "f.jsonl.offsets"):  # where they once were
        (tmp_path / name).symlink_to(precious)
    assert list(kept(path).starts) == [0, 4]
    assert precious.read_text() == "mine" and not entry.is_symlink()


def test_an_index_that_comes_with_a_trace_is_not_read(tmp_path, cache):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    kept(path)
    (entry,) = cache.iterdir()
    (tmp_path / "f.jsonl.offsets").write_bytes(
        entry.read_bytes().replace(struct.pack("<Q", 4), struct.pack("<Q", 5))
    )
    entry.unlink()
    assert list(kept(path).starts) == [0, 4]


def test_an_index_that_cannot_be_kept_is_no_error(tmp_path, cache):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    cache.write_text("in the way")
    assert list(kept(path).starts) == [0, 4]


def test_only_the_newest_indexes_stay(tmp_path, cache, monkeypatch):
    monkeypatch.setattr("reenact.tracefile.cache._MOST", 3)
    for number in range(5):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"one\ntwo\n")
        kept(path)
    assert len(list(cache.iterdir())) == 3


def test_lines_too_short_for_events_are_not_counted_to_their_end(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"\n" * (1 << 20))
    assert not line_offsets(str(path), shortest=40).ended
    assert len(line_offsets(str(path), shortest=40).starts) < 1 << 19


def test_the_recorders_own_lines_are_kept_too(tmp_path):
    path, pen = tmp_path / "f.jsonl", Pen()
    lines = [
        pen("run.start", v="1.0"),
        pen("note", text='"kind": "run.end"', run={"kind": "run.end"}),
        pen("proc.note"),
    ]
    path.write_bytes(b"".join(lines) + pen("run.end")[:-1])
    assert list(kept(path).book) == [0, 2, 3]
    assert list(kept(path).book) == [0, 2, 3]
    pen.step -= 1
    path.write_bytes(b"".join(lines) + pen("note") + pen("note") + pen("run.end"))
    assert list(kept(path).book) == [0, 2, 5]
    assert list(kept(path).book) == [0, 2, 5]


def test_a_kept_index_takes_no_more_memory_than_it_has(cache):
    """Its bound goes with the trace: for one of many gigabytes no machine has as much."""
    kept_files.store("x.offsets", b"abc")
    assert kept_files.load("x.offsets", 1 << 60) == b"abc"
    assert kept_files.load("x.offsets", 2) is None
