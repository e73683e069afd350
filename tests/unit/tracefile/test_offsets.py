from __future__ import annotations

import pytest

from reenact.tracefile.columns import line_offsets
from support.written import Pen


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


def test_a_kept_index_is_used_and_extended_as_the_file_grows(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    assert list(kept(path).starts) == [0, 4]
    assert (tmp_path / "f.jsonl.offsets").exists()
    assert list(kept(path).starts) == [0, 4]
    with path.open("ab") as file:
        file.write(b"three\nfo")
    assert list(kept(path).starts) == [0, 4, 8, 14]
    assert not kept(path).ended
    with path.open("ab") as file:
        file.write(b"ur\n")
    assert kept(path)[:3] == line_offsets(str(path), keep_from=1 << 60)[:3]
    assert [name.name for name in tmp_path.iterdir()] != []
    assert len(list(tmp_path.iterdir())) == 2


def test_a_kept_index_of_another_file_of_that_name_is_not_used(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    kept(path)
    path.write_bytes(b"1\n2\n3\nfour\n")
    assert list(kept(path).starts) == [0, 2, 4, 6]
    path.write_bytes(b"a\n")
    assert list(kept(path).starts) == [0]


@pytest.mark.parametrize(
    "damage", [b"", b"nonsense", b"reenact offsets 2\n{}\n", b"reenact offsets 2\n[]\n\0"]
)
def test_a_damaged_index_is_made_again(tmp_path, damage):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    kept(path)
    (tmp_path / "f.jsonl.offsets").write_bytes(damage)
    assert list(kept(path).starts) == [0, 4]


def test_an_index_that_cannot_be_kept_is_no_error(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"one\ntwo\n")
    (tmp_path / "f.jsonl.offsets").mkdir()
    (tmp_path / "f.jsonl.offsets" / "x").write_text("in the way")
    assert list(kept(path).starts) == [0, 4]
    assert sorted(name.name for name in tmp_path.iterdir()) == ["f.jsonl", "f.jsonl.offsets"]


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
