from __future__ import annotations

import pytest

from reenact import Recording, read_events
from reenact.errors import TraceFileError, UsageError
from reenact.tracefile.repair import repair
from support.written import HOTELS, Pen, worked_example


def test_a_whole_run_is_copied_byte_for_byte_with_its_blobs(tmp_path):
    path = worked_example(tmp_path)
    out = tmp_path / "copy" / "new.jsonl"
    assert repair(path, out) == []
    assert out.read_bytes() == path.read_bytes()
    assert (tmp_path / "copy" / "new.p77aa01bc.jsonl").read_bytes() == (
        tmp_path / "trip.p77aa01bc.jsonl"
    ).read_bytes()
    assert (
        Recording.load(out).context_at(Recording.load(out).event("6"))[2]["content"][0]["content"] == HOTELS
    )
    assert out.stat().st_mode & 0o777 == 0o600


def test_every_readable_event_of_a_damaged_file_gets_a_line_of_its_own(tmp_path):
    pen = Pen()
    lines = [pen("run.start", v="1.0"), *(pen("note", x=i) for i in range(8))]
    path = tmp_path / "t.jsonl"
    damaged = b"".join(
        [b"\xef\xbb\xbf", lines[0], b"\0\0\0", lines[1], lines[2].strip(), lines[3], lines[4][:30], lines[5],
         lines[6].replace(b'"x": 5', b'"x": "\xff"'), b"garbage\n", b'{"a": 1}\n', lines[7].replace(b"\n", b"\r\n"), lines[8][:-4]]
    )  # fmt: skip
    path.write_bytes(damaged)
    out = tmp_path / "out.jsonl"
    codes = {finding.code for finding in repair(path, out)}
    assert codes == {"bom", "nul", "fused", "encoding", "garbage", "foreign", "crlf", "torn"}
    assert path.read_bytes() == damaged
    found = []
    assert [e.step for e in read_events(out, on_finding=found.append)] == [1, 2, 3, 4, 6, 7, 8]
    assert {f.code for f in found} == {"gap"}
    assert out.read_bytes().count(b"\n") == 7


def test_wrapped_lines_are_unwrapped(tmp_path):
    pen = Pen()
    path = tmp_path / "t.jsonl"
    lines = [pen("run.start", v="1.0"), pen("note", x={"a": [1.5, "é", None]})]
    path.write_bytes(b"".join(b"2026-01-02T03:04:05.6Z stdout F " + line for line in lines))
    repair(path, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(lines)


def test_no_file_is_ever_overwritten(tmp_path):
    path = worked_example(tmp_path)
    before = path.read_bytes()
    (tmp_path / "link.jsonl").symlink_to(path)
    (tmp_path / "q.p77aa01bc.jsonl").write_text("mine")
    for out in (path, tmp_path / "link.jsonl", tmp_path, tmp_path / "q.jsonl"):
        with pytest.raises(UsageError, match="there already"):
            repair(path, out)
    assert path.read_bytes() == before
    with pytest.raises(TraceFileError):
        repair(tmp_path / "none.jsonl", tmp_path / "x.jsonl")


def test_a_folder_as_target_keeps_the_name(tmp_path):
    path = worked_example(tmp_path)
    repair(path, f"{tmp_path}/saved/")
    assert (tmp_path / "saved" / "trip.jsonl").exists()
