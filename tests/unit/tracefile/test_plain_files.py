"""What comes with a trace is opened only if it is a plain file: nothing waits, follows a link or unpacks without end."""

from __future__ import annotations

import hashlib
import os
import socket
import zlib

import pytest

from reenact import Recording, read_events
from reenact.playback.matching.recorded_answers import read_partial_stream
from reenact.recording.listing import list_runs
from reenact.stats.many_runs import runs
from reenact.testgen.fixture import Fixture
from reenact.testing.traces import replace_trace
from reenact.tracefile.events import stored_values
from reenact.tracefile.events.raw_streams import read_stream
from reenact.tracefile.follow import follow
from reenact.tracefile.plain_files import open_plain
from reenact.tracefile.repair import repair
from support.typed import typed
from support.written import Pen, store_blob

CALL = "a1b2c3d4e5f60718"
SECRET = "the content of a file that the trace does not own"


def pipe(path, outside):
    os.mkfifo(path)


def link(path, outside):
    path.symlink_to(outside)


def device(path, outside):
    path.symlink_to("/dev/zero")


def unix_socket(path, outside):
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(path.parent)  # the path of a socket may have 107 bytes
        try:
            listening.bind(path.name)
        finally:
            os.chdir(here)


ODD = [pipe, link, device, unix_socket]


@pytest.fixture
def outside(tmp_path):
    """A file of the reader's own, to which a hostile folder links."""
    path = tmp_path / "mine" / "secret.jsonl"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "theirs").mkdir()
    return tmp_path / "theirs"


def write(path, *lines):
    path.write_bytes(b"".join(lines))
    return path


@pytest.mark.parametrize("odd", ODD)
def test_a_long_text_that_is_no_plain_file_stays_a_reference(folder, outside, odd):
    pen = Pen()
    path = folder / "t.jsonl"
    reference = store_blob(path, SECRET)
    blob = folder / "t.blobs" / reference["$blob"].removeprefix("sha256:")
    blob.unlink()
    odd(blob, outside)
    write(path, pen("run.start", v="1.0"), pen("note", text=reference), pen("run.end", status="ok"))
    found = []
    events = list(read_events(path, on_finding=found.append))
    assert events[1].text == reference
    assert [finding.code for finding in found] == ["blob-missing"]
    code, out, _ = typed("doctor", path)
    assert code == 1 and "blob-missing" in out
    assert SECRET not in typed("show", path, "--all").out


@pytest.mark.parametrize("odd", ODD)
def test_the_part_of_a_response_is_read_only_from_a_plain_file(folder, outside, odd):
    pen = Pen()
    path = write(
        folder / "t.jsonl",
        pen("run.start", v="1.0", pid=1, host="elsewhere"),
        pen(
            "model.request",
            call=CALL,
            provider="anthropic",
            body={"model": "m", "messages": [], "stream": True},
        ),
    )
    (folder / "t.blobs").mkdir()
    odd(folder / "t.blobs" / f"{CALL}.part", outside)
    recording = Recording.load(path)
    assert recording.partial_answer(CALL) is None
    assert read_partial_stream(CALL, recording.shelf.blobs) is None
    assert typed("show", path).code == 0


@pytest.mark.parametrize("name", ["t.s0001.jsonl", "t.p00000001.jsonl"])
@pytest.mark.parametrize("odd", ODD)
def test_a_further_file_of_a_run_is_left_out_and_named_if_it_is_not_plain(folder, outside, odd, name):
    pen = Pen()
    path = write(folder / "t.jsonl", pen("run.start", v="1.0"), pen("note"), pen("run.end", status="ok"))
    odd(folder / name, outside)
    found = []
    assert len(list(read_events(path, on_finding=found.append))) == 3
    assert [(finding.code, name in finding.message) for finding in found] == [("skipped", True)]
    assert Recording.load(path).count() == 1
    assert list(follow(path, from_start=True, stop=lambda: True))[-1].kind == "run.end"
    assert repair(path, folder.parent / "copy.jsonl") == []
    for words in (["ls"], ["show"], ["cat"], ["grep", "note"], ["stats"]):
        assert typed(*words, path).code == 0


@pytest.mark.parametrize("odd", ODD)
def test_a_folder_is_read_without_what_is_no_plain_file(folder, outside, odd):
    pen = Pen()
    good = write(folder / "good.jsonl", pen("run.start", v="1.0"), pen("note"), pen("run.end", status="ok"))
    outside.write_bytes(good.read_bytes())  # a link to a trace is not followed either, unless it is named
    odd(folder / "odd.jsonl", outside)
    found = []
    assert len(list(read_events(folder, on_finding=found.append))) == 3
    assert [os.path.basename(finding.path) for finding in found] == ["odd.jsonl"]
    found.clear()
    events = list(follow(folder, from_start=True, stop=lambda: True, on_finding=found.append))
    assert len(events) == 3 and [finding.code for finding in found] == ["skipped"]
    assert [(row.name, row.status) for row in list_runs(str(folder)) if row.name == "odd"] == [
        ("odd", "unreadable")
    ]
    counted = runs(folder)
    assert len(counted) == 1 and [os.path.basename(each.path) for each in counted.skipped] == ["odd.jsonl"]
    code, out, err = typed("grep", "note", folder)
    assert code == 0 and "good.jsonl" in out and "odd.jsonl" in err and "odd.jsonl" not in out
    assert typed("show", REENACT_DIR=str(folder)).code == 0


def test_a_link_that_is_named_is_followed(folder, outside):
    pen = Pen()
    write(outside, pen("run.start", v="1.0"), pen("note"), pen("run.end", status="ok"))
    (folder / "link.jsonl").symlink_to(outside)
    assert len(list(read_events(folder / "link.jsonl"))) == 3
    for words in (["ls"], ["show"], ["cat"], ["grep", "note"], ["stats"], ["doctor"]):
        assert typed(*words, folder / "link.jsonl").code == 0


def test_opening_never_waits_and_leaves_no_descriptor_behind(folder, outside):
    before = len(os.listdir("/proc/self/fd"))
    for odd in ODD:
        odd(folder / odd.__name__, outside)
        with pytest.raises(OSError, match=r"pipe|link"):
            open_plain(str(folder / odd.__name__))
    assert len(os.listdir("/proc/self/fd")) == before


def stream_blob(path, data):
    folder = path.parent / f"{path.stem}.blobs"
    folder.mkdir(exist_ok=True)
    digest = hashlib.sha256(data).hexdigest()
    (folder / digest).write_bytes(data)
    return {"$blob": f"sha256:{digest}", "form": "stream", "bytes": len(data)}


def run_with_stream(path, raw):
    pen = Pen()
    return write(
        path,
        pen("run.start", v="1.0"),
        pen("model.request", call=CALL, provider="anthropic", body={"model": "m", "messages": []}),
        pen("model.response", call=CALL, provider="anthropic", body={"content": []}, raw=raw),
        pen("run.end", status="ok"),
    )


def test_a_stream_that_unpacks_without_end_is_not_unpacked(folder, monkeypatch):
    monkeypatch.setattr(stored_values, "MAX_BLOB", 1 << 20)
    path = folder / "t.jsonl"
    bomb = zlib.compress(b'{"chunks":[]}\n' + bytes(8 << 20), 9)
    run_with_stream(path, raw := stream_blob(path, bomb))
    recording = Recording.load(path)
    assert read_stream(raw, recording.shelf.blobs) == (None, "blob-damaged")
    Fixture(recording).write(str(folder / "fixture.jsonl"))
    assert sum(file.stat().st_size for file in folder.rglob("*") if "fixture" in str(file)) < 1 << 20


def test_a_stream_is_kept_in_a_fixture_only_if_its_digest_is_right(folder):
    path = folder / "t.jsonl"
    raw = stream_blob(path, zlib.compress(b'{"chunks":[]}\nevent: ping\n\n'))
    run_with_stream(path, raw)
    Fixture(Recording.load(path)).write(str(folder / "whole.jsonl"))
    assert len(os.listdir(folder / "whole.blobs")) == 1
    blob = folder / "t.blobs" / raw["$blob"].removeprefix("sha256:")
    blob.write_bytes(zlib.compress(b'{"chunks":[]}\nother\n\n'))
    Fixture(Recording.load(path)).write(str(folder / "changed.jsonl"))
    assert not (folder / "changed.blobs").exists()


def test_many_references_to_one_long_text_unfold_within_a_bound(folder, monkeypatch):
    monkeypatch.setattr(stored_values, "MAX_BLOB", 100_000)
    pen, path = Pen(), folder / "t.jsonl"
    reference = store_blob(path, "x" * 40_000)
    write(path, pen("run.start", v="1.0"), pen("note", texts=[reference] * 9), pen("run.end", status="ok"))
    found = []
    _, event, _ = read_events(path, on_finding=found.append)
    assert [type(text) is str for text in event.texts] == [True] * 2 + [False] * 7
    assert {finding.code for finding in found} == {"blob-large"}


def test_what_a_fixture_or_its_copy_writes_is_private(folder):
    path = folder / "t.jsonl"
    run_with_stream(path, stream_blob(path, zlib.compress(b'{"chunks":[]}\nevent: ping\n\n')))
    old = os.umask(0)
    try:
        Fixture(Recording.load(path)).write(str(folder / "traces" / "fixture.jsonl"))
        path.chmod(0o644)
        replace_trace(str(path), str(folder / "copies" / "copy.jsonl"))
    finally:
        os.umask(old)
    written = [
        place for name in ("traces", "copies") for place in (folder / name, *(folder / name).rglob("*"))
    ]
    assert len(written) == 8
    for place in written:
        assert place.stat().st_mode & 0o777 == (0o700 if place.is_dir() else 0o600)
